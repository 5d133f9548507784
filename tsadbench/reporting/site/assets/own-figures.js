"use strict";
// The figures of a table: ranks with intervals, seeds, quality against throughput, recordings by detectors.

const FIGURES = { ranks: drawRanks, speed: drawSpeed, seeds: drawSeeds, heat: drawRecordings, recording: drawOneRecording };
const SPEEDS = [
  { target: "speed-fit", cost: "fit_seconds", title: "seconds of a fit", shape: "hv" },
  { target: "speed-rows", cost: "rows_per_second", title: "rows scored per second", shape: "vh" },
];

const metricNamed = (name) => board().metrics.find((one) => one.name === name);
const rowsInSight = () => table().rows.filter((row) => row.status === "ok" && sought(row.label) && filters.passes(row));
const mean = (row, name) => (row.metrics[name] || {}).mean ?? null;

function drawRanks() {
  const rows = rowsInSight().filter((row) => row.complete && row.rank && !unknown(row.rank.value)).sort((a, b) => a.rank.value - b.rank.value);
  const interval = ({ value, low, high }) => `${value.toFixed(2)}${unknown(low) ? "" : `, ${low.toFixed(1)} to ${high.toFixed(1)}`}`;
  drawLines(byId("ranks-chart"), rows.map((row) => ({ label: row.label, floor: row.floor, page: row.page, ...row.rank, about: `${row.label}: mean rank ${interval(row.rank)}` })), { xTitle: "mean rank (lower is better)" });
}

function drawSeeds() {
  const metric = metricNamed(shown.metric);
  if (!metric) return;
  const sign = metric.better === "lower" ? 1 : -1;
  const rows = rowsInSight().filter((row) => mean(row, metric.name) !== null).sort((a, b) => sign * (mean(a, metric.name) - mean(b, metric.name)));
  const floors = table().rows.filter((row) => row.floor && row.status === "ok").map((row) => mean(row, metric.name)).filter((value) => value !== null);
  const line = floors.length && metric.better ? (metric.better === "lower" ? Math.min(...floors) : Math.max(...floors)) : null;
  drawLines(byId("seeds-chart"), rows.map((row) => ({
    label: row.label, floor: row.floor, page: row.page, value: mean(row, metric.name), dots: (row.by_seed[metric.name] || []).filter((value) => !unknown(value)),
    about: `${row.label}: ${metric.title} ${number(mean(row, metric.name))} over ${row.seeds.length} seed${row.seeds.length === 1 ? "" : "s"}`,
  })), { xTitle: metric.title, line });
}

function drawSpeed() {
  const metric = metricNamed(shown.speedMetric);
  if (!metric) return;
  for (const { target, cost, title, shape } of SPEEDS) {
    const rows = rowsInSight().filter((row) => row.cost[cost] > 0 && mean(row, metric.name) !== null);
    const points = rows.map((row) => ({
      x: row.cost[cost], y: mean(row, metric.name), label: row.label, floor: row.floor, open: Boolean(row.leaky), page: row.page,
      about: `${row.label}: ${metric.title} ${number(mean(row, metric.name))} at ${amount(row.cost[cost])} ${title}`,
    }));
    const best = (table().fronts[metric.name] || {})[cost] || [];
    const front = points.filter((one) => best.includes(one.label)).sort((a, b) => a.x - b.x);
    drawPoints(byId(target), points, { front, xTitle: title, yTitle: metric.title, shape });
  }
}

// Metrics by recording are many numbers: they are loaded when they come into view.
async function withRecordings() {
  const here = board();
  if (!here.recordings) Object.assign(here, await fetched(`${here.id}/recordings`) || { recordings: [], detectors: [] });
  return here === board() && here.recordings.length > 0;
}

async function drawRecordings() {
  if (!board().by_recording || !await withRecordings()) return;
  drawRecordingChoice();
  drawHeat();
}

function drawRecordingChoice() {
  const metrics = heatMetrics();
  if (!metrics.some((one) => one.name === shown.heat)) shown.heat = metrics.some((one) => one.name === "auprc") ? "auprc" : metrics[0].name;
  if (!listed().includes(shown.recording)) shown.recording = listed()[0] || 0;
  for (const id of ["heat-metric", "recording-metric"]) options(id, metrics.map((one) => [one.name, one.title + (one.oracle ? "*" : "")]), shown.heat, (name) => { shown.heat = name; refresh("heat", "recording"); remember(); });
  options("recording-choice", listed().map((place) => [place, board().recordings[place].id]), shown.recording, (place) => { shown.recording = Number(place); refresh("recording"); remember(); });
}

async function drawOneRecording() {
  if (!board().by_recording || !await withRecordings()) return;
  drawRecordingChoice();
  const metric = heatMetrics().find((one) => one.name === shown.heat);
  const { id, n_rows: rows, n_anomalous: anomalous } = board().recordings[shown.recording];
  const rowOf = new Map(table().rows.map((row) => [row.label, row]));
  const sign = metric.better === "lower" ? 1 : -1;
  const lines = detectors().filter((one) => rowOf.has(one.label) && sought(one.label) && filters.passes(rowOf.get(one.label)))
    .map((one) => ({ label: one.label, floor: one.floor, page: rowOf.get(one.label).page, value: numbers(one.by_recording[metric.name])[shown.recording] }))
    .filter((one) => !Number.isNaN(one.value)).sort((a, b) => sign * (a.value - b.value));
  byId("recording-lead").textContent = `${id}: ${rows.toLocaleString("en")} evaluated rows, ${percent(rows ? anomalous / rows : null)} anomalous. ${metric.title} of each row, the mean over seeds.`;
  drawLines(byId("recording-chart"), lines.map((one) => ({ ...one, about: `${one.label}: ${metric.title} ${number(one.value)} on ${id}` })), { xTitle: metric.title });
  await drawSeries();
}

function openRecording(place) {
  shown.recording = place;
  shown.section = "recording";
  drawRecordingChoice();
  goTo("recording");
  refresh("recording");
  remember();
}
