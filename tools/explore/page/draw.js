"use strict";
// What drawings have in common. D3 creates their elements, scales and axes.

/** An empty drawing of `width` by `height` pixels, as a selection. */
function drawing(width, height, label) {
  return d3.create("svg").attr("viewBox", [0, 0, width, height]).attr("width", width).attr("height", height).attr("role", "group").attr("aria-label", label);
}

/** Makes the elements of a selection controls for mouse and keys. `label` and `action` are functions of the element's datum. */
function asButtons(selection, label, action) {
  return selection.attr("tabindex", 0).attr("role", "button").attr("aria-label", label).on("click", (_, datum) => action(datum)).on("keydown.press", (event, datum) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      action(datum);
    }
  });
}

/** Shows `label`, a function of the datum, when the mouse is over an element without children. */
function withTooltip(selection, label) {
  selection.append("title").text(label);
  return selection;
}

/** Sets the ticks of an axis to at most five multiples of a power of two of bytes, up to `max`. */
function bytesAxis(axis, max) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(1, max / 4)));
  return axis.tickValues(d3.range(0, max + step / 100, step)).tickFormat(bytes => bytesText(bytes).replace(/\.0+ /, " "));
}

/** The color of part `at` of a drawing; those of neighbors differ. */
const colorOf = at => d3.hsl((at * 137) % 360, 0.48, 0.59).formatHsl();
