"use strict";
// What a report's address holds, beside the table's order and columns.

const boardName = (one) => `${one.dataset}, ${one.protocol}`;

function addressParts() {
  const usual = usualChoice();
  const recordings = board().recordings || [];
  return [
    ["board", boardName(board()), boardName(content.boards[0])],
    ["split", shown.split, usual.split],
    ...tableParts(),
    ["detector", shown.detectors, usual.detectors],
    ...(recordings.length ? [["recording", recordings[shown.recording].id, (recordings[listed()[0]] || {}).id]] : []),
    ["metric", shown.metric, usual.metric],
    ["heat", shown.heat, usual.heat],
    ["first", shown.first, usual.first],
    ["second", shown.second, usual.second],
    ["scale", shown.scale, "rank"],
    ["at", shown.section, ""],
  ];
}

function restore() {
  const asked = askedFor();
  if (!asked) return;
  const { wanted, one, some, restoreTable } = asked;
  restoring = true;
  try {
    const place = content.boards.findIndex((each) => boardName(each) === wanted.get("board"));
    showBoard(Math.max(0, place), (usual) => {
      shown.split = one("split", board().tables.map((each) => each.split), shown.split);
      restoreTable();
      const labels = detectors().map((each) => each.label);
      shown.detectors = some("detector", labels, usual.detectors);
      const ids = (board().recordings || []).map((each) => each.id);
      const at = ids.indexOf(wanted.get("recording"));
      shown.recording = at >= 0 ? at : listed()[0] || 0;
      const metrics = board().metrics.map((each) => each.name);
      shown.metric = one("metric", metrics, usual.metric);
      shown.heat = one("heat", heatMetrics().map((each) => each.name), usual.heat);
      shown.first = one("first", labels, usual.first);
      shown.second = one("second", labels, usual.second);
      shown.scale = one("scale", ["rank", "threshold"], "rank");
    });
    const section = one("at", sections().map((each) => each.id), "");
    if (section && section !== shown.section) goTo(section);
    shown.section = section;
  } finally {
    restoring = false;
  }
  linkSections();
}
