"use strict";
// Do detectors differ, how firm are ranks, who leads over several data sets: tables that were computed with the page.

function textTable({ title, header, rows }) {
  const words = header.map((_, i) => rows.some((cells) => /[a-z]{3}/i.test(cells[i])));
  const align = (i) => (words[i] ? "text" : null);
  const wide = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title },
    element("table", {},
      element("thead", {}, element("tr", {}, ...header.map((text, i) => element("th", { scope: "col", class: align(i) }, text)))),
      element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((text, i) => element(i ? "td" : "th", i ? { class: align(i) } : { scope: "row", title: text }, text)))))));
  return [element("h3", {}, title), wide];
}

const paragraph = (text) => element("p", { class: "note" }, text);
const list = (texts) => element("ul", { class: "note" }, ...texts.map((text) => element("li", {}, text)));

function drawStatistics() {
  const { significance, stability } = board();
  byId("significance").hidden = !significance;
  byId("ranks").hidden = !content.ranks.length;
  if (significance && significance.missing) fill("significance-found", paragraph(significance.missing));
  if (significance && !significance.missing) {
    fill("significance-found",
      element("p", {}, `${significance.title}.`),
      element("ul", { class: significance.tested ? null : "warning" }, ...significance.conclusions.map((text) => element("li", {}, text))),
      ...significance.tables.flatMap(textTable), paragraph(significance.legend), list(significance.notes));
  }
  const firm = !stability ? [paragraph("How firm each rank is over resampled sessions: tsadbench report --stability, or tsadbench rank --stability.")]
    : stability.missing ? [paragraph(`Ranks were not resampled: ${stability.missing}`)]
    : [...stability.tables.filter((one) => one.rows.length).flatMap(textTable), list(stability.notes), paragraph(stability.legend)];
  if (significance) fill("stability-found", element("h3", {}, "How firm are the ranks?"), ...firm);
  fill("ranks-found", ...content.ranks.flatMap((one) => one.missing ? [paragraph(one.missing)] : [...textTable(one), paragraph(`Over ${one.about}.`), list(one.notes), paragraph(one.legend)]));
}
