"use strict";
// Puts the page together and keeps it so.

const FIGURES = { seeds: drawSeeds, speed: drawSpeed, curves: drawCurves, recording: drawRecording, densities: drawDensities, thresholds: drawThresholds, graph: drawGraph };
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

const everyFigure = () => refresh(...Object.keys(FIGURES));

function options(id, values, current, change) {
  const place = byId(id);
  place.replaceChildren(...values.map(([value, text]) => element("option", { value, title: text }, short(text, 60))));
  place.value = String(current);
  place.onchange = () => change(place.value);
}

function defaults() {
  const ranked = table().rows.filter((row) => row.status === "ok" && detectors().some((one) => one.label === row.label));
  const best = ranked.filter((row) => !row.floor).slice(0, 5);
  const floor = ranked.filter((row) => row.floor).slice(0, 1);
  shown.detectors = new Set([...best, ...floor].map((row) => row.label));
  shown.sensors = new Set((board().sensors || []).slice(0, 8));
  shown.recording = 0;
  shown.range = null;
  shown.graph = 0;
  const names = board().metrics.map((one) => one.name);
  shown.metric = names.includes("auprc") ? "auprc" : names[0] || "";
  shown.speedMetric = shown.metric;
  sorting.column = shown.metric || "label";
  sorting.descending = true;
  const mapped = mapsOf(0);
  shown.map = mapped.find((label) => shown.detectors.has(label)) || mapped[0] || "";
}

const mapsOf = (i) => Object.keys(((board().recordings || [])[i] || { maps: {} }).maps);

function checks(id, names, chosenNames, drawn, swatch) {
  fill(id, ...names.map((name) => {
    const box = element("input", { type: "checkbox", on: { change: () => {
      if (box.checked) chosenNames.add(name); else chosenNames.delete(name);
      drawn();
    } } });
    box.checked = chosenNames.has(name);
    return element("label", { title: name }, box, ...(swatch ? [swatch(name)] : []), short(name, 40));
  }));
}

function swatch(label) {
  const mark = element("span", { class: "swatch", "aria-hidden": "true" });
  const { color, dash } = look(label);
  mark.style.borderTopColor = color;
  mark.style.borderTopStyle = { solid: "solid", dash: "dashed", dot: "dotted", dashdot: "double" }[dash];
  return mark;
}

function showBoard(i) {
  shown.board = Number(i);
  shown.split = board().tables[0].split;
  defaults();
  options("split", board().tables.map((one) => [one.split, one.split]), shown.split, (split) => { shown.split = split; showSplit(); });
  const metrics = board().metrics.map((one) => [one.name, one.title + (one.oracle ? "*" : "")]);
  options("seed-metric", metrics, shown.metric, (name) => { shown.metric = name; refresh("seeds"); });
  options("speed-metric", metrics, shown.speedMetric, (name) => { shown.speedMetric = name; refresh("speed"); });
  const drawable = (board().recordings || []).length > 0 && detectors().length > 0;
  options("graph-choice", (board().graphs || []).map((one, place) => [place, one.label]), shown.graph, (place) => { shown.graph = Number(place); refresh("graph"); });
  checks("detectors", detectors().map((one) => one.label), shown.detectors, everyFigure, swatch);
  checks("sensors", board().sensors || [], shown.sensors, () => refresh("recording"));
  for (const id of ["curves", "recording", "densities", "thresholds"]) byId(id).hidden = !drawable;
  byId("graph").hidden = !(board().graphs || []).length;
  drawLabels();
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
  options("recording-choice", listed().map((place) => [place, board().recordings[place].id]), shown.recording, showRecording);
  if (listed().length) showRecording(listed().includes(shown.recording) ? shown.recording : listed()[0]);
  everyFigure();
}

function showRecording(place) {
  shown.recording = Number(place);
  shown.range = null;
  byId("recording-choice").value = String(place);
  const mapped = mapsOf(shown.recording);
  if (!mapped.includes(shown.map)) shown.map = mapped[0] || "";
  options("map-choice", mapped.length ? mapped.map((label) => [label, label]) : [["", "none were kept"]], shown.map, (label) => { shown.map = label; refresh("recording"); });
  byId("map-choice").disabled = !mapped.length;
  refresh("recording", ...(detectors().some((one) => one.thresholds.length > 1) ? ["thresholds"] : []));
}

function drawSections() {
  const sections = [...document.querySelectorAll("main > section")].filter((one) => !one.hidden);
  fill("sections", ...sections.map((one) => element("li", {}, element("a", { href: `#${one.id}` }, one.querySelector("h2").textContent))));
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
  checks("detectors", detectors().map((one) => one.label), shown.detectors, everyFigure, swatch);
  everyFigure();
}

function start() {
  byId("made").textContent = `${content.n_trials.toLocaleString("en")} trials of ${content.store}, made with tsadbench ${content.tsadbench} on ${content.made.replace("T", " ").replace("+00:00", " UTC")}.` + (content.n_broken ? ` ${content.n_broken} trials could not be read.` : "");
  options("board", content.boards.map((one, i) => [i, `${one.dataset}, ${one.protocol}`]), 0, showBoard);
  byId("axis").onchange = () => refresh("recording");
  const neighbour = (step) => listed()[listed().indexOf(shown.recording) + step];
  byId("previous").onclick = () => showRecording(neighbour(-1));
  byId("next").onclick = () => showRecording(neighbour(1));
  for (const button of document.querySelectorAll("[data-move]")) button.onclick = () => moveInTime(button.dataset.move);
  byId("recording-chart").addEventListener("keydown", keys);
  byId("theme").onclick = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  showBoard(0);
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) inView.add(entry.target.id); else inView.delete(entry.target.id);
    }
    refresh();
  }, { rootMargin: "300px" });
  for (const name of Object.keys(FIGURES)) watcher.observe(byId(name));
}

start();
