"use strict";
// A page of the site: which of its tables it shows, and all that follows from that.

const page = document.documentElement.dataset;
let turn = 0;

// A page of a detector has one table of rows from everywhere; those of a data set and a protocol have their own ones.
function ownBoards() {
  if (page.kind === "detector") return [{ id: `detectors/${page.file}`, kind: "detector", dataset: page.name, protocol: "", tables: [{ split: "" }] }];
  if (page.kind === "dataset") return content.boards.filter((one) => one.dataset === page.name);
  if (page.kind === "protocol") return content.boards.filter((one) => one.kind === "table" && one.protocol.replace(/ \d+$/, "") === page.name);
  return content.boards;
}

const usualSorting = () => (board().kind === "suite" ? { column: "rank", descending: false } : board().kind === "detector" ? { column: "dataset", descending: false } : board().metrics.some((one) => one.name === "auprc") ? { column: "auprc", descending: true } : { column: "label", descending: false });
const usualMetric = () => (metricNamed("auprc") || board().metrics[0] || { name: "" }).name;

async function load(here, split) {
  const place = here.tables.find((one) => one.split === split);
  if (place.rows) return true;
  const [common, rows] = here.kind === "table" ? await Promise.all([fetched(`${here.id}/table`), fetched(`${here.id}/${place.file}`)]) : [await fetched(here.id), {}];
  if (!common || !rows) return false;
  const { rows: own, ...rest } = common;
  Object.assign(here, rest);
  if (here.kind === "suite") here.columns = suiteColumns;
  Object.assign(place, own ? { rows: own, fronts: {}, caption: common.summary } : rows);
  for (const row of place.rows) if (row.page) row.page = root + row.page;
  return true;
}

// `choose` may choose otherwise than usual, before anything is drawn.
async function showBoard(i, { split = "", choose = () => {} } = {}) {
  turn += 1;
  const mine = turn;
  const here = content.boards[i];
  const wanted = here.tables.some((one) => one.split === split) ? split : here.tables[0].split;
  byId("table").setAttribute("aria-busy", "true");
  const complete = await load(here, wanted);
  if (mine !== turn) return;
  byId("table").removeAttribute("aria-busy");
  if (!complete) {
    fill("table", element("caption", { class: "warning" }, `The data of ${here.dataset}, ${here.protocol} could not be loaded: is the folder data/ beside the pages?`));
    return;
  }
  const another = shown.board !== i || !shown.ready;
  Object.assign(shown, { board: i, split: wanted, ready: true });
  if (another) defaults();
  choose();
  draw();
}

function defaults() {
  Object.assign(sorting, usualSorting());
  Object.assign(views, VIEWED);
  Object.assign(shown, { query: "", hidden: new Set(SELDOM), metric: usualMetric(), speedMetric: usualMetric(), heat: usualMetric(), recording: 0, scored: null, axis: "wide" });
}

function draw() {
  drawBoards();
  byId("search").value = shown.query;
  const metrics = board().metrics.map((one) => [one.name, one.title + (one.oracle ? "*" : "")]);
  options("seeds-metric", metrics, shown.metric, (name) => { shown.metric = name; refresh("seeds"); remember(); });
  options("speed-metric", metrics, shown.speedMetric, (name) => { shown.speedMetric = name; refresh("speed"); remember(); });
  const table_ = board().kind === "table";
  for (const [id, there] of Object.entries({ ranks: board().kind === "suite", speed: table_, seeds: table_, heat: table_ && board().by_recording, recording: table_ && board().by_recording })) byId(id).hidden = !there;
  byId("title").textContent = board().kind === "table" ? `Protocol ${board().protocol}: ${board().summary}.` : board().about || "";
  fill("legend", board().legend || "");
  fill("notes", ...(board().notes || []).map((note) => element("li", {}, note)));
  drawSections();
  redraw();
}

// Rows in sight have changed, not the table.
function redraw() {
  drawFilters(() => { redraw(); remember(); });
  drawColumnChoice();
  drawTable();
  everyFigure();
  linkSections();
}

function drawBoards() {
  const here = board();
  const names = [...new Set(content.boards.map((one) => one.dataset))];
  const first = (keep) => content.boards.findIndex(keep);
  options("dataset", names.map((name) => [name, name]), here.dataset, (name) => {
    const same = first((one) => one.dataset === name && one.protocol === here.protocol);
    go(same >= 0 ? same : first((one) => one.dataset === name));
  });
  const rules = content.boards.map((one, i) => [i, one]).filter(([, one]) => one.dataset === here.dataset).map(([i, one]) => [i, one.protocol]);
  options("protocol", rules, shown.board, (i) => go(Number(i)));
  options("split", here.tables.map((one) => [one.split, one.split]), shown.split, (split) => go(shown.board, { split }));
  byId("boards").hidden = here.kind === "detector";
}

const go = (i, more) => showBoard(i, more).then(() => remember());

function addressParts() {
  const fresh = content.boards[0];
  const { dataset, protocol, kind } = board();
  const sameData = content.boards.find((one) => one.dataset === dataset);
  const recordings = board().recordings || [];
  return [
    ...(kind === "detector" ? [] : [["data", dataset, fresh.dataset], ["protocol", protocol, sameData.protocol], ["split", shown.split, board().tables[0].split]]),
    ...tableParts(),
    ...filterParts(),
    ["metric", shown.metric, usualMetric()],
    ["speed", shown.speedMetric, usualMetric()],
    ["heat", shown.heat, usualMetric()],
    ...(recordings.length ? [["recording", recordings[shown.recording].id, (recordings[listed()[0]] || {}).id]] : []),
    ...(board().scores ? [["scores", scoredLabels(), new Set(board().scores.usual)]] : []),
    ["axis", shown.axis, "wide"],
    ["at", shown.section, ""],
  ];
}

async function restore() {
  const asked = askedFor();
  if (!asked) return shown.ready ? null : showBoard(0);
  const { wanted, one, some, restoreTable } = asked;
  const named = (key) => (each) => !wanted.has(key) || each[key === "data" ? "dataset" : key] === wanted.get(key);
  const usual = content.boards.findIndex((each) => each.dataset === (wanted.get("data") || content.boards[0].dataset) && named("protocol")(each));
  const place = usual >= 0 ? usual : Math.max(0, content.boards.findIndex(named("data")));
  restoring = true;
  try {
    await showBoard(place, { split: wanted.get("split") || "", choose: () => {
      defaults();
      restoreTable();
      restoreFilters(asked);
      const metrics = board().metrics.map((each) => each.name);
      shown.metric = one("metric", metrics, shown.metric);
      shown.speedMetric = one("speed", metrics, shown.speedMetric);
      shown.heat = one("heat", metrics, shown.heat);
      shown.axis = one("axis", Object.keys(AXES), "wide");
    } });
    if ((wanted.has("recording") || wanted.has("scores")) && board().by_recording && await withRecordings()) {
      const place = board().recordings.findIndex((each) => each.id === wanted.get("recording"));
      shown.recording = place >= 0 ? place : listed()[0] || 0;
      shown.scored = some("scores", Object.keys((board().scores || { seeds: {} }).seeds), null);
      refresh("recording");
    }
    const section = one("at", sections().map((each) => each.id), "");
    if (section && section !== shown.section) goTo(section);
    shown.section = section;
  } finally {
    restoring = false;
  }
  return linkSections();
}

function search(words) {
  shown.query = words;
  drawTable();
  everyFigure();
  remember({ step: false });
}

function start() {
  content.boards = ownBoards();
  Object.assign(chosenFilters, usualFilters());
  byId("search").oninput = () => search(byId("search").value);
  byId("csv").onclick = download;
  byId("heat-table").onclick = heatClick;
  followMoments();
  followSections();
  reserveBar();
  if (new URLSearchParams(location.hash.slice(1)).has("at")) history.scrollRestoration = "manual";
  addEventListener("popstate", restore);
  addEventListener("resize", everyFigure);
  watchFigures();
  restore();
}

byId("theme").onclick = keepTheme;
if (byId("leaderboard")) start();
