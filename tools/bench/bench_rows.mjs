// The arithmetic of the benchmark and the rows that it writes.

export const SPEED = ['pp128', 'pp512', 'tg64', 'tg64@1024'];
export const TESTS = [...SPEED, 'load', 'peak'];
const UNITS = { load: 's', peak: 'MB' };
export const unitOf = (test) => UNITS[test] ?? 'tokens/s';

const FIELDS = {
  system: ['krafla-web', 'wllama', 'llama.cpp'],
  version: 'string',
  runtime: ['native', 'chromium', 'node', 'firefox', 'webkit'],
  build: 'string',
  threads: 'count',
  model: 'string',
  quant: ['Q4_0', 'Q8_0'],
  test: TESTS,
};
const OPTIONAL = { kv: ['q8'] }; // how keys and values are kept, where it is not as usual
const RESULTS = ['median', 'min', 'max'];

/** Of numbers; the mean of the two in the middle if their number is even. */
export function median(values) {
  if (values.length === 0) throw new RangeError('the median of nothing');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const rounded = (value) => Number(value.toPrecision(5));

/** A row from what is measured ({ system, version, ... test }) and its samples, in order of measurement. */
export function summarize(subject, samples) {
  for (const sample of samples)
    if (!(Number.isFinite(sample) && sample > 0)) throw new RangeError(`${subject.test}: ${sample} is no measurement`);
  const row = {
    ...subject,
    median: rounded(median(samples)),
    min: rounded(Math.min(...samples)),
    max: rounded(Math.max(...samples)),
    unit: unitOf(subject.test),
  };
  return checkRow(row);
}

/** A row for what could not run. */
export const failed = (subject, error) => checkRow({ ...subject, error: String(error).split('\n')[0] });

function isValid(value, rule) {
  if (Array.isArray(rule)) return rule.includes(value);
  if (rule === 'count') return Number.isInteger(value) && value > 0;
  return typeof value === rule && value !== '';
}

/** The row itself if it is one: every field there, none but these, and results that can be. Throws otherwise. */
export function checkRow(row) {
  for (const [field, rule] of Object.entries(FIELDS))
    if (!isValid(row[field], rule)) throw new TypeError(`row: ${field} = ${row[field]} in ${JSON.stringify(row)}`);
  for (const [field, rule] of Object.entries(OPTIONAL))
    if (field in row && !isValid(row[field], rule)) throw new TypeError(`row: ${field} = ${row[field]}`);
  const allowed = 'error' in row ? ['error'] : [...RESULTS, 'unit'];
  const keys = [...Object.keys(FIELDS), ...Object.keys(OPTIONAL), ...allowed];
  const other = Object.keys(row).find((key) => !keys.includes(key));
  if (other) throw new TypeError(`row: ${other} is no field of it`);
  if ('error' in row) {
    if (!isValid(row.error, 'string')) throw new TypeError('row: error without words');
    return row;
  }
  for (const name of RESULTS)
    if (!(Number.isFinite(row[name]) && row[name] > 0)) throw new TypeError(`row: ${name} = ${row[name]}`);
  if (!(row.min <= row.median && row.median <= row.max)) throw new TypeError('row: min, median and max out of order');
  if (row.unit !== unitOf(row.test)) throw new TypeError(`row: ${row.test} is not in ${row.unit}`);
  return row;
}

/** How often a test is measured that took `seconds` the first time. */
export const repetitionsFor = (seconds, wanted) => (seconds > 8 ? 1 : seconds > 3 ? Math.min(wanted, 2) : wanted);

/** The median of the row that has all fields of `wanted`, or undefined. Rows with `kv` are only found by it. */
export const medianOf = (rows, { kv, ...wanted }) =>
  rows.find((row) => row.kv === kv && Object.entries(wanted).every(([field, value]) => row[field] === value))?.median;

/** How many times the one's median the other's is; undefined unless both were measured. */
export function ratio(rows, of, to) {
  const [a, b] = [medianOf(rows, of), medianOf(rows, to)];
  return a === undefined || b === undefined ? undefined : a / b;
}
