// manifest.js - model.json, the list of what is in a model package (docs/CONVERTING.md). It comes from wherever the model
// comes from, and is checked like everything else.

import { KraflaError } from './errors.js';

const refuse = (field, rule) => {
  throw new KraflaError('KRAFLA_E_PACKAGE', `model.json: ${field} ${rule}`);
};

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** @returns {object} the manifest, every field that is used here of the right kind */
export function readManifest(text) {
  let manifest;
  try {
    manifest = JSON.parse(text);
  } catch (error) {
    refuse('', `is not JSON (${error.message})`);
  }
  if (!isObject(manifest)) refuse('', 'must be an object');
  if (manifest.format !== 'krafla-model') refuse('format', 'must be "krafla-model"');
  if (manifest.version !== 1) refuse('version', `is ${manifest.version}, and 1 is what can be read`);
  if (!isObject(manifest.files)) refuse('files', 'must be an object');
  if (manifest.files.model === undefined) refuse('files.model', 'is missing');
  for (const [name, file] of Object.entries(manifest.files)) checkFile(`files.${name}`, file);
  for (const field of ['name', 'architecture', 'license', 'chatTemplate'])
    if (manifest[field] !== undefined && typeof manifest[field] !== 'string') refuse(field, 'must be a string');
  checkTokens(manifest);
  return manifest;
}

function checkFile(field, file) {
  if (!isObject(file)) refuse(field, 'must be an object');
  if (typeof file.name !== 'string' || !/^[^/\\:?#]+$/.test(file.name) || /^\.\.?$/.test(file.name))
    refuse(`${field}.name`, 'must be the name of a file beside it');
  if (file.size !== undefined && !(Number.isSafeInteger(file.size) && file.size >= 0))
    refuse(`${field}.size`, 'must be a number of bytes');
  if (file.sha256 !== undefined && !/^[0-9a-f]{64}$/.test(file.sha256))
    refuse(`${field}.sha256`, 'must be 64 hexadecimal digits');
}

function checkTokens({ tokens = {}, stopTokens = [] }) {
  if (!isObject(tokens)) refuse('tokens', 'must be an object');
  for (const [name, token] of Object.entries(tokens))
    if (token !== null && !(isObject(token) && Number.isInteger(token.id)))
      refuse(`tokens.${name}.id`, 'must be a token id');
  if (!Array.isArray(stopTokens)) refuse('stopTokens', 'must be an array');
  stopTokens.forEach((token, index) => {
    if (!isObject(token) || !Number.isInteger(token.id) || token.id < 0)
      refuse(`stopTokens[${index}].id`, 'must be a token id');
  });
}

/** bos_token, eos_token and so on, as templates know them. */
export function templateTokens({ tokens = {} }) {
  const texts = Object.entries(tokens).filter(([, token]) => typeof token?.text === 'string');
  return Object.fromEntries(texts.map(([name, { text }]) => [`${name}_token`, text]));
}
