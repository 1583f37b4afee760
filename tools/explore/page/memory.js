"use strict";
// Scratch memory over time, the weights, and the caches.

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

  update() {
    const {memory} = this.page.data, chosen = memory.find(each => each.function === this.page.state.buffers) ?? memory[0];
    const parts = [];
    if (chosen) {
      this.function.value = chosen.function;
      for (const perRow of [true, false]) {
        const buffers = chosen.buffers.filter(each => each[3] === perRow);
        if (buffers.length)
          parts.push(make("h2", {}, perRow ? "Scratch memory per row" : "Scratch memory of fixed size"), this.map(buffers, perRow));
      }
      parts.push(make("p", {class: "quiet"}, "From left to right: the ops of the function, in order. Buffers that share addresses at different times are above each other."));
    }
    parts.push(make("h2", {}, "Weights"), this.weights());
    parts.push(...this.caches());
    this.body.replaceChildren(...parts);
  }

  /** A rectangle per buffer: addresses upwards, its life from left to right. */
  map(buffers, perRow) {
    const width = 900, height = 200, left = 80, stage = this.page.data.stages[this.loops];
    const begin = Math.min(...buffers.map(each => each[4])), end = Math.max(...buffers.map(each => each[5])) + 1, most = Math.max(...buffers.map(each => each[1] + each[2]));
    const x = op => left + (width - left) * (op - begin) / (end - begin), y = address => height - (height - 10) * address / most;
    const parts = [make("svg:text", {x: left - 6, y: 18, "text-anchor": "end"}, bytesText(most)), make("svg:text", {x: left - 6, y: height, "text-anchor": "end"}, "0")];
    buffers.forEach(([op, offset, size, , first, last], at) => {
      const text = `${placeOf(stage, op) || kindOf(stage, op)}: ${bytesText(size)}${perRow ? " per row" : ""} at ${offset}`;
      const isChosen = this.page.state.op?.[0] === this.loops && this.page.state.op[1] === op;
      parts.push(make("svg:rect", {x: x(first), y: y(offset + size), width: Math.max(3, x(last + 1) - x(first)), height: Math.max(2, y(offset) - y(offset + size)), fill: `hsl(${(at * 137) % 360} 50% 58%)`,
        class: isChosen ? "chosen" : undefined, stroke: "var(--ground)", tabindex: 0, role: "button", "aria-label": text, "data-op": op, onclick: () => this.select(this.loops, op),
        onkeydown: event => (event.key === "Enter" || event.key === " ") && this.select(this.loops, op)}, make("svg:title", {}, text)));
    });
    return make("svg:svg", {class: "buffers", viewBox: `0 0 ${width} ${height + 6}`, width, height: height + 6, role: "group", "aria-label": perRow ? "Buffers per row" : "Buffers of fixed size"}, ...parts);
  }

  weights() {
    const {weights} = this.page.data;
    return make("table", {id: "weights"}, make("thead", {}, make("tr", {}, ...["weight", "type", "offset", "bytes"].map((head, at) => make("th", {scope: "col", class: at > 1 ? "number" : ""}, head)))),
      make("tbody", {}, ...weights.slice(0, 2000).map(([name, type, op, offset, bytes]) => make("tr", {}, make("td", {}, make("button", {class: "link", type: "button", onclick: () => this.select(this.kernels, op)}, name)),
        make("td", {}, make("code", {}, type)), make("td", {class: "number"}, String(offset)), make("td", {class: "number"}, bytesText(bytes))))));
  }

  caches() {
    const {manifest} = this.page.data;
    if (!manifest?.caches?.length)
      return [];
    return [make("h2", {}, "Caches"), make("table", {id: "caches"}, make("thead", {}, make("tr", {}, ...["cache", "element", "shape", "bytes per token"].map(head => make("th", {scope: "col"}, head)))),
      make("tbody", {}, ...manifest.caches.map(each => make("tr", {}, make("td", {}, each.name), make("td", {}, each.element), make("td", {}, JSON.stringify(each.shape)), make("td", {class: "number"}, String(each.bytes_per_token))))))];
  }
}
