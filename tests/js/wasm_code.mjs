// Reads the instructions of a wasm module: enough of the binary format to find out which it uses.

class Reader {
  constructor(bytes, at = 0, end = bytes.length) {
    Object.assign(this, { bytes, at, end });
  }

  byte() {
    if (this.at >= this.end) throw new Error(`wasm ends at ${this.end}, inside something`);
    return this.bytes[this.at++];
  }

  /** An integer in LEB128, of either sign; its value only if it is unsigned and below 2^32. */
  number() {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.byte();
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  }

  skip(n) {
    this.at += n;
  }

  numbers(n) {
    for (let i = 0; i < n; i++) this.number();
  }
}

const isBetween = (x, low, high) => x >= low && x <= high;

/** Alignment and offset, and a memory's index where the alignment says so. */
function skipAddress(reader) {
  if (reader.number() & 64) reader.number();
  reader.number();
}

function skipOperandsOfSimd(opcode, reader) {
  if (opcode <= 11 || opcode === 92 || opcode === 93) skipAddress(reader);
  else if (opcode === 12 || opcode === 13) reader.skip(16);
  else if (isBetween(opcode, 21, 34)) reader.skip(1);
  else if (isBetween(opcode, 84, 91)) {
    skipAddress(reader);
    reader.skip(1);
  }
}

function skipOperandsOfBulk(opcode, reader) {
  const numbers = { 8: 2, 9: 1, 10: 2, 11: 1, 12: 2, 13: 1, 14: 2, 15: 1, 16: 1, 17: 1 };
  reader.numbers(numbers[opcode] ?? 0);
}

function skipOperandsOfAtomics(opcode, reader) {
  if (opcode === 3) reader.skip(1);
  else skipAddress(reader);
}

const PREFIXES = { 0xfc: skipOperandsOfBulk, 0xfd: skipOperandsOfSimd, 0xfe: skipOperandsOfAtomics };

function skipOperands(opcode, reader) {
  if (isBetween(opcode, 0x02, 0x04))
    reader.number(); // block type
  else if (opcode === 0x0c || opcode === 0x0d || opcode === 0x10 || opcode === 0x12) reader.number();
  else if (opcode === 0x0e) reader.numbers(reader.number() + 1);
  else if (opcode === 0x11 || opcode === 0x13) reader.numbers(2);
  else if (opcode === 0x1c) reader.numbers(reader.number());
  else if (isBetween(opcode, 0x20, 0x26) || opcode === 0x3f || opcode === 0x40) reader.number();
  else if (isBetween(opcode, 0x28, 0x3e)) skipAddress(reader);
  else if (opcode === 0x41 || opcode === 0x42 || opcode === 0xd0 || opcode === 0xd2) reader.number();
  else if (opcode === 0x43) reader.skip(4);
  else if (opcode === 0x44) reader.skip(8);
  else if (opcode > 0xd2) throw new Error(`opcode ${opcode} is not known here`);
}

/** Every instruction of every function as [prefix, opcode], prefix 0 for those of one byte. */
export function* instructions(bytes) {
  const module = new Reader(bytes, 8);
  while (module.at < bytes.length) {
    const id = module.byte();
    const size = module.number();
    const section = new Reader(bytes, module.at, module.at + size);
    module.skip(size);
    if (id !== 10) continue;
    for (let functions = section.number(); functions > 0; functions--) {
      const length = section.number();
      const body = new Reader(bytes, section.at, section.at + length);
      section.skip(length);
      for (let locals = body.number(); locals > 0; locals--) body.numbers(2);
      let last;
      while (body.at < body.end) {
        const first = (last = body.byte());
        if (PREFIXES[first]) {
          const opcode = body.number();
          PREFIXES[first](opcode, body);
          yield [first, opcode];
        } else {
          skipOperands(first, body);
          yield [0, first];
        }
      }
      if (last !== 0x0b || body.at !== body.end) throw new Error('a function was misread');
    }
  }
}
