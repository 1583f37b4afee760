"use strict";
// Memory over time: buffers in scratch memory, reads and writes of weights and caches; the weights by offset; the caches.

class MemoryView {
  constructor(page) {
    this.page = page;
    this.title = "Memory";
    const {memory} = page.data;
    this.function = make("select", {id: "function", "aria-label": "Function", onchange: () => page.go({buffers: this.function.value})}, ...memory.map(each => make("option", {value: each.function}, `@${each.function}`)));
    this.body = make("div", {});
    this.element = make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Memory"}, make("div", {class: "bar"}, memory.length ? this.function : null), this.body);
    this.loops = page.data.stages.findIndex(stage => stage.name === "loops");
    this.kernels = page.data.stages.findIndex(stage => stage.name === "kernels");
  }

  show(main) {
    main.replaceChildren(this.element);
    this.update();
  }

  select(stage, op) { this.page.go({view: "stages", op: [stage, op], value: null, panes: this.page.panesWith(stage)}); }

  get chosen() {
    const {memory} = this.page.data;
    return memory.find(each => each.function === this.page.state.buffers) ?? memory[0];
  }

  update() {
    const {chosen} = this, parts = [];
    if (chosen) {
      this.function.value = chosen.function;
      const ops = [...chosen.buffers.flatMap(each => [each[4], each[5]]), ...chosen.lanes.flatMap(each => each[3].filter((_, at) => at % 2 === 0))];
      const time = {begin: Math.min(...ops), end: Math.max(...ops) + 1};
      parts.push(make("p", {class: "quiet"}, "From left to right: the ops of the function, in order. Buffers above each other are live at the same time; buffers that share addresses (dashed for the selected one) are not."));
      for (const perRow of [true, false]) {
        const buffers = chosen.buffers.filter(each => each[3] === perRow);
        if (buffers.length)
          parts.push(make("h2", {}, perRow ? "Scratch memory per row" : "Scratch memory of fixed size"), this.map(buffers, perRow, time));
      }
      if (chosen.lanes.length)
        parts.push(make("h2", {}, "Weights and caches over time"), make("p", {class: "quiet"}, "A mark for each op that ", make("span", {class: "key-read"}, "reads"), " or ", make("span", {class: "key-write"}, "writes"), "."), this.lanes(chosen.lanes, time));
    }
    parts.push(...this.weights(), ...this.caches(), ...this.sizes());
    this.body.replaceChildren(...parts);
  }

  /** A rectangle per buffer: addresses on the vertical axis, live range on the horizontal one. */
  map(buffers, perRow, {begin, end}) {
    const width = 900, height = 200, left = 80, stage = this.page.data.stages[this.loops], {op: selected} = this.page.state;
    const max = Math.max(...buffers.map(each => each[1] + each[2]));
    const x = op => left + (width - left) * (op - begin) / (end - begin), y = address => height - (height - 10) * address / max;
    const own = buffers.filter(each => selected?.[0] === this.loops && selected[1] === each[0]);
    const shares = (a, b) => a !== b && a[1] < b[1] + b[2] && b[1] < a[1] + a[2];
    const parts = [make("svg:text", {x: left - 6, y: 18, "text-anchor": "end"}, bytesText(max)), make("svg:text", {x: left - 6, y: height, "text-anchor": "end"}, "0")];
    buffers.forEach((buffer, at) => {
      const [op, offset, size, , first, last] = buffer, aliases = buffers.filter(other => shares(buffer, other)).length;
      const text = `${placeOf(stage, op) || kindOf(stage, op)}: ${bytesText(size)}${perRow ? " per row" : ""} at ${offset}, alive from line ${stage.line[first]} to ${stage.line[last]}, shares addresses with ${aliases} other buffers`;
      const kind = own.includes(buffer) ? "chosen" : own.some(each => shares(each, buffer)) ? "alias" : undefined;
      parts.push(make("svg:rect", {x: x(first), y: y(offset + size), width: Math.max(3, x(last + 1) - x(first)), height: Math.max(2, y(offset) - y(offset + size)), fill: `hsl(${(at * 137) % 360} 50% 58%)`,
        class: kind, stroke: "var(--ground)", tabindex: 0, role: "button", "aria-label": text, "data-op": op, ...press(() => this.select(this.loops, op))}, make("svg:title", {}, text)));
    });
    return make("svg:svg", {class: "buffers", viewBox: `0 0 ${width} ${height + 6}`, width, height: height + 6, role: "group", "aria-label": perRow ? "Buffers per row" : "Buffers of fixed size"}, ...parts);
  }

  /** A row per weight and cache, with a mark for each use. */
  lanes(lanes, {begin, end}) {
    const width = 900, left = 330, row = 16, stage = this.page.data.stages[this.loops], x = op => left + (width - left) * (op - begin) / (end - begin), parts = [];
    lanes.forEach(([name, isCache, bytes, uses], at) => {
      const y = at * row, label = `${name.split(" ")[0] || (isCache ? "cache" : "weight")}${bytes ? `, ${bytesText(bytes)}` : ""}`;
      parts.push(make("svg:text", {x: left - 6, y: y + 12, "text-anchor": "end"}, label.length > 48 ? `…${label.slice(-47)}` : label), make("svg:rect", {class: "lane", x: left, y: y + 2, width: width - left, height: row - 4}));
      for (let use = 0; use < uses.length; use += 2) {
        const op = uses[use], how = ["", "reads", "writes", "reads and writes"][uses[use + 1]], text = `${kindOf(stage, op)} in line ${stage.line[op]} ${how} ${name || label}`;
        parts.push(make("svg:rect", {class: uses[use + 1] > 1 ? "write" : "read", x: x(op), y: y + 2, width: Math.max(4, x(op + 1) - x(op)), height: row - 4, tabindex: 0, role: "button", "aria-label": text, "data-op": op,
          ...press(() => this.select(this.loops, op))}, make("svg:title", {}, text)));
      }
    });
    return make("svg:svg", {class: "lanes", viewBox: `0 0 ${width} ${lanes.length * row}`, width, height: lanes.length * row, role: "group", "aria-label": "Uses of weights and caches"}, ...parts);
  }

  weights() {
    const {weights} = this.page.data, number = text => make("td", {class: "number"}, text);
    return weights.length ? [make("h2", {}, "Weights"), make("table", {id: "weights"}, make("thead", {}, make("tr", {}, ...["weight", "format", "type", "offset", "bytes"].map((head, at) => make("th", {scope: "col", class: at > 2 ? "number" : ""}, head)))),
      make("tbody", {}, ...weights.slice(0, 2000).map(([name, type, op, offset, bytes, , format]) => make("tr", {}, make("td", {}, make("button", {class: "link", type: "button", onclick: () => this.select(this.kernels, op)}, name)),
        make("td", {}, format), make("td", {}, make("code", {}, type)), number(String(offset)), number(bytesText(bytes))))))] : [];
  }

  caches() {
    const {manifest} = this.page.data;
    if (!manifest?.caches?.length)
      return [];
    return [make("h2", {}, "Caches"), make("table", {id: "caches"}, make("thead", {}, make("tr", {}, ...["cache", "element", "shape", "bytes per token"].map(head => make("th", {scope: "col"}, head)))),
      make("tbody", {}, ...manifest.caches.map(each => make("tr", {}, make("td", {}, each.name), make("td", {}, each.element), make("td", {}, JSON.stringify(each.shape)), make("td", {class: "number"}, String(each.bytes_per_token))))))];
  }

  /** The totals of a program, whose buffers and weights are not known. */
  sizes() {
    const {manifest, weights} = this.page.data;
    if (weights.length || !manifest?.scratch)
      return [];
    return [make("h2", {}, "Sizes"), make("ul", {id: "sizes"}, make("li", {}, `Weights: ${manifest.weight_bytes === undefined ? "unknown" : bytesText(manifest.weight_bytes)}`),
      make("li", {}, `Scratch memory: ${bytesText(manifest.scratch.bytes_fixed)} and ${bytesText(manifest.scratch.bytes_per_row)} per row`))];
  }
}
