"use strict";
// What is shown, in the part of the address after #: a copied link, a reload and the way back restore it.
// Whatever stands there is compared with what the page holds, and left aside if it is nothing of it.

const VIEWS = ["mixed", "floors"];
const VIEWED = { mixed: false, floors: false };
// No page of ours writes a longer one.
const LONGEST = 20000;
let restoring = false;

// A page's `addressParts` are keys with what is shown, a text or a set, and what a fresh page shows.
function address() {
  const parts = new URLSearchParams();
  for (const [key, now, usual] of addressParts()) {
    if (!(now instanceof Set)) {
      if (String(now) !== String(usual)) parts.append(key, now);
    } else if (now.size !== usual.size || ![...now].every((one) => usual.has(one))) {
      for (const one of now.size ? now : [""]) parts.append(key, one);
    }
  }
  return `#${parts}`;
}

function tableParts() {
  const inWords = ({ column, descending }) => (descending ? "-" : "") + column;
  return [
    ["sort", inWords(sorting), inWords(usualSorting())],
    ["search", shown.query, ""],
    ["hide", shown.hidden, new Set(SELDOM)],
    ...VIEWS.map((name) => [name, views[name] ? 1 : 0, VIEWED[name] ? 1 : 0]),
  ];
}

// Put what is shown into the address; each choice is a step that the way back undoes, letters of a search are one.
function remember({ step = true } = {}) {
  if (restoring) return;
  const hash = address();
  linkSections();
  if (hash === location.hash || (hash === "#" && !location.hash)) return;
  try {
    history[step ? "pushState" : "replaceState"](null, "", hash);
  } catch {
    // A browser that lets no page from a file change its address: the page works, its address stays.
  }
}

// What the address asks for; null if it names a section alone, or nothing that a page of ours writes.
function askedFor() {
  if (location.hash.length > LONGEST) return null;
  if (location.hash && !location.hash.includes("=")) {
    const name = location.hash.slice(1);
    if (sections().some((one) => one.id === name)) goTo(name);
    return null;
  }
  const wanted = new URLSearchParams(location.hash.slice(1));
  const one = (key, known, otherwise) => (known.includes(wanted.get(key)) ? wanted.get(key) : otherwise);
  // An empty text stands for an empty choice.
  const some = (key, known, otherwise) => {
    const found = wanted.getAll(key).filter((name) => known.includes(name));
    return found.length || wanted.getAll(key).join() === "" && wanted.has(key) ? new Set(found) : otherwise;
  };
  function restoreTable() {
    const keys = everyColumn().map((each) => each.key);
    const sort = wanted.get("sort") || "";
    const key = sort.replace(/^-/, "");
    if (keys.includes(key)) Object.assign(sorting, { column: key, descending: sort.startsWith("-") });
    shown.query = (wanted.get("search") || "").slice(0, 200);
    shown.hidden = some("hide", keys.filter((each) => each !== "label"), new Set(SELDOM));
    for (const name of VIEWS) views[name] = one(name, ["0", "1"], VIEWED[name] ? "1" : "0") === "1";
  }
  return { wanted, one, some, restoreTable };
}
