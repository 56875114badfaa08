#!/usr/bin/env python3
"""Reference writer and reader of .mlt tokenizer files, and a command line to look at them.

    python3 tools/mlt.py inspect model.mlt            header and counts, one a line
    python3 tools/mlt.py inspect --tokens model.mlt   every token and merge rule too, fit for diff
    python3 tools/mlt.py verify model.mlt             every check of the loader

    offset  type      field
         0  char[4]   "MLT1"
         4  u32       version, 1
         8  u32       kind: 1 SentencePiece-style BPE, 2 byte-level BPE
        12  u32       n_vocab
        16  u32       n_merges
        20  i32       bos, -1: none
        24  i32       eos, -1: none
        28  u32       flags, the FLAG_ names below
        32            n_vocab times: u8 attr, u32 length, then that many bytes
                      n_merges times: u32 left, u32 right, u32 merged token, in rank order

Little-endian, nothing padded. tools/convert_tokenizer.py makes such files from those of other programs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HEADER = struct.Struct("<4sIIIIiiI")
MAGIC = b"MLT1"
MAX_VOCAB = 1 << 24  # the format's limit of a model's vocabulary

KIND_SENTENCEPIECE = 1
KIND_BYTE_LEVEL = 2

FLAG_BOS = 1  # prepend BOS when encoding
FLAG_IGNORE_MERGES = 2  # a whole pre-token that is an ordinary token stays whole
FLAG_PREFIX_FIRST = 4  # kind 1: prefix ▁ only at the start of the text
FLAG_NFC = 8  # kind 2: normalize the text between added tokens
FLAG_ONE_DIGIT = 16  # kind 2: \p{N} in place of \p{N}{1,3}
FLAG_GPT2 = 32  # kind 2: the GPT-2 pattern in place of the Llama 3 one
FLAG_SPLIT_DIGITS = 64  # kind 2: every \p{N} is split off before the pattern
FLAG_NO_PREFIX = 128  # kind 1, extension: no prefix at all (Gemma)
FLAG_MARKS = 256  # kind 2, extension: letters include \p{M}; with one_digit, the Qwen3.5 pattern

FLAG_NAMES = {
    FLAG_BOS: "bos",
    FLAG_IGNORE_MERGES: "ignore_merges",
    FLAG_PREFIX_FIRST: "prefix_first",
    FLAG_NFC: "nfc",
    FLAG_ONE_DIGIT: "one_digit",
    FLAG_GPT2: "gpt2_pattern",
    FLAG_SPLIT_DIGITS: "split_digits",
    FLAG_NO_PREFIX: "no_prefix",
    FLAG_MARKS: "marks_are_letters",
}

ATTR_ADDED = 1  # matched literally in the text, before anything else
ATTR_BYTE = 2  # kind 1: a byte-fallback token, stored as its one byte


class MltError(ValueError):
    """A file that breaks a rule of the format; `offset` is the byte where, `status` what the loader gives."""

    def __init__(self, message: str, offset: int, status: str = "ML_E_FORMAT") -> None:
        super().__init__(f"{message} (byte {offset})")
        self.offset = offset
        self.status = status


@dataclass(frozen=True)
class Token:
    """One vocabulary entry. `data`: kind 2 the raw bytes, kind 1 UTF-8 with ▁ for spaces, or the byte of ATTR_BYTE."""

    data: bytes
    attr: int = 0

    @property
    def added(self) -> bool:
        return bool(self.attr & ATTR_ADDED)


def _no_merges() -> np.ndarray:
    return np.empty((0, 3), dtype="<u4")


@dataclass
class Tokenizer:
    """A whole file. `merges`: (n_merges, 3) u32 of left, right and merged id, in rank order."""

    kind: int
    tokens: list[Token]
    merges: np.ndarray = field(default_factory=_no_merges)
    bos: int = -1
    eos: int = -1
    flags: int = 0

    def pack(self) -> bytes:
        """The bytes of the file. Raises MltError for what `unpack` would refuse."""
        parts = [HEADER.pack(MAGIC, 1, self.kind, len(self.tokens), len(self.merges), self.bos, self.eos, self.flags)]
        parts += [struct.pack("<BI", token.attr, len(token.data)) + token.data for token in self.tokens]
        parts.append(np.ascontiguousarray(self.merges, dtype="<u4").tobytes())
        data = b"".join(parts)
        unpack(data)
        return data

    def flag_names(self) -> list[str]:
        return [name for bit, name in FLAG_NAMES.items() if self.flags & bit]


def unpack(data: bytes) -> Tokenizer:
    """Reads and checks a whole file; the first broken rule raises MltError. More bytes may follow the merge rules."""
    if len(data) < HEADER.size:
        raise MltError(f"file of {len(data)} bytes is shorter than the {HEADER.size}-byte header", len(data))
    magic, version, kind, n_vocab, n_merges, bos, eos, flags = HEADER.unpack_from(data)
    _check_header(magic, version, kind, n_vocab, bos, eos, flags)
    if (least := HEADER.size + 5 * n_vocab + 12 * n_merges) > len(data):
        raise MltError(f"n_vocab {n_vocab} and n_merges {n_merges} need {least} bytes or more", len(data))
    if n_vocab > MAX_VOCAB:
        raise MltError(f"n_vocab {n_vocab} is over {MAX_VOCAB}", 12, "ML_E_SHAPE")
    tokens, at = _unpack_tokens(data, n_vocab)
    end = at + 12 * n_merges
    if end > len(data):
        raise MltError(f"n_merges {n_merges} needs {end} bytes, the file has {len(data)}", 16)
    merges = np.frombuffer(data, dtype="<u4", count=3 * n_merges, offset=at).reshape(-1, 3)
    outside = np.flatnonzero(merges.reshape(-1) >= n_vocab)
    if len(outside):
        id_, place = merges.reshape(-1)[outside[0]], at + 4 * int(outside[0])
        raise MltError(f"merge rule {outside[0] // 3} names token {id_}, n_vocab is {n_vocab}", place)
    return Tokenizer(kind, tokens, merges, bos, eos, flags)


def _check_header(magic: bytes, version: int, kind: int, n_vocab: int, bos: int, eos: int, flags: int) -> None:
    if magic != MAGIC:
        raise MltError(f"magic {magic!r} is not {MAGIC!r}", 0)
    if version != 1:
        raise MltError(f"version {version} is not 1", 4)
    if kind not in (KIND_SENTENCEPIECE, KIND_BYTE_LEVEL):
        raise MltError(f"kind {kind} is neither 1 nor 2", 8)
    if n_vocab == 0:
        raise MltError("n_vocab is 0", 12)
    for name, value, offset in (("bos", bos, 20), ("eos", eos, 24)):
        if not -1 <= value < n_vocab:
            raise MltError(f"{name} {value} is neither -1 nor below n_vocab {n_vocab}", offset)
    if unknown := flags & ~sum(FLAG_NAMES):
        raise MltError(f"flags {flags} has unknown bits {unknown}", 28)
    if kind == KIND_SENTENCEPIECE and flags & FLAG_NO_PREFIX and flags & FLAG_PREFIX_FIRST:
        raise MltError(f"flags {flags} has both prefix_first and no_prefix", 28)
    if kind == KIND_BYTE_LEVEL and flags & FLAG_GPT2 and flags & FLAG_MARKS:
        raise MltError(f"flags {flags} names two patterns", 28)


def _unpack_tokens(data: bytes, n_vocab: int) -> tuple[list[Token], int]:
    """The tokens, and the offset behind them."""
    tokens = []
    at = HEADER.size
    for id_ in range(n_vocab):
        if at + 5 > len(data):
            raise MltError(f"the file ends at token {id_} of n_vocab {n_vocab}", len(data))
        attr, length = struct.unpack_from("<BI", data, at)
        if attr & ~(ATTR_ADDED | ATTR_BYTE):
            raise MltError(f"token {id_} has attr {attr}, at most 3 is known", at)
        if attr == ATTR_BYTE and length != 1:
            raise MltError(f"byte token {id_} has {length} bytes", at + 1)
        if length > len(data) - at - 5:
            raise MltError(f"token {id_} of {length} bytes goes past the end of the file", at + 1)
        tokens.append(Token(data[at + 5 : at + 5 + length], attr))
        at += 5 + length
    return tokens, at


def read_tokenizer(path: str | Path) -> Tokenizer:
    """Raises MltError for a bad file, OSError for one that cannot be read."""
    return unpack(Path(path).read_bytes())


def write_tokenizer(path: str | Path, tokenizer: Tokenizer) -> int:
    """Writes the file, which appears complete or not at all. Returns its size in bytes."""
    data = tokenizer.pack()
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return len(data)


# ---------------------------------------------------------------- command line


def printable(data: bytes) -> str:
    """Bytes on one line: text where they are printable, \\xNN where not."""
    return "".join(_printable_character(character) for character in data.decode("utf-8", "surrogateescape"))


def _printable_character(character: str) -> str:
    if character.isprintable() and character != "\\":
        return character
    if "\udc80" <= character <= "\udcff":  # a byte that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()


def describe(tokenizer: Tokenizer) -> list[str]:
    """Header fields and counts, `name value` each."""

    def special(id_: int) -> str:
        return "-1" if id_ < 0 else f"{id_} {printable(tokenizer.tokens[id_].data)}"

    attrs = [token.attr for token in tokenizer.tokens]
    return [
        f"kind {tokenizer.kind} {('sentencepiece', 'byte_level')[tokenizer.kind - 1]}",
        f"n_vocab {len(tokenizer.tokens)}",
        f"n_merges {len(tokenizer.merges)}",
        f"n_added {sum(attr & ATTR_ADDED for attr in attrs)}",
        f"n_bytes {sum(attr & ATTR_BYTE for attr in attrs) // ATTR_BYTE}",
        f"bos {special(tokenizer.bos)}",
        f"eos {special(tokenizer.eos)}",
        " ".join([f"flags {tokenizer.flags}", *tokenizer.flag_names()]),
    ]


def _inspect(options: argparse.Namespace) -> int:
    tokenizer = read_tokenizer(options.files[0])
    print(*describe(tokenizer), sep="\n")
    if options.tokens:
        for id_, token in enumerate(tokenizer.tokens):
            print(f"token {id_} {token.attr} {printable(token.data)}")
        for rank, (left, right, merged) in enumerate(tokenizer.merges.tolist()):
            print(f"merge {rank} {left} {right} {merged}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    bad = 0
    for path in options.files:
        try:
            read_tokenizer(path)
            print(f"{path}: ok")
        except MltError as error:
            print(f"{path}: {error.status}: {error}")
            bad = 1
    return bad


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0: fine, 1: a file that is bad or cannot be read, 2: a wrong command line."""
    parser = argparse.ArgumentParser(prog="mlt.py", description="Looks at .mlt tokenizer files.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    inspect = commands.add_parser("inspect", help="header fields and counts, one a line")
    inspect.add_argument("files", metavar="FILE", type=Path, nargs=1)
    inspect.add_argument("--tokens", action="store_true", help="list tokens (id, attr, bytes) and merge rules too")
    inspect.set_defaults(run=_inspect)
    verify = commands.add_parser("verify", help="ok, or the first broken rule of each file")
    verify.add_argument("files", metavar="FILE", type=Path, nargs="+")
    verify.set_defaults(run=_verify)
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except MltError as error:
        print(f"{options.files[0]}: {error.status}: {error}", file=sys.stderr)
    except BrokenPipeError:  # `inspect | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"{error.filename or 'mlt.py'}: ML_E_IO: {error.strerror or error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
