"use strict";
// Times of a profile: a table, a roofline plot, bytes per token, and the colors of ops.

/** The criteria for coloring ops: time, bytes, distance from the roofline. */
const COLORS = {time: "time", bytes: "bytes", roofline: "roofline"};
/** The ends of their scales. */
const ENDS = {time: ["short", "long"], bytes: ["few", "many"], roofline: ["far", "near"]};

/** The color of an op by its part of the maximum, from 0 to 1. */
const intensity = part => `hsl(12 85% 48% / ${(0.12 + 0.88 * part).toFixed(3)})`;
/** The color of an op by its part of the roofline, from 0 to 1. */
const nearness = part => `hsl(${Math.round(120 * part)} 75% 45%)`;

class TimeView {
  constructor(page) {
    this.page = page;
    this.title = "Time";
    const {profile} = page.data;
    this.tests = profile?.tests ?? [];
    this.loops = page.data.stages.findIndex(stage => stage.name === "loops");
    this.costs = new Map();
    this.test = make("select", {id: "test", "aria-label": "Test", onchange: () => page.go({test: this.test.value})}, ...this.tests.map(test => make("option", {value: test.test}, test.test)));
    this.color = make("select", {id: "color", "aria-label": "Color of ops in all stages", onchange: () => page.go({color: this.color.value})},
      make("option", {value: ""}, "no colors"), ...Object.entries(COLORS).map(([name, text]) => make("option", {value: name}, `color by ${text}`)));
    this.legend = make("span", {id: "legend", class: "quiet"});
    this.element = make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Time"});
  }

  /** The controls that apply to all views. */
  get controls() { return this.tests.length ? [make("div", {id: "coloring"}, this.test, this.color, this.legend)] : []; }

  updateControls() {
    const {color} = this.page.state, ends = ENDS[color];
    this.test.value = this.current?.test ?? "";
    this.color.value = ends ? color : "";
    const scale = ends && d3.range(0, 1.01, 0.25).map(part => color === "roofline" ? nearness(part) : intensity(part));
    this.legend.replaceChildren(...(ends ? [ends[0], make("span", {class: "scale", style: `background: linear-gradient(to right, ${scale.join(", ")})`}), ends[1]] : []));
  }

  /** For each kernel and oneDNN matmul, by name: its function and its launches, as ops of stage `loops`. */
  findKernels() {
    const kernels = new Map(), stage = this.page.data.stages[this.loops];
    const of = name => kernels.get(name) ?? kernels.set(name, {body: -1, launches: []}).get(name);
    stage?.line.forEach((line, op) => {
      const kind = kindOf(stage, op), text = stage.lines[line - 1] ?? "";
      const launch = text.match(/exec\.launch @([\w.$-]+)/), product = text.match(/exec\.matmul (accumulate )?k\((\d+)\) n\((\d+)\)/);
      if (kind === "func.func" && stage.parent[op] < 0)
        of(text.match(/@([\w.$-]+)/)?.[1]).body = op;
      else if (kind === "exec.launch" && launch)
        of(launch[1]).launches.push(op);
      else if (kind === "exec.matmul" && product)
        of(`onednn_${product[3]}x${product[2]}${product[1] ? "_residual" : ""}`).launches.push(op);
    });
    return kernels;
  }

  get kernels() { return this.known ??= this.findKernels(); }

  get current() { return this.tests.find(test => test.test === this.page.state.test) ?? this.tests.at(-1); }

  /** Functions of stage `loops` by their op: name, calls, and launched kernels. */
  findFunctions() {
    const functions = new Map(), byName = new Map(), stage = this.page.data.stages[this.loops];
    stage?.parent.forEach((parent, op) => {
      if (parent >= 0 || kindOf(stage, op) !== "func.func")
        return;
      const made = {name: symbolIn(stage, op), calls: [], kernels: []};
      functions.set(op, made);
      byName.set(made.name, made);
    });
    stage?.kind.forEach((_, op) => kindOf(stage, op) === "func.call" && byName.get(symbolIn(stage, op))?.calls.push(op));
    for (const [name, {launches}] of this.kernels)
      launches.forEach(launch => functions.get(outermost(stage, launch))?.kernels.push(name));
    return functions;
  }

  /** The function that contains an op of stage `loops`. */
  functionOf(op) { return (this.functions ??= this.findFunctions()).get(outermost(this.page.data.stages[this.loops], op)); }

  /**
   * The number of executions of an op of stage `loops` in a test, relative to others: 0 in functions that are not called. These are functions
   * with a kernel without time, and, because generating one sequence takes one row at a time, those for more rows.
   */
  executionsOf(test, ran, op) {
    const own = this.functionOf(op), hasOneRow = /^tg\d+(@d\d+)?$/.test(test.test);
    if (!own || (hasOneRow && /_(medium|large)$/.test(own.name)) || own.kernels.some(name => !ran.has(name)))
      return 0;
    const calls = own.calls.reduce((sum, call) => sum + this.executionsOf(test, ran, call), 0);
    return iterationsAround(this.page.data.stages[this.loops], op) * (own.calls.length ? calls : 1);
  }

  /** The calls at stage `loops` that execute an op. */
  callsAround(op) {
    return (this.functionOf(op)?.calls ?? []).flatMap(call => [call, ...this.callsAround(call)]);
  }

  /** The launches of a kernel with their share of its time, in proportion to the number of executions. */
  sharesOf(test, ran, launches) {
    const counts = launches.map(launch => this.executionsOf(test, ran, launch)), sum = counts.reduce((all, each) => all + each, 0);
    return launches.map((launch, at) => [launch, sum ? counts[at] / sum : 1 / launches.length]).filter(([, share]) => share > 0);
  }

  /** For each stage: op => {seconds, bytes, flops} of the kernels to which it belongs; a call has those of the function. */
  costsOf(test) {
    if (this.costs.has(test.test))
      return this.costs.get(test.test);
    const {stages} = this.page.data, all = stages.map(() => new Map());
    const add = (stage, op, kernel, share) => {
      const cost = all[stage].get(op) ?? {seconds: 0, bytes: 0, flops: 0};
      for (const key of ["seconds", "bytes", "flops"])
        cost[key] += kernel[key] * share;
      all[stage].set(op, cost);
    };
    const ran = new Set(test.kernels.filter(each => each.launches > 0).map(each => each.kernel));
    for (const kernel of test.kernels) {
      const {body, launches} = this.kernels.get(kernel.kernel) ?? {body: -1, launches: []};
      for (const [launch, share] of this.sharesOf(test, ran, launches)) {
        let ops = new Set([launch, ...this.callsAround(launch).filter(call => this.executionsOf(test, ran, call) > 0)]);
        ops.forEach(op => add(this.loops, op, kernel, share));
        for (let at = this.loops; stages[at].from >= 0; at = stages[at].from) {
          ops = originsOf(stages[at], ops);
          for (const op of ops)
            add(stages[at].from, op, kernel, share);
        }
      }
      if (body < 0)
        continue;
      const inside = withBody(stages[this.loops], body);
      for (const op of inside)
        add(this.loops, op, kernel, 1);
      stages.filter(stage => stage.from === this.loops).forEach(stage => resultsOf(stage, inside).forEach(op => add(stage.index, op, kernel, 1)));
    }
    this.costs.set(test.test, all);
    return all;
  }

  roofline(test, cost) {
    const reading = cost.bytes / (test.limits.gb_per_s * 1e9), computing = cost.flops / (test.limits.gflop_per_s * 1e9);
    return cost.seconds > 0 ? Math.max(reading || 0, computing || 0) / cost.seconds : 0;
  }

  heatOf(stage, op) {
    const {color} = this.page.state, test = this.current;
    if (!test || !(color in COLORS))
      return null;
    const costs = this.costsOf(test)[stage.index], cost = costs.get(op);
    if (!cost)
      return null;
    if (color === "roofline")
      return cost.bytes || cost.flops ? nearness(Math.min(1, this.roofline(test, cost))) : null;
    const key = color === "time" ? "seconds" : "bytes", stages = this.page.data.stages;
    // A call has the sum of many ops, so it does not determine the scale.
    const max = costs[key] ??= Math.max(...[...costs].filter(([each]) => kindOf(stages[stage.index], each) !== "func.call").map(([, each]) => each[key]));
    return intensity(Math.min(1, cost[key] / max));
  }

  costOf(stage, op) {
    const test = this.current, cost = test && this.costsOf(test)[stage.index].get(op);
    if (!cost)
      return [];
    const row = (name, value) => make("tr", {}, make("th", {scope: "row"}, name), make("td", {class: "number"}, value));
    return [make("h3", {}, `Kernels of this op, ${test.test}`), make("table", {id: "op-cost"}, make("tbody", {},
      row("time per token", `${(1e6 * cost.seconds / test.tokens).toFixed(2)} µs`), row("bytes per token", bytesText(Math.round(cost.bytes / test.tokens))),
      row("of the roofline", cost.bytes || cost.flops ? `${(100 * this.roofline(test, cost)).toFixed(0)} %` : "–")))];
  }

  show(main) {
    main.replaceChildren(this.element);
    this.update();
  }

  update() {
    const test = this.current;
    if (!test) {
      this.element.replaceChildren(make("h2", {}, "No profile"), make("p", {}, "Create one with PROGRAM bench --profile-json FILE, then write this page again with --profile FILE."), ...this.tokenBar());
      return;
    }
    this.element.replaceChildren(make("h2", {}, "Roofline"), this.plot(test), ...this.unplotted(test), ...this.tokenBar(), make("h2", {}, "Bytes per token, by kernel"), ...this.bytesBar(test), make("h2", {}, "Kernels"), this.table(test));
  }

  /** Selects the body of a kernel, or else its launches. */
  choose(name) {
    const {body, launches} = this.kernels.get(name) ?? {body: -1, launches: []};
    const op = body >= 0 ? body : launches[0];
    if (op !== undefined)
      this.page.go({view: "stages", op: [this.loops, op], value: null, panes: this.page.panesWith(this.loops)});
  }

  plot(test) {
    const {gb_per_s: gb, gflop_per_s: gflop} = test.limits, width = 760, height = 350, left = 64, right = width - 20, top = 16, bottom = height - 44, ridge = gflop / gb;
    const shown = test.kernels.filter(each => each.bytes > 0 && each.seconds > 0), x = d3.scaleLog(d3.extent([...shown.filter(each => each.flops > 0).map(each => each.flops / each.bytes / 2), ridge, 10 * ridge]), [left, right]).nice();
    // Kernels without counted operations are on the left edge, below the roofline by the same factor as their rate of bytes. Large points are behind small ones.
    const points = shown.map(each => ({name: each.kernel, hasFlops: each.flops > 0, x: each.flops > 0 ? each.flops / each.bytes : x.domain()[0], gb: each.bytes / each.seconds * 1e-9, share: each.seconds / test.seconds}))
      .map(each => ({...each, y: each.x * each.gb})).sort((a, b) => b.share - a.share);
    const y = d3.scaleLog(d3.extent([...points.map(each => each.y), gflop, 2 * gflop]), [bottom, top]).nice();
    const begin = Math.max(x.domain()[0], y.domain()[0] / gb), limits = [[begin, begin * gb], [ridge, gflop], [x.domain()[1], gflop]];
    const label = each => `${each.name}: ${each.hasFlops ? `${each.y.toFixed(1)} GFLOP/s at ${each.x.toFixed(2)} FLOP/byte` : `${each.gb.toFixed(1)} GB/s, no counted operations`}, ${(100 * each.share).toFixed(1)} % of the time`;
    const svg = drawing(width, height, "Performance of each kernel over its arithmetic intensity, below the limits of the machine").attr("id", "roofline");
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`).call(d3.axisBottom(x).ticks(8, "~g"));
    svg.append("g").attr("class", "axis").attr("transform", `translate(${left},0)`).call(d3.axisLeft(y).ticks(6, "~g"));
    svg.append("path").attr("class", "limit").attr("d", d3.line(each => x(each[0]), each => y(each[1]))(limits));
    const write = (text, at, above, anchor) => svg.append("text").attr("x", at).attr("y", above).attr("text-anchor", anchor).text(text);
    write("arithmetic intensity, FLOP/byte", (left + right) / 2, height - 8, "middle");
    write("GFLOP/s", left + 6, top + 4, "start");
    write(`${gflop.toFixed(0)} GFLOP/s`, right, y(gflop) - 5, "end");
    const middle = Math.sqrt(begin * ridge);
    write(`${gb.toFixed(1)} GB/s`, x(middle) - 8, y(middle * gb) - 4, "end");
    svg.append("g").selectAll("circle").data(points).join("circle").attr("cx", each => x(each.x)).attr("cy", each => y(each.y)).attr("r", each => 4 + 16 * Math.sqrt(each.share))
      .attr("data-kernel", each => each.name).attr("class", each => each.hasFlops ? null : "no-flops").call(asButtons, label, each => this.choose(each.name)).call(withTooltip, label);
    return svg.node();
  }

  /** The kernels without a point. */
  unplotted(test) {
    const names = test.kernels.filter(each => !(each.bytes > 0 && each.seconds > 0)).map(each => each.kernel);
    return [make("p", {class: "quiet", id: "unplotted"}, "Kernels without counted operations are at the left edge, at their distance from the memory bandwidth.",
                 names.length ? ` Neither bytes nor operations are counted for ${names.join(", ")}.` : "")];
  }

  /** A stacked bar of [name, bytes, action]. */
  stack(parts, id) {
    const width = 900, height = 62, right = width - 40, sum = d3.sum(parts, part => part[1]), ends = d3.cumsum(parts, part => part[1]), x = d3.scaleLinear([0, sum], [10, right]);
    const label = ([name, bytes]) => `${name}: ${bytesText(Math.round(bytes))}`;
    const svg = drawing(width, height, "Bytes as a stacked bar").attr("id", id).attr("class", "stack");
    svg.selectAll("rect").data(parts).join("rect").attr("x", (part, at) => x(ends[at] - part[1])).attr("y", 2).attr("width", part => Math.max(1, x(part[1]) - x(0))).attr("height", 32)
      .attr("fill", (_, at) => colorOf(at)).call(asButtons, label, part => part[2]()).call(withTooltip, label);
    svg.append("g").attr("class", "axis").attr("transform", "translate(0,36)").call(bytesAxis(d3.axisBottom(x), sum));
    return [svg.node(), make("p", {class: "quiet"}, `${bytesText(Math.round(sum))}:`), make("ul", {class: "legend"}, ...parts.map(([name, bytes], at) =>
      make("li", {}, make("span", {class: "swatch", style: `background: ${colorOf(at)}`}), `${name} ${(100 * bytes / sum).toFixed(1)} %`)))];
  }

  bytesBar(test) {
    const parts = test.kernels.filter(each => each.bytes > 0).map(each => [each.kernel, each.bytes / test.tokens, () => this.choose(each.kernel)]).sort((a, b) => b[1] - a[1]);
    return parts.length ? this.stack(parts, "bytes-bar") : [];
  }

  /** The memory read to decode a token: the weights by module, the caches of 1024 positions, and of states what a checkpoint has. */
  tokenBar() {
    const {weights, manifest, stages} = this.page.data, sums = new Map(), kernels = stages.findIndex(stage => stage.name === "kernels");
    for (const [name, , op, , , bytes] of weights) {
      const word = name.replace(/\.(weight|bias|experts)$/, "").split(".").at(-1), [sum, first] = sums.get(word) ?? [0, op];
      sums.set(word, [sum + bytes, first]);
    }
    const show = op => () => this.page.go({view: "stages", op: [kernels, op], value: null, panes: this.page.panesWith(kernels)});
    const parts = [...sums].filter(([, [bytes]]) => bytes > 0).map(([word, [bytes, op]]) => [word, bytes, show(op)]).sort((a, b) => b[1] - a[1]);
    const {caches = []} = manifest ?? {}, positions = Math.min(1024, manifest?.max_seq ?? 0), other = () => this.page.go({view: "memory"});
    const cache = caches.reduce((sum, each) => sum + Math.min(positions, each.window ?? positions) * (each.bytes_read_per_position ?? each.bytes_per_token), 0);
    const states = caches.reduce((sum, each) => sum + (each.bytes_per_checkpoint ?? 0), 0);
    if (!parts.length && manifest?.cost?.weight_bytes_per_token)
      parts.push(["weights", manifest.cost.weight_bytes_per_token, other]);
    if (cache)
      parts.push([`cache of ${positions} positions`, cache, other]);
    if (states)
      parts.push(["states", states, other]);
    return parts.length ? [make("h2", {}, "Bytes read per token"), ...this.stack(parts, "token-bar")] : [];
  }

  table(test) {
    const cell = text => make("td", {class: "number"}, text), heads = ["kernel", "launches", "ms", "%", "GB/s", "GFLOP/s", "roofline %", "location"];
    return make("table", {id: "kernels"}, make("thead", {}, make("tr", {}, ...heads.map((head, at) => make("th", {scope: "col", class: at && at < 7 ? "number" : ""}, head)))),
      make("tbody", {}, ...test.kernels.map(each => make("tr", {}, make("td", {}, make("button", {class: "link", type: "button", onclick: () => this.choose(each.kernel)}, each.kernel)),
        cell(String(each.launches)), cell((1e3 * each.seconds).toFixed(3)), cell((100 * each.seconds / test.seconds).toFixed(1)),
        cell(each.bytes && each.seconds ? (each.bytes / each.seconds * 1e-9).toFixed(1) : "–"), cell(each.flops && each.seconds ? (each.flops / each.seconds * 1e-9).toFixed(1) : "–"),
        cell(each.bytes || each.flops ? (100 * this.roofline(test, each)).toFixed(0) : "–"), make("td", {}, (each.location ?? []).join(", "))))));
  }
}
