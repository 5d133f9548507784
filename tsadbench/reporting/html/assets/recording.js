"use strict";
// One recording: sensors, truth, scores, thresholds and flags on one time axis, and which sensor raised the alarm.

const LANE = { sensor: 58, score: 92, strip: 12, map: 15, gap: 10, title: 18 };

function lanes(recording) {
  const found = board().sensors.map((name, i) => ({ kind: "sensor", name, index: i, height: LANE.sensor })).filter((lane) => shown.sensors.has(lane.name));
  for (const detector of chosen()) {
    if (!recording.detectors[detector.label]) continue;
    found.push({ kind: "score", name: detector.label, height: LANE.score }, { kind: "strip", name: detector.label, height: LANE.strip });
  }
  if (recording.maps[shown.map]) found.push({ kind: "map", name: shown.map, height: Math.max(60, LANE.map * board().sensors.length) });
  return found;
}

function spans(list, y) {
  const x = [];
  const ys = [];
  for (const [first, end] of list) {
    x.push(first, end, null);
    ys.push(y, y, null);
  }
  return [x, ys];
}

function laneTraces(lane, recording, time, axis) {
  // The box beside the pointer says more than Plotly's labels would: see hover.js.
  const base = { xaxis: "x", yaxis: axis, hoverinfo: "skip" };
  if (lane.kind === "sensor") {
    return [{ ...base, type: "scatter", mode: "lines", x: time, y: numbers(recording.sensors[lane.index]), line: { color: style("--ink"), width: 1 } }];
  }
  const one = recording.detectors[lane.name];
  const { color } = look(lane.name);
  if (lane.kind === "score") {
    const raw = numbers(one.scores);
    const close = byId("axis").value === "close";
    const scale = Math.abs(one.threshold) || 1;
    const placed = (value) => (close ? value : compress(value, scale));
    const y = Array.from(raw, (value) => (Number.isNaN(value) ? null : placed(value)));
    const line = { ...base, type: "scatter", mode: "lines", x: time, y, line: { color, width: 1.2 }, connectgaps: false };
    if (close) return [line];
    const at = placed(one.threshold);
    const within = y.filter((value) => value !== null);
    lane.ticks = ticks(within.reduce((a, b) => Math.min(a, b), at), within.reduce((a, b) => Math.max(a, b), at), scale, 4);
    const ends = [time[0], time.at(-1)];
    return [
      line,
      { ...base, type: "scatter", mode: "lines", x: ends, y: [at, at], line: { color: style("--ink"), width: 1, dash: "dash" } },
    ];
  }
  if (lane.kind === "strip") {
    const [x, y] = spans(one.flagged, 0);
    return [{ ...base, type: "scatter", mode: "lines", x, y, line: { color, width: 8 } }];
  }
  const map = recording.maps[lane.name];
  const shares = bytes(map.shares);
  const times = numbers(map.time);
  const z = board().sensors.map((_, i) => Array.from(shares.subarray(i * times.length, (i + 1) * times.length), (share) => (share / 255) * Math.sqrt(map.largest)));
  return [{
    ...base, type: "heatmap", x: times, y: board().sensors.map((name) => plain(short(name, 15))), z, colorscale: "Cividis", showscale: false,
  }];
}

function drawRecording() {
  const recording = (board().recordings || [])[shown.recording];
  if (!recording) return;
  const all = lanes(recording);
  const time = numbers(recording.time);
  const below = (lane, i) => (lane.kind !== "strip" ? 2 : (all[i + 1] || {}).kind === "map" ? LANE.title : LANE.gap);
  if (onPaper()) {
    // A figure that is higher than the sheet would be cut.
    const room = PAPER.height - 70 - all.reduce((sum, lane, i) => sum + below(lane, i), 0);
    const squeeze = Math.min(1, room / Math.max(1, all.reduce((sum, lane) => sum + lane.height, 0)));
    for (const lane of all) lane.height *= squeeze;
  }
  const total = all.reduce((sum, lane, i) => sum + lane.height + below(lane, i), 0) || 60;
  const axes = {};
  const notes = [];
  const traces = [];
  let top = total;
  all.forEach((lane, i) => {
    const axis = `y${i ? i + 1 : ""}`;
    const domain = [Math.max(0, (top - lane.height) / total), top / total];
    top -= lane.height + below(lane, i);
    traces.push(...laneTraces(lane, recording, time, axis));
    const settings = { domain, gridcolor: style("--line"), zeroline: false, fixedrange: true, tickfont: { size: 9 }, nticks: 3 };
    if (lane.kind === "strip") Object.assign(settings, { showticklabels: false, showgrid: false, range: [-1, 1] });
    if (lane.ticks) Object.assign(settings, lane.ticks);
    if (lane.kind === "map") Object.assign(settings, { autorange: "reversed", tickfont: { size: 10 }, nticks: 60 });
    axes[`yaxis${i ? i + 1 : ""}`] = settings;
    if (lane.kind !== "strip") {
      const text = { sensor: short(lane.name, 40), score: `score of ${short(lane.name, 40)}`, map: `contributions to ${short(lane.name, 40)}` }[lane.kind];
      notes.push({ text: plain(text), x: 0, xref: "paper", xanchor: "left", y: domain[1], yref: "paper", yanchor: lane.kind === "map" ? "bottom" : "top", showarrow: false, font: { size: 10, color: lane.kind === "sensor" ? style("--quiet") : look(lane.name).color }, bgcolor: style("--paper"), opacity: 0.85 });
    }
  });
  const band = (list, fillcolor) => list.map(([x0, x1]) => ({ type: "rect", x0, x1, y0: 0, y1: 1, yref: "paper", fillcolor, line: { width: 0 }, layer: "below" }));
  const height = total + 70;
  byId("recording-chart").style.height = `${height}px`;
  const xaxis = { gridcolor: style("--line"), title: { text: timeTitle(recording) }, anchor: "free", position: 0, range: shown.range || [time[0], time.at(-1)] };
  const arrangement = layout({ height, margin: { l: narrow() ? 56 : 112, r: 12, t: 20, b: 46 }, shapes: band(recording.anomalous, style("--truth")), annotations: notes, hovermode: false, dragmode: "zoom" });
  delete arrangement.yaxis;
  Object.assign(arrangement, axes, { xaxis });
  byId("recording-lead").textContent = `${recording.id}: ${recording.n_rows.toLocaleString("en")} rows. Shaded: labelled anomalous. Dashed: threshold; the strip below a score: rows flagged.${recording.thinned ? " Drawn are the lowest and highest value of neighbouring rows." : ""}`;
  const about = `Recording ${recording.id}: ${recording.anomalous.length} anomalous spans. ` + chosen().map((one) => (recording.detectors[one.label] ? `${one.label} flags ${recording.detectors[one.label].flagged.length} spans` : "")).filter((text) => text).join(", ");
  plot("recording-chart", traces, arrangement, about);
  byId("previous").disabled = shown.recording === listed()[0];
  byId("next").disabled = shown.recording === listed().at(-1);
}

function moveInTime(how) {
  const time = numbers(board().recordings[shown.recording].time);
  const whole = [time[0], time.at(-1)];
  const current = byId("recording-chart").layout.xaxis.range.map(Number);
  const [middle, width] = [(current[0] + current[1]) / 2, current[1] - current[0]];
  const moved = {
    in: [middle - width / 4, middle + width / 4],
    out: [middle - width, middle + width],
    left: [current[0] - width / 3, current[1] - width / 3],
    right: [current[0] + width / 3, current[1] + width / 3],
    all: whole,
  }[how];
  shown.range = moved[1] - moved[0] >= whole[1] - whole[0] ? whole : moved;
  Plotly.relayout("recording-chart", { "xaxis.range": shown.range });
}
