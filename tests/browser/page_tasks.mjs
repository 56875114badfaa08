// What tests have the npm package do in a page: functions in tests/browser/tasks, each `(api, parameters) => answer`.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('./tasks/', import.meta.url));

/** For the server: the policy of its pages forbids eval, so functions come as files. */
export const TASKS = Object.fromEntries(
  fs.readdirSync(FOLDER).map((name) => [`/functions/${name}`, path.join(FOLDER, name)]),
);

/** Runs a task in a page of any browser. */
export const inPage = (page, task, parameters) =>
  page.evaluate(
    async ([name, given]) => {
      const api = await import('/build/package/dist/index.js');
      const { default: body } = await import(`/functions/${name}.mjs`);
      return body(api, given);
    },
    [task, parameters],
  );
