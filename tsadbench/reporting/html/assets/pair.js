"use strict";
// Two detectors on one recording: both scores on one scale, their difference, whose flags are whose, who finds which event.

// Spans are sorted pairs [first, end) that do not overlap.
function common(a, b) {
  return a.flatMap(([first, end]) => b.map(([low, high]) => [Math.max(first, low), Math.min(end, high)]).filter(([low, high]) => low < high));
}

function without(a, b) {
  return a.flatMap(([first, end]) => {
    const left = [];
    let from = first;
    for (const [low, high] of b) {
      if (high <= from || low >= end) continue;
      if (low > from) left.push([from, low]);
      from = Math.max(from, high);
    }
    return from < end ? [...left, [from, end]] : left;
  });
}

// The share of the points with a lower score; half of the equal ones. NaN stays.
function rankShares(scores) {
  const order = Array.from(scores.keys()).filter((i) => !Number.isNaN(scores[i])).sort((a, b) => scores[a] - scores[b]);
  const shares = new Float64Array(scores.length).fill(NaN);
  for (let start = 0; start < order.length;) {
    let end = start + 1;
    while (end < order.length && scores[order[end]] === scores[order[start]]) end += 1;
    for (let i = start; i < end; i += 1) shares[order[i]] = (start + end) / 2 / order.length;
    start = end;
  }
  return shares;
}

const relative = (one) => one.threshold > 0;

function onScale(one, scale) {
  const scores = numbers(one.scores);
  return scale === "rank" ? rankShares(scores) : Float64Array.from(scores, (value) => compress(value, one.threshold));
}

function pairOf() {
  const recording = (board().recordings || [])[shown.recording];
  if (!recording || !recording.detectors[shown.first] || !recording.detectors[shown.second]) return null;
  const [first, second] = [recording.detectors[shown.first], recording.detectors[shown.second]];
  const scale = shown.scale === "threshold" && relative(first) && relative(second) ? "threshold" : "rank";
  const [a, b] = [onScale(first, scale), onScale(second, scale)];
  return {
    recording, first, second, scale, a, b, difference: a.map((value, i) => value - b[i]),
    onlyFirst: without(first.flagged, second.flagged), onlySecond: without(second.flagged, first.flagged), both: common(first.flagged, second.flagged),
  };
}

const PAIR = { scores: 220, difference: 130, strip: 16, gap: 26 };

function drawPair() {
  const found = pairOf();
  byId("pair-events").hidden = !found;
  if (!found) {
    Plotly.purge("pair-chart");
    fill("pair-chart");
    byId("pair-lead").textContent = "Choose two detectors with scores of this recording.";
    return;
  }
  const { recording, scale, a, b, difference } = found;
  const time = numbers(recording.time);
  const [ours, theirs] = [colour(0), colour(1)];
  const strips = [[`only ${shown.first}`, found.onlyFirst, ours], [`only ${shown.second}`, found.onlySecond, theirs], ["both", found.both, style("--quiet")]];
  const total = PAIR.scores + PAIR.difference + 3 * PAIR.strip + 4 * PAIR.gap;
  const values = (array) => Array.from(array, (value) => (Number.isNaN(value) ? null : value));
  const lineOf = (array, color, axis, dash) => ({ type: "scatter", mode: "lines", x: time, y: values(array), line: { color, width: 1.2, dash }, xaxis: "x", yaxis: axis, hoverinfo: "skip" });
  const traces = [lineOf(a, ours, "y", "solid"), lineOf(b, theirs, "y", "solid"), lineOf(difference, style("--ink"), "y2", "solid")];
  const axes = {};
  const notes = [];
  let top = total;
  const lane = (name, height, text, more) => {
    const domain = [Math.max(0, (top - height) / total), top / total];
    axes[name] = { domain, gridcolor: style("--line"), zeroline: false, fixedrange: true, tickfont: { size: 9 }, nticks: 4, ...more };
    notes.push({ text: plain(short(text, narrow() ? 40 : 90)), x: 0, xref: "paper", xanchor: "left", y: domain[1], yref: "paper", yanchor: "bottom", showarrow: false, font: { size: 11 } });
    top -= height + PAIR.gap;
  };
  top -= PAIR.gap;
  const scaleTicks = () => {
    const all = [...a, ...b].filter((value) => !Number.isNaN(value));
    return ticks(all.reduce((x, y) => Math.min(x, y), 0), all.reduce((x, y) => Math.max(x, y), 1), 1, 5);
  };
  lane("yaxis", PAIR.scores, scale === "rank" ? "share of the drawn points with a lower score" : "score / threshold", scale === "rank" ? { range: [0, 1] } : scaleTicks());
  lane("yaxis2", PAIR.difference, `difference: ${short(shown.first)} - ${short(shown.second)}${scale === "rank" ? "" : ", of the axis above"}`, { zeroline: true, zerolinecolor: style("--quiet") });
  strips.forEach(([name, spansOf, color], i) => {
    const axis = `y${i + 3}`;
    const [x, y] = spans(spansOf, 0);
    traces.push({ type: "scatter", mode: "lines", x: x.length ? x : [time[0], null], y: y.length ? y : [null, null], line: { color, width: PAIR.strip - 4 }, xaxis: "x", yaxis: axis, hoverinfo: "skip" });
    lane(`yaxis${i + 3}`, PAIR.strip, `flagged by ${name}`, { showticklabels: false, showgrid: false, range: [-1, 1] });
    top += PAIR.gap - 20;
  });
  if (scale === "threshold") traces.push({ type: "scatter", mode: "lines", x: [time[0], time.at(-1)], y: [compress(1, 1), compress(1, 1)], line: { color: style("--ink"), width: 1, dash: "dash" }, xaxis: "x", yaxis: "y", hoverinfo: "skip" });
  const height = total + 60;
  byId("pair-chart").style.height = `${height}px`;
  const arrangement = layout({
    height, margin: { l: 52, r: 12, t: 24, b: 46 }, annotations: notes, hovermode: false, dragmode: "zoom",
    shapes: recording.anomalous.map(([x0, x1]) => ({ type: "rect", x0, x1, y0: 0, y1: 1, yref: "paper", fillcolor: style("--truth"), line: { width: 0 }, layer: "below" })),
  });
  delete arrangement.yaxis;
  Object.assign(arrangement, axes, { xaxis: { gridcolor: style("--line"), title: { text: timeTitle(recording) }, anchor: "free", position: 0, range: [time[0], time.at(-1)] } });
  const counts = countEvents(found);
  const unusable = shown.scale === "threshold" && scale === "rank" ? " A threshold that is not above 0 is no unit, so ranks are shown." : "";
  const [only] = recording.n_events === 1 ? Object.keys(counts).filter((key) => counts[key]) : [];
  const finder = { both: "Both find", first: `Only ${shown.first} finds`, second: `Only ${shown.second} finds`, neither: "Neither finds" };
  const events = recording.n_events === 0 ? "The recording has no event." : only ? `${finder[only]} its event.` : `Of ${recording.n_events} events${recording.n_events > recording.events.length ? `, of which the first ${recording.events.length} are listed,` : ""} both find ${counts.both}, only ${shown.first} ${counts.first}, only ${shown.second} ${counts.second}, neither ${counts.neither}.`;
  byId("pair-lead").textContent = `${recording.id}: ${shown.first} against ${shown.second}. ${events}${unusable}${recording.thinned ? " Drawn are the lowest and highest value of neighbouring rows." : ""}`;
  fill("pair-key", swatchOf(ours), ` ${shown.first}   `, swatchOf(theirs), ` ${shown.second}`);
  plot("pair-chart", traces, arrangement, byId("pair-lead").textContent);
  drawPairEvents(found);
}

function verdict(found, i) {
  const [first, second] = [found.first.events[i].found, found.second.events[i].found];
  return first && second ? "both" : first ? "first" : second ? "second" : "neither";
}

function countEvents(found) {
  const counts = { both: 0, first: 0, second: 0, neither: 0 };
  found.recording.events.forEach((_, i) => { counts[verdict(found, i)] += 1; });
  return counts;
}

function drawPairEvents(found) {
  const { recording, first, second } = found;
  const said = { both: "both", first: `only ${shown.first}`, second: `only ${shown.second}`, neither: "neither" };
  const late = (event) => (!event.found ? "missed" : event.delay_seconds !== null ? `found after ${amount(event.delay_seconds)} s` : event.delay_rows !== null ? `found after ${event.delay_rows} rows` : "found");
  const rows = recording.events.map(([start, end], i) => element("tr", { class: verdict(found, i) === "first" || verdict(found, i) === "second" ? "differs" : null },
    element("th", { scope: "row" }, `${clockOf(recording, start) || `row ${start}`} to ${clockOf(recording, end) || `row ${end}`}`),
    ...[late(first.events[i]), late(second.events[i]), said[verdict(found, i)]].map((text) => element("td", { class: "text" }, text))));
  const header = ["Event", shown.first, shown.second, "Found by"];
  fill("pair-table", element("thead", {}, element("tr", {}, ...header.map((text) => element("th", { scope: "col", class: "text", title: text }, short(text, 40))))), element("tbody", {}, ...rows));
  byId("pair-events").hidden = !rows.length;
}

function pairReadout(i) {
  const found = pairOf();
  if (!found) return ["", []];
  const { recording, first, second, a, b, difference, scale } = found;
  const seconds = numbers(recording.time)[i];
  const flag = (one) => (within(one.flagged, seconds) ? ", flagged" : "");
  const placed = (value) => (Number.isNaN(value) ? "–" : scale === "rank" ? `above ${percent(value)}` : `${amount(Math.sinh(value))} × threshold`);
  return [whenAt(recording, i), [
    ["", "label", within(recording.anomalous, seconds) ? "anomalous" : "normal"],
    [colour(0), shown.first, `${valueAt(recording, numbers(first.scores), i)}, ${placed(a[i])}${flag(first)}`],
    [colour(1), shown.second, `${valueAt(recording, numbers(second.scores), i)}, ${placed(b[i])}${flag(second)}`],
    ["", "difference", Number.isNaN(difference[i]) ? "–" : difference[i].toFixed(3)],
  ]];
}
