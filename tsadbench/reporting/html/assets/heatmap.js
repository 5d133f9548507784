"use strict";
// Recordings by detectors: one metric in each cell, of a stronger colour where it is better; a click leads to the recording.

// Whole tables fit a screen that scrolls; paper gets some detectors at a time.
const ON_A_SHEET = 16;

function heatMetrics() {
  const held = detectors()[0] ? Object.keys(detectors()[0].by_recording) : [];
  return [
    ...board().metrics.filter((one) => held.includes(one.name)).map((one) => ({ ...one, digits: 3 })),
    ...(held.length && board().recordings.every((one) => one.detectors) ? [
      { name: "events_found", title: "Events found, share", better: "higher", digits: 2 },
      { name: "false_alarms", title: "False alarms, count", better: "lower", digits: 0 },
    ] : []),
  ];
}

function heatValue(metric, detector, place) {
  if (detector.by_recording[metric]) return numbers(detector.by_recording[metric])[place];
  const recording = board().recordings[place];
  const one = recording.detectors[detector.label];
  if (!one) return NaN;
  if (metric === "false_alarms") return one.false_alarms;
  return one.events.length ? one.events.filter((event) => event.found).length / one.events.length : NaN;
}

function heatColumns() {
  const rank = new Map(table().rows.map((row, i) => [row.label, i]));
  const place = (one) => rank.get(one.label) ?? 1e5;
  return [...detectors()].sort((a, b) => a.floor - b.floor || place(a) - place(b)).filter((one) => sought(one.label));
}

function heatTable(metric, some, values, scale, wide) {
  const names = some.map((one) => element("th", { scope: "col", title: one.label }, element("span", {}, short(one.label, 34))));
  const rows = listed().map((place) => {
    const recording = board().recordings[place];
    const cells = some.map((one) => {
      const value = values.get(one.label)[place];
      const known = !Number.isNaN(value);
      const cell = element("td", { "data-recording": place, "data-detector": one.label, title: `${recording.id}, ${one.label}: ${known ? number(value, 4) : "undefined, its evaluated rows are of one class, or none is scored"}` }, known ? number(value, metric.digits) : "–");
      if (known) cell.style.setProperty("--heat", `${Math.round(70 * scale(value))}%`);
      return cell;
    });
    const lead = element("button", { type: "button", "data-recording": place, title: recording.id }, short(recording.id, 40));
    return element("tr", {}, element("th", { scope: "row" }, lead), ...cells);
  });
  return element("table", { class: "heat" }, wide ? null : element("caption", { class: "note" }, `${metric.title}: ${some[0].label} to ${some.at(-1).label}`),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Recording"), ...names)), element("tbody", {}, ...rows));
}

function drawHeat() {
  const metric = heatMetrics().find((one) => one.name === shown.heat);
  const some = heatColumns();
  if (!metric) return;
  const values = new Map(some.map((one) => [one.label, (board().recordings || []).map((_, place) => heatValue(metric.name, one, place))]));
  const all = some.flatMap((one) => listed().map((place) => values.get(one.label)[place])).filter((value) => !Number.isNaN(value));
  const low = all.reduce((a, b) => Math.min(a, b), Infinity);
  const high = all.reduce((a, b) => Math.max(a, b), -Infinity);
  const share = (value) => (high > low ? (value - low) / (high - low) : 0.5);
  const scale = metric.better === "lower" ? (value) => 1 - share(value) : share;
  const better = { higher: "The stronger the colour, the better.", lower: "The stronger the colour, the lower, which is better.", null: "The stronger the colour, the more." }[metric.better];
  byId("heat-lead").textContent = `${metric.title} of each recording of ${aboutListed()} by itself, the mean over seeds${["events_found", "false_alarms"].includes(metric.name) ? " (of these two the first seed)" : ""}. ${better} A click on a cell, or on a recording's name, leads to the recording.`;
  const sheets = onPaper() ? Math.ceil(some.length / ON_A_SHEET) : 1;
  const size = Math.ceil(some.length / Math.max(1, sheets));
  const parts = Array.from({ length: some.length ? sheets : 0 }, (_, i) => some.slice(i * size, (i + 1) * size));
  fill("heat-table", ...parts.map((part) => heatTable(metric, part, values, scale, sheets === 1)), some.length ? "" : element("p", { class: "note" }, "No detector with figures matches the search."));
}

function heatClick(event) {
  const target = event.target.closest("[data-recording]");
  if (target) openRecording(Number(target.dataset.recording), target.dataset.detector);
}
