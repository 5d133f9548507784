"use strict";
// The leaderboard: sortable, with the floors in a block of their own, of which the best in each metric are in sight.

const sorting = { column: "auprc", descending: true };
const columnsShown = { reference: true, throughput: true, operation: true, cost: false, floors: false, mixed: false };

const THROUGHPUT = [
  { key: "fit_seconds", title: "Fit (s)", ascending: true },
  { key: "rows_per_second", title: "Rows/s", ascending: false, about: "training and test rows scored per second of wall clock" },
  { key: "peak_memory_mib", title: "Memory (MiB)", ascending: true },
];
const COST = [
  { key: "score_seconds", title: "Score (s)", ascending: true },
  { key: "cpu_seconds", title: "CPU (s)", ascending: true },
];

function columns() {
  const found = [{ key: "label", title: "Detector", value: (row) => row.label, cell: nameCell, ascending: true }];
  for (const metric of board().metrics) {
    found.push({
      key: metric.name,
      title: metric.title + (metric.oracle ? "*" : ""),
      value: (row) => (row.metrics[metric.name] || {}).mean,
      cell: (row) => metricCell(row, metric),
      ascending: metric.better === "lower",
    });
  }
  found.push(
    { key: "look_ahead", title: "Look-ahead", value: (row) => row.look_ahead, cell: (row) => plainCell(row.look_ahead), ascending: true },
    { key: "coverage", title: "Coverage", value: (row) => row.coverage, cell: (row) => plainCell(percent(row.coverage)) },
    { key: "seeds", title: "Seeds", value: (row) => row.seeds.length, cell: (row) => plainCell(row.seeds.length) },
  );
  if (columnsShown.operation) {
    for (const one of board().diagnostics || []) {
      found.push({
        key: `diagnostic:${one.name}`,
        title: one.title,
        about: one.about,
        value: (row) => (row.diagnostics[one.name] || {}).mean,
        cell: (row) => summaryCell(row.diagnostics[one.name]),
        ascending: one.better === "lower",
      });
    }
  }
  for (const one of [...(columnsShown.throughput ? THROUGHPUT : []), ...(columnsShown.cost ? COST : [])]) {
    found.push({ ...one, value: (row) => row.cost[one.key], cell: (row) => costCell(row, one.key) });
  }
  return found;
}

function costCell({ cost }, key) {
  const known = ![null, undefined].includes(cost[key]);
  // Seconds and rows per second of another number of threads are not to be compared.
  const threads = key === "rows_per_second" && known && String(cost.threads) !== "1" ? ` (${cost.threads.join("/")} threads)` : "";
  return plainCell(amount(cost[key]) + threads);
}

const plainCell = (text) => element("td", {}, String(text));

function summaryCell(summary) {
  if (!summary || summary.mean === null || summary.mean === undefined) return plainCell("–");
  return element("td", {}, amount(summary.mean), summary.std ? element("span", { class: "spread" }, ` (${amount(summary.std)})`) : "");
}

function nameCell(row) {
  const marks = Object.entries(row.marks).map(([mark, meaning]) => element("span", { title: meaning }, `${mark} `));
  return element("td", { title: row.label }, ...marks, row.label);
}

function metricCell(row, metric) {
  const summary = row.metrics[metric.name];
  if (!summary || summary.mean === null) return element("td", { class: "metric" }, "–");
  const place = row.places[metric.name];
  const cell = element("td", { class: "metric" });
  if (metric.better) cell.style.setProperty("--share", `${100 * Math.min(1, Math.max(0, summary.mean))}%`);
  cell.append(element("span", { class: { 1: "best", 2: "second" }[place] || "" }, number(summary.mean)));
  if (summary.std !== null) cell.append(element("span", { class: "spread" }, `(${number(summary.std)})`));
  const overEntities = row.spread[metric.name];
  if (![null, undefined].includes(overEntities)) {
    const each = Object.entries(row.entities).map(([entity, metrics]) => `${entity} ${number((metrics[metric.name] || {}).mean)}`);
    cell.append(element("span", { class: "spread", title: `of each entity's own model: ${each.join(", ")}` }, `±${number(overEntities, 2)}`));
  }
  if (row.below.includes(metric.name)) cell.append(element("span", { title: "does not beat the best floor" }, "↓"));
  const published = row.reference[metric.name];
  if (columnsShown.reference && published) {
    const spread = published.std === null ? "" : `(${number(published.std)})`;
    const { title, citation } = content.reference;
    cell.append(element("span", { class: "reference", title: `in ${citation}` }, `${title} ${number(published.mean)}${spread}`));
  }
  return cell;
}

function ordered(rows, column) {
  const missing = (row) => [null, undefined].includes(column.value(row));
  const direction = sorting.descending ? -1 : 1;
  return [...rows].sort((a, b) => {
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    const [x, y] = [column.value(a), column.value(b)];
    return direction * (typeof x === "string" ? x.localeCompare(y) : x - y) || a.label.localeCompare(b.label);
  });
}

function head(all) {
  const cells = all.map((column) => {
    const active = column.key === sorting.column;
    const sort = () => {
      sorting.descending = active ? !sorting.descending : !column.ascending;
      sorting.column = column.key;
      drawTable();
      byId("table").querySelector("th[aria-sort] button").focus();
    };
    const state = sorting.descending ? "descending" : "ascending";
    return element("th", { scope: "col", "aria-sort": active ? state : null, title: column.about || null }, element("button", { type: "button", on: { click: sort } }, column.title));
  });
  return element("thead", {}, element("tr", {}, ...cells));
}

function body(title, rows, all) {
  if (!rows.length) return null;
  const lines = rows.map((row) => {
    if (row.status === "ok") return element("tr", {}, ...all.map((column) => column.cell(row)));
    const first = row.failed[0] || {};
    const why = `${row.failure_count} trials: ${first.reason || "no reason was kept"}`;
    return element("tr", {}, nameCell(row), element("td", { class: "failed", colspan: all.length - 1 }, why));
  });
  const heading = element("tr", { class: "block" }, element("td", { colspan: all.length }, title));
  return element("tbody", {}, ...(title ? [heading] : []), ...lines);
}

function drawTable() {
  const all = columns();
  const column = all.find((one) => one.key === sorting.column) || all[0];
  const rows = table().rows;
  const ok = inSight(rows).filter((row) => row.status === "ok");
  const floors = columnsShown.mixed ? [] : ok.filter((row) => row.floor);
  const ranked = columnsShown.mixed ? ok : ok.filter((row) => !row.floor);
  const failures = rows.filter((row) => row.status !== "ok");
  fill(
    "table",
    element("caption", { class: "note" }, caption()),
    head(all),
    ...[body("", ordered(ranked, column), all), body(aboutFloors(rows), ordered(floors, column), all), body("Failed", failures, all)].filter((one) => one),
  );
}

// Without detectors, floors are all there is to see.
const foldable = (rows) => rows.some((row) => row.folded) && rows.some((row) => !row.floor && row.status === "ok");

const inSight = (rows) => (columnsShown.floors || !foldable(rows) ? rows : rows.filter((row) => !row.folded));

function aboutFloors(rows) {
  const all = rows.filter((row) => row.floor && row.status === "ok").length;
  return inSight(rows) === rows ? "Floors: what one-liners get" : `Floors: what one-liners get, the best in each metric of ${all}`;
}

function caption() {
  const { n_rows, n_anomalous, split, n_left_out, about_entities } = table();
  const more = n_left_out ? `; ${n_left_out.toLocaleString("en")} more rows: see below` : "";
  const rows = n_rows === null ? "no rows were judged" : `${n_rows.toLocaleString("en")} rows, ${percent(n_rows ? n_anomalous / n_rows : null)} anomalous`;
  return `${board().dataset}, protocol ${board().protocol}, split ${split}: ${rows}${about_entities}${more}`;
}

// AUPRC by other labels; a rank that differs from the one by the given labels is marked.
function drawLabels() {
  const noise = board().labels;
  byId("labels").hidden = !noise;
  if (!noise) return;
  const [given, ...others] = noise.moved;
  byId("labels-lead").textContent = `AUPRC and, in brackets, rank of ${noise.about}, judged again by labels that are shifted by some rows, without rows that stand in two test recordings with two labels, and without some normal rows after each event.`;
  const last = Object.keys(given.auprc).length;
  const labels = Object.keys(given.auprc).sort((a, b) => (given.rank[a] || last) - (given.rank[b] || last));
  const cell = (one, label) => {
    const moved = one.rank[label] !== given.rank[label];
    return element("td", {}, number(one.auprc[label]), element("span", { class: moved ? "second" : "spread" }, ` (${one.rank[label] || "–"})`));
  };
  const rows = labels.map((label) => element("tr", {}, element("td", { title: label }, label), ...noise.moved.map((one) => cell(one, label))));
  fill("labels-table", element("thead", {}, element("tr", {}, ...["Detector", ...noise.moved.map((one) => one.change)].map((text) => element("th", { scope: "col" }, text)))), element("tbody", {}, ...rows));
  const pairs = (one) => [...one.change_places.slice(0, 6).map(([first, second]) => `${first} with ${second}`), ...(one.change_places.length > 6 ? [`${one.change_places.length - 6} more pairs`] : [])];
  const places = others.filter((one) => one.change_places.length).map((one) => `${one.change}: ${pairs(one).join("; ")}`);
  const missing = noise.left_out.length ? [`Without scores, and left out: ${noise.left_out.join(", ")}`] : [];
  fill("labels-places", ...[...(places.length ? ["Who changes places:", ...places] : ["No two rows change places."]), ...missing].map((text) => element("li", {}, text)));
}

function drawColumnChoice() {
  const wanted = { mixed: "rank floors among the detectors" };
  if (foldable(table().rows)) wanted.floors = "all floors";
  if (table().rows.some((row) => Object.keys(row.reference).length)) wanted.reference = `the ${content.reference.title}'s values`;
  if ((board().diagnostics || []).length) wanted.operation = "in operation";
  wanted.throughput = "throughput";
  wanted.cost = "cost";
  fill(
    "columns",
    ...Object.entries(wanted).map(([key, title]) => {
      const box = element("input", { type: "checkbox", on: { change: () => { columnsShown[key] = box.checked; drawTable(); } } });
      box.checked = columnsShown[key];
      return element("label", {}, box, title);
    }),
  );
}
