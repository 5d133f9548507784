"use strict";
// What of a page's `content` is shown, and the small tools that everything else uses.

const shown = {
  board: 0, split: "", detectors: new Set(), sensors: new Set(), recording: 0, map: "", metric: "", speedMetric: "", graph: 0,
  query: "", hidden: new Set(), heat: "", first: "", second: "", scale: "rank", section: "",
};

// Okabe and Ito's colours, which the colour-blind can tell apart, and lighter ones for a dark page; a second round is
// dashed, a third dotted.
const COLOURS = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b8578f", "#b87800", "#3a9bd9", "#7a5ba6"],
  dark: ["#56b4e9", "#ff8c42", "#2ec4a0", "#e39cc4", "#f0b93a", "#a5d8ff", "#b9a3e3"],
};
const DASHES = ["solid", "dash", "dot", "dashdot"];

const colour = (i) => COLOURS[document.documentElement.dataset.theme][i % COLOURS.light.length];
const board = () => content.boards[shown.board];
const table = () => board().tables.find((one) => one.split === shown.split) || board().tables[0];
// Places of the recordings that the split holds.
const listed = () => (board().recordings || []).map((one, i) => [one, i]).filter(([one]) => one.splits.includes(shown.split)).map(([, i]) => i);
// Which rows a page's own filters let through; a report has none.
const filters = { passes: () => true, active: () => false };
// What the listed recordings are.
const aboutListed = () => ((board().unknown || []).includes(shown.split) ? `the data set (the committed tables do not say which are in split ${shown.split})` : `split ${shown.split}`);
const detectors = () => board().detectors || [];
const chosen = () => detectors().filter((one) => shown.detectors.has(one.label));

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, handler] of Object.entries(value)) made.addEventListener(event, handler);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const byId = (id) => document.getElementById(id);
const fill = (id, ...children) => byId(id).replaceChildren(...children);

// Plotly reads a few HTML tags in texts; names of detectors, sensors and recordings are never meant as such.
const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const short = (text, length = 28) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

function bytes(packed) {
  const text = atob(packed);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) found[i] = text.charCodeAt(i);
  return found;
}

const numbers = (packed) => new Float32Array(bytes(packed).buffer);

function number(value, decimals = 4) {
  if (value === null || value === undefined) return "–";
  return value.toFixed(decimals).replace(/^(-?)0\./, "$1.");
}

function amount(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.01 || size >= 1e6)) return value.toExponential(2);
  return value.toLocaleString("en", { maximumFractionDigits: size < 1 ? 3 : size < 100 ? 2 : 0 });
}

const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);

function look(label) {
  const place = detectors().findIndex((one) => one.label === label);
  const floor = place >= 0 && detectors()[place].floor;
  const round = Math.floor(place / COLOURS.light.length);
  return { color: colour(Math.max(0, place)), dash: floor ? "dot" : DASHES[round % DASHES.length] };
}

const compress = (value, scale) => Math.asinh(value / scale);
const expand = (value, scale) => Math.sinh(value) * scale;

// Ticks of an axis that is linear near its scale and logarithmic beyond it.
function ticks(low, high, scale, most = 6) {
  const found = new Map();
  const bound = Math.max(Math.abs(expand(low, scale)), Math.abs(expand(high, scale)));
  const last = Math.ceil(Math.log10(Math.max(bound, scale)));
  const first = Math.floor(Math.log10(scale)) - 1;
  for (const sign of [1, -1]) {
    for (let power = first; power <= last; power += 1) {
      const value = sign * 10 ** power;
      const place = compress(value, scale);
      if (place >= low && place <= high) found.set(place, amount(value));
    }
  }
  if (low <= 0 && high >= 0) found.set(0, "0");
  const gap = (high - low) / most;
  const spaced = [];
  for (const tick of [...found].sort((a, b) => a[0] - b[0])) if (!spaced.length || tick[0] - spaced.at(-1)[0] >= gap * 0.75) spaced.push(tick);
  // No power of ten lies between: any values do.
  if (spaced.length < 2) {
    const places = [0.1, 0.5, 0.9].map((share) => low + share * (high - low));
    spaced.splice(0, spaced.length, ...places.map((place) => [place, amount(expand(place, scale))]));
  }
  return { tickmode: "array", tickvals: spaced.map(([place]) => place), ticktext: spaced.map(([, text]) => text) };
}
