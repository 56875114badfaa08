// dropped_files.js - the files of a model package, out of what was dropped or chosen.

const PARTS = /\.(json|mlb|mlt)$/i;
const MOST_FILES = 1000; // somebody may drop a whole disk

/** Whether a drag brings files at all. */
export const bringsFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes('Files');

/**
 * @param {DataTransfer} transfer of a drop event; must be called while the event is handled
 * @returns {Promise<File[]>} those that can belong to a package, folders searched
 */
export async function filesOfDrop(transfer) {
  const items = [...transfer.items].filter(({ kind }) => kind === 'file');
  const entries = items.map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile()).filter(Boolean);
  const found = [];
  for (const entry of entries) await collect(entry, found);
  return partsOf(found);
}

/** The files that matter, of a list in which there may be others. */
export const partsOf = (files) => [...files].filter(({ name }) => PARTS.test(name) && !name.startsWith('.'));

async function collect(entry, found) {
  if (found.length >= MOST_FILES) return;
  if (entry instanceof File) found.push(entry);
  else if (entry.isFile) found.push(await new Promise((resolve, reject) => entry.file(resolve, reject)));
  else if (entry.isDirectory) for (const child of await childrenOf(entry)) await collect(child, found);
}

/** A reader gives some at a time, and none at the end. */
async function childrenOf(folder) {
  const reader = folder.createReader();
  const children = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return children;
    children.push(...some);
    if (children.length >= MOST_FILES) return children;
  }
}
