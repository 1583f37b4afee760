"use strict";
// The page: its state, which is in the URL's fragment, search and keys.

class Page {
  constructor(data) {
    this.data = data;
    this.state = {panes: [], op: null, value: null, query: "", allPasses: false};
    // A program has no stages.
    this.views = {...(data.stages.length ? {stages: new StagesView(this), passes: new PassesView(this), graph: new GraphView(this)} : {}),
                  time: new TimeView(this), memory: new MemoryView(this), overview: new OverviewView(this)};
    document.getElementById("theme").after(...this.views.time.controls);
    this.matches = [];
    this.main = document.getElementById("main");
    document.getElementById("model").textContent = data.model;
    const tabs = document.getElementById("views");
    for (const [name, view] of Object.entries(this.views))
      tabs.append(view.tab = make("button", {type: "button", role: "tab", "aria-controls": "main", id: `view-${name}`, onclick: () => this.go({view: name})}, view.title));
    this.query = document.getElementById("query");
    document.getElementById("search").addEventListener("submit", event => {
      event.preventDefault();
      if (this.query.value !== this.state.query)
        this.go({query: this.query.value});
      else
        this.step(1);
    });
    this.query.addEventListener("search", () => this.query.value !== this.state.query && this.go({query: this.query.value}));
    document.getElementById("previous").addEventListener("click", () => this.step(-1));
    document.getElementById("theme").addEventListener("click", () => this.setTheme(document.documentElement.dataset.theme !== "dark"));
    this.setTheme(matchMedia("(prefers-color-scheme: dark)").matches);
    addEventListener("hashchange", () => this.readFragment());
    addEventListener("resize", () => this.views[this.state.view].update());
    addEventListener("keydown", event => this.key(event));
    this.readFragment();
  }

  setTheme(dark) {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    document.getElementById("theme").textContent = dark ? "Light" : "Dark";
  }

  /** Changes the state: the fragment, and with it the page. `match` is the search result shown by the change. */
  go(changes, match = null) {
    Object.assign(this.state, "graph" in changes ? {zoom: null} : {}, changes);
    if ("op" in changes || match)
      this.current = match;
    this.link("pushState");
    this.apply("query" in changes);
    if (changes.query)
      this.step(1);
  }

  /** Writes the state to the fragment, as a new entry of the browser's history ("pushState") or in place of the current one ("replaceState"). */
  link(how) {
    const {view, panes, op, value, query, allPasses, ...rest} = this.state;
    const words = new URLSearchParams({view, panes: panes.map(each => this.data.stages[each].name).join(",")});
    if (op)
      words.set("op", `${this.data.stages[op[0]].name}:${op[1]}`);
    for (const [name, each] of Object.entries({value, query, ...rest}))
      if (each)
        words.set(name, each);
    if (allPasses)
      words.set("all", "1");
    const fragment = `#${words}`;
    if (fragment !== location.hash)
      history[how](null, "", fragment);
  }

  /** The state named by the fragment, without invalid parts. */
  readFragment() {
    const words = new URLSearchParams(location.hash.slice(1)), {stages} = this.data;
    const named = name => stages.findIndex(stage => stage.name === name);
    const panes = (words.get("panes") ?? "").split(",").map(named).filter(each => each >= 0).slice(0, 3);
    const [stage, op] = (words.get("op") ?? "").split(":");
    const isOp = named(stage) >= 0 && /^\d+$/.test(op) && Number(op) < stages[named(stage)].line.length;
    this.state = {view: Object.hasOwn(this.views, words.get("view") ?? "") ? words.get("view") : stages.length ? "stages" : "overview", panes: panes.length ? panes : [0, 1, 2].filter(each => each < stages.length),
                  op: isOp ? [named(stage), Number(op)] : null, value: words.get("value"), query: words.get("query") ?? "", allPasses: words.has("all"),
                  color: words.get("color"), test: words.get("test"), buffers: words.get("buffers"),
                  graph: words.get("graph"), fold: words.get("fold"), open: words.get("open"), zoom: words.get("zoom")};
    this.apply(true);
  }

  apply(searches) {
    const {state, data} = this;
    this.related = state.op ? relatedTo(data.stages, ...state.op) : null;
    if (searches)
      this.search();
    for (const [name, view] of Object.entries(this.views)) {
      view.tab.setAttribute("aria-selected", String(name === state.view));
      view.tab.tabIndex = name === state.view ? 0 : -1;
    }
    this.views.time.updateControls();
    const view = this.views[state.view];
    if (this.shown === view)
      view.update();
    else
      view.show(this.main);
    this.shown = view;
  }

  /** Two or three panes, one of which shows stage `index`. */
  panesWith(index) {
    const {panes} = this.state;
    return panes.includes(index) ? panes : panes.with(panes.length - 1, index);
  }

  search() {
    const {query} = this.state, words = query.toLowerCase();
    this.query.value = query;
    this.matches = [];
    this.current = null;
    this.at = -1;
    if (words) {
      this.data.stages.forEach(stage => stage.lines.forEach((line, at) => {
        const op = stage.opAt[at + 1];
        if (line.toLowerCase().includes(words) || (op >= 0 && placeOf(stage, op).toLowerCase().includes(words)))
          this.matches.push([stage.index, at + 1]);
      }));
    }
    this.matched = new Set(this.matches.map(([stage, line]) => `${stage}:${line}`));
    document.getElementById("matches").textContent = words ? `${this.matches.length} lines` : "";
  }

  isMatch(stage, line) { return this.matched?.has(`${stage}:${line}`) ?? false; }

  step(by) {
    if (!this.matches.length)
      return;
    this.at = (this.at + by + this.matches.length) % this.matches.length;
    document.getElementById("matches").textContent = `${this.at + 1} of ${this.matches.length}`;
    const [stage, line] = this.matches[this.at], op = this.data.stages[stage].opAt[line];
    this.go({view: "stages", panes: this.panesWith(stage), ...(op >= 0 ? {op: [stage, op], value: null} : {})}, [stage, line]);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey)
      return;
    if (event.key === "Escape") {
      document.activeElement?.blur();
      this.go({op: null, value: null, query: ""});
      return;
    }
    if (event.target.matches("input, select, textarea"))
      return;
    if (!event.target.matches("[role=tab]") && this.views[this.state.view].key?.(event))
      return;
    const views = Object.keys(this.views), {panes} = this.state, turn = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (turn && event.target.matches("[role=tab]")) {
      event.preventDefault();
      const next = views[(views.indexOf(this.state.view) + turn + views.length) % views.length];
      this.go({view: next});
      this.views[next].tab.focus();
    } else if (event.key === "/") {
      event.preventDefault();
      this.query.focus();
    } else if (event.key === "n" || event.key === "N") {
      this.step(event.key === "n" ? 1 : -1);
    } else if (event.key === "t") {
      document.getElementById("theme").click();
    } else if (views[event.key - 1]) {
      this.go({view: views[event.key - 1]});
    } else if (event.key === "+" && panes.length && panes.length < 3) {
      this.go({panes: [...panes, Math.min(panes.at(-1) + 1, this.data.stages.length - 1)]});
    } else if (event.key === "-" && panes.length > 1) {
      this.go({panes: panes.slice(0, -1)});
    }
  }

  /** The color of an op by the selected criterion; null: none. */
  heatOf(stage, op) { return this.views.time.heatOf(stage, op); }
  /** The known costs of an op, as elements. */
  costOf(stage, op) { return this.views.time.costOf(stage, op); }
}

readData().then(data => {
  window.page = new Page(data);
  // Ready after the first paint.
  requestAnimationFrame(() => setTimeout(() => document.documentElement.dataset.ready = String(Math.round(performance.now()))));
}).catch(error => document.getElementById("main").replaceChildren(make("p", {role: "alert"}, `This page cannot be shown: ${error.message}`)));
