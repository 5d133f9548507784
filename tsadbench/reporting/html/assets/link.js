"use strict";
// What is shown, in the part of the address after #: a copied link, a reload and the way back restore it.
// Whatever stands there is compared with what the page holds, and left aside if it is nothing of it.

const boardName = (one) => `${one.dataset}, ${one.protocol}`;
const VIEWS = ["mixed", "floors", "reference"];
const VIEWED = { mixed: false, floors: false, reference: true };
// No page of ours writes a longer one.
const LONGEST = 20000;
let restoring = false;

function address() {
  const parts = new URLSearchParams();
  const usual = usualChoice();
  const add = (key, value, otherwise) => { if (String(value) !== String(otherwise)) parts.append(key, value); };
  const addSet = (key, values, otherwise) => {
    if (values.size === otherwise.size && [...values].every((one) => otherwise.has(one))) return;
    for (const one of values.size ? values : [""]) parts.append(key, one);
  };
  add("board", boardName(board()), boardName(content.boards[0]));
  add("split", shown.split, usual.split);
  const inWords = ({ column, descending }) => (descending ? "-" : "") + column;
  add("sort", inWords(sorting), inWords(usualSorting()));
  add("search", shown.query, "");
  addSet("hide", shown.hidden, usuallyHidden());
  for (const name of VIEWS) add(name, views[name] ? 1 : 0, VIEWED[name] ? 1 : 0);
  addSet("detector", shown.detectors, usual.detectors);
  const recordings = board().recordings || [];
  if (recordings.length) add("recording", recordings[shown.recording].id, (recordings[listed()[0]] || {}).id);
  add("metric", shown.metric, usual.metric);
  add("heat", shown.heat, usual.heat);
  add("first", shown.first, usual.first);
  add("second", shown.second, usual.second);
  add("scale", shown.scale, "rank");
  add("at", shown.section, "");
  return `#${parts}`;
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

function restore() {
  if (location.hash.length > LONGEST) return;
  if (location.hash && !location.hash.includes("=")) {
    const name = location.hash.slice(1);
    if (sections().some((one) => one.id === name)) goTo(name);
    return;
  }
  const wanted = new URLSearchParams(location.hash.slice(1));
  const one = (key, known, otherwise) => (known.includes(wanted.get(key)) ? wanted.get(key) : otherwise);
  // An empty text stands for an empty choice.
  const some = (key, known, otherwise) => {
    const found = wanted.getAll(key).filter((name) => known.includes(name));
    return found.length || wanted.getAll(key).join() === "" && wanted.has(key) ? new Set(found) : otherwise;
  };
  restoring = true;
  try {
    const place = content.boards.findIndex((each) => boardName(each) === wanted.get("board"));
    showBoard(Math.max(0, place), (usual) => {
      shown.split = one("split", board().tables.map((each) => each.split), shown.split);
      const keys = everyColumn().map((each) => each.key);
      const sort = wanted.get("sort") || "";
      const key = sort.replace(/^-/, "");
      if (keys.includes(key) || (key === "given" && content.given.length)) Object.assign(sorting, { column: key, descending: sort.startsWith("-") });
      shown.query = (wanted.get("search") || "").slice(0, 200);
      shown.hidden = some("hide", keys.filter((each) => each !== "label"), usuallyHidden());
      for (const name of VIEWS) views[name] = one(name, ["0", "1"], VIEWED[name] ? "1" : "0") === "1";
      const labels = detectors().map((each) => each.label);
      shown.detectors = some("detector", labels, usual.detectors);
      const ids = (board().recordings || []).map((each) => each.id);
      const at = ids.indexOf(wanted.get("recording"));
      shown.recording = at >= 0 ? at : listed()[0] || 0;
      const metrics = board().metrics.map((each) => each.name);
      shown.metric = one("metric", metrics, usual.metric);
      shown.heat = one("heat", heatMetrics().map((each) => each.name), usual.heat);
      shown.first = one("first", labels, usual.first);
      shown.second = one("second", labels, usual.second);
      shown.scale = one("scale", ["rank", "threshold"], "rank");
    });
    const section = one("at", sections().map((each) => each.id), "");
    if (section && section !== shown.section) goTo(section);
    shown.section = section;
  } finally {
    restoring = false;
  }
  linkSections();
}

const sections = () => [...document.querySelectorAll("main > section")].filter((one) => !one.hidden);

// The bar's links hold all that is shown, so that "copy link" copies it.
function linkSections() {
  const here = shown.section;
  for (const link of byId("sections").querySelectorAll("a")) {
    shown.section = link.dataset.section;
    link.setAttribute("href", address());
    if (shown.section === here) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
  }
  shown.section = here;
}

// Figures above are drawn first: one that grew after the page has scrolled would push the heading away.
function goTo(name) {
  const target = byId(name);
  const above = (one) => Boolean(byId(one).compareDocumentPosition(target) & Node.DOCUMENT_POSITION_FOLLOWING);
  drawNow(Object.keys(FIGURES).filter((one) => one === name || above(one)));
  const arrive = () => target.scrollIntoView({ behavior: "instant", block: "start" });
  const title = target.querySelector("h2");
  title.setAttribute("tabindex", "-1");
  title.focus({ preventScroll: true });
  arrive();
  const place = scrollY;
  // A reader who has scrolled on since is left alone.
  Promise.allSettled(drawn.splice(0)).then(() => { if (Math.abs(scrollY - place) < 200) arrive(); });
}
