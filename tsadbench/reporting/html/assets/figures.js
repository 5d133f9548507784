"use strict";
// A page's `FIGURES`, functions by the ids of their sections: each is drawn when it comes into view, and again when its content changes.

// What is still being drawn: where a click leads is right when that is done.
const drawn = [];
const inView = new Set();
const stale = new Set();

function refresh(...names) {
  for (const name of names) stale.add(name);
  for (const name of [...stale]) {
    if (!inView.has(name)) continue;
    stale.delete(name);
    if (!byId(name).hidden) FIGURES[name]();
  }
}

// Draw figures that are out of sight too. Those that load their data first say when they are done.
function drawNow(names) {
  for (const name of names) {
    stale.delete(name);
    if (!byId(name).hidden) drawn.push(FIGURES[name]());
  }
}

const everyFigure = () => refresh(...Object.keys(FIGURES));

function watchFigures() {
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) inView.add(entry.target.id);
      else inView.delete(entry.target.id);
    }
    refresh();
  }, { rootMargin: "300px" });
  for (const name of Object.keys(FIGURES)) watcher.observe(byId(name));
}
