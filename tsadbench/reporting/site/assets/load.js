"use strict";
// Data come as scripts, which a page that was opened from a file can load too: each hands over its content by name.

const root = document.documentElement.dataset.root;
const held = new Map();
const awaited = new Map();

function arrived(name, found) {
  held.set(name, found);
}

// Load `data/NAME.js` once; null if it is not there.
function fetched(name) {
  if (held.has(name)) return Promise.resolve(held.get(name));
  if (!awaited.has(name)) {
    awaited.set(name, new Promise((resolve) => {
      const done = () => { awaited.delete(name); resolve(held.get(name) ?? null); };
      document.head.append(element("script", { src: `${root}data/${name}.js`, on: { load: done, error: done } }));
    }));
  }
  return awaited.get(name);
}
