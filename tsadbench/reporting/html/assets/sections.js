"use strict";
// The bar with links to the sections.

const sections = () => [...document.querySelectorAll("main > section")].filter((one) => !one.hidden);

// The bar's links hold all that is shown, so that "copy link" copies it.
function linkSections() {
  const here = shown.section;
  for (const link of byId("sections").querySelectorAll("a")) {
    shown.section = link.dataset.section;
    link.setAttribute("href", address());
    if (shown.section === here) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
  }
  shown.section = here;
}

// Figures above are drawn first: one that grew after the page has scrolled would push the heading away.
function goTo(name) {
  const target = byId(name);
  const above = (one) => Boolean(byId(one).compareDocumentPosition(target) & Node.DOCUMENT_POSITION_FOLLOWING);
  drawNow(Object.keys(FIGURES).filter((one) => one === name || above(one)));
  const arrive = () => { reserve(); target.scrollIntoView({ behavior: "instant", block: "start" }); };
  const title = target.querySelector("h2");
  title.setAttribute("tabindex", "-1");
  title.focus({ preventScroll: true });
  arrive();
  const place = scrollY;
  // A reader who has scrolled on since is left alone.
  Promise.allSettled(drawn.splice(0)).then(() => { if (Math.abs(scrollY - place) < 200) arrive(); });
}

function drawSections() {
  fill("sections", ...sections().map((one) => element("li", {}, element("a", { href: `#at=${one.id}`, "data-section": one.id }, one.querySelector("h2").textContent))));
}

function followSections() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-section]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    shown.section = link.dataset.section;
    goTo(shown.section);
    remember();
  });
}

const barHeight = () => (getComputedStyle(byId("bar")).position === "sticky" ? byId("bar").offsetHeight : 0);

// Headings that a link leads to stand below the bar.
const reserve = () => document.documentElement.style.setProperty("--bar-height", `${barHeight()}px`);

function reserveBar() {
  reserve();
  new ResizeObserver(reserve).observe(byId("bar"));
}
