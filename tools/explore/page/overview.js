"use strict";
// Properties in the manifest of the model or program, and figures of its stages.

/** Names of the sizes of a model. */
const SIZES = {layers: "layers", hidden: "hidden size", heads: "attention heads", kv_heads: "key/value heads", head_dim: "head dimension", tensors: "tensors in the model"};

class OverviewView {
  constructor(page) {
    this.page = page;
    this.title = page.data.stages.length ? "Model" : "Program";
    this.element = make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": this.title});
  }

  show(main) {
    main.replaceChildren(this.element);
    this.update();
  }

  update() {
    const {stages} = this.page.data;
    this.element.replaceChildren(
      ...(stages.length ? [] : [make("p", {class: "note", id: "missing"}, make("strong", {}, "This is a program. "),
        "A program contains no stages, so ops, passes, graph, instructions and buffers are not shown. Run mica explore on the model that it was compiled from to see them.")]),
      make("h2", {}, "Properties"), this.properties(), ...this.stages(), ...this.formats(), ...this.ops(), ...this.kernels());
  }

  table(id, heads, rows) {
    const isNumber = (row, at) => typeof row[at] === "number" || /^[\d.]+( [KMG]?i?B)?$/.test(row[at]);
    const cell = (row, at) => make("td", {class: isNumber(row, at) ? "number" : ""}, row[at] instanceof Node ? row[at] : String(row[at]));
    return make("table", {id}, make("thead", {}, make("tr", {}, ...heads.map((head, at) => make("th", {scope: "col", class: rows.length && isNumber(rows[0], at) ? "number" : ""}, head)))),
      make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map((_, at) => cell(row, at))))));
  }

  properties() {
    const {manifest, data} = {manifest: this.page.data.manifest ?? {}, data: this.page.data}, rows = [];
    const add = (name, value) => value !== undefined && value !== null && rows.push([name, value]);
    const bytes = value => value === undefined ? undefined : bytesText(value), list = value => value && Object.entries(value).map(([key, each]) => `${key} ${each}`).join(", ");
    const weights = data.weights.reduce((end, [, , , offset, size]) => Math.max(end, offset + size), 0);
    add("name", manifest.name);
    for (const [size, name] of Object.entries(SIZES))
      add(name, data.sizes[size]);
    add("parameters", manifest.parameters);
    add("weights", manifest.weights);
    add("tensors by type", list({...manifest.block_formats, ...manifest.float_types}) || undefined);
    add("size of the weights", bytes(manifest.weight_bytes ?? (weights || undefined)));
    add("caches", manifest.kv);
    add("cache per position", bytes(manifest.caches?.reduce((sum, each) => sum + each.bytes_per_token, 0)));
    add("weights read per token", bytes(manifest.cost?.weight_bytes_per_token));
    add("operations per token", manifest.cost && manifest.cost.flops_per_token + manifest.cost.flops_per_logits);
    add("scratch memory", manifest.scratch && `${bytesText(manifest.scratch.bytes_fixed)} and ${bytesText(manifest.scratch.bytes_per_row)} per row, ${bytesText(manifest.scratch.bytes_per_output)} per row with logits`);
    const phases = Object.entries(manifest.rows ?? {}).map(([role, type]) => [role === "prompt" ? "prefill" : role, type]);
    add("activations that multiply weights in blocks", list(Object.fromEntries(phases)) || undefined);
    add("vocabulary", manifest.vocab);
    add("positions", manifest.max_seq);
    add("target", manifest.target && `${manifest.target.cpu} ${manifest.target.features.join(" ")}`);
    for (const [key, value] of Object.entries(manifest.config ?? {}))
      if (typeof value !== "object")
        add(`config: ${key}`, value);
    add("code", data.code);
    return make("table", {id: "properties"}, make("tbody", {}, ...rows.map(([name, value]) => make("tr", {}, make("th", {scope: "row"}, name),
      make("td", {}, typeof value === "number" && value >= 10000 ? value.toLocaleString("en") : String(value))))));
  }

  stages() {
    const {stages, passes} = this.page.data;
    if (!stages.length)
      return [];
    const show = stage => make("button", {class: "link", type: "button", onclick: () => this.page.go({view: "stages", panes: this.page.panesWith(stage.index)})}, stage.name);
    const changed = stage => passes.filter(pass => pass.changed && STAGE_NAMES[pass.to] === stage.name).length;
    return [make("h2", {}, "Stages"), this.table("stage-list", ["stage", "ops", "lines", "passes with changes", "content"],
      stages.map(stage => [show(stage), stage.line.length, stage.lines.length, changed(stage), stage.help]))];
  }

  /** The formats of weights. */
  formats() {
    const formats = new Map();
    for (const weight of this.page.data.weights) {
      const format = weight[6], [count, bytes] = formats.get(format) ?? [0, 0];
      formats.set(format, [count + 1, bytes + weight[4]]);
    }
    return formats.size ? [make("h2", {}, "Formats of weights"), this.table("formats", ["format", "weights", "bytes"],
      [...formats].sort((a, b) => b[1][1] - a[1][1]).map(([format, [count, bytes]]) => [format, count, bytesText(bytes)]))] : [];
  }

  /** Ops of each function at stage `kernels`, from the manifest. */
  ops() {
    const {stages, manifest} = this.page.data;
    if (stages.length || !manifest?.ops)
      return [];
    return [make("h2", {}, "Ops at stage kernels"), this.table("ops", ["function", "op", "count"],
      Object.entries(manifest.ops).flatMap(([name, counts]) => Object.entries(counts).map(([op, count]) => [`@${name}`, op, count])))];
  }

  kernels() {
    const {manifest} = this.page.data;
    return manifest?.kernels ? [make("h2", {}, "Kernels"), this.table("kernel-list", ["kernel", "modules of the model"],
      Object.entries(manifest.kernels).map(([name, places]) => [make("code", {}, name), places.join(", ")]))] : [];
  }
}
