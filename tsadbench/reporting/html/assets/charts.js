"use strict";
// The figures but for the recordings. Each draws itself when it comes into view and again when its content changes.

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function layout(more) {
  const axis = { gridcolor: style("--line"), linecolor: style("--line"), zerolinecolor: style("--line"), automargin: true };
  const made = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: style("--ink"), size: 12, family: "system-ui, sans-serif" },
    margin: { l: 50, r: 12, t: 32, b: 42 },
    hovermode: "closest",
    hoverlabel: { bgcolor: style("--paper"), bordercolor: style("--ink"), font: { color: style("--ink"), size: 13 }, align: "left", namelength: -1 },
    showlegend: false,
    modebar: { bgcolor: "rgba(0,0,0,0)", color: style("--quiet"), activecolor: style("--ink") },
    ...more,
  };
  for (const name of ["xaxis", "yaxis"]) made[name] = { ...axis, ...(more[name] || {}) };
  return made;
}

function plot(target, traces, arrangement, about) {
  const place = typeof target === "string" ? byId(target) : target;
  place.setAttribute("role", "figure");
  place.setAttribute("aria-label", about);
  if (onPaper()) arrangement.height = Math.min(arrangement.height, PAPER.height);
  // Plotly's button that sends a chart to its maker's servers has no place in a page that sends nothing.
  const buttons = { modeBarButtonsToRemove: ["select2d", "lasso2d", "sendChartToCloud"], plotlyServerURL: "" };
  drawn.push(Plotly.react(place, traces, arrangement, { displaylogo: false, responsive: true, displayModeBar: narrow() ? false : "hover", ...buttons }));
}

const narrow = () => matchMedia("(max-width: 40rem)").matches;

const heading = (text) => ({ text: plain(text), font: { size: 13 }, x: 0, xanchor: "left", xref: "paper" });

function drawSeeds() {
  const metric = board().metrics.find((one) => one.name === shown.metric);
  const rows = table().rows.filter((row) => row.status === "ok" && row.by_seed[shown.metric]);
  const mean = (row) => row.metrics[shown.metric].mean;
  // The lowest line of the chart is the first; two long labels may be alike when they are shortened.
  const order = rows.filter((row) => mean(row) !== null).sort((a, b) => mean(a) - mean(b));
  const lines = order.map((_, i) => i);
  const traces = [false, true].map((floor) => ({
    type: "scatter",
    mode: "markers",
    name: floor ? "floors" : "detectors",
    x: order.flatMap((row) => (row.floor === floor ? row.by_seed[shown.metric] : [])),
    y: order.flatMap((row, i) => (row.floor === floor ? row.by_seed[shown.metric].map(() => i) : [])),
    text: order.flatMap((row) => (row.floor === floor ? row.seeds.map((seed) => `${plain(row.label)}, seed ${seed}`) : [])),
    hovertemplate: "%{text}: %{x:.4f}<extra></extra>",
    marker: { color: floor ? style("--quiet") : colour(0), symbol: floor ? "circle-open" : "circle", size: 8, opacity: 0.75 },
  }));
  traces.push({
    type: "scatter", mode: "markers", name: "mean", x: order.map(mean), y: lines, hoverinfo: "skip",
    marker: { symbol: "line-ns-open", size: 17, color: style("--ink"), line: { width: 2 } },
  });
  const floors = order.filter((row) => row.floor).map(mean);
  const lower = metric.better === "lower";
  const best = floors.length && metric.better ? (lower ? Math.min(...floors) : Math.max(...floors)) : null;
  const shapes = best === null ? [] : [{ type: "line", x0: best, x1: best, y0: 0, y1: 1, yref: "paper", line: { dash: "dash", color: style("--quiet"), width: 1 } }];
  const height = onPaper() ? Math.min(PAPER.height, 90 + 24 * lines.length) : 90 + 24 * lines.length;
  byId("seed-chart").style.height = `${height}px`;
  plot("seed-chart", traces, layout({
    height, shapes, showlegend: true, legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0 },
    xaxis: { title: { text: plain(metric.title) } }, yaxis: { range: [-0.6, lines.length - 0.4], zeroline: false, tickmode: "array", tickvals: lines, ticktext: order.map((row) => plain(short(row.label))), tickfont: { size: onPaper() ? 9 : 12 }, ticklen: 4 },
  }), `${metric.title} of each seed: ` + order.map((row) => `${row.label} ${number(mean(row))}`).reverse().join(", "));
}

const SPEEDS = [
  { target: "speed-fit", cost: "fit_seconds", title: "seconds of a fit", shape: "hv" },
  { target: "speed-rows", cost: "rows_per_second", title: "rows scored per second", shape: "vh" },
];

function drawSpeed() {
  const metric = board().metrics.find((one) => one.name === shown.speedMetric);
  const rows = table().rows.filter((row) => row.status === "ok" && row.metrics[metric.name] && row.metrics[metric.name].mean !== null);
  const quality = (row) => row.metrics[metric.name].mean;
  for (const { target, cost, title, shape } of SPEEDS) {
    const placed = rows.filter((row) => row.cost[cost] > 0);
    const front = (table().fronts[metric.name] || {})[cost] || [];
    const corners = placed.filter((row) => front.includes(row.label)).sort((a, b) => a.cost[cost] - b.cost[cost]);
    const about = (row) => `${plain(row.label)}${String(row.cost.threads) === "1" ? "" : `, ${row.cost.threads.join("/")} threads`}: ${number(quality(row))}, ${amount(row.cost[cost])}`;
    const traces = [false, true].map((floor) => {
      const block = placed.filter((row) => row.floor === floor);
      return {
        type: "scatter", mode: "markers+text", name: floor ? "floors" : "detectors",
        x: block.map((row) => row.cost[cost]), y: block.map(quality), hovertext: block.map(about), hoverinfo: "text",
        text: block.map((row) => (front.includes(row.label) ? plain(short(row.label)) : "")), textposition: "top center",
        marker: {
          color: floor ? style("--quiet") : colour(0), size: 9,
          symbol: block.map((row) => (floor ? "square" : "circle") + (row.leaky ? "-open" : "")),
        },
      };
    });
    traces.push({
      type: "scatter", mode: "lines", name: "front", x: corners.map((row) => row.cost[cost]), y: corners.map(quality),
      line: { shape, color: colour(1), width: 1.5 }, hoverinfo: "skip",
    });
    const unknown = cost === "rows_per_second" ? "no scored rows were counted: tsadbench judge counts them" : "nothing is known";
    plot(target, traces, layout({
      title: heading(placed.length ? `${metric.title} against ${title}` : unknown), height: 420, showlegend: true, legend: { orientation: "h", y: -0.2 },
      xaxis: { type: "log", title: { text: title } }, yaxis: { title: { text: plain(metric.title) } },
    }), `${metric.title} against ${title}: ` + placed.map((row) => `${row.label} ${number(quality(row))} at ${amount(row.cost[cost])}`).join(", "));
  }
}

function curveTraces(kind, point) {
  return chosen().flatMap((detector) => {
    const { color, dash } = look(detector.label);
    const seeds = (detector.curves[shown.split] || []).filter((one) => one);
    const lines = seeds.map((one, i) => ({
      type: "scatter", mode: "lines", name: plain(short(detector.label)), legendgroup: plain(detector.label), showlegend: i === 0,
      x: numbers(one[kind][0]), y: numbers(one[kind][1]),
      // Nothing lies between two thresholds: precision is drawn in steps, as average precision sums them.
      line: { color, dash, width: i === 0 ? 2 : 1, shape: kind === "precision_recall" ? "vh" : "linear" }, opacity: i === 0 ? 1 : 0.35,
      hovertemplate: `${plain(detector.label)}: %{x:.3f}, %{y:.3f}<extra></extra>`,
    }));
    const at = seeds.length ? point(seeds[0].point) : [null, null];
    if (at[0] === null || at[1] === null) return lines;
    return [...lines, {
      type: "scatter", mode: "markers", legendgroup: plain(detector.label), showlegend: false, x: [at[0]], y: [at[1]],
      marker: { color, size: 11, symbol: "x", line: { color: style("--paper"), width: 1.5 } },
      hovertemplate: `${plain(detector.label)} at its threshold: %{x:.3f}, %{y:.3f}<extra></extra>`,
    }];
  });
}

function drawCurves() {
  const found = chosen().flatMap((one) => one.curves[shown.split] || []).filter((curve) => curve);
  const averaged = !found.some((curve) => curve.averaged) ? ""
    : found.some((curve) => curve.entities) ? "Each entity has a model of its own: curves and crosses are means over the entities with rows of both classes."
    : "Each recording has a fit of its own here: curves are means over recordings, crosses pool their rows.";
  const missing = chosen().every((one) => (one.curves[shown.split] || []).every((curve) => curve === null));
  byId("curves-lead").textContent = missing
    ? "This split holds one class of rows only: no curve can be drawn."
    : `A line a seed, the first one strong; the cross is where the threshold lies. ${averaged}`;
  const prevalence = found.length ? found[0].chance : 0;
  const chance = (y0, y1) => ({ type: "line", x0: 0, x1: 1, y0, y1, line: { color: style("--quiet"), dash: "dot", width: 1 } });
  const side = (range) => ({ range, constrain: "domain" });
  const values = (name) => table().rows.filter((row) => shown.detectors.has(row.label)).map((row) => `${row.label} ${number((row.metrics[name] || {}).mean)}`).join(", ");
  plot("roc", curveTraces("roc", (at) => [at.false_alarm_rate, at.recall]), layout({
    title: heading("ROC"), shapes: [chance(0, 1)], showlegend: true, legend: { x: 1, xanchor: "right", y: 0, bgcolor: "rgba(0,0,0,0)" },
    xaxis: { ...side([0, 1]), title: { text: "share of normal rows flagged" } }, yaxis: { ...side([0, 1.01]), title: { text: "share of anomalous rows flagged" } }, height: 420,
  }), `ROC curves. Area under them: ${values("auroc")}`);
  plot("precision-recall", curveTraces("precision_recall", (at) => [at.recall, at.precision]), layout({
    title: heading("Precision and recall"), shapes: [chance(prevalence, prevalence)],
    xaxis: { ...side([0, 1]), title: { text: "recall" } }, yaxis: { ...side([0, 1.01]), title: { text: "precision" } }, height: 420,
  }), `Precision-recall curves. Average precision: ${values("auprc")}`);
}

// One small chart for each chosen detector, in a grid.
function smallCharts(id, draw) {
  const places = chosen().map((detector) => {
    const place = element("div", { class: "chart" });
    return [detector, place];
  });
  for (const old of byId(id).children) Plotly.purge(old);
  fill(id, ...places.map(([, place]) => place));
  for (const [detector, place] of places) draw(detector, place);
}

const GROUPS = [["training", "set the threshold", 5], ["normal", "normal test rows", 2], ["anomalous", "anomalous test rows", 1]];

function drawDensities() {
  byId("densities-lead").textContent = `How scores are spread in split ${shown.split}, with the threshold as a line: what lies to its right is flagged. Where normal test rows lie right of the scores that set the threshold, everything is flagged, whatever the threshold.`;
  fill("groups", ...GROUPS.flatMap(([, name, shade]) => {
    const mark = element("span", { class: "swatch", "aria-hidden": "true" });
    mark.style.borderTopColor = colour(shade);
    return [mark, ` ${name}   `];
  }));
  smallCharts("density-charts", (detector, place) => {
    const found = detector.densities[shown.split];
    if (!found) {
      place.append(element("p", { class: "note" }, `${detector.label}: its scores in this split cannot be drawn on one axis.`));
      return;
    }
    const edges = numbers(found.edges);
    const traces = GROUPS.map(([key, name, shade]) => ({
      type: "scatter", mode: "lines", name, line: { shape: "vh", color: colour(shade), width: 1.5 }, fill: "tozeroy",
      x: edges.slice(1), y: numbers(found.shares[key]), hovertemplate: `${name} (${found.n[key].toLocaleString("en")}): %{y:.1%}<extra></extra>`,
    }));
    const at = compress(found.threshold, found.scale);
    plot(place, traces, layout({
      title: heading(short(detector.label, 44)), height: 270,
      shapes: [{ type: "line", x0: at, x1: at, y0: 0, y1: 1, yref: "paper", line: { color: style("--ink"), width: 2 } }],
      annotations: [{ x: at, y: 1, yref: "paper", text: "threshold", showarrow: false, xanchor: "left", yanchor: "top", font: { size: 10 } }],
      xaxis: { title: { text: found.relative ? "score / its fit's threshold" : "score" }, ...ticks(edges[0], edges.at(-1), found.scale) },
      yaxis: { title: { text: "share of rows" }, tickformat: ".0%", rangemode: "tozero" },
    }), `Spread of the scores of ${detector.label}, threshold ${amount(found.threshold)}`);
  });
}

function thresholdOf(detector) {
  const recording = (board().recordings || [])[shown.recording];
  return detector.thresholds.find((one) => recording && one.episode === recording.id) || detector.thresholds[0];
}

function drawThresholds() {
  const several = detectors().some((one) => one.thresholds.length > 1);
  byId("thresholds-lead").textContent = `Peaks-over-Threshold on scores of normal rows alone, not of the test: dots are those above the initial threshold, the line is the generalised Pareto tail fitted to them, and the threshold lies where the tail reaches the risk q.${several ? " Each recording has a fit of its own here; shown is that of the recording chosen above." : ""}`;
  smallCharts("tail-charts", (detector, place) => {
    const one = thresholdOf(detector);
    if (!one || !one.tail) {
      const why = !one ? "no threshold" : one.method === "fixed" ? "its threshold is fixed" : `no tail was fitted (${one.status})`;
      place.append(element("p", { class: "note" }, `${detector.label}: ${why}${one ? `, threshold ${amount(one.value)}` : ""}.`));
      return;
    }
    const [x, y] = one.tail.measured.map(numbers);
    const [fx, fy] = one.tail.fitted.map(numbers);
    plot(place, [
      { type: "scatter", mode: "markers", x, y, marker: { size: 5, color: look(detector.label).color }, hovertemplate: "score %{x}: %{y:.2e}<extra></extra>" },
      { type: "scatter", mode: "lines", x: fx, y: fy, line: { color: style("--ink"), width: 1.5 }, hoverinfo: "skip" },
    ], layout({
      title: heading(short(detector.label, 44)), height: 290,
      shapes: [
        { type: "line", x0: one.value, x1: one.value, y0: 0, y1: 1, yref: "paper", line: { color: style("--ink"), width: 2 } },
        { type: "line", x0: 0, x1: 1, xref: "paper", y0: one.q, y1: one.q, line: { color: style("--quiet"), dash: "dot", width: 1 } },
      ],
      annotations: [{ x: one.value, y: 1, yref: "paper", text: `${amount(one.value)} (${one.status})`, showarrow: false, xanchor: "right", yanchor: "top", font: { size: 10 } }],
      xaxis: { title: { text: "score" } }, yaxis: { type: "log", title: { text: "share of rows above" }, exponentformat: "power" },
    }), `Tail of the normal scores of ${detector.label}: shape ${amount(one.gamma)}, threshold ${amount(one.value)}`);
  });
  const header = ["Detector", "Fit", "Threshold", "Status", "Initial", "Level", "q", "Scores", "Excesses", "Shape γ", "Scale σ", "End point"];
  const rows = detectors().flatMap((detector) => detector.thresholds.map((one) => element("tr", {},
    element("td", { title: detector.label }, detector.label), element("td", { class: "text" }, one.episode),
    ...[amount(one.value), one.status, amount(one.t), amount(one.level), amount(one.q), amount(one.n), amount(one.excesses), amount(one.gamma), amount(one.sigma), amount(one.endpoint)].map(plainCell),
  )));
  fill("threshold-table", element("thead", {}, element("tr", {}, ...header.map((text) => element("th", { scope: "col" }, text)))), element("tbody", {}, ...rows));
}

function drawGraph() {
  const graphs = board().graphs || [];
  const graph = graphs[shown.graph];
  byId("graph").hidden = !graph;
  if (!graph) return;
  byId("graph-lead").textContent = graph.about;
  const names = board().sensors.map((name) => plain(short(name, 18)));
  plot("adjacency", [{
    type: "heatmap", z: graph.adjacency, x: names, y: names, colorscale: [[0, style("--surface")], [1, colour(0)]], xgap: 1, ygap: 1,
    hovertemplate: "%{y} drives %{x}: %{z:.3f}<extra></extra>", colorbar: { thickness: 12 },
  }], layout({ title: heading("Weight of each edge: row drives column"), height: 460, xaxis: { tickangle: -45 }, yaxis: { autorange: "reversed" } }), "Weights of the edges between sensors");
  plot("node-weights", [{ type: "bar", orientation: "h", y: names, x: graph.node_weights, marker: { color: colour(0) }, hovertemplate: "%{y}: %{x:.4f}<extra></extra>" }],
    layout({ title: heading("How much each sensor weighs in the score"), height: 460, yaxis: { autorange: "reversed" }, xaxis: { rangemode: "tozero" } }),
    "Node weights: " + board().sensors.map((name, i) => `${name} ${number(graph.node_weights[i])}`).join(", "));
  const rows = graph.edges.map((edge) => element("tr", {}, ...[edge.source, edge.target, edge.mechanism].map((text) => element("td", { class: "text" }, text)), plainCell(percent(edge.votes))));
  fill("edges", element("thead", {}, element("tr", {}, ...["From", "To", "Because", "Votes"].map((text) => element("th", { scope: "col", class: "text" }, text)))), element("tbody", {}, ...rows));
}
