"use strict";
// The data of the page, and the relations between ops of different stages.

/** Reads the data: base64 of a zlib stream of JSON. */
async function readData() {
  const text = atob(document.getElementById("data").textContent), bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; ++at)
    bytes[at] = text.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const data = await new Response(stream).json();
  if (data.version !== 1)
    throw new Error(`the data has version ${data.version}, which this page does not know`);
  data.stages.forEach((stage, index) => prepareStage(stage, index));
  return data;
}

function prepareStage(stage, index) {
  stage.index = index;
  stage.lines = stage.text.split("\n");
  stage.opAt = new Int32Array(stage.lines.length + 1).fill(-1);
  for (let op = stage.line.length - 1; op >= 0; --op)
    stage.opAt[stage.line[op]] = op;
  stage.opAt[0] = -1;
  stage.isInferred = new Set(stage.inferred);
}

/** The ops with each set of origins. */
function opsBySet(stage) {
  if (!stage.bySet) {
    stage.bySet = stage.origins.map(() => []);
    stage.origin.forEach((set, op) => stage.bySet[set].push(op));
  }
  return stage.bySet;
}

/** For each op of the source stage of `stage`, the sets of origins that contain it. */
function setsByOrigin(stage) {
  if (!stage.setsOf) {
    stage.setsOf = new Map();
    stage.origins.forEach((ops, set) => ops.forEach(op => {
      if (!stage.setsOf.has(op))
        stage.setsOf.set(op, []);
      stage.setsOf.get(op).push(set);
    }));
  }
  return stage.setsOf;
}

/** `op` and all ops within it. */
function withBody(stage, op) {
  const ops = new Set([op]);
  for (let inner = op + 1; inner < stage.parent.length && ops.has(stage.parent[inner]); ++inner)
    ops.add(inner);
  return ops;
}

function originsOf(stage, ops) {
  const all = new Set();
  for (const op of ops)
    for (const origin of stage.origins[stage.origin[op]])
      all.add(origin);
  return all;
}

function resultsOf(stage, ops) {
  const all = new Set();
  for (const op of ops)
    for (const set of setsByOrigin(stage).get(op) ?? [])
      for (const result of opsBySet(stage)[set])
        all.add(result);
  return all;
}

/** The ops of each stage from which `op` of stage `index` originates, or to which it was lowered; at its stage, the op and its body. */
function relatedTo(stages, index, op) {
  const related = stages.map(() => new Set());
  related[index] = withBody(stages[index], op);
  for (let at = index, ops = new Set([op]); stages[at].from >= 0; at = stages[at].from)
    related[stages[at].from] = ops = originsOf(stages[at], ops);
  for (const stage of stages) {
    if (stage.index > index && stage.from >= index)
      related[stage.index] = resultsOf(stage, related[stage.from]);
    // Two stages with a common source: LLVM IR and assembly.
    else if (stage.index !== index && stage.from >= 0 && stage.from === stages[index].from)
      for (const own of related[index])
        if (stages[index].origin[own] !== 0 || stages[index].origins[0].length)
          for (const other of opsBySet(stage)[stages[index].origin[own]] ?? [])
            related[stage.index].add(other);
  }
  return related;
}

const kindOf = (stage, op) => stage.kinds[stage.kind[op]];
const placeOf = (stage, op) => stage.places[stage.place[op]];

/** The names of launched functions, by their op. */
function findKernels(stage) {
  const launched = new Set(stage.lines.map(line => line.match(/exec\.launch @([\w.$-]+)/)?.[1])), kernels = new Map();
  stage.parent.forEach((parent, op) => {
    if (parent < 0 && launched.has(symbolIn(stage, op)))
      kernels.set(op, symbolIn(stage, op));
  });
  return kernels;
}

/** The function of an op that is part of a kernel; undefined for other ops. Several ops of the model may share a kernel, so its ops are named by it. */
function kernelOf(stage, op) {
  const root = outermost(stage, op);
  // Of functions in LLVM IR and assembly, the place is the name.
  if (kindOf(stage, root) === "function")
    return placeOf(stage, root);
  return (stage.kernels ??= findKernels(stage)).get(root);
}

/** "mica.linear model.layers.*.mlp.down_proj", "scf.for in @rmsnorm"; of several modules the first one, and the number of others. */
function titleOf(stage, op) {
  const kernel = kernelOf(stage, op), [place, ...others] = placeOf(stage, op).split(" ");
  if (kernel)
    return stage.parent[op] < 0 ? `${kindOf(stage, op)} @${kernel}` : `${kindOf(stage, op)} in @${kernel}`;
  return `${kindOf(stage, op)} ${place}${others.length ? ` and ${others.length} more` : ""}`.trim();
}

/** The outermost op that contains `op`. */
function outermost(stage, op) {
  while (stage.parent[op] >= 0)
    op = stage.parent[op];
  return op;
}

/** The number of executions of an op per call of its function: iterations of the enclosing loops with constant bounds. */
function iterationsAround(stage, op) {
  let times = 1;
  for (let loop = stage.parent[op]; loop >= 0; loop = stage.parent[loop])
    if (kindOf(stage, loop) === "scf.for") {
      const [begin, end, step] = [0, 3, 6].map(at => Number.parseInt(stage.attributes[stage.operands[loop]?.[at]]?.[1]));
      times *= Math.ceil((end - begin) / step) || 1;
    }
  return times;
}

/** An element with attributes, listeners (`onclick`) and children; text is never markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith("on"))
      element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false)
      element.setAttribute(name, value);
  element.append(...children.filter(each => each !== null && each !== undefined));
  return element;
}

/** The first symbol in the text of an op, such as the name of a function. */
function symbolIn(stage, op) {
  return (stage.lines[stage.line[op] - 1] ?? "").match(/@([\w.$-]+|"[^"]*")/)?.[1];
}

function bytesText(bytes) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (Math.abs(bytes) < 1024 || unit === "GiB")
      return `${unit === "B" ? bytes : bytes.toFixed(2)} ${unit}`;
    bytes /= 1024;
  }
}
