"use strict";
// Stages side by side, and the selected op.

const ROW = 18;

/** The text of a stage, of which only visible rows are elements. */
class Pane {
  constructor(page, number) {
    this.page = page;
    this.number = number;
    this.choice = make("select", {"aria-label": `Stage of pane ${number + 1}`, onchange: () => page.go({panes: page.state.panes.with(number, Number(this.choice.value))})},
                       ...page.data.stages.map(stage => make("option", {value: stage.index}, stage.name)));
    this.help = make("span", {class: "help"});
    this.window = make("div", {class: "window"});
    this.space = make("div", {class: "space"});
    this.text = make("div", {class: "text", tabindex: 0, role: "region", onscroll: () => this.draw(), onclick: event => this.click(event),
                             onkeydown: event => this.key(event)}, this.space, this.window);
    this.element = make("section", {class: "pane"}, make("div", {class: "head"}, this.choice, this.help), this.text);
  }

  get stage() { return this.page.data.stages[this.page.state.panes[this.number]]; }

  update() {
    this.choice.value = this.stage.index;
    this.help.textContent = this.stage.help;
    this.help.title = this.stage.help;
    this.text.setAttribute("aria-label", `Text of stage ${this.stage.name}`);
    this.space.style.height = `${this.stage.lines.length * ROW}px`;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.text.scrollTop / ROW) - 5);
    const count = Math.ceil((this.text.clientHeight || 800) / ROW) + 10;
    this.window.style.top = `${first * ROW}px`;
    this.window.replaceChildren(...this.stage.lines.slice(first, first + count).map((line, at) => this.row(line, first + at + 1)));
  }

  row(line, number) {
    const {stage, page} = this, op = stage.opAt[number] ?? -1, related = page.related?.[stage.index];
    let kind = "row";
    if (op >= 0 && page.state.op?.[0] === stage.index && page.state.op[1] === op)
      kind += " selected";
    else if (op >= 0 && related?.has(op))
      kind += stage.index < page.state.op[0] ? " origin" : " result";
    if (page.isMatch(stage.index, number))
      kind += " match";
    const row = make("div", {class: kind, "aria-current": kind.includes(" selected") ? "true" : undefined, "data-line": number, "data-op": op >= 0 ? op : undefined}, make("span", {class: "number"}, String(number)));
    const heat = op >= 0 ? page.heatOf(stage, op) : null;
    if (heat)
      row.style.boxShadow = `inset 6px 0 0 ${heat}`;
    // Values of IR; registers in assembly are not values.
    if (stage.name === "asm")
      row.append(line);
    else
      for (const [part, at] of line.split(/(%[\w.$-]+)/).map((part, at) => [part, at]))
        row.append(at % 2 ? make("span", {class: part === page.state.value && this.isInScope(number) ? "value same" : "value"}, part) : part);
    return row;
  }

  /** Whether the line is in the function of the selected value. */
  isInScope(number) {
    const {state} = this.page;
    if (!state.op || state.op[0] !== this.stage.index)
      return false;
    const [begin, end] = this.functionOf(this.stage.line[state.op[1]]);
    return begin <= number && number < end;
  }

  /** The lines of the function that contains line `number`. */
  functionOf(number) {
    const {stage} = this;
    let op = -1;
    for (let at = number; at > 0 && op < 0; --at)
      op = stage.opAt[at];
    if (op < 0)
      return [1, stage.lines.length + 1];
    const root = outermost(stage, op);
    let next = root + 1;
    while (next < stage.parent.length && stage.parent[next] >= 0)
      ++next;
    return [stage.line[root], next < stage.line.length ? stage.line[next] : stage.lines.length + 1];
  }

  click(event) {
    const row = event.target.closest(".row");
    if (!row)
      return;
    const number = Number(row.dataset.line);
    if (event.target.classList.contains("value"))
      this.selectValue(event.target.textContent, number);
    else if (row.dataset.op)
      this.page.go({op: [this.stage.index, Number(row.dataset.op)], value: null});
  }

  /** Selects the definition of a value: the nearest op before `number` with that result, else the op with that block argument. */
  selectValue(value, number) {
    const [begin] = this.functionOf(number), {stage} = this;
    for (let at = number; at >= begin; --at) {
      const line = stage.lines[at - 1], op = stage.opAt[at];
      const names = text => (text.match(/%[\w.$-]+/g) ?? []).includes(value);
      const isResult = line.includes(" = ") && names(line.split(" = ")[0]);
      // Induction variables and loop-carried values, and arguments of a function.
      const loop = line.match(/scf\.(?:for|forall|parallel) (.*?)(?: to |$)/)?.[1] ?? "", carried = line.match(/iter_args\(([^)]*)\)/)?.[1] ?? "";
      const isArgument = names(loop.split(" = ")[0]) || names(carried.replace(/= %[\w.$-]+(#\d+)?/g, ""));
      if (op >= 0 && (isResult || isArgument || (at === begin && names(line)))) {
        this.page.go({op: [stage.index, op], value});
        return;
      }
    }
  }

  /** Selects the next value in the line of the selected op, and so the op that defines it. */
  nextValue() {
    const {stage, page} = this, {op} = page.state;
    if (op?.[0] !== stage.index || stage.name === "asm")
      return;
    // The line where the values were, while their definitions are selected.
    if (!this.valuesOf || this.valuesOf.shown !== `${op}`)
      this.valuesOf = {line: stage.line[op[1]], at: -1};
    const {line} = this.valuesOf, values = [...new Set((stage.lines[line - 1] ?? "").match(/%[\w.$-]+/g) ?? [])];
    if (!values.length)
      return;
    const at = this.valuesOf.at = (this.valuesOf.at + 1) % values.length;
    this.selectValue(values[at], line);
    this.valuesOf.shown = `${page.state.op}`;
  }

  key(event) {
    const step = {ArrowDown: 1, ArrowUp: -1, j: 1, k: -1}[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey)
      return;
    if (event.key === "v")
      this.nextValue();
    if (step === undefined)
      return;
    event.preventDefault();
    const {stage, page} = this;
    let at = page.state.op?.[0] === stage.index ? stage.line[page.state.op[1]] : Math.floor(this.text.scrollTop / ROW);
    do
      at += step;
    while (at > 0 && at < stage.opAt.length && stage.opAt[at] < 0);
    if (at > 0 && at < stage.opAt.length)
      page.go({op: [stage.index, stage.opAt[at]], value: null});
  }

  /** Scrolls to the line unless it is visible. */
  show(number) {
    const top = (number - 1) * ROW, {scrollTop, clientHeight} = this.text;
    if (top < scrollTop || top > scrollTop + clientHeight - 2 * ROW)
      this.text.scrollTop = Math.max(0, top - clientHeight / 3);
    this.draw();
  }

  /** Scrolls to the first op related to the selected one. */
  follow() {
    const related = this.page.related?.[this.stage.index];
    if (!related?.size)
      return this.draw();
    const isOwn = this.page.state.op[0] === this.stage.index;
    const lines = [...related].map(op => this.stage.line[op]).filter(line => line > 0);
    this.show(isOwn ? this.stage.line[this.page.state.op[1]] : lines.reduce((a, b) => Math.min(a, b), Infinity));
  }
}

class StagesView {
  constructor(page) {
    this.page = page;
    this.title = "Stages";
    this.panes = [0, 1, 2].map(number => new Pane(page, number));
    this.element = make("div", {class: "panes"});
    this.detail = make("aside", {"aria-label": "Selected op", tabindex: 0});
  }

  show(main) {
    main.replaceChildren(this.element, this.detail);
    this.update();
  }

  update() {
    const {page} = this, count = page.state.panes.length;
    if (this.element.children.length !== count)
      this.element.replaceChildren(...this.panes.slice(0, count).map(pane => pane.element));
    const panes = this.panes.slice(0, count);
    panes.forEach(pane => pane.update());
    if (page.state.op)
      panes.forEach(pane => pane.follow());
    if (page.current)
      panes.find(pane => pane.stage.index === page.current[0])?.show(page.current[1]);
    showDetail(this.detail, page);
  }
}

/** Links to the first ops of `ops`, equal ones once. */
function linksTo(page, stage, ops) {
  const limit = 12, byTitle = new Map();
  for (const op of ops) {
    const title = titleOf(stage, op);
    if (!byTitle.has(title))
      byTitle.set(title, []);
    byTitle.get(title).push(op);
  }
  const links = [...byTitle].slice(0, limit).map(([title, alike]) => make("li", {}, make("button", {class: "link", type: "button",
    onclick: () => page.go({op: [stage.index, alike[0]], value: null, panes: page.panesWith(stage.index)})}, alike.length > 1 ? `${title} (${alike.length})` : title)));
  if (byTitle.size > limit)
    links.push(make("li", {class: "quiet"}, `and ${byTitle.size - limit} more`));
  return make("ul", {class: "links"}, ...links);
}

/** The attributes of an op, with their documentation. */
function attributesOf(stage, op, docs) {
  const meanings = new Map([...docs.matchAll(/<tr><td><code>(\w+)<\/code><\/td><td>([^<]*)<\/td><td>([^<]*)<\/td><\/tr>/g)].map(([, name, , meaning]) => [name, meaning]));
  const given = stage.attributes[op] ?? [], rows = [];
  for (let at = 0; at < given.length; at += 2)
    rows.push([given[at], given[at + 1], meanings.get(given[at]) ?? ""]);
  if (!rows.length)
    return [];
  return [make("h3", {}, "Attributes"), make("table", {id: "op-attributes"}, make("thead", {}, make("tr", {}, ...["attribute", "value", "meaning"].map(head => make("th", {scope: "col"}, head)))),
    make("tbody", {}, ...rows.map(([name, value, meaning]) => make("tr", {}, make("th", {scope: "row"}, name), make("td", {}, make("code", {}, value)), make("td", {}, meaning)))))];
}

/** The modules of the selected op; of a part of a kernel, those of all ops that the kernel implements. */
function modulesOf(page, stage, op) {
  const kernel = kernelOf(stage, op);
  if (!kernel)
    return placeOf(stage, op);
  const kernels = page.data.stages.find(each => each.name === "kernels");
  const modules = new Set([...page.related[kernels.index]].flatMap(each => placeOf(kernels, each).split(" ")).filter(each => each));
  return `@${kernel}${modules.size ? `: ${[...modules].join(" ")}` : ""}`;
}

function showDetail(place, page) {
  const {state, data} = page;
  if (!state.op) {
    place.replaceChildren(make("h2", {}, "Nothing selected"),
      make("p", {}, "Select a line to highlight its origins and its results in the other stages. Select a value to find the op that defines it."),
      make("p", {class: "quiet"}, "Keys: / search, n and N next and previous match, arrows or j and k the next op, v the next value of the line, 1 to 9 views, + and − panes, t theme, Escape clears the selection."));
    return;
  }
  const [index, op] = state.op, stage = data.stages[index], kind = kindOf(stage, op), docs = data.docs[kind];
  const parts = [make("h2", {}, kind), make("p", {class: "quiet"}, `stage ${stage.name}, line ${stage.line[op]}`)];
  if (modulesOf(page, stage, op))
    parts.push(make("p", {id: "op-modules"}, modulesOf(page, stage, op)));
  if (stage.isInferred.has(op))
    parts.push(make("p", {class: "quiet", id: "inferred"}, "This instruction has no debug line; its origins are inferred from a neighbor."));
  parts.push(make("pre", {id: "op-text"}, (stage.lines[stage.line[op] - 1] ?? "").trim()));
  parts.push(...page.costOf(stage, op));
  page.related.forEach((ops, other) => {
    if (other === index || !ops.size)
      return;
    parts.push(make("h3", {}, other < index ? `From ${data.stages[other].name}` : `In ${data.stages[other].name}`), linksTo(page, data.stages[other], ops));
  });
  parts.push(...attributesOf(stage, op, docs ?? ""));
  if (docs)
    parts.push(make("h3", {}, "Documentation"), make("pre", {id: "op-docs"}, docs.split("##### ")[0].replace(/\nTraits:[\s\S]*/, "").trim()));
  place.replaceChildren(...parts);
}
