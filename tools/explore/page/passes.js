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
        if (STAGE_NAMES[to] === "ll")
          parts.push(make("p", {class: "quiet"}, "LLVM runs most passes several times. The first number is that of the instructions when a pass first runs; the second one includes the changes of all its runs."));
      }
      parts.push(this.describe(pass));
    }
    this.list.replaceChildren(...parts, ...this.machineCode());
  }

  /** What LLVM's code generator made of each function. */
  machineCode() {
    const {machineCode, stages} = this.page.data, stage = stages.at(-1), heads = ["function", "after selection", "in assembly", "spills", "reloads", "bytes of stack"];
    const show = name => {
      const op = stage.parent.findIndex((parent, at) => parent < 0 && placeOf(stage, at) === name);
      return op < 0 ? name : make("button", {class: "link", type: "button", onclick: () => this.page.go({view: "stages", op: [stage.index, op], value: null, panes: this.page.panesWith(stage.index)})}, name);
    };
    return machineCode.length ? [make("h3", {}, "Machine instructions of each function"), make("table", {id: "machine-code"},
      make("thead", {}, make("tr", {}, ...heads.map((head, at) => make("th", {scope: "col", class: at ? "number" : ""}, head)))),
      make("tbody", {}, ...machineCode.map(([name, ...numbers]) => make("tr", {}, make("td", {}, show(name)), ...numbers.map(number => make("td", {class: "number"}, String(number)))))))] : [];
  }

  describe(pass) {
    const unit = pass.perFunction || STAGE_NAMES[pass.to] === "ll" ? "instructions" : pass.onFunctions ? "ops in functions" : "ops", counts = pass.before === pass.after ? `${pass.after} ${unit}` : `${pass.before} → ${pass.after} ${unit}`;
    const body = [make("p", {}, pass.summary)];
    for (const [name, count, reason] of pass.patterns)
      body.push(make("p", {class: "pattern"}, make("code", {}, name), ` applied ${count} ${count === 1 ? "time" : "times"}`,
                     reason ? make("div", {class: "reason"}, reason) : null));
    if (pass.ops.length)
      body.push(make("table", {}, make("thead", {}, make("tr", {}, ...[pass.perFunction ? "function" : "op", "before", "after"].map((head, at) => make("th", {scope: "col", class: at ? "number" : ""}, head)))),
        make("tbody", {}, ...pass.ops.map(([kind, before, after]) => make("tr", {}, make("td", {}, make("code", {}, kind)), make("td", {class: "number"}, String(before)),
          make("td", {class: "number"}, String(after)))))));
    if (pass.docs)
      body.push(make("h3", {}, "Documentation"), make("pre", {}, pass.docs));
    return make("details", {class: "pass"}, make("summary", {}, make("code", {}, pass.argument), ` ${pass.changed ? "" : "(no change) "}`, make("span", {class: "quiet"}, pass.perFunction ? counts : `${counts}, ${(1e3 * pass.seconds).toFixed(1)} ms`)), ...body);
  }
}

/** The passes of all stages of compilation, in order. */
const STAGE_NAMES = ["model", "fused", "kernels", "loops", "llvm", "ll", "asm"];
