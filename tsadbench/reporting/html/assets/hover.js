"use strict";
// What stands at one point in time of a chart of lanes: a box beside the pointer, opaque, with the clock time.

const within = (spans, seconds) => spans.some(([first, end]) => first <= seconds && seconds < end);

// Show what `describe(i)` says of the point under the pointer: lines of colour, name and value below a title.
function readout(id, recordingOf, describe) {
  const chart = byId(id);
  const box = element("div", { class: "readout", hidden: true });
  const line = element("div", { class: "cursor", hidden: true, "aria-hidden": "true" });
  chart.after(box, line);
  let place = null;
  const hide = () => { box.hidden = true; line.hidden = true; place = null; };
  const area = () => { const one = chart.querySelector(".nsewdrag"); return one ? one.getBoundingClientRect() : null; };
  function show(i, x, y) {
    const [title, lines] = describe(i);
    place = i;
    box.replaceChildren(
      element("strong", {}, title),
      element("dl", {}, ...lines.flatMap(([color, name, value]) => {
        const term = element("dt", {}, short(name, 40));
        if (color) term.style.borderLeftColor = color;
        return [term, element("dd", {}, value)];
      })),
    );
    box.hidden = false;
    line.hidden = false;
    const holder = chart.parentElement.getBoundingClientRect();
    const own = chart.getBoundingClientRect();
    line.style.left = `${x - holder.left}px`;
    line.style.top = `${own.top - holder.top}px`;
    line.style.height = `${own.height}px`;
    // Beside the point, on the side with more room, and never over it.
    const gap = 24;
    const right = x < own.left + own.width / 2;
    box.style.maxWidth = `${Math.max(120, (right ? own.right - x : x - own.left) - gap)}px`;
    box.style.left = right ? `${x - holder.left + gap}px` : "auto";
    box.style.right = right ? "auto" : `${holder.right - x + gap}px`;
    const height = box.offsetHeight;
    const lowest = Math.min(innerHeight, own.bottom) - height - 4;
    const highest = Math.max(barHeight() + 4, own.top);
    box.style.top = `${Math.max(highest, Math.min(lowest, y - height / 2)) - holder.top}px`;
  }
  function at(event) {
    const found = area();
    const recording = recordingOf();
    if (!found || !recording || event.clientX < found.left || event.clientX > found.right) { hide(); return; }
    const [low, high] = chart.layout.xaxis.range.map(Number);
    const time = numbers(recording.time);
    show(nearest(time, low + ((event.clientX - found.left) / found.width) * (high - low)), event.clientX, event.clientY);
  }
  // With the keyboard: a comma and a full stop go back and forth by one point.
  function step(event) {
    if (event.key === "Escape") hide();
    const by = { ",": -1, ".": 1 }[event.key];
    const found = area();
    const recording = recordingOf();
    if (!by || !found || !recording) return;
    event.preventDefault();
    const [low, high] = chart.layout.xaxis.range.map(Number);
    const time = numbers(recording.time);
    const i = Math.max(0, Math.min(time.length - 1, (place === null ? nearest(time, low) - by : place) + by));
    const x = found.left + ((time[i] - low) / (high - low)) * found.width;
    show(i, Math.max(found.left, Math.min(found.right, x)), chart.getBoundingClientRect().top + 60);
    byId("spoken").textContent = box.innerText;
  }
  chart.addEventListener("pointermove", at);
  chart.addEventListener("pointerdown", at);
  chart.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", step);
}

function recordingReadout(i) {
  const recording = board().recordings[shown.recording];
  const seconds = numbers(recording.time)[i];
  const lines = [["", "label", within(recording.anomalous, seconds) ? "anomalous" : "normal"]];
  for (const lane of lanes(recording)) {
    if (lane.kind === "sensor") lines.push([style("--ink"), lane.name, valueAt(recording, numbers(recording.sensors[lane.index]), i)]);
    if (lane.kind === "score") {
      const one = recording.detectors[lane.name];
      const flag = within(one.flagged, seconds) ? ", flagged" : "";
      lines.push([look(lane.name).color, lane.name, `${valueAt(recording, numbers(one.scores), i)} (threshold ${amount(one.threshold)}${flag})`]);
    }
    if (lane.kind === "map") {
      const map = recording.maps[lane.name];
      const times = numbers(map.time);
      const shares = bytes(map.shares);
      const at = Math.max(0, times.findLastIndex((time) => time <= seconds));
      const most = board().sensors.map((name, k) => [shares[k * times.length + at], name]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([share]) => share > 0);
      lines.push(["", "contribute most", most.map(([share, name]) => `${short(name, 24)} ${amount((share / 255) ** 2 * map.largest)}`).join(", ") || "none"]);
    }
  }
  return [whenAt(recording, i), lines];
}
