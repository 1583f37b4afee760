"use strict";
// The graph of a function or of the model. Modules of the model are boxes that can be folded; equal layers are one node with their number, which
// can be unfolded in place.

const listOf = words => new Set((words ?? "").split(",").filter(each => each));

/** The factor of a step of zooming. */
const STEP = 1.25;
/** The height of the title of a box, in units of the drawing. */
const TITLE = 12;

class GraphView {
  constructor(page) {
    this.page = page;
    this.title = "Graph";
    this.choices = page.data.stages.filter(stage => stage.operands.length).flatMap(stage => this.functionsOf(stage));
    this.choice = make("select", {id: "graph-choice", "aria-label": "Function", onchange: () => page.go({graph: this.choice.value, fold: null, open: null})},
                       ...this.choices.map(each => make("option", {value: each.key}, each.title)));
    this.foldAll = make("button", {type: "button", id: "fold-all", onclick: () => page.go({fold: this.isAllFolded() ? null : [...this.groups].join(",")})}, "Fold all");
    this.svg = d3.create("svg").attr("id", "graph").attr("role", "group");
    this.svg.append("defs").append("marker").attr("id", "arrow").attr("viewBox", "0 0 8 8").attr("refX", 7).attr("refY", 4).attr("markerWidth", 7).attr("markerHeight", 7).attr("orient", "auto")
      .append("path").attr("d", "M0,0L8,4L0,8z");
    this.scene = this.svg.append("g").attr("class", "scene");
    [this.boxes, this.edges, this.nodes] = d3.range(3).map(() => this.scene.append("g"));
    this.zoom = d3.zoom().on("zoom", event => this.scene.attr("transform", event.transform)).on("end", event => event.sourceEvent && this.remember());
    this.svg.call(this.zoom).on("dblclick.zoom", null);
    const zooming = [["zoom-in", "+", "Zoom in (+)", () => this.scale(STEP)], ["zoom-out", "−", "Zoom out (−)", () => this.scale(1 / STEP)], ["zoom-all", "Fit", "Show all (0)", () => this.showAll()]]
      .map(([id, text, label, onclick]) => make("button", {type: "button", id, title: label, "aria-label": label, onclick}, text));
    this.element = make("div", {class: "scroll graph", tabindex: 0, role: "region", "aria-label": "Graph"}, make("div", {class: "bar"}, this.choice, this.foldAll, ...zooming), this.svg.node());
    this.detail = make("aside", {"aria-label": "Selected op", tabindex: 0});
  }

  /** Functions with ops; the last one, which calls the others, is first. */
  functionsOf(stage) {
    const found = [];
    stage.parent.forEach((parent, op) => {
      if (parent < 0 && kindOf(stage, op) === "func.func" && stage.parent[op + 1] === op) {
        const name = symbolIn(stage, op) ?? `function ${op}`;
        found.push({key: `${stage.name}:${op}`, stage, op, name, title: `${stage.name}: @${name}`});
      }
    });
    return found.reverse();
  }

  get chosen() { return this.choices.find(each => each.key === this.page.state.graph) ?? this.choices[0]; }

  isAllFolded() { return this.folded.size > 0 && [...this.groups].every(group => this.folded.has(group)); }

  show(main) {
    main.replaceChildren(this.element, this.detail);
    this.update();
  }

  update() {
    const {chosen} = this, group = this.svg.node().contains(document.activeElement) ? document.activeElement.dataset.group : undefined;
    if (chosen) {
      this.choice.value = chosen.key;
      this.folded = listOf(this.page.state.fold);
      this.opened = listOf(this.page.state.open);
      this.draw(chosen);
      this.foldAll.textContent = this.isAllFolded() ? "Unfold all" : "Fold all";
      this.restore();
      // The focus moves from a box to its node, and back.
      if (group && !this.svg.node().contains(document.activeElement))
        this.svg.selectAll("[data-group]").filter(function () { return this.dataset.group === group; }).node()?.focus();
    }
    showDetail(this.detail, this.page);
  }

  /** The op's module and the enclosing ones, outermost first: ["mlp", "experts", "up_proj"] of "model.layers.*.mlp.experts.up_proj". */
  modulesOf(stage, op) {
    return placeOf(stage, op).split(" ")[0].split(".").filter(word => !/^(\d+|\*|layers|model|)$/.test(word));
  }

  /** Nodes by name, edges between them with the types of the values, and boxes. */
  build({stage, op}) {
    const graph = {nodes: new Map(), edges: new Map(), boxes: new Map()};
    this.groups = new Set();
    this.addFunction(graph, stage, op, "", null);
    return graph;
  }

  isHidden(kind, isInner) { return /get_weight|select_weight|index_table|arith\.constant|scf\.|\.yield/.test(kind) || (isInner && kind === "func.return"); }

  /** The enclosing boxes of each op, outermost first: nested modules. A box has several ops, but not all of those of the enclosing box. */
  groupsOf(stage, ops, prefix) {
    const all = new Map(ops.map(op => [op, this.modulesOf(stage, op).map((_, at, words) => prefix + words.slice(0, at + 1).join("."))]));
    const outer = new Set([...all.values()].flatMap(keys => keys.slice(0, -1))), keysOf = op => all.get(op).filter(key => outer.has(key)), counts = new Map();
    for (const op of ops)
      for (const key of keysOf(op))
        counts.set(key, (counts.get(key) ?? 0) + 1);
    return new Map(ops.map(op => [op, keysOf(op).filter((key, at, keys) => counts.get(key) > 1 && counts.get(key) < (at ? counts.get(keys[at - 1]) : ops.length))]));
  }

  /** Adds the ops of a function within the box `outer`. Returns the nodes of its arguments and the sources of its results. */
  addFunction(graph, stage, root, prefix, outer) {
    const inside = [...withBody(stage, root)].filter(op => op !== root), made = {arguments: new Map(), results: []};
    const shown = inside.filter(op => !this.isHidden(kindOf(stage, op), outer !== null)), groups = this.groupsOf(stage, shown, prefix);
    const nodeOf = new Map(), inners = new Map();
    for (const op of shown) {
      const callee = kindOf(stage, op) === "func.call" ? this.choices.find(each => each.stage === stage && each.name === symbolIn(stage, op)) : null;
      if (callee && this.opened.has(callee.name)) {
        inners.set(op, this.openLayer(graph, stage, op, callee, prefix, outer));
        continue;
      }
      const keys = groups.get(op), at = keys.findIndex(key => this.folded.has(key)), parents = at < 0 ? keys : keys.slice(0, at);
      keys.forEach(key => this.groups.add(key));
      parents.forEach((key, index) => graph.boxes.set(key, {title: key.slice(prefix.length).split(".").at(-1), parent: index ? parents[index - 1] : outer, toggle: () => this.toggle("fold", key)}));
      const node = at >= 0 ? {name: `fold ${keys[at]}`, group: keys[at], title: keys[at].slice(prefix.length).split(".").at(-1)}
        : callee ? {name: `${prefix}@${callee.name}`, callee, title: `@${callee.name}`} : {name: `op ${prefix}${op}`, title: kindOf(stage, op).replace(/^mica\./, ""), detail: this.placeText(stage, op)};
      nodeOf.set(op, node.name);
      if (!graph.nodes.has(node.name))
        graph.nodes.set(node.name, {detail: "", ...node, op, box: parents.at(-1) ?? outer, count: 0, weights: new Map()});
      const known = graph.nodes.get(node.name);
      known.count += iterationsAround(stage, op);
      this.addWeights(known, stage, op);
    }
    const sourceOf = (from, result, type, kind) => {
      if (from > -2)
        return inners.has(from) ? inners.get(from).results[result] : nodeOf.get(from);
      if (!this.isDrawn(type, kind))
        return undefined;
      const name = `argument ${prefix}${-2 - from}`;
      made.arguments.set(-2 - from, name);
      if (!graph.nodes.has(name))
        graph.nodes.set(name, {name, op: root, isArgument: true, title: this.argumentOf(stage, root, -2 - from), detail: "", box: outer, count: 1, weights: new Map()});
      return name;
    };
    for (const op of inside) {
      const kind = kindOf(stage, op), operands = stage.operands[op], isReturn = kind === "func.return" && stage.parent[op] === root;
      for (let at = 0; at < operands.length; at += 3) {
        const [from, result, number] = operands.slice(at, at + 3), type = stage.types[number];
        const target = inners.has(op) ? inners.get(op).arguments.get(at / 3) : nodeOf.get(op);
        if (!target && !isReturn)
          continue;
        const source = sourceOf(from, result, type, kind);
        if (isReturn)
          made.results[at / 3] = source;
        // Values passed from a layer to the next one of its type stay in its box.
        const isLoop = source === target || (inners.has(op) && inners.get(op) === inners.get(from));
        if (source && target && !isLoop)
          graph.edges.set(`${source}>${target}`, {from: source, to: target, type});
      }
    }
    return made;
  }

  /** The ops of a layer in a box, once for all calls. */
  openLayer(graph, stage, op, callee, prefix, outer) {
    const key = `${prefix}@${callee.name}`;
    let box = graph.boxes.get(key);
    if (!box) {
      box = {name: callee.name, parent: outer, count: 0, toggle: () => this.toggle("open", callee.name)};
      graph.boxes.set(key, box);
      box.made = this.addFunction(graph, stage, callee.op, `${key}/`, key);
    }
    box.count += iterationsAround(stage, op);
    box.title = `@${callee.name}${box.count > 1 ? ` ×${box.count}` : ""}`;
    return box.made;
  }

  /** Adds the bytes of the weights that an op reads per execution, by format. */
  addWeights(node, stage, op) {
    const operands = stage.operands[op];
    for (let at = 2; at < operands.length; at += 3) {
      const [text, shape, format, bytes, per] = stage.types[operands[at]];
      if (text.startsWith("tensor<") && shape && !per && bytes)
        node.weights.set(format, (node.weights.get(format) ?? 0) + bytes);
    }
  }

  /** Rows, caches and tokens; without weights and other indices of rows. */
  isDrawn([text], kind) { return text.startsWith("!mica.") || (/^tensor<\?/.test(text) && (kind === "mica.embedding" || !/xi\d+>$/.test(text))); }

  placeText(stage, op) { return placeOf(stage, op).split(" ").map(each => each.split(".").filter(word => !/^(\d+|\*)$/.test(word)).at(-1)).filter((each, at, all) => each && all.indexOf(each) === at).join(" "); }

  argumentOf(stage, root, index) {
    const names = (stage.lines[stage.line[root] - 1] ?? "").split("->")[0].match(/%[\w.$-]+(?=:)/g) ?? [];
    return names[index] ?? `argument ${index}`;
  }

  /** "T×256 f32, 1.00 KiB per row" */
  shapeText([text, shape, format, bytes, per]) { return shape ? `${shape} ${format}${bytes ? `, ${bytesText(bytes)}${per ? ` per ${per}` : ""}` : ""}` : text; }

  /** The lines of a node's text. */
  linesOf(node) {
    const title = node.group ? `+ ${node.title} (${node.count} ops)` : node.count > 1 ? `${node.title} ×${node.count}` : node.title;
    return [title, node.detail, [...node.weights].map(([format, bytes]) => `${format} ${bytesText(bytes)}`).join(", ")].filter(each => each);
  }

  /** The nodes, edges and boxes of the chosen function with their positions, and the size of the graph. */
  layout(chosen) {
    const key = JSON.stringify([chosen.key, [...this.folded], [...this.opened]]);
    if (this.known?.key === key)
      return this.known;
    const {nodes, edges, boxes} = this.build(chosen), graph = new dagre.graphlib.Graph({compound: true});
    graph.setGraph({rankdir: "TB", nodesep: 24, ranksep: 34, marginx: 8, marginy: 8});
    graph.setDefaultEdgeLabel(() => ({}));
    for (const key of boxes.keys())
      graph.setNode(`box ${key}`, {});
    for (const [key, box] of boxes)
      if (box.parent !== null)
        graph.setParent(`box ${key}`, `box ${box.parent}`);
    for (const node of nodes.values()) {
      node.lines = this.linesOf(node);
      graph.setNode(node.name, {width: 36 + 7 * d3.max(node.lines, line => line.length), height: 12 + 14 * node.lines.length});
      if (node.box !== null)
        graph.setParent(node.name, `box ${node.box}`);
    }
    for (const edge of edges.values())
      graph.setEdge(edge.from, edge.to, {width: 6.2 * this.shapeText(edge.type).length, height: 14, labelpos: "c"});
    dagre.layout(graph);
    // The coordinates of dagre are those of centers.
    const placed = (each, name) => {
      const {x, y, width, height} = graph.node(name);
      return {...each, x: x - width / 2, y: y - height / 2, width, height};
    };
    const {width, height} = graph.graph();
    return this.known = {key, width, height, nodes: [...nodes.values()].map(node => placed(node, node.name)), boxes: [...boxes].map(([name, box]) => placed({...box, key: name}, `box ${name}`)),
                         edges: [...edges.values()].map(edge => ({...edge, ...graph.edge(edge.from, edge.to)}))};
  }

  /** Updates the elements; those of unchanged nodes stay, and with them the focus. */
  draw(chosen) {
    const {nodes, edges, boxes, width, height} = this.layout(chosen);
    this.svg.attr("viewBox", [0, 0, width, height]).attr("aria-label", `Graph of ${chosen.title}`);
    const box = this.boxes.selectAll("g.module").data(boxes, each => each.key).join(enter => {
      const made = enter.append("g").attr("class", "module");
      made.append("rect").attr("class", "box").attr("rx", 6);
      made.append("g").attr("class", "fold").append("text");
      return made;
    });
    // The title is above the first node.
    this.place(box.select("rect").datum(each => ({...each, y: each.y - TITLE, height: each.height + TITLE})));
    box.select(".fold").attr("data-group", each => each.name ?? each.key).call(asButtons, each => `Fold ${each.title}`, each => each.toggle())
      .on("focus", (event, each) => this.reveal(event, {...each, y: each.y - TITLE, width: 0, height: 20}));
    box.select("text").attr("x", each => each.x + 6).attr("y", each => each.y + 13 - TITLE).text(each => `− ${each.title}`);
    const edge = this.edges.selectAll("g").data(edges, each => `${each.from}>${each.to}`).join(enter => {
      const made = enter.append("g");
      made.append("path").attr("class", "edge").attr("marker-end", "url(#arrow)").append("title");
      made.append("text").attr("class", "shape").attr("text-anchor", "middle");
      return made;
    });
    edge.select("path").attr("d", each => d3.line(point => point.x, point => point.y).curve(d3.curveBasis)(each.points));
    edge.select("title").text(each => each.type[0]);
    edge.select("text").attr("x", each => each.x).attr("y", each => each.y + 4).text(each => this.shapeText(each.type));
    this.nodes.selectAll("g.item").data(nodes, each => each.name).join(enter => enter.append("g").attr("class", "item").call(item => item.append("g").append("rect").attr("rx", 5)))
      .call(item => this.drawNodes(chosen, item, edges));
  }

  place(rects) { return rects.attr("x", each => each.x).attr("y", each => each.y).attr("width", each => each.width).attr("height", each => each.height); }

  /** Draws each node, and the control that unfolds a layer. */
  drawNodes({stage}, item, edges) {
    const {state, related} = this.page, isOwn = state.op?.[0] === stage.index;
    const kind = node => node.isArgument ? "argument" : node.group ? "group" : isOwn && state.op[1] === node.op ? "selected" : related?.[stage.index].has(node.op) ? "related" : "";
    const heat = node => node.isArgument || node.group ? null : this.page.heatOf(stage, node.op);
    const node = item.select("g").attr("class", each => `node ${kind(each)}`).attr("data-name", each => each.name);
    this.place(node.select("rect"));
    node.selectAll(".heat").data(each => [heat(each)].filter(color => color).map(color => ({...each, color, width: 8}))).join("rect").attr("class", "heat").attr("fill", each => each.color).call(this.place);
    node.selectAll("text").data(each => each.lines.map((line, at) => ({line, at, x: each.x + each.width / 2, y: each.y}))).join("text").attr("class", each => each.at ? "detail" : null)
      .attr("text-anchor", "middle").attr("x", each => each.x).attr("y", each => each.y + 17 + 14 * each.at).text(each => each.line);
    node.filter(each => !each.isArgument).attr("data-op", each => each.op).attr("data-group", each => each.group ?? null)
      .call(asButtons, each => each.group ? `Unfold ${each.title}` : each.lines.join(" "), each => each.group ? this.toggle("fold", each.group) : this.page.go({op: [stage.index, each.op], value: null}))
      .on("keydown.follow", (event, each) => this.follow(event, each, edges)).on("focus", (event, each) => this.reveal(event, each))
      // A double click shows only this layer.
      .on("dblclick", (_, each) => each.callee && this.page.go({graph: each.callee.key, fold: null, open: null}));
    const unfold = item.selectAll(".unfold").data(each => each.callee ? [each] : []).join(enter => {
      const made = enter.append("g").attr("class", "unfold");
      made.append("rect").attr("width", 16).attr("height", 16).attr("rx", 3);
      made.append("text").attr("text-anchor", "middle").text("+");
      return made;
    }).attr("data-group", each => each.callee.name).call(asButtons, each => `Unfold ${each.title}`, each => this.toggle("open", each.callee.name))
      .on("focus", (event, each) => this.reveal(event, each));
    unfold.select("rect").attr("x", each => each.x).attr("y", each => each.y);
    unfold.select("text").attr("x", each => each.x + 8).attr("y", each => each.y + 12);
  }

  /** Pixels of the window per unit of the drawing. */
  get pixels() {
    const {clientWidth, clientHeight} = this.svg.node();
    return Math.min(clientWidth / this.known.width, clientHeight / this.known.height) || 1;
  }

  /** Shows the part of the graph named by the state, else its beginning; then the selected op, if it was selected elsewhere. */
  restore() {
    const {zoom, op} = this.page.state, {width, height} = this.known, {clientWidth, clientHeight} = this.svg.node(), {pixels} = this;
    this.zoom.scaleExtent([Math.min(1, 0.25 / pixels), 4 / pixels]).translateExtent([[0, 0], [width, height]]);
    const [scale, x, y] = (zoom ?? "").split(",").map(Number);
    const initial = Math.min(1, Math.max(0.6, clientWidth / width));
    if (scale > 0 && Number.isFinite(x) && Number.isFinite(y))
      this.center(scale, x, y);
    else
      this.center(initial, this.beginning(clientWidth / initial), Math.min(height, clientHeight / initial) / 2);
    const selected = op && `${op}`;
    if (selected && selected !== this.revealed)
      this.nodes.selectAll(".node.selected").each(node => this.bring(node));
    this.revealed = selected;
  }

  /** The horizontal center of the first nodes, such that the visible part, of `visible` units, is within the graph. */
  beginning(visible) {
    const {nodes, width} = this.known, top = d3.min(nodes, node => node.y), middle = d3.mean(nodes.filter(node => node.y === top), node => node.x + node.width / 2);
    return visible >= width ? width / 2 : Math.min(Math.max(middle, visible / 2), width - visible / 2);
  }

  /** Shows the point (x, y) of the graph in the center, at `scale` pixels per unit. */
  center(scale, x, y) {
    const {width, height} = this.known;
    this.svg.call(this.zoom.transform, d3.zoomIdentity.translate(width / 2, height / 2).scale(scale / this.pixels).translate(-x, -y));
  }

  /** A control that gets the focus by a key is shown; with the mouse, it is in sight, and must not move between press and release. */
  reveal(event, node) {
    if (event.target.matches(":focus-visible"))
      this.bring(node);
  }

  /** Moves the visible part so that it contains a node. */
  bring(node) {
    const {width, height} = this.known, {clientWidth, clientHeight} = this.svg.node(), {k} = d3.zoomTransform(this.svg.node()), scale = k * this.pixels;
    const [x, y] = d3.zoomTransform(this.svg.node()).invert([width / 2, height / 2]), middle = [node.x + node.width / 2, node.y + node.height / 2];
    if (Math.abs(middle[0] - x) + node.width / 2 <= clientWidth / scale / 2 && Math.abs(middle[1] - y) + node.height / 2 <= clientHeight / scale / 2)
      return;
    this.center(scale, ...middle);
    this.remember();
  }

  /** Puts the visible part into the state, and so into links to it. */
  remember() {
    const {width, height} = this.known, transform = d3.zoomTransform(this.svg.node()), [x, y] = transform.invert([width / 2, height / 2]);
    this.page.state.zoom = [(transform.k * this.pixels).toFixed(3), x.toFixed(0), y.toFixed(0)].join(",");
    this.page.link("replaceState");
  }

  scale(factor) {
    this.svg.call(this.zoom.scaleBy, factor);
    this.remember();
  }

  showAll() {
    this.center(Math.min(1, this.pixels), this.known.width / 2, this.known.height / 2);
    this.remember();
  }

  /** Keys that zoom and move the visible part; returns whether `event` is one. */
  key(event) {
    if (!this.known || !(event.target === document.body || this.element.contains(event.target)))
      return false;
    const [x, y] = {ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key] ?? [], {k} = d3.zoomTransform(this.svg.node());
    if (x !== undefined) {
      this.svg.call(this.zoom.translateBy, 60 * x / (k * this.pixels), 60 * y / (k * this.pixels));
      this.remember();
    } else if (event.key === "+" || event.key === "-") {
      this.scale(event.key === "+" ? STEP : 1 / STEP);
    } else if (event.key === "0") {
      this.showAll();
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  }

  /** Arrow keys: down to a user of this node, up to the definition of an operand. */
  follow(event, node, edges) {
    const [own, other] = {ArrowDown: ["from", "to"], ArrowUp: ["to", "from"]}[event.key] ?? [];
    if (!own)
      return;
    event.preventDefault();
    event.stopPropagation();
    const names = new Set(edges.filter(edge => edge[own] === node.name).map(edge => edge[other]));
    this.nodes.selectAll(".node[role=button]").filter(each => names.has(each.name)).node()?.focus();
  }

  /** Adds a name to the list `fold` or `open` of the state, or removes it. */
  toggle(list, name) {
    const names = listOf(this.page.state[list]);
    if (!names.delete(name))
      names.add(name);
    this.page.go({[list]: [...names].join(",") || null});
  }
}
