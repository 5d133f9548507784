"use strict";
// On paper nothing scrolls and nothing opens: everything is drawn and expanded, and tables shrink to the sheet's width.

// CSS pixels of an A4 sheet on its side, without its margins.
const PAPER = { width: 1040, height: 640 };
const onPaper = () => "paper" in document.documentElement.dataset;
let beforePaper = null;

function paper(on) {
  if (on === onPaper()) return;
  const root = document.documentElement;
  if (on) {
    const closed = [...document.querySelectorAll("main details")].filter((one) => !one.open && !one.closest("#manifests") && one.id !== "column-choice" && !one.closest(".controls"));
    beforePaper = { theme: root.dataset.theme, closed };
    root.dataset.paper = "";
    root.dataset.theme = "light";
    for (const one of closed) one.open = true;
  } else {
    delete root.dataset.paper;
    root.dataset.theme = beforePaper.theme;
    for (const one of beforePaper.closed) one.open = false;
  }
  drawNow(Object.keys(FIGURES));
  fitTables(on);
}

function fitTables(on) {
  for (const one of document.querySelectorAll(".scroll")) {
    one.style.zoom = "";
    if (on && one.scrollWidth > PAPER.width) one.style.zoom = String(PAPER.width / one.scrollWidth);
  }
}

addEventListener("beforeprint", () => paper(true));
addEventListener("afterprint", () => paper(false));
matchMedia("print").addEventListener("change", (event) => paper(event.matches));
