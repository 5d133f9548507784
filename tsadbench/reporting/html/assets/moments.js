"use strict";
// Places on the time axis of a recording, whose points are rows, or the lowest and the highest of neighbouring rows.

// The nearest point to a place on the time axis.
function nearest(time, x) {
  let [low, high] = [0, time.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (time[middle] < x) low = middle; else high = middle;
  }
  return Math.abs(time[high] - x) < Math.abs(time[low] - x) ? high : low;
}

// ISO 8601 in UTC, as data files and the command line write it.
function isoTime(seconds) {
  const made = new Date(1000 * seconds);
  return Number.isNaN(made.getTime()) ? String(seconds) : made.toISOString().replace(/\.?0*Z$/, "");
}

const clockOf = (recording, seconds) => (recording.clock === null ? recording.timed ? `${amount(seconds)} s after the first row` : "" : isoTime(recording.clock + seconds));

// Points are rows, or the lowest and the highest of neighbouring rows.
function whenAt(recording, i) {
  const rows = recording.rows === null ? null : numbers(recording.rows);
  const first = rows ? rows[i - (i % 2)] : i;
  const last = rows ? rows[Math.min(rows.length - 1, i - (i % 2) + 1)] : i;
  const clock = clockOf(recording, numbers(recording.time)[i]);
  return [clock, first === last ? `row ${first}` : `rows ${first} to ${last}`].filter((text) => text).join(", ");
}

function valueAt(recording, values, i) {
  if (recording.rows === null) return amount(Number.isNaN(values[i]) ? null : values[i]);
  const pair = [values[i - (i % 2)], values[Math.min(values.length - 1, i - (i % 2) + 1)]].filter((value) => !Number.isNaN(value));
  if (!pair.length) return "–";
  const [low, high] = [Math.min(...pair), Math.max(...pair)].map(amount);
  return low === high ? low : `${low} to ${high}`;
}

// What the axis of time counts.
const timeTitle = (recording) => (recording.clock !== null ? `seconds since ${isoTime(recording.clock)}` : recording.timed ? "seconds since the recording's first row" : "row");
