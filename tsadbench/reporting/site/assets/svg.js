"use strict";
// Figures drawn as SVG: points over two axes, lines of labels with a value and its interval, curves in a square of shares.
// Colours come from the style sheet, so that they follow the theme and the paper.

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const text = (x, y, words, more = {}) => svg("text", { x, y, ...more }, words);

// What a pointer and a screen reader get, with a link to the detector's page if it has one.
function marked(shape, about, page) {
  const one = svg("g", { class: "mark" }, svg("title", {}, about), shape);
  return page ? svg("a", { href: page, "aria-label": about }, one) : one;
}

function linear(low, high, from, to) {
  const span = high > low ? high - low : 1;
  const scale = (value) => from + ((value - low) / span) * (to - from);
  const step = 10 ** Math.floor(Math.log10(span / 2));
  const by = [1, 2, 5, 10].map((many) => many * step).find((one) => span / one <= 6);
  const ticks = [];
  // Without the sum the first one may be -0, and be shown so.
  for (let k = Math.ceil(low / by - 1e-9) + 0; k * by <= high + by * 1e-9; k += 1) ticks.push([scale(k * by), amount(k * by)]);
  return { scale, ticks };
}

function logarithmic(low, high, from, to) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const end = last > first ? last : first + 1;
  const scale = (value) => from + ((Math.log10(value) - first) / (end - first)) * (to - from);
  const every = Math.ceil((end - first) / 7);
  const ticks = [];
  for (let power = first; power <= end; power += every) ticks.push([scale(10 ** power), power > 4 || power < -3 ? `1e${power}` : (10 ** power).toLocaleString("en", { maximumFractionDigits: 3 })]);
  return { scale, ticks };
}

function frame(place, height, about) {
  const width = Math.max(300, Math.min(place.clientWidth || 640, 1100));
  const made = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": about, class: "figure" });
  place.replaceChildren(made);
  return [made, width];
}

// Points {x, y, label, floor, open, named, page, about}; `front`: points in order whose corners are joined.
function drawPoints(place, points, { front, xTitle, yTitle, shape }) {
  const height = 380;
  const [made, width] = frame(place, height, `${yTitle} against ${xTitle}, ${points.length} rows`);
  if (!points.length) { place.replaceChildren(paragraph(`No row has ${xTitle}.`)); return; }
  const [left, right, top, bottom] = [54, width - 16, 14, height - 46];
  const xs = points.map((one) => one.x);
  const ys = points.map((one) => one.y);
  const x = logarithmic(Math.min(...xs), Math.max(...xs), left, right);
  const pad = 0.06 * (Math.max(...ys) - Math.min(...ys) || 1);
  const y = linear(Math.min(...ys) - pad, Math.max(...ys) + pad, bottom, top);
  for (const [at, words] of x.ticks) made.append(svg("line", { class: "grid-line", x1: at, x2: at, y1: top, y2: bottom }), text(at, bottom + 16, words, { "text-anchor": "middle" }));
  for (const [at, words] of y.ticks) made.append(svg("line", { class: "grid-line", x1: left, x2: right, y1: at, y2: at }), text(left - 6, at + 4, words, { "text-anchor": "end" }));
  made.append(text((left + right) / 2, height - 8, xTitle, { "text-anchor": "middle" }), text(14, (top + bottom) / 2, yTitle, { "text-anchor": "middle", transform: `rotate(-90 14 ${(top + bottom) / 2})` }));
  const corners = front.map((one) => [x.scale(one.x), y.scale(one.y)]);
  const steps = corners.map(([cx, cy], i) => (i === 0 ? `M${cx} ${cy}` : shape === "hv" ? `H${cx}V${cy}` : `V${cy}H${cx}`));
  made.append(svg("path", { class: "front", d: steps.join("") }));
  for (const one of points) {
    const [cx, cy] = [x.scale(one.x), y.scale(one.y)];
    const kind = `${one.floor ? "floor" : "detector"}${one.open ? " open" : ""}`;
    const shapeOf = one.floor ? svg("rect", { class: kind, x: cx - 4, y: cy - 4, width: 8, height: 8 }) : svg("circle", { class: kind, cx, cy, r: 5 });
    made.append(marked(shapeOf, one.about, one.page));
  }
  // Names of the front, as far as they do not stand upon each other.
  const taken = [];
  for (const one of front) {
    const [cx, cy] = [x.scale(one.x), y.scale(one.y)];
    const wide = 6.4 * short(one.label).length;
    const box = { left: Math.min(right - wide, Math.max(left, cx - wide / 2)), top: cy - 20 };
    if (taken.some((other) => box.left < other.left + other.wide && other.left < box.left + wide && Math.abs(box.top - other.top) < 13)) continue;
    taken.push({ ...box, wide });
    made.append(text(box.left, cy - 9, short(one.label), { class: "named" }));
  }
}

// Lines {label, value, low, high, dots, floor, page, about}, the first on top; `line`: where a dashed one stands.
function drawLines(place, lines, { xTitle, line = null }) {
  const step = 22;
  const height = 44 + step * lines.length;
  const [made, width] = frame(place, height, `${xTitle} of ${lines.length} rows`);
  if (!lines.length) { place.replaceChildren(paragraph("No row matches.")); return; }
  const longest = Math.max(...lines.map((one) => short(one.label, 30).length));
  const [left, right, top, bottom] = [Math.min(0.45 * width, 16 + 6.8 * longest), width - 18, 8, height - 36];
  const all = lines.flatMap((one) => [one.value, one.low, one.high, ...(one.dots || [])]).concat(line).filter((value) => !unknown(value));
  const { scale, ticks: marks } = linear(Math.min(...all), Math.max(...all), left + 6, right);
  for (const [at, words] of marks) made.append(svg("line", { class: "grid-line", x1: at, x2: at, y1: top, y2: bottom }), text(at, bottom + 16, words, { "text-anchor": "middle" }));
  made.append(text((left + right) / 2, height - 4, xTitle, { "text-anchor": "middle" }));
  if (line !== null) made.append(svg("line", { class: "best-floor", x1: scale(line), x2: scale(line), y1: top, y2: bottom }));
  const fits = Math.floor((left - 16) / 6.6);
  lines.forEach((one, i) => {
    const y = top + step * (i + 0.5);
    const kind = one.floor ? "floor" : "detector";
    const shapes = svg("g", {}, text(left - 4, y + 4, short(one.label, Math.max(8, fits)), { "text-anchor": "end" }));
    if (!unknown(one.low)) shapes.append(svg("line", { class: "interval", x1: scale(one.low), x2: scale(one.high), y1: y, y2: y }));
    for (const dot of one.dots || []) shapes.append(svg("circle", { class: `${kind} dot`, cx: scale(dot), cy: y, r: 4 }));
    if (!unknown(one.value)) shapes.append(one.dots ? svg("line", { class: "mean", x1: scale(one.value), x2: scale(one.value), y1: y - 7, y2: y + 7 }) : svg("circle", { class: kind, cx: scale(one.value), cy: y, r: 5 }));
    made.append(marked(shapes, one.about, one.page));
  });
}

// One of the report's colours, of which the style sheet takes that of the theme, with dashes from the second round on.
function toned(shape, i) {
  const place = i % COLOURS.light.length;
  shape.classList.add("toned");
  for (const theme of ["light", "dark"]) shape.style.setProperty(`--${theme}`, COLOURS[theme][place]);
  return shape;
}

const dashOf = (i) => [null, "7 4", "2 3", "8 3 2 3"][Math.floor(i / COLOURS.light.length) % 4];

// Curves {label, tone, xs, ys, at, about} over shares; `steps`: a height holds from the previous point's x up to its own.
function drawShares(place, curves, { title, xTitle, yTitle, steps, chance }) {
  const height = 360;
  const [made, width] = frame(place, height, `${title}: ${curves.map((one) => one.about).join(", ")}`);
  const [left, right, top, bottom] = [48, Math.min(width - 14, 460), 26, height - 44];
  const x = linear(0, 1, left, right);
  const y = linear(0, 1, bottom, top);
  made.append(text(left, 14, title, { class: "named" }));
  for (const [at, words] of x.ticks) made.append(svg("line", { class: "grid-line", x1: at, x2: at, y1: top, y2: bottom }), text(at, bottom + 16, words, { "text-anchor": "middle" }));
  for (const [at, words] of y.ticks) made.append(svg("line", { class: "grid-line", x1: left, x2: right, y1: at, y2: at }), text(left - 6, at + 4, words, { "text-anchor": "end" }));
  made.append(text((left + right) / 2, height - 8, xTitle, { "text-anchor": "middle" }), text(12, (top + bottom) / 2, yTitle, { "text-anchor": "middle", transform: `rotate(-90 12 ${(top + bottom) / 2})` }));
  made.append(svg("line", { class: "best-floor", x1: x.scale(0), x2: x.scale(1), y1: y.scale(chance[0]), y2: y.scale(chance[1]) }));
  for (const one of curves) {
    const points = Array.from(one.xs, (value, i) => [x.scale(value).toFixed(1), y.scale(one.ys[i]).toFixed(1)]);
    const path = points.map(([px, py], i) => (i === 0 ? `M${px} ${py}` : steps ? `V${py}H${px}` : `L${px} ${py}`)).join("");
    const shapes = svg("g", {}, svg("path", { class: "curve", d: path, "stroke-dasharray": dashOf(one.tone) }));
    if (one.at.every((value) => !unknown(value))) {
      const [cx, cy] = [x.scale(one.at[0]), y.scale(one.at[1])];
      shapes.append(svg("path", { class: "cross", d: `M${cx - 5} ${cy - 5}l10 10m0 -10l-10 10` }));
    }
    made.append(toned(marked(shapes, one.about), one.tone));
  }
}
