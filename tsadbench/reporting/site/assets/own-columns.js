"use strict";
// Columns that a report does not have: what a row is, and on a suite's table ranks with their intervals.

const link = (address, words) => element("a", { href: address }, words);
const permalink = (row) => `${root}index.html#${new URLSearchParams({ data: row.dataset, protocol: row.protocol, split: row.split, search: row.label })}`;
const whole = (value) => (unknown(value) ? "–" : `${Math.round(100 * value)} %`);

SELDOM.push("checked", "seeds");
// A page of a detector names data set, protocol and split in each row.
furtherColumns.first = () => (board().kind !== "detector" ? [] : [
  simple("dataset", "place", "Data set", (row) => row.dataset, { ascending: true, cell: (row) => element("td", { class: "text" }, link(`${root}${content.pages.datasets[row.dataset]}`, row.dataset)) }),
  simple("protocol", "place", "Protocol", (row) => row.protocol, { ascending: true, cell: (row) => element("td", { class: "text" }, row.protocol) }),
  simple("split", "place", "Split", (row) => row.split, { ascending: true, cell: (row) => element("td", { class: "text" }, link(permalink(row), row.split)) }),
  simple("place", "place", "Place", (row) => row.place, { ascending: true, about: "by AUPRC, among the detectors of the table that are compared", cell: (row) => element("td", {}, unknown(row.place) ? "–" : `${row.place} of ${row.n_placed}`) }),
]);
furtherColumns.last = () => whatRowsAre();
GROUPS_OF_COLUMNS.place = "table";
GROUPS_OF_COLUMNS.row = "what it is";

function whatRowsAre() {
  const words = (key, title, value, about) => simple(key, "row", title, value, { ascending: true, about, cell: (row) => element("td", { class: "text" }, value(row) || "–") });
  return [
    words("kind", "Kind", (row) => row.kind, "of method: see the filters"),
    words("seal", "Seal", (row) => row.seal, "sealed: the kernel kept labels and test rows from the detector; guarded: an audit hook did"),
    ...(table().rows.some((row) => row.pretrained) ? [words("pretrained", "Pretrained on", (row) => row.pretrained)] : []),
    ...(table().rows.some((row) => row.checked) ? [words("checked", "Checks", (row) => row.checked, "whether a report of tsadbench check vouches for the detector")] : []),
  ];
}

function intervalCell(estimate, shownAs) {
  if (!estimate || unknown(estimate.value)) return plainCell("–");
  const { value, low, high } = estimate;
  return element("td", {}, shownAs(value), unknown(low) ? "" : element("span", { class: "spread" }, `${shownAs(low)} to ${shownAs(high)}`));
}

// A mean over fewer data sets is another number: such rows have no place.
function rankCell(row, shownAs) {
  const cell = intervalCell(row.rank, shownAs);
  if (!row.complete) cell.replaceChildren(element("span", { class: "spread", title: "it did not run on all data sets, and has no place" }, `${row.rank ? shownAs(row.rank.value) : "–"} on ${row.n_datasets} of ${board().parts.length}`));
  return cell;
}

const estimateCsv = (key) => ["value", "low", "high"].map((part) => [part === "value" ? key : `${key}_${part}`, (row) => (row[key] || {})[part]]);

function suiteColumns() {
  const rank = (value) => value.toFixed(2);
  return [
    simple("label", "", "Detector", (row) => row.label, { cell: nameCell, ascending: true, csv: [["detector", (row) => row.label]] }),
    { key: "rank", group: "quality", title: "Mean rank", ascending: true, value: (row) => (row.complete ? (row.rank || {}).value : null), cell: (row) => rankCell(row, rank), csv: estimateCsv("rank"), about: "over the data sets, with its interval" },
    { key: "beats", group: "quality", title: "Beats the best floor", ascending: false, value: (row) => (row.beats || {}).value, cell: (row) => intervalCell(row.beats, whole), csv: estimateCsv("beats"), about: "on which share of the data sets, with its interval" },
    { key: "wins", group: "quality", title: "Wins", ascending: false, value: (row) => (row.pairs ? row.wins / row.pairs : null), cell: (row) => plainCell(row.pairs ? whole(row.wins / row.pairs) : "–"), csv: [["wins", (row) => row.wins], ["pairs", (row) => row.pairs]], about: "in which share of the comparisons with another row on a data set it is better" },
    ...board().parts.map((name) => ({
      key: `on:${name}`, group: "place", title: name, ascending: true, value: (row) => (row.on[name] || {}).rank, csv: [[`rank_${name}`, (row) => (row.on[name] || {}).rank]],
      cell: (row) => {
        const { rank: place, value, beats_floors: beats } = row.on[name] || {};
        return unknown(place) ? plainCell("–") : element("td", { title: `AUPRC ${number(value)}${beats ? ", above the best floor" : ""}` }, element("span", { class: beats ? "best" : null }, String(place)));
      },
    })),
    simple("look_ahead", "trials", "Look-ahead", (row) => row.look_ahead, { ascending: true }),
    ...whatRowsAre(),
  ];
}
