"use strict";
// Puts the page together and keeps it so.

const FIGURES = { heat: drawHeat, seeds: drawSeeds, speed: drawSpeed, curves: drawCurves, recording: drawRecording, pair: drawPair, densities: drawDensities, thresholds: drawThresholds, graph: drawGraph };
// What a board shows until somebody chooses: the address holds only what differs from it.
function usualChoice() {
  const held = new Set(detectors().map((one) => one.label));
  const ranked = board().tables[0].rows.filter((row) => row.status === "ok" && held.has(row.label));
  const best = ranked.filter((row) => !row.floor).slice(0, 5);
  const floor = ranked.filter((row) => row.floor).slice(0, 1);
  const labels = [...best, ...floor].map((row) => row.label);
  const names = board().metrics.map((one) => one.name);
  const metric = names.includes("auprc") ? "auprc" : names[0] || "";
  const heats = heatMetrics().map((one) => one.name);
  return {
    split: board().tables[0].split, detectors: new Set(labels), metric,
    heat: heats.includes(metric) ? metric : heats[0] || "", first: labels[0] || "", second: labels.at(-1) || "",
  };
}

const usualSorting = () => ({ column: usualChoice().metric || "label", descending: true });

function defaults() {
  const usual = usualChoice();
  Object.assign(shown, usual, { detectors: new Set(usual.detectors), scale: "rank", query: "", hidden: new Set(SELDOM) });
  Object.assign(views, VIEWED);
  shown.sensors = new Set((board().sensors || []).slice(0, 8));
  shown.recording = listed()[0] || 0;
  shown.range = null;
  shown.graph = 0;
  shown.speedMetric = shown.metric;
  Object.assign(sorting, usualSorting());
  const mapped = mapsOf(0);
  shown.map = mapped.find((label) => shown.detectors.has(label)) || mapped[0] || "";
}

const mapsOf = (i) => Object.keys(((board().recordings || [])[i] || { maps: {} }).maps);

const drawChooser = () => checks("detectors", detectors().map((one) => one.label).filter(sought), shown.detectors, () => { everyFigure(); remember(); }, swatch);

function swatch(label) {
  const mark = element("span", { class: "swatch", "aria-hidden": "true" });
  const { color, dash } = look(label);
  mark.style.borderTopColor = color;
  mark.style.borderTopStyle = { solid: "solid", dash: "dashed", dot: "dotted", dashdot: "double" }[dash];
  return mark;
}

function openRecording(place, label) {
  if (label) shown.detectors.add(label);
  drawChooser();
  showRecording(place);
  everyFigure();
  shown.section = "recording";
  goTo("recording");
  remember();
}

// `choose` may choose otherwise than usual, before anything is drawn.
function showBoard(i, choose = () => {}) {
  shown.board = Number(i);
  defaults();
  choose(usualChoice());
  byId("board").value = String(shown.board);
  options("split", board().tables.map((one) => [one.split, one.split]), shown.split, (split) => { shown.split = split; showSplit(); remember(); });
  const metrics = board().metrics.map((one) => [one.name, one.title + (one.oracle ? "*" : "")]);
  options("seed-metric", metrics, shown.metric, (name) => { shown.metric = name; refresh("seeds"); remember(); });
  options("speed-metric", metrics, shown.speedMetric, (name) => { shown.speedMetric = name; refresh("speed"); });
  options("heat-metric", heatMetrics().map((one) => [one.name, one.title + (one.oracle ? "*" : "")]), shown.heat, (name) => { shown.heat = name; refresh("heat"); remember(); });
  const drawable = (board().recordings || []).length > 0 && detectors().length > 0;
  options("graph-choice", (board().graphs || []).map((one, place) => [place, one.label]), shown.graph, (place) => { shown.graph = Number(place); refresh("graph"); });
  const labels = detectors().map((one) => [one.label, one.label]);
  options("pair-first", labels, shown.first, (label) => { shown.first = label; refresh("pair"); remember(); });
  options("pair-second", labels, shown.second, (label) => { shown.second = label; refresh("pair"); remember(); });
  byId("pair-scale").value = shown.scale;
  byId("search").value = shown.query;
  drawChooser();
  checks("sensors", board().sensors || [], shown.sensors, () => refresh("recording"));
  for (const id of ["heat", "curves", "recording", "densities", "thresholds"]) byId(id).hidden = !drawable;
  byId("pair").hidden = !drawable || detectors().length < 2;
  byId("graph").hidden = !(board().graphs || []).length;
  drawStatistics();
  for (const id of ["seeds", "speed"]) byId(id).hidden = !board().metrics.length;
  byId("chooser").hidden = !drawable;
  fill("legend", board().legend);
  const missing = board().missing ? [element("li", { class: "warning" }, `No curves and series: ${board().missing}`)] : [];
  fill("notes", ...missing, ...board().notes.map((note) => element("li", {}, note)));
  drawManifests();
  drawSections();
  showSplit();
}

function showSplit() {
  byId("title").textContent = `Protocol ${board().protocol}: ${board().summary}.`;
  drawColumnChoice();
  drawTable();
  const places = listed().map((place) => [place, board().recordings[place].id]);
  for (const id of ["recording-choice", "pair-recording"]) options(id, places, shown.recording, (place) => { showRecording(place); remember(); });
  if (listed().length) showRecording(listed().includes(shown.recording) ? shown.recording : listed()[0]);
  everyFigure();
}

function showRecording(place) {
  shown.recording = Number(place);
  shown.range = null;
  for (const id of ["recording-choice", "pair-recording"]) byId(id).value = String(place);
  const mapped = mapsOf(shown.recording);
  if (!mapped.includes(shown.map)) shown.map = mapped[0] || "";
  options("map-choice", mapped.length ? mapped.map((label) => [label, label]) : [["", "none were kept"]], shown.map, (label) => { shown.map = label; refresh("recording"); });
  byId("map-choice").disabled = !mapped.length;
  refresh("recording", "pair", ...(detectors().some((one) => one.thresholds.length > 1) ? ["thresholds"] : []));
}

function drawManifests() {
  fill("manifests", ...board().trials.map((trial) => {
    const title = `${trial.label}, seed ${trial.seed}: ${trial.status}`;
    const details = element("details", {}, element("summary", {}, title));
    details.addEventListener("toggle", () => {
      if (details.open && details.children.length === 1) details.append(element("pre", { tabindex: "0" }, JSON.stringify(trial, null, 2)));
    });
    return details;
  }));
}

function keys(event) {
  const how = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", "0": "all" }[event.key];
  if (!how || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  moveInTime(how);
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  drawChooser();
  everyFigure();
}

function search(text) {
  shown.query = text;
  drawTable();
  drawChooser();
  refresh("heat");
  remember({ step: false });
}

function start() {
  byId("made").textContent = `${content.n_trials.toLocaleString("en")} trials of ${content.store}, made with tsadbench ${content.tsadbench} on ${content.made.replace("T", " ").replace("+00:00", " UTC")}.` + (content.n_broken ? ` ${content.n_broken} trials could not be read.` : "");
  options("board", content.boards.map((one, i) => [i, `${one.dataset}, ${one.protocol}`]), 0, (place) => { showBoard(place); remember(); });
  byId("axis").onchange = () => refresh("recording");
  const neighbour = (step) => listed()[listed().indexOf(shown.recording) + step];
  byId("previous").onclick = () => { showRecording(neighbour(-1)); remember(); };
  byId("next").onclick = () => { showRecording(neighbour(1)); remember(); };
  for (const button of document.querySelectorAll("[data-move]")) button.onclick = () => moveInTime(button.dataset.move);
  byId("recording-chart").addEventListener("keydown", keys);
  byId("theme").onclick = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  byId("pair-scale").onchange = () => { shown.scale = byId("pair-scale").value; refresh("pair"); remember(); };
  byId("search").oninput = () => search(byId("search").value);
  byId("csv").onclick = download;
  byId("heat-table").onclick = heatClick;
  readout("recording-chart", () => (board().recordings || [])[shown.recording], recordingReadout);
  readout("pair-chart", () => (pairOf() || {}).recording, pairReadout);
  followSections();
  showBoard(0);
  reserveBar();
  // An address that names a section says where to be; the browser would scroll to where the last visit ended.
  if (new URLSearchParams(location.hash.slice(1)).has("at")) history.scrollRestoration = "manual";
  if (location.hash) restore();
  addEventListener("popstate", restore);
  watchFigures();
}

start();
