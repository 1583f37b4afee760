"use strict";
// Memory over time: buffers in scratch memory, reads and writes of weights and caches; the weights by offset; the caches.

/** The width of drawings, in pixels. */
const WIDTH = 900;
/** Kinds of buffers, BufferExtent in Record.h. */
const EXTENTS = ["of fixed size", "per row", "per row with logits"];

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
      for (const extent of [1, 2, 0]) {
        const buffers = chosen.buffers.filter(each => each[3] === extent);
        if (buffers.length)
          parts.push(make("h2", {}, `Scratch memory ${EXTENTS[extent]}`), this.map(buffers, EXTENTS[extent], time));
      }
      if (chosen.lanes.length)
        parts.push(make("h2", {}, "Weights and caches over time"), make("p", {class: "quiet"}, "A mark for each op that ", make("span", {class: "key-read"}, "reads"), " or ", make("span", {class: "key-write"}, "writes"), "."), this.lanes(chosen.lanes, time));
    }
    parts.push(...this.weights(), ...this.caches(), ...this.sizes());
    this.body.replaceChildren(...parts);
  }

  /** The horizontal axis of a function's drawings: its ops in order, from pixel `left` on. */
  timeScale({begin, end}, left) { return d3.scaleLinear([begin, end], [left, WIDTH]); }

  /** A rectangle per buffer: addresses on the vertical axis, live range on the horizontal one. */
  map(buffers, extent, time) {
    const height = 216, left = 84, stage = this.page.data.stages[this.loops], {op: selected} = this.page.state, max = d3.max(buffers, ([, offset, size]) => offset + size);
    const x = this.timeScale(time, left), y = d3.scaleLinear([0, max], [height - 8, 10]);
    const shares = (a, b) => a !== b && a[1] < b[1] + b[2] && b[1] < a[1] + a[2], own = buffers.filter(each => selected?.[0] === this.loops && selected[1] === each[0]);
    const label = buffer => {
      const [op, offset, size, , first, last] = buffer, aliases = buffers.filter(other => shares(buffer, other)).length;
      return `${placeOf(stage, op) || kindOf(stage, op)}: ${bytesText(size)} ${extent} at ${offset}, alive from line ${stage.line[first]} to ${stage.line[last]}, shares addresses with ${aliases} other buffers`;
    };
    const svg = drawing(WIDTH, height, `Buffers ${extent}`).attr("class", "buffers");
    svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`).call(bytesAxis(d3.axisLeft(y), max));
    svg.append("g").selectAll("rect").data(buffers).join("rect").attr("x", ([, , , , first]) => x(first)).attr("y", ([, offset, size]) => y(offset + size))
      .attr("width", ([, , , , first, last]) => Math.max(3, x(last + 1) - x(first))).attr("height", ([, offset, size]) => Math.max(2, y(offset) - y(offset + size)))
      .attr("fill", (_, at) => colorOf(at)).attr("class", buffer => own.includes(buffer) ? "chosen" : own.some(each => shares(each, buffer)) ? "alias" : null).attr("data-op", ([op]) => op)
      .call(asButtons, label, ([op]) => this.select(this.loops, op)).call(withTooltip, label);
    return svg.node();
  }

  /** A row per weight and cache, with a mark for each use. */
  lanes(lanes, time) {
    const left = 330, row = 16, stage = this.page.data.stages[this.loops], x = this.timeScale(time, left);
    const nameOf = ([name, isCache, bytes]) => `${name.split(" ")[0] || (isCache ? "cache" : "weight")}${bytes ? `, ${bytesText(bytes)}` : ""}`;
    const y = d3.scaleBand(d3.range(lanes.length), [0, lanes.length * row]).padding(0.25);
    const uses = lanes.flatMap((lane, at) => d3.range(0, lane[3].length, 2).map(use => ({at, lane, op: lane[3][use], how: lane[3][use + 1]})));
    const label = ({lane, op, how}) => `${kindOf(stage, op)} in line ${stage.line[op]} ${["", "reads", "writes", "reads and writes"][how]} ${lane[0] || nameOf(lane)}`;
    const svg = drawing(WIDTH, lanes.length * row, "Uses of weights and caches").attr("class", "lanes");
    svg.append("g").selectAll("rect").data(lanes).join("rect").attr("class", "lane").attr("x", left).attr("y", (_, at) => y(at)).attr("width", WIDTH - left).attr("height", y.bandwidth());
    svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).tickSize(0).tickFormat(at => {
      const name = nameOf(lanes[at]);
      return name.length > 48 ? `…${name.slice(-47)}` : name;
    }));
    svg.append("g").selectAll("rect").data(uses).join("rect").attr("class", ({how}) => how > 1 ? "write" : "read").attr("x", ({op}) => x(op)).attr("y", ({at}) => y(at))
      .attr("width", ({op}) => Math.max(4, x(op + 1) - x(op))).attr("height", y.bandwidth()).attr("data-op", ({op}) => op)
      .call(asButtons, label, ({op}) => this.select(this.loops, op)).call(withTooltip, label);
    return svg.node();
  }

  weights() {
    const {weights} = this.page.data, number = text => make("td", {class: "number"}, text);
    return weights.length ? [make("h2", {}, "Weights"), make("table", {id: "weights"}, make("thead", {}, make("tr", {}, ...["weight", "format", "type", "offset", "bytes"].map((head, at) => make("th", {scope: "col", class: at > 2 ? "number" : ""}, head)))),
      make("tbody", {}, ...weights.slice(0, 2000).map(([name, type, op, offset, bytes, , format]) => make("tr", {}, make("td", {}, make("button", {class: "link", type: "button", onclick: () => this.select(this.kernels, op)}, name)),
        make("td", {}, format), make("td", {}, make("code", {}, type)), number(String(offset)), number(bytesText(bytes))))))] : [];
  }

  /** Caches grow with each token, up to the context or the ring of a window; states take the same memory for a sequence of any length. */
  caches() {
    const {manifest} = this.page.data, number = text => make("td", {class: "number"}, text);
    if (!manifest?.caches?.length)
      return [];
    return [make("h2", {}, "Caches and states"), make("table", {id: "caches"}, make("thead", {}, make("tr", {}, ...["cache", "element", "shape", "bytes per token", "bytes per sequence", "bytes per checkpoint"].map(head => make("th", {scope: "col"}, head)))),
      make("tbody", {}, ...manifest.caches.map(each => make("tr", {}, make("td", {}, each.name), make("td", {}, each.element), make("td", {}, JSON.stringify(each.shape)), number(String(each.bytes_per_token)), number(String(each.bytes_per_sequence ?? "")), number(String(each.bytes_per_checkpoint ?? ""))))))];
  }

  /** The totals of a program, whose buffers and weights are not known. */
  sizes() {
    const {manifest, weights} = this.page.data;
    if (weights.length || !manifest?.scratch)
      return [];
    return [make("h2", {}, "Sizes"), make("ul", {id: "sizes"}, make("li", {}, `Weights: ${manifest.weight_bytes === undefined ? "unknown" : bytesText(manifest.weight_bytes)}`),
      make("li", {}, `Scratch memory: ${bytesText(manifest.scratch.bytes_fixed)} and ${bytesText(manifest.scratch.bytes_per_row)} per row, ${bytesText(manifest.scratch.bytes_per_output)} per row with logits`))];
  }
}
