"use strict";
// The scores of one recording, a lane a detector over one axis of rows or time, and the curves over its rows.

const LANE = { title: 18, plot: 76, strip: 9, gap: 8, axis: 38, left: 60, right: 12 };
const AXES = { wide: "with the threshold, logarithmic beyond it", close: "close to the scores" };
// What is drawn, for the pointer and the arrow keys: null before anything is.
let drawnSeries = null;
let moment = null;

const scoredLabels = () => shown.scored || new Set(board().scores.usual);
// In the table's order.
const inLanes = () => Object.keys(board().scores.seeds).filter((label) => scoredLabels().has(label));

// Which of the points' groups of rows a packed mask holds, as runs [first, end) of groups.
function runsOf(packed, n) {
  const mask = bytes(packed);
  const on = (i) => i < n && (mask[i >> 3] >> (7 - (i & 7))) & 1;
  const found = [];
  for (let i = 0; i < n; i += 1) {
    if (!on(i)) continue;
    const first = i;
    while (on(i)) i += 1;
    found.push([first, i]);
  }
  return found;
}

async function drawSeries() {
  const here = board();
  const recording = here.recordings[shown.recording];
  byId("series").hidden = !here.scores;
  if (!here.scores) return;
  const found = recording.scores && await fetched(`${here.id}/scores/${recording.scores}`);
  if (here !== board() || recording !== here.recordings[shown.recording]) return;
  byId("series-drawn").hidden = !found;
  if (!found) {
    byId("series-lead").textContent = recording.scores ? "The scores of this recording could not be loaded: is the folder data/ beside the pages?" : "The score bank has no scores of this recording.";
    byId("series-note").textContent = aboutOthers();
    return;
  }
  drawScoredChoice();
  options("series-axis", Object.entries(AXES), shown.axis, (axis) => { shown.axis = axis; drawSeries(); remember(); });
  drawSeriesWords(found, recording);
  drawLanes(found, recording);
  drawCurves(found);
}

function tonedSwatch(i) {
  const mark = toned(element("span", { class: "swatch", "aria-hidden": "true" }), i);
  mark.style.borderTopStyle = dashOf(i) ? "dashed" : "solid";
  return mark;
}

function drawScoredChoice() {
  const labels = Object.keys(board().scores.seeds).filter(sought);
  const lanes = inLanes();
  const swatch = (label) => {
    const place = lanes.indexOf(label);
    return place >= 0 ? tonedSwatch(place) : element("span", { class: "swatch", "aria-hidden": "true" });
  };
  shown.scored = new Set(scoredLabels());
  const changed = () => { drawSeries(); remember(); };
  keepingFocus("scored", () => checks("scored", labels, shown.scored, changed, swatch));
}

function aboutOthers() {
  const { others } = board().scores;
  return others.length ? `The bank's files of ${others.join(", ")} are of other trials than the table's, and are left out.` : "";
}

function drawSeriesWords(found, recording) {
  const { seeds, unlabelled } = board().scores;
  const labelled = found.anomalous !== null;
  const used = [...new Set(Object.values(seeds))].sort((a, b) => a - b);
  byId("series-lead").textContent = [
    `${recording.id}: ${found.n_rows.toLocaleString("en")} rows. ${shown.axis === "close" ? "Each lane is a detector's score; its threshold is dashed, where it lies among the scores." : "Each lane is a detector's score, linear near its threshold, which is dashed, and logarithmic far from it."} The strip below a score marks flagged rows.`,
    labelled ? "Shaded: labelled anomalous. Grey: rows that do not count." : "",
    found.thinned ? "Drawn are the lowest and the highest score of neighbouring rows." : "",
    `Scores are those of the score bank, seed ${used.join(" or ")}${used.length > 1 ? ", the lowest of each" : ""}.`,
  ].filter((one) => one).join(" ");
  byId("series-note").textContent = [
    labelled ? "" : `Labels and times are neither in the tables nor in the bank, and ${unlabelled}: true anomalies are not shaded, there are no curves, and flags are marked on rows that do not count as well.`,
    aboutOthers(),
  ].filter((one) => one).join(" ");
}

function drawLanes(found, recording) {
  const x = numbers(found.time);
  const each = found.thinned ? 2 : 1;
  const n = x.length / each;
  const labels = inLanes().filter((label) => found.detectors[label]);
  const pages = new Map(table().rows.map((row) => [row.label, row.page]));
  const places = labels.map(() => element("div", { class: "lane" }));
  byId("lanes").replaceChildren(...places, ...(labels.length ? [] : [paragraph("No detector is chosen.")]));
  const span = (runs) => runs.map(([first, end]) => [x[first * each], x[Math.min(x.length - 1, end * each)]]);
  const bands = found.anomalous === null ? [] : [["uncounted", span(complement(runsOf(found.evaluated, n), n))], ["truth", span(runsOf(found.anomalous, n))]];
  const lanes = labels.map((label, i) => {
    const one = found.detectors[label];
    const last = i === labels.length - 1;
    const about = `${label}: ${one.n_flagged.toLocaleString("en")} of ${found.n_rows.toLocaleString("en")} rows flagged, threshold ${amount(one.threshold)}`;
    return drawLane(places[i], { label, one, tone: i, about, page: pages.get(label), values: numbers(one.scores), flagged: span(runsOf(one.flagged, n)) }, { x, bands, xTitle: last ? timeTitle(found) : null });
  });
  drawnSeries = { found, x, labels, lanes, recording };
  showMoment(null);
}

function complement(runs, n) {
  const edges = [0, ...runs.flat(), n];
  const found = [];
  for (let i = 0; i < edges.length; i += 2) if (edges[i] < edges[i + 1]) found.push([edges[i], edges[i + 1]]);
  return found;
}

const plainTicks = (low, high) => ({ tickvals: [...new Set([low, high])], ticktext: [low, high].map(amount) });

// Returns the scale of the time axis and the line that marks a moment.
function drawLane(place, lane, { x, bands, xTitle }) {
  const height = LANE.title + LANE.plot + LANE.strip + (xTitle === null ? LANE.gap : LANE.axis);
  const [made, width] = frame(place, height, lane.about);
  const [left, right, top, bottom] = [LANE.left, width - LANE.right, LANE.title, LANE.title + LANE.plot];
  const across = linear(x[0], x.at(-1), left, right);
  const close = shown.axis === "close";
  const scale = Math.abs(lane.one.threshold) || 1;
  const placed = (value) => (close ? value : compress(value, scale));
  const heights = Array.from(lane.values, placed);
  const threshold = placed(lane.one.threshold);
  const known = heights.filter((value) => !Number.isNaN(value)).concat(close ? [] : threshold);
  const low = known.reduce((a, b) => Math.min(a, b), Infinity);
  const high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  const pad = 0.04 * (high - low) || 0.5;
  const up = (value) => bottom - ((value - low + pad) / (high - low + 2 * pad)) * (bottom - top);
  const box = (kind, [from, to], y, tall) => svg("rect", { class: kind, x: across.scale(from), y, width: Math.max(1, across.scale(to) - across.scale(from)), height: tall });
  for (const [kind, list] of bands) made.append(...list.map((one) => box(kind, one, top, LANE.plot + LANE.strip)));
  for (const [at] of across.ticks) made.append(svg("line", { class: "grid-line", x1: at, x2: at, y1: top, y2: bottom }));
  const { tickvals, ticktext } = close ? plainTicks(low, high) : ticks(low, high, scale, 3);
  tickvals.forEach((value, i) => made.append(text(left - 6, up(value) + 4, ticktext[i], { "text-anchor": "end" })));
  const points = heights.map((value, i) => (Number.isNaN(value) ? null : `${across.scale(x[i]).toFixed(1)} ${up(value).toFixed(1)}`));
  const path = points.map((point, i) => (point === null ? "" : `${i && points[i - 1] !== null ? "L" : "M"}${point}`)).join("");
  const at = up(threshold);
  const moving = svg("line", { class: "moment", x1: left, x2: left, y1: top, y2: bottom + LANE.strip, visibility: "hidden" });
  made.append(
    toned(svg("path", { class: "score", d: path }), lane.tone),
    ...(at >= top && at <= bottom ? [svg("line", { class: "threshold", x1: left, x2: right, y1: at, y2: at })] : []),
    svg("rect", { class: "strip", x: left, y: bottom, width: right - left, height: LANE.strip }),
    ...lane.flagged.map((one) => toned(box("flagged", one, bottom, LANE.strip), lane.tone)),
    moving,
  );
  const words = `${width > 520 ? `threshold ${amount(lane.one.threshold)}, ` : ""}${lane.one.n_flagged.toLocaleString("en")} rows flagged`;
  const fits = Math.max(8, Math.floor((right - left - 6.6 * words.length - 12) / 7));
  made.append(marked(toned(text(left, 13, short(lane.label, fits), { class: "named" }), lane.tone), lane.about, lane.page), text(right, 13, words, { "text-anchor": "end" }));
  if (xTitle !== null) {
    for (const [place_, tick] of across.ticks) made.append(text(place_, bottom + LANE.strip + 15, tick, { "text-anchor": "middle" }));
    made.append(text((left + right) / 2, height - 4, xTitle, { "text-anchor": "middle" }));
  }
  return { made, across, left, right, moving, width };
}

// What stands at one point of the lanes; null for none.
function showMoment(i) {
  moment = i;
  const { found, x, labels, lanes } = drawnSeries;
  for (const { moving, across } of lanes) {
    moving.setAttribute("visibility", i === null ? "hidden" : "visible");
    if (i !== null) for (const end of ["x1", "x2"]) moving.setAttribute(end, across.scale(x[i]));
  }
  byId("series-at").textContent = i === null ? "" : `${whenAt(found, i)}: ${labels.map((label) => `${label} ${valueAt(found, numbers(found.detectors[label].scores), i)}`).join(", ")}`;
}

function followMoments() {
  const place = byId("lanes");
  const moveTo = (i) => { if (drawnSeries) showMoment(Math.min(drawnSeries.x.length - 1, Math.max(0, i))); };
  place.addEventListener("pointermove", (event) => {
    const lane = drawnSeries && drawnSeries.lanes[0];
    if (!lane) return;
    const area = lane.made.getBoundingClientRect();
    const share = ((event.clientX - area.left) * (lane.width / area.width) - lane.left) / (lane.right - lane.left);
    const { x } = drawnSeries;
    if (share >= 0 && share <= 1) moveTo(nearest(x, x[0] + share * (x.at(-1) - x[0])));
  });
  place.addEventListener("pointerleave", () => { if (drawnSeries) showMoment(null); });
  place.addEventListener("keydown", (event) => {
    if (!drawnSeries || event.target !== place || event.ctrlKey || event.altKey || event.metaKey) return;
    const step = (drawnSeries.found.thinned ? 2 : 1) * (event.shiftKey ? 10 : 1);
    const to = { ArrowLeft: (moment ?? 0) - step, ArrowRight: (moment ?? -step) + step, Home: 0, End: Infinity }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    moveTo(to);
  });
}

function drawCurves(found) {
  const all = inLanes().map((label, tone) => ({ label, tone, curves: (found.detectors[label] || {}).curves })).filter((one) => one.curves);
  byId("curves").hidden = !all.length;
  if (!all.length) return;
  fill("curve-keys", "Over the rows that count; a cross is where the threshold lies. ", ...all.flatMap(({ label, tone }) => [element("span", { class: "key" }, tonedSwatch(tone), ` ${label}`), " "]));
  const lines = (name, at) => all.map(({ label, tone, curves }) => ({ label, tone, xs: numbers(curves[name][0]), ys: numbers(curves[name][1]), at: at(curves.point), about: `${label}: precision ${number(curves.point.precision, 3)}, recall ${number(curves.point.recall, 3)}, ${percent(curves.point.false_alarm_rate)} of normal rows flagged` }));
  const { chance } = all[0].curves;
  drawShares(byId("precision-recall"), lines("precision_recall", (at) => [at.recall, at.precision]), { title: "Precision and recall", xTitle: "recall", yTitle: "precision", steps: true, chance: [chance, chance] });
  drawShares(byId("roc"), lines("roc", (at) => [at.false_alarm_rate, at.recall]), { title: "ROC", xTitle: "share of normal rows flagged", yTitle: "recall", steps: false, chance: [0, 1] });
}
