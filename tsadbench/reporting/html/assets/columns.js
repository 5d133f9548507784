"use strict";
// The leaderboard's columns: which there are, which are shown, and what of them goes into a CSV file.

const sorting = { column: "auprc", descending: true };
const views = { mixed: false, floors: false };
// What most readers do not need starts hidden.
const SELDOM = ["score_seconds", "cpu_seconds"];
const PREFIX = "diagnostic:";

const THROUGHPUT = [
  { key: "fit_seconds", title: "Fit (s)", ascending: true },
  { key: "rows_per_second", title: "Rows/s", ascending: false, about: "training and test rows scored per second of wall clock" },
  { key: "peak_memory_mib", title: "Memory (MiB)", ascending: true },
];
const COST = [
  { key: "score_seconds", title: "Score (s)", ascending: true },
  { key: "cpu_seconds", title: "CPU (s)", ascending: true },
];
const GROUPS_OF_COLUMNS = { quality: "quality", operation: "in operation", trials: "trials", throughput: "throughput", cost: "cost" };
// What an operator looks at first stands first.
const FIRST_DIAGNOSTICS = ["false_alarms_per_hour", "false_alarms_per_1000_rows", "delay_seconds", "delay_rows", "found"];

// What a page has beside the report's columns: behind the label, and at the end.
const furtherColumns = { first: () => [], last: () => [] };

const unknown = (value) => value === null || value === undefined;
const plainCell = (text) => element("td", {}, String(text));

function summaryCell(summary) {
  if (!summary || unknown(summary.mean)) return plainCell("–");
  return element("td", {}, amount(summary.mean), summary.std ? element("span", { class: "spread" }, `(${amount(summary.std)})`) : "");
}

function nameCell(row) {
  const marks = Object.entries(row.marks).map(([mark, meaning]) => element("span", { title: meaning }, `${mark} `));
  const name = row.page ? element("a", { href: row.page }, row.label) : row.label;
  return element("th", { scope: "row", title: row.label }, element("span", { class: "name" }, ...marks, name));
}

function metricCell(row, metric) {
  const summary = row.metrics[metric.name];
  if (!summary || summary.mean === null) return element("td", { class: "metric" }, "–");
  const place = row.places[metric.name];
  const cell = element("td", { class: "metric" });
  if (metric.better) cell.style.setProperty("--share", `${100 * Math.min(1, Math.max(0, summary.mean))}%`);
  cell.append(element("span", { class: { 1: "best", 2: "second" }[place] || "" }, number(summary.mean)));
  if (row.below.includes(metric.name)) cell.append(element("span", { title: "does not beat the best floor" }, "↓"));
  if (summary.std !== null) cell.append(element("span", { class: "spread" }, `(${number(summary.std)})`));
  const overEntities = row.spread[metric.name];
  if (!unknown(overEntities)) {
    const each = Object.entries(row.entities).map(([entity, metrics]) => `${entity} ${number((metrics[metric.name] || {}).mean)}`);
    cell.append(element("span", { class: "spread", title: `of each entity's own model: ${each.join(", ")}` }, `±${number(overEntities, 2)}`));
  }
  return cell;
}

function thresholdCell({ threshold }) {
  if (!threshold) return plainCell("–");
  const { low, high, n } = threshold;
  if (low === high) return plainCell(amount(low));
  return element("td", { title: `${n} thresholds: one a seed and fit` }, amount(low), element("span", { class: "spread" }, `to ${amount(high)}`));
}

function costCell({ cost }, key) {
  // Seconds and rows per second of another number of threads are not to be compared.
  const threads = key === "rows_per_second" && !unknown(cost[key]) && String(cost.threads) !== "1" ? ` (${cost.threads.join("/")} threads)` : "";
  return plainCell(amount(cost[key]) + threads);
}

// Mean and deviation of a metric or a diagnostic in a CSV file, with the names of the committed leaderboards.
const summaryCsv = (name, of) => [[`${name}_mean`, (row) => (of(row) || {}).mean], [`${name}_std`, (row) => (of(row) || {}).std]];

function metricColumn(metric) {
  const of = (row) => row.metrics[metric.name];
  return {
    key: metric.name,
    group: metric.better ? "quality" : "operation",
    title: metric.title + (metric.oracle ? "*" : ""),
    value: (row) => (of(row) || {}).mean,
    cell: (row) => metricCell(row, metric),
    ascending: metric.better === "lower",
    csv: summaryCsv(metric.name, of),
  };
}

const simple = (key, group, title, value, more = {}) => ({ key, group, title, value, cell: (row) => plainCell(unknown(value(row)) ? "–" : value(row)), csv: [[key, value]], ...more });

function everyColumn() {
  if (board().columns) return board().columns();
  const metrics = board().metrics.map(metricColumn);
  const place = (one) => (FIRST_DIAGNOSTICS.indexOf(one.name) + 1 || FIRST_DIAGNOSTICS.length + 1);
  const diagnostics = [...(board().diagnostics || [])].sort((a, b) => place(a) - place(b)).map((one) => {
    const of = (row) => row.diagnostics[one.name];
    return {
      key: PREFIX + one.name, group: "operation", title: one.title, value: (row) => (of(row) || {}).mean,
      cell: (row) => summaryCell(of(row)), ascending: !["found", "already_on"].includes(one.name), csv: summaryCsv(one.name, of),
    };
  });
  const cost = (group) => (one) => ({ ...one, group, value: (row) => row.cost[one.key], cell: (row) => costCell(row, one.key), csv: [[one.key, (row) => row.cost[one.key]]] });
  const late = diagnostics.filter((one) => !FIRST_DIAGNOSTICS.includes(one.key.slice(PREFIX.length)));
  return [
    simple("label", "", "Detector", (row) => row.label, { cell: nameCell, ascending: true, csv: [["detector", (row) => row.label], ["status", (row) => row.status]] }),
    ...furtherColumns.first(),
    ...metrics.filter((one) => one.group === "quality"),
    ...metrics.filter((one) => one.group === "operation"),
    ...diagnostics.filter((one) => !late.includes(one)),
    simple("coverage", "operation", "Coverage", (row) => row.coverage, { cell: (row) => plainCell(percent(row.coverage)) }),
    simple("threshold", "operation", "Threshold", (row) => (row.threshold || {}).low, {
      cell: thresholdCell, csv: [["threshold_low", (row) => (row.threshold || {}).low], ["threshold_high", (row) => (row.threshold || {}).high]],
    }),
    ...late,
    simple("look_ahead", "trials", "Look-ahead", (row) => row.look_ahead, { ascending: true, about: "how many later rows a score waits for" }),
    simple("seeds", "trials", "Seeds", (row) => row.seeds.length),
    ...THROUGHPUT.map(cost("throughput")),
    ...COST.map(cost("cost")),
    ...furtherColumns.last(),
  ];
}

const columns = () => everyColumn().filter((one) => one.key === "label" || !shown.hidden.has(one.key));

function checkbox(title, checked, change) {
  const box = element("input", { type: "checkbox", on: { change: () => change(box.checked) } });
  box.checked = checked;
  return element("label", {}, box, title);
}

function drawColumnChoice() {
  const all = everyColumn();
  const changed = (keys, on) => {
    for (const key of keys) if (on) shown.hidden.delete(key); else shown.hidden.add(key);
    drawColumnChoice();
    drawTable();
    remember();
  };
  const wanted = { mixed: "rank floors among the detectors" };
  if (foldable(table().rows)) wanted.floors = "all floors";
  const groups = Object.entries(GROUPS_OF_COLUMNS).map(([group, title]) => [title, all.filter((one) => one.group === group)]).filter(([, some]) => some.length);
  // What had the focus is drawn anew: the same box gets it again.
  const boxes = () => [...byId("column-choice").querySelectorAll("input")];
  const held = boxes().indexOf(document.activeElement);
  fill("views", ...Object.entries(wanted).map(([key, title]) => checkbox(title, views[key], (on) => { views[key] = on; drawTable(); remember(); })));
  fill("columns", ...groups.map(([title, some]) => {
    const keys = some.map((one) => one.key);
    const visible = keys.filter((key) => !shown.hidden.has(key)).length;
    const whole = checkbox(title, visible > 0, (on) => changed(keys, on));
    whole.firstChild.indeterminate = visible > 0 && visible < keys.length;
    return element("fieldset", {}, element("legend", {}, whole), ...(some.length > 1 ? some.map((one) => checkbox(one.title, !shown.hidden.has(one.key), (on) => changed([one.key], on))) : []));
  }));
  if (held >= 0) boxes()[held].focus();
}

// Spreadsheets take a text that starts like this for a formula.
const inert = (text) => (/^[=+\-@\t\r\n \uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text);

function csvField(value) {
  if (unknown(value)) return "";
  const text = typeof value === "number" ? String(value) : inert(String(value));
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvOfTable() {
  const fields = columns().flatMap((one) => one.csv);
  const rows = blocks().flatMap(({ rows: some }) => some);
  return [fields.map(([name]) => inert(name)), ...rows.map((row) => fields.map(([, value]) => value(row)))].map((line) => line.map(csvField).join(",")).join("\n") + "\n";
}

function download() {
  const address = URL.createObjectURL(new Blob([csvOfTable()], { type: "text/csv;charset=utf-8" }));
  const name = ["tsadbench", board().dataset, board().protocol, table().split].join("-").replace(/[^A-Za-z0-9.]+/g, "-").slice(0, 100).replace(/[-.]+$/, "");
  const link = element("a", { href: address, download: `${name}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
