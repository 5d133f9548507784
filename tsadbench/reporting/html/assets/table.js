"use strict";
// The leaderboard: sortable, with the floors in a block of their own, of which the best in each metric are in sight.

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
      remember();
      byId("table").querySelector("th[aria-sort] button").focus();
    };
    const state = sorting.descending ? "descending" : "ascending";
    return element("th", { scope: "col", class: column.key === "label" ? null : "number", "aria-sort": active ? state : null, title: column.about || null }, element("button", { type: "button", on: { click: sort } }, column.title));
  });
  return element("thead", {}, element("tr", {}, ...cells));
}

function body(title, rows, all) {
  const lines = rows.map((row) => {
    if (row.status === "ok") return element("tr", {}, ...all.map((column) => column.cell(row)));
    const first = row.failed[0] || {};
    const why = `${row.failure_count} trials: ${first.reason || "no reason was kept"}`;
    return element("tr", {}, nameCell(row), element("td", { class: "failed", colspan: Math.max(1, all.length - 1) }, why));
  });
  const heading = element("tr", { class: "block" }, element("th", { scope: "rowgroup", colspan: all.length }, title));
  return element("tbody", {}, ...(title ? [heading] : []), ...lines);
}

const sought = (label) => shown.query.toLowerCase().split(/\s+/).every((word) => label.toLowerCase().includes(word));

// The rows in sight, in the order in which they stand, by block.
function blocks() {
  const all = everyColumn();
  const column = all.find((one) => one.key === sorting.column) || all[0];
  const matches = (row) => sought(row.label) && filters.passes(row);
  const ok = inSight(table().rows).filter((row) => row.status === "ok" && matches(row));
  const floors = views.mixed ? [] : ok.filter((row) => row.floor);
  const ranked = views.mixed ? ok : ok.filter((row) => !row.floor);
  const failures = table().rows.filter((row) => row.status !== "ok" && matches(row));
  return [
    { title: "", rows: ordered(ranked, column) },
    { title: aboutFloors(table().rows), rows: ordered(floors, column) },
    { title: "Failed", rows: failures },
  ].filter((block) => block.rows.length);
}

function drawTable() {
  const all = columns();
  const found = blocks();
  fill("table", element("caption", { class: "note" }, element("span", {}, caption())), head(all), ...found.map((block) => body(block.title, block.rows, all)));
  const matching = found.reduce((sum, block) => sum + block.rows.length, 0);
  byId("found").textContent = shown.query || filters.active() ? `${matching} row${matching === 1 ? " matches" : "s match"}` : "";
}

// Without detectors, floors are all there is to see.
const foldable = (rows) => rows.some((row) => row.folded) && rows.some((row) => !row.floor && row.status === "ok");

const inSight = (rows) => (views.floors || shown.query || !foldable(rows) ? rows : rows.filter((row) => !row.folded));

function aboutFloors(rows) {
  const all = rows.filter((row) => row.floor && row.status === "ok").length;
  return inSight(rows) === rows ? "Floors: what one-liners get" : `Floors: what one-liners get, the best in each metric of ${all}`;
}

function caption() {
  if (table().caption) return table().caption;
  const { n_rows, n_anomalous, split, n_left_out, about_entities } = table();
  const more = n_left_out ? `; ${n_left_out.toLocaleString("en")} more rows: see below` : "";
  const rows = n_rows === null ? "no rows were judged" : `${n_rows.toLocaleString("en")} rows, ${percent(n_rows ? n_anomalous / n_rows : null)} anomalous`;
  return `${board().dataset}, protocol ${board().protocol}, split ${split}: ${rows}${about_entities}${more}`;
}
