"use strict";
// The passes between stages: their changes, and the reasons.

class PassesView {
  constructor(page) {
    this.page = page;
    this.title = "Passes";
    this.all = make("button", {type: "button", "aria-pressed": "false", onclick: () => page.go({allPasses: !page.state.allPasses})}, "Show passes without changes");
    this.list = make("div", {});
    this.element = make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Passes"}, make("div", {class: "bar"}, this.all), this.list);
  }

  show(main) {
    main.replaceChildren(this.element);
    this.update();
  }

  update() {
    const {state, data} = this.page;
    this.all.setAttribute("aria-pressed", String(!!state.allPasses));
    const parts = [];
    let to = -1;
    for (const pass of data.passes) {
      if (!pass.changed && !state.allPasses)
        continue;
      if (pass.to !== to) {
        to = pass.to;
        parts.push(make("h2", {}, `${STAGE_NAMES[to - 1]} → ${STAGE_NAMES[to]}`));
      }
      parts.push(this.describe(pass));
    }
    this.list.replaceChildren(...parts);
  }

  describe(pass) {
    const counts = pass.before === pass.after ? `${pass.after} ops` : `${pass.before} → ${pass.after} ops`;
    const body = [make("p", {}, pass.summary)];
    for (const [name, count, reason] of pass.patterns)
      body.push(make("p", {class: "pattern"}, make("code", {}, name), ` applied ${count} ${count === 1 ? "time" : "times"}`,
                     reason ? make("div", {class: "reason"}, reason) : null));
    if (pass.ops.length)
      body.push(make("table", {}, make("thead", {}, make("tr", {}, ...["op", "before", "after"].map((head, at) => make("th", {scope: "col", class: at ? "number" : ""}, head)))),
        make("tbody", {}, ...pass.ops.map(([kind, before, after]) => make("tr", {}, make("td", {}, make("code", {}, kind)), make("td", {class: "number"}, String(before)),
          make("td", {class: "number"}, String(after)))))));
    if (pass.docs)
      body.push(make("h3", {}, "Documentation"), make("pre", {}, pass.docs));
    return make("details", {class: "pass"}, make("summary", {}, make("code", {}, pass.argument), ` ${pass.changed ? "" : "(no change) "}`, make("span", {class: "quiet"}, `${counts}, ${(1e3 * pass.seconds).toFixed(1)} ms`)), ...body);
  }
}

/** The passes of all stages of compilation, in order. */
const STAGE_NAMES = ["model", "fused", "kernels", "loops", "llvm", "ll", "asm"];
