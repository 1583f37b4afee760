"use strict";
// The graph of a function. Modules of the model are boxes that can be folded; alike layers are one node with a count.

class GraphView {
  constructor(page) {
    this.page = page;
    this.title = "Graph";
    this.choices = page.data.stages.filter(stage => stage.operands.length).flatMap(stage => this.functionsOf(stage));
    this.choice = make("select", {id: "graph-choice", "aria-label": "Function", onchange: () => page.go({graph: this.choice.value, fold: null})},
                       ...this.choices.map(each => make("option", {value: each.key}, each.title)));
    this.foldAll = make("button", {type: "button", id: "fold-all", onclick: () => page.go({fold: this.groups.size === this.folded.size ? null : [...this.groups].join(",")})}, "Fold all");
    this.drawing = make("div", {});
    this.element = make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Graph"}, make("div", {class: "bar"}, this.choice, this.foldAll), this.drawing);
    this.detail = make("aside", {"aria-label": "Selected op", tabindex: 0});
  }

  /** Functions with ops, the last one, which calls the others, first. */
  functionsOf(stage) {
    const found = [];
    stage.parent.forEach((parent, op) => {
      if (parent < 0 && kindOf(stage, op) === "func.func") {
        const name = (stage.lines[stage.line[op] - 1] ?? "").match(/@([\w.$-]+|"[^"]*")/)?.[1] ?? `function ${op}`;
        found.push({key: `${stage.name}:${op}`, stage, op, name, title: `${stage.name}: @${name}`});
      }
    });
    return found.reverse();
  }

  get chosen() { return this.choices.find(each => each.key === this.page.state.graph) ?? this.choices[0]; }

  show(main) {
    main.replaceChildren(this.element, this.detail);
    this.update();
  }

  update() {
    const {chosen} = this;
    if (chosen) {
      this.choice.value = chosen.key;
      this.folded = new Set((this.page.state.fold ?? "").split(",").filter(each => each));
      this.drawing.replaceChildren(this.draw(chosen));
      this.foldAll.textContent = this.folded.size && this.groups.size === this.folded.size ? "Unfold all" : "Fold all";
    }
    showDetail(this.detail, this.page);
  }

  /** The module around the op's own: "self_attn" of "model.layers.*.self_attn.q_proj". */
  groupOf(stage, op) {
    const words = placeOf(stage, op).split(" ")[0].split(".");
    const group = words.length > 1 ? words.at(-2) : "";
    return /^(\d+|\*|layers|model|)$/.test(group) ? "" : group;
  }

  /** Nodes by name, and edges between them with the types of the values. */
  build({stage, op: root}) {
    const nodes = new Map(), nodeOf = new Map(), edges = new Map();
    const isHidden = op => /get_weight|select_weight|index_table|arith\.constant|scf\.|\.yield/.test(kindOf(stage, op));
    let last = null;
    const inside = [...withBody(stage, root)].filter(op => op !== root);
    for (const op of inside) {
      if (isHidden(op))
        continue;
      const kind = kindOf(stage, op), callee = kind === "func.call" ? (stage.lines[stage.line[op] - 1] ?? "").match(/@([\w.$-]+|"[^"]*")/)?.[1] : null;
      if (callee && last?.callee === callee) {
        // One more layer of the same kind.
        ++last.count;
        nodeOf.set(op, last.name);
        continue;
      }
      const group = this.groupOf(stage, op), isFolded = group && this.folded.has(group), name = isFolded ? `group ${group}` : `op ${op}`;
      nodeOf.set(op, name);
      if (group)
        this.groups.add(group);
      if (isFolded && nodes.has(name)) {
        ++nodes.get(name).count;
        continue;
      }
      const place = placeOf(stage, op).split(" ").map(each => each.split(".").at(-1)).filter((each, at, all) => each && all.indexOf(each) === at).join(" ");
      const node = {name, op, group: isFolded ? null : group, callee, count: 1, title: isFolded ? group : callee ? `@${callee}` : kind.replace(/^mica\./, ""), detail: isFolded ? "" : place};
      nodes.set(name, node);
      last = callee ? node : null;
    }
    for (const op of inside)
      for (let at = 0; nodeOf.has(op) && at < stage.operands[op].length; at += 2) {
        const [from, type] = stage.operands[op].slice(at, at + 2);
        const text = stage.types[type];
        let source = nodeOf.get(from);
        if (from <= -2 && this.isDrawn(text, kindOf(stage, op))) {
          source = `argument ${-2 - from}`;
          if (!nodes.has(source))
            nodes.set(source, {name: source, op: root, group: null, count: 1, title: this.argumentOf(stage, root, -2 - from), detail: ""});
        }
        if (source && source !== nodeOf.get(op))
          edges.set(`${source}>${nodeOf.get(op)}`, {from: source, to: nodeOf.get(op), type: text});
      }
    return {nodes, edges};
  }

  /** Rows, caches and tokens; weights and other indices of rows are left out. */
  isDrawn(type, kind) { return type.startsWith("!mica.") || (/^tensor<\?/.test(type) && (kind === "mica.embedding" || !/xi\d+>$/.test(type))); }

  argumentOf(stage, root, index) {
    const names = (stage.lines[stage.line[root] - 1] ?? "").split("->")[0].match(/%[\w.$-]+(?=:)/g) ?? [];
    return names[index] ?? `argument ${index}`;
  }

  /** "T×256 f32, 1.00 KiB per row" */
  shapeText(type) {
    const match = type.match(/^tensor<((?:[?\d]+x)*)([a-z]\w*)/);
    if (!match)
      return type.match(/kv_cache<([^,>]*)/)?.[1]?.replaceAll(" x ", "×") ?? "";
    const sizes = match[1].split("x").filter(each => each), bits = Number(match[2].match(/\d+/)?.[0] ?? 0);
    const elements = sizes.filter(each => each !== "?").reduce((all, each) => all * Number(each), 1);
    const bytes = bits ? `, ${bytesText(elements * bits / 8)}${sizes[0] === "?" ? " per row" : ""}` : "";
    return `${sizes.map(each => each === "?" ? "T" : each).join("×")} ${match[2]}${bytes}`;
  }

  draw(chosen) {
    this.groups = new Set();
    const {nodes, edges} = this.build(chosen), graph = new dagre.graphlib.Graph({compound: true});
    graph.setGraph({rankdir: "TB", nodesep: 24, ranksep: 34, marginx: 8, marginy: 8});
    graph.setDefaultEdgeLabel(() => ({}));
    const boxes = new Set();
    for (const node of nodes.values()) {
      graph.setNode(node.name, {width: 32 + 7 * Math.max(node.title.length + (node.count > 1 ? 5 : 0), node.detail.length), height: node.detail ? 40 : 26});
      if (node.group) {
        if (!boxes.has(node.group))
          graph.setNode(`box ${node.group}`, {});
        boxes.add(node.group);
        graph.setParent(node.name, `box ${node.group}`);
      }
    }
    for (const edge of edges.values())
      graph.setEdge(edge.from, edge.to, {width: 6.2 * this.shapeText(edge.type).length, height: 14, labelpos: "c"});
    dagre.layout(graph);
    const {width, height} = graph.graph(), parts = [];
    const press = action => ({onclick: action, onkeydown: event => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), action())});
    for (const group of boxes) {
      const box = graph.node(`box ${group}`), left = box.x - box.width / 2, top = box.y - box.height / 2;
      parts.push(make("svg:rect", {class: "box", x: left, y: top, width: box.width, height: box.height, rx: 6}));
      parts.push(make("svg:g", {class: "fold", tabindex: 0, role: "button", "aria-label": `Fold ${group}`, "data-group": group, ...press(() => this.toggle(group))},
                      make("svg:text", {x: left + 6, y: top + 13}, `− ${group}`)));
    }
    for (const edge of edges.values()) {
      const {points, x, y} = graph.edge(edge.from, edge.to);
      parts.push(make("svg:path", {class: "edge", d: `M${points.map(point => `${point.x},${point.y}`).join("L")}`, "marker-end": "url(#arrow)"}, make("svg:title", {}, edge.type)));
      parts.push(make("svg:text", {class: "shape", x, y: y + 4, "text-anchor": "middle"}, this.shapeText(edge.type)));
    }
    for (const node of nodes.values())
      parts.push(this.node(chosen, node, graph.node(node.name), press));
    const svg = make("svg:svg", {id: "graph", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `Graph of ${chosen.title}`},
      make("svg:defs", {}, make("svg:marker", {id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto"}, make("svg:path", {d: "M0,0L8,4L0,8z", fill: "var(--quiet)"}))), ...parts);
    return svg;
  }

  node({stage}, node, {x, y, width, height}, press) {
    const {state, related} = this.page, isOwn = state.op?.[0] === stage.index, isArgument = node.name.startsWith("argument");
    const kind = isArgument ? "argument" : isOwn && state.op[1] === node.op ? "selected" : related?.[stage.index].has(node.op) ? "related" : "";
    const heat = isArgument ? null : this.page.heatOf(stage, node.op);
    const isGroup = node.name.startsWith("group");
    const action = () => isGroup ? this.toggle(node.title) : isArgument ? null : this.page.go({op: [stage.index, node.op], value: null});
    const title = `${isGroup ? "+ " : ""}${node.title}${node.count > 1 && !isGroup ? ` ×${node.count}` : ""}`;
    const parts = [make("svg:rect", {x: x - width / 2, y: y - height / 2, width, height, rx: 5}),
                   heat ? make("svg:rect", {class: "heat", x: x - width / 2, y: y - height / 2, width: 8, height, fill: heat}) : null,
                   make("svg:text", {x, y: y + (node.detail ? -3 : 4), "text-anchor": "middle"}, title)];
    if (node.detail)
      parts.push(make("svg:text", {class: "detail", x, y: y + 12, "text-anchor": "middle"}, node.detail));
    const attributes = isArgument ? {} : {tabindex: 0, role: "button", "aria-label": isGroup ? `Unfold ${node.title}` : `${title} ${node.detail}`.trim(), ...press(action)};
    const element = make("svg:g", {class: `node ${kind}`, "data-op": isArgument ? undefined : node.op, "data-name": node.name, ...attributes}, ...parts);
    // A layer is opened by a double click.
    if (node.callee)
      element.addEventListener("dblclick", () => this.open(stage, node.callee));
    return element;
  }

  open(stage, name) {
    const found = this.choices.find(each => each.stage === stage && each.name === name);
    if (found)
      this.page.go({graph: found.key, fold: null});
  }

  toggle(group) {
    const folded = new Set(this.folded);
    if (!folded.delete(group))
      folded.add(group);
    this.page.go({fold: [...folded].join(",") || null});
  }
}
