"use strict";
// Lists to choose from.

function options(id, values, current, change) {
  const place = byId(id);
  place.replaceChildren(...values.map(([value, text]) => element("option", { value, title: text }, short(text, 60))));
  place.value = String(current);
  place.onchange = () => change(place.value);
}

function checks(id, names, chosenNames, changed, mark, text = (name) => name) {
  fill(id, ...names.map((name) => {
    const box = element("input", { type: "checkbox", on: { change: () => {
      if (box.checked) chosenNames.add(name); else chosenNames.delete(name);
      changed();
    } } });
    box.checked = chosenNames.has(name);
    return element("label", { title: name }, box, ...(mark ? [mark(name)] : []), short(text(name), 40));
  }));
}

// Fill a place anew; the control that had the focus has it again.
function keepingFocus(id, refill) {
  const controls = () => [...byId(id).querySelectorAll("input, select")];
  const held = controls().indexOf(document.activeElement);
  refill();
  if (held >= 0) controls()[held]?.focus();
}

function swatchOf(color) {
  const mark = element("span", { class: "swatch", "aria-hidden": "true" });
  mark.style.borderTopColor = color;
  return mark;
}
