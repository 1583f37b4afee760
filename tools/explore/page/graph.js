"use strict";
// The graph of a function or of the model. Modules of the model are boxes that can be folded; equal layers are one node with their number, which
// can be unfolded in place.

const listOf = words => new Set((words ?? "").split(",").filter(each => each));

class GraphView {
  constructor(page) {
    this.page = page;
    this.title = "Graph";
    this.choices = page.data.stages.filter(stage => stage.operands.length).flatMap(stage => this.functionsOf(stage));
    this.choice = make("select", {id: "graph-choice", "aria-label": "Function", onchange: () => page.go({graph: this.choice.value, fold: null, open: null})},
                       ...this.choices.map(each => make("option", {value: each.key}, each.title)));
    this.foldAll = make("button", {type: "button", id: "fold-all", onclick: () => page.go({fold: this.isAllFolded() ? null : [...this.groups].join(",")})}, "Fold all");
    this.drawing = make("div", {});
    this.element = make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Graph"}, make("div", {class: "bar"}, this.choice, this.foldAll), this.drawing);
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
    const {chosen} = this, focused = this.drawing.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    if (chosen) {
      this.choice.value = chosen.key;
      this.folded = listOf(this.page.state.fold);
      this.opened = listOf(this.page.state.open);
      this.drawing.replaceChildren(this.draw(chosen));
      this.foldAll.textContent = this.isAllFolded() ? "Unfold all" : "Fold all";
      if (focused)
        [...this.drawing.querySelectorAll("[data-key]")].find(each => each.dataset.key === focused)?.focus();
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

  placeText(stage, op) { return placeOf(stage, op).split(" ").map(each => each.split(".").at(-1)).filter((each, at, all) => each && all.indexOf(each) === at).join(" "); }

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

  draw(chosen) {
    const {nodes, edges, boxes} = this.build(chosen), graph = new dagre.graphlib.Graph({compound: true});
    graph.setGraph({rankdir: "TB", nodesep: 24, ranksep: 34, marginx: 8, marginy: 8});
    graph.setDefaultEdgeLabel(() => ({}));
    for (const key of boxes.keys())
      graph.setNode(`box ${key}`, {});
    for (const [key, box] of boxes)
      if (box.parent !== null)
        graph.setParent(`box ${key}`, `box ${box.parent}`);
    for (const node of nodes.values()) {
      const lines = this.linesOf(node);
      graph.setNode(node.name, {width: 36 + 7 * Math.max(...lines.map(line => line.length)), height: 12 + 14 * lines.length});
      if (node.box !== null)
        graph.setParent(node.name, `box ${node.box}`);
    }
    for (const edge of edges.values())
      graph.setEdge(edge.from, edge.to, {width: 6.2 * this.shapeText(edge.type).length, height: 14, labelpos: "c"});
    dagre.layout(graph);
    const {width, height} = graph.graph(), parts = [];
    for (const [key, box] of boxes) {
      const {x, y, width: w, height: h} = graph.node(`box ${key}`), left = x - w / 2, top = y - h / 2;
      parts.push(make("svg:rect", {class: "box", x: left, y: top, width: w, height: h, rx: 6}));
      parts.push(make("svg:g", {class: "fold", tabindex: 0, role: "button", "aria-label": `Fold ${box.title}`, "data-group": key, "data-key": `box ${key}`, ...press(box.toggle)},
                      make("svg:text", {x: left + 6, y: top + 13}, `− ${box.title}`)));
    }
    for (const edge of edges.values()) {
      const {points, x, y} = graph.edge(edge.from, edge.to);
      parts.push(make("svg:path", {class: "edge", d: `M${points.map(point => `${point.x},${point.y}`).join("L")}`, "marker-end": "url(#arrow)"}, make("svg:title", {}, edge.type[0])));
      parts.push(make("svg:text", {class: "shape", x, y: y + 4, "text-anchor": "middle"}, this.shapeText(edge.type)));
    }
    for (const node of nodes.values())
      parts.push(...this.node(chosen, node, graph.node(node.name), edges));
    return make("svg:svg", {id: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `Graph of ${chosen.title}`},
      make("svg:defs", {}, make("svg:marker", {id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto"}, make("svg:path", {d: "M0,0L8,4L0,8z", fill: "var(--quiet)"}))), ...parts);
  }

  /** The elements of a node: itself, and the control that unfolds a layer. */
  node({stage}, node, {x, y, width, height}, edges) {
    const {state, related} = this.page, isOwn = state.op?.[0] === stage.index, [title, ...lines] = this.linesOf(node);
    const kind = node.isArgument ? "argument" : node.group ? "group" : isOwn && state.op[1] === node.op ? "selected" : related?.[stage.index].has(node.op) ? "related" : "";
    const heat = node.isArgument || node.group ? null : this.page.heatOf(stage, node.op);
    const action = node.group ? () => this.toggle("fold", node.group) : () => this.page.go({op: [stage.index, node.op], value: null});
    const label = node.group ? `Unfold ${node.title}` : [title, ...lines].join(" ");
    const attributes = node.isArgument ? {} : {tabindex: 0, role: "button", "aria-label": label, "data-op": node.op, "data-key": node.name, ...press(action)};
    const top = y - height / 2, element = make("svg:g", {class: `node ${kind}`, "data-name": node.name, ...attributes},
      make("svg:rect", {x: x - width / 2, y: top, width, height, rx: 5}), heat ? make("svg:rect", {class: "heat", x: x - width / 2, y: top, width: 8, height, fill: heat}) : null,
      make("svg:text", {x, y: top + 17, "text-anchor": "middle"}, title), ...lines.map((line, at) => make("svg:text", {class: "detail", x, y: top + 31 + 14 * at, "text-anchor": "middle"}, line)));
    element.addEventListener("keydown", event => this.follow(event, node, edges));
    if (!node.callee)
      return [element];
    // A double click shows only this layer.
    element.addEventListener("dblclick", () => this.page.go({graph: node.callee.key, fold: null, open: null}));
    const unfold = make("svg:g", {class: "unfold", tabindex: 0, role: "button", "aria-label": `Unfold ${node.title}`, "data-callee": node.callee.name, "data-key": `unfold ${node.name}`,
                                  ...press(() => this.toggle("open", node.callee.name))},
                        make("svg:rect", {x: x - width / 2, y: top, width: 16, height: 16, rx: 3}), make("svg:text", {x: x - width / 2 + 8, y: top + 12, "text-anchor": "middle"}, "+"));
    return [element, unfold];
  }

  /** Arrow keys: down to a user of this node, up to the definition of an operand. */
  follow(event, node, edges) {
    const [own, other] = {ArrowDown: ["from", "to"], ArrowUp: ["to", "from"]}[event.key] ?? [];
    if (!own)
      return;
    event.preventDefault();
    const next = [...edges.values()].filter(edge => edge[own] === node.name).map(edge => [...this.drawing.querySelectorAll(".node[data-key]")].find(each => each.dataset.key === edge[other])).find(each => each);
    next?.focus();
  }

  /** Adds a name to the list `fold` or `open` of the state, or removes it. */
  toggle(list, name) {
    const names = listOf(this.page.state[list]);
    if (!names.delete(name))
      names.add(name);
    this.page.go({[list]: [...names].join(",") || null});
  }
}
