"use strict";
// Which rows are in sight: by kind, look-ahead, seal and training before the bench.

const chosenFilters = { kinds: new Set(), ahead: "any", seal: "any", pretrained: "any", dataset: "any", protocol: "any", split: "main" };
const FILTERS = {
  ahead: {
    title: "Look-ahead", choices: { any: "any", 0: "none (causal)", 10: "up to 10 rows", 100: "up to 100 rows" },
    passes: (row, value) => row.look_ahead !== null && row.look_ahead <= Number(value),
  },
  seal: { title: "Seal", choices: { any: "sealed and guarded", sealed: "sealed", guarded: "guarded" }, passes: (row, value) => row.seal === value },
  pretrained: { title: "Pretrained", choices: { any: "with and without", no: "without", yes: "only these" }, passes: (row, value) => Boolean(row.pretrained) === (value === "yes") },
};
// Those of a detector's page, whose rows are of many tables.
const PLACES = { dataset: "Data set", protocol: "Protocol" };

const kinds = () => Object.keys(content.kinds);
const usualFilters = () => ({ kinds: new Set(kinds()), ahead: "any", seal: "any", pretrained: "any", dataset: "any", protocol: "any", split: "main" });

filters.passes = (row) => {
  if (row.kind in content.kinds && !chosenFilters.kinds.has(row.kind)) return false;
  if (board().kind === "detector") {
    if (chosenFilters.split === "main" && !row.main) return false;
    if (Object.keys(PLACES).some((key) => chosenFilters[key] !== "any" && row[key] !== chosenFilters[key])) return false;
  }
  return Object.entries(FILTERS).every(([key, one]) => chosenFilters[key] === "any" || one.passes(row, chosenFilters[key]));
};
filters.active = () => filterParts().some(([, now, usual]) => (now instanceof Set ? now.size !== usual.size : now !== usual));

function filterParts() {
  const usual = usualFilters();
  return [["kind", chosenFilters.kinds, usual.kinds], ...Object.keys(usual).filter((key) => key !== "kinds").map((key) => [key === "split" ? "splits" : key, chosenFilters[key], usual[key]])];
}

function restoreFilters({ one, some, wanted }) {
  const usual = usualFilters();
  chosenFilters.kinds = some("kind", kinds(), usual.kinds);
  for (const [key, { choices }] of Object.entries(FILTERS)) chosenFilters[key] = one(key, Object.keys(choices), "any");
  chosenFilters.split = one("splits", ["main", "every"], "main");
  for (const key of Object.keys(PLACES)) chosenFilters[key] = board().kind === "detector" ? one(key, [...new Set(table().rows.map((row) => row[key]))], "any") : "any";
  return wanted;
}

function drawFilters(changed) {
  const select = (key, title, choices) => {
    const box = element("select", { id: `filter-${key}`, on: { change: () => { chosenFilters[key] = box.value; changed(); } } }, ...Object.entries(choices).map(([value, words]) => element("option", { value }, words)));
    box.value = chosenFilters[key];
    return element("label", {}, `${title} `, box);
  };
  const places = board().kind !== "detector" ? [] : [
    ...Object.entries(PLACES).map(([key, title]) => select(key, title, { any: "all", ...Object.fromEntries([...new Set((table().rows || []).map((row) => row[key]))].map((name) => [name, name])) })),
    select("split", "Splits", { main: "the first of each data set", every: "every split" }),
  ];
  const usual = usualFilters();
  const reset = element("button", { type: "button", id: "no-filters", on: { click: () => { Object.assign(chosenFilters, usual); changed(); byId("filters").focus(); } } }, "Remove filters");
  reset.hidden = !filters.active();
  const boxes = kinds().map((kind) => checkbox(content.kinds[kind], chosenFilters.kinds.has(kind), (on) => { if (on) chosenFilters.kinds.add(kind); else chosenFilters.kinds.delete(kind); changed(); }));
  keepingFocus("filters", () => fill("filters", ...places, ...Object.entries(FILTERS).map(([key, one]) => select(key, one.title, one.choices)), ...(board().kind === "detector" ? [] : [element("fieldset", {}, element("legend", {}, "Kinds"), ...boxes)]), reset));
}
