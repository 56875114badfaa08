// Runs a C program that was compiled for Node (build/<wasm configuration>/*.mjs) with the rest of the arguments:
//
//     node tests/js/wasm_program.mjs build/relaxed/test_unit.mjs --list
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const program = process.argv.splice(2, 1)[0];
const wasm = fs.readFileSync(program.replace(/\.mjs$/, '.wasm'));
if (!WebAssembly.validate(wasm)) {
  console.log(
    `${path.basename(program)}: skipped: Node ${process.version} lacks an instruction of ${path.dirname(program)}`,
  );
  console.log('0 passed, 0 failed, 1 skipped');
  process.exit(0);
}
const { default: start } = await import(pathToFileURL(path.resolve(program)));
await start();
