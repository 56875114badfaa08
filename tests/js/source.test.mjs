// Where models come from: every kind of source, and everything that can go wrong on the way. After each failure the next
// load works.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { loadModel, probe } from '../../js/index.js';
import { startFaultServer } from './fault_server.mjs';
import { ROOT, nativeIds, onBothSkins, packageBytes, packagePath, rejectsWith } from './skins.mjs';

const IDS = [3, 5, 7, 11];
const EXPECTED = nativeIds('llama', IDS, 8);
const server = await startFaultServer(`${ROOT}build/packages`);
test.after(() => server.close());

const file = (name) => new File([packageBytes('llama', name)], name);
const FILES = () => ['model.json', 'model.mlb', 'tokenizer.mlt'].map(file);

async function works(source, options) {
  const model = await loadModel(source, { threads: 1, ...options });
  assert.deepEqual((await model.generate(IDS, { maxTokens: 8, stop: undefined })).tokens, EXPECTED);
  const { info } = model;
  await model.close();
  return info;
}

function* chunks(bytes, size) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

onBothSkins('every kind of source gives the same model', async (skin) => {
  const bytes = packageBytes('llama', 'model.mlb');
  const sources = {
    folder: packagePath('llama'),
    'model.json': `${packagePath('llama')}/model.json`,
    'bare file': `${packagePath('llama')}/model.mlb`,
    'file URL': new URL(`file://${packagePath('llama')}/model.json`),
    'URL of model.json': `${server.url}/plain/llama/model.json`,
    'URL of a folder': `${server.url}/plain/llama/`,
    'URL of a bare file': `${server.url}/plain/llama/model.mlb`,
    Blob: new Blob([bytes]),
    File: file('model.mlb'),
    'files of a package': FILES(),
    'two files': FILES().slice(1),
    ArrayBuffer: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length),
    Uint8Array: bytes,
    'stream of small chunks': ReadableStream.from(chunks(bytes, 997)),
    'one chunk': ReadableStream.from([bytes]),
  };
  for (const [name, source] of Object.entries(sources)) {
    const info = await works(source, skin).catch((error) => assert.fail(`${name}: ${error.stack}`));
    assert.equal(info.fileBytes, bytes.length, name);
  }
  assert.equal(bytes.length, packageBytes('llama', 'model.mlb').length, 'what was given is left as it was');
});

onBothSkins('progress rises to the end, whatever the server tells', async (skin) => {
  for (const fault of ['plain', 'nolength', 'gzip', 'cut', 'norange', 'stallonce']) {
    const events = [];
    server.visits.clear();
    await works(`${server.url}/${fault}/llama/model.json`, {
      ...skin,
      timeout: 1000,
      onProgress: (event) => events.push(event),
    });
    for (const [i, { loaded, total }] of events.entries()) {
      assert.ok(i === 0 || loaded >= events[i - 1].loaded, fault);
      assert.ok(total === undefined || loaded <= total, `${fault}: ${loaded} of ${total}`);
    }
    const last = events.at(-1);
    const size = packageBytes('llama', 'model.mlb').length + packageBytes('llama', 'tokenizer.mlt').length;
    assert.deepEqual(last, { phase: 'ready', loaded: size, total: size }, fault);
  }
});

onBothSkins('a wish to keep files where there is no storage changes nothing', async (skin) => {
  await works(`${server.url}/plain/llama/model.json`, { ...skin, cache: true });
  await works(packagePath('llama'), { ...skin, cache: true });
});

onBothSkins('a download that is cut goes on where it ended', async (skin) => {
  const url = `${server.url}/cut/llama/model.json`;
  server.visits.clear();
  await works(url, skin);
  assert.ok(server.visits.get('/cut/llama/model.mlb') >= 4);
});

onBothSkins('faults are typed, come in time, and leave nothing behind', async (skin) => {
  const cases = {
    changed: ['KRAFLA_E_LENGTH', /changed/],
    broken: ['KRAFLA_E_HTTP', /500/],
    dead: ['KRAFLA_E_CUT', /.*/],
    stall: ['KRAFLA_E_STALLED', /nothing came/],
    silent: ['KRAFLA_E_STALLED', /nothing came/],
    short: ['KRAFLA_E_LENGTH', /must be/],
    long: ['KRAFLA_E_LENGTH', /must be/],
    shortnolength: ['KRAFLA_E_LENGTH', /must be/],
    flipped: ['KRAFLA_E_INTEGRITY', /SHA-256/],
    html: ['KRAFLA_E_CONTENT', /web page/],
    404: ['KRAFLA_E_HTTP', /404/],
    500: ['KRAFLA_E_HTTP', /500/],
  };
  for (const [fault, [code, pattern]] of Object.entries(cases)) {
    server.visits.clear();
    const loading = loadModel(`${server.url}/${fault}/llama/model.json`, {
      ...skin,
      threads: 1,
      timeout: 1000,
      retries: 1,
    });
    await rejectsWith(loading, code, pattern).catch((error) => assert.fail(`${fault}: ${error.message}`));
  }
  await rejectsWith(loadModel('http://127.0.0.1:1/model.mlb', skin), 'KRAFLA_E_NETWORK');
  await works(`${server.url}/plain/llama/model.json`, skin);
});

onBothSkins('bare files: what their header says is checked', async (skin) => {
  const bytes = packageBytes('llama', 'model.mlb');
  await rejectsWith(loadModel(bytes.subarray(0, -64), skin), 'ML_E_FORMAT');
  await rejectsWith(loadModel(new Uint8Array(0), skin), 'ML_E_FORMAT');
  await rejectsWith(loadModel(new Uint8Array(1000), skin), 'ML_E_FORMAT');
  await rejectsWith(loadModel(ReadableStream.from([bytes.subarray(0, 300)]), skin), 'ML_E_FORMAT');
  await rejectsWith(loadModel(`${server.url}/shortnolength/llama/model.mlb`, skin), 'ML_E_FORMAT');
  await rejectsWith(loadModel(bytes, { ...skin, tokenizer: packageBytes('window', 'tokenizer.mlt') }), 'ML_E_SHAPE');
  await rejectsWith(loadModel(bytes, { ...skin, tokenizer: new Uint8Array(50) }), 'ML_E_FORMAT');
  await rejectsWith(loadModel(`${packagePath('llama')}/nothing.mlb`, skin), 'ML_E_IO', /nothing\.mlb/);
  await rejectsWith(loadModel(bytes, { ...skin, contextSize: 100000 }), 'ML_E_CONTEXT');
  const failing = new ReadableStream({
    pull() {
      throw new Error('the tape is torn');
    },
  });
  await assert.rejects(loadModel(failing, skin), /the tape is torn/);
  await works(bytes, skin);
});

onBothSkins('packages that are not what they should be', async (skin) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'package-'));
  const manifest = JSON.parse(new TextDecoder().decode(packageBytes('llama', 'model.json')));
  const withChange = (change) => {
    fs.writeFileSync(path.join(folder, 'model.json'), JSON.stringify({ ...manifest, ...change }));
    return loadModel(folder, skin);
  };
  try {
    const { model } = manifest.files;
    await rejectsWith(withChange({ format: 'other' }), 'KRAFLA_E_PACKAGE', /format/);
    await rejectsWith(withChange({ version: 2 }), 'KRAFLA_E_PACKAGE', /version/);
    await rejectsWith(withChange({ files: {} }), 'KRAFLA_E_PACKAGE', /files\.model/);
    for (const name of ['../model.mlb', '/etc/passwd', 'http://x/y', '..', 'a\\b', ''])
      await rejectsWith(withChange({ files: { model: { ...model, name } } }), 'KRAFLA_E_PACKAGE', /name/);
    await rejectsWith(withChange({ stopTokens: [{ id: -1 }] }), 'KRAFLA_E_PACKAGE', /stopTokens/);
    await rejectsWith(withChange({}), 'ML_E_IO', /tokenizer\.mlt/);
    fs.writeFileSync(path.join(folder, 'model.json'), '{');
    await rejectsWith(loadModel(folder, skin), 'KRAFLA_E_PACKAGE', /JSON/);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
  await rejectsWith(loadModel(FILES().slice(0, 2), skin), 'KRAFLA_E_PACKAGE', /tokenizer\.mlt is missing/);
  await rejectsWith(loadModel(FILES().slice(2), skin), 'KRAFLA_E_PACKAGE');
});

onBothSkins('sources and options that are no such thing', async (skin) => {
  for (const source of [undefined, null, 5, {}, [1]]) await rejectsWith(loadModel(source, skin), 'ML_E_ARG', /source/);
  const wrong = { thread: 1, threads: 0, contextSize: '5', worker: 1, kv: 'f64', timeout: 0, signal: {}, build: 7 };
  for (const [name, value] of Object.entries(wrong))
    await rejectsWith(loadModel(packagePath('llama'), { ...skin, [name]: value }), 'ML_E_ARG', new RegExp(name));
  await rejectsWith(loadModel(packagePath('llama'), { ...skin, build: 'avx' }), 'ML_E_ARG', /build = avx/);
  await rejectsWith(
    loadModel(packagePath('llama'), { ...skin, wasmUrl: 'file:///nowhere/' }),
    'KRAFLA_E_BUILD',
    /nowhere/,
  );
});

onBothSkins('loading can be given up', async (skin) => {
  const reason = new Error('never mind');
  await assert.rejects(loadModel(packagePath('llama'), { ...skin, signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  const loading = loadModel(`${server.url}/stall/llama/model.json`, { ...skin, signal: controller.signal });
  setTimeout(() => controller.abort(reason), 200);
  const started = Date.now();
  await assert.rejects(loading, reason);
  assert.ok(Date.now() - started < 10_000, 'long before the stall is given up');
  await works(packagePath('llama'), skin);
});

test('probe: what a model is and needs, from its first bytes', async () => {
  server.visits.clear();
  for (const source of [
    packagePath('llama'),
    `${server.url}/plain/llama/model.json`,
    FILES(),
    packageBytes('llama', 'model.mlb'),
  ]) {
    const report = await probe(source, { threads: 1 });
    assert.equal(report.fits, true);
    assert.equal(report.vocabulary, 735);
    assert.equal(report.fileBytes, packageBytes('llama', 'model.mlb').length);
    assert.ok(report.memoryBytes > report.weightBytes + report.sessionBytes);
  }
  await rejectsWith(probe(new Uint8Array(300)), 'ML_E_FORMAT');
  await rejectsWith(probe(packagePath('llama'), { onProgress() {} }), 'ML_E_ARG');
});
