"""The figures in docs/quality.json, whose runs differ in models or arithmetic of prefill, and the costs that `mica compile` quotes from
them. Named unlike the modules of tests/bench, because tests/e2e imports it."""

import decimal
import json
import math
import pathlib

FILE = pathlib.Path(__file__).resolve().parents[2] / "docs/quality.json"
#: The name of the file with the speeds of the choices, next to it.
SPEEDS = "speeds.json"


def read(path=FILE):
    """The runs of a file, the newest first. Empty if the file does not exist."""
    return json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []


def text_of(runs):
    """The content of such a file."""
    return json_of({"runs": runs})


def speeds(folder=FILE.parent):
    """The runs of speeds.py in a folder, the newest first, one per type of processor."""
    return read(folder / SPEEDS)


def json_of(value):
    """JSON text: an object or list of plain values is one line, and numbers have six digits."""
    return _text(value, "") + "\n"


def _text(value, indent):
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(child, (dict, list)) for child in children):
        return json.dumps(_rounded(value), sort_keys=True, ensure_ascii=False)
    inner = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_text(value[key], inner)}" for key in sorted(value)]
    else:
        parts = [_text(child, inner) for child in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n" + ",\n".join(inner + part for part in parts) + f"\n{indent}{last}"


def _rounded(value):
    if isinstance(value, dict):
        return {key: _rounded(child) for key, child in value.items()}
    return float(f"{value:.6g}") if isinstance(value, float) else value


def small(value):
    """Formats a divergence with three digits, or two below 0.001."""
    if value >= 0.001:
        return f"{value:.{max(2, 2 - math.floor(math.log10(value)))}f}"
    return f"{value:.1e}" if value else "0"


def quoted(value):
    """A divergence with the same digits as in messages: ".000022"."""
    return format(decimal.Decimal(small(value)), "f").lstrip("0")


#: The parts of a model's figures: preserved files, quantized weights, caches.
PARTS = ("rows", "own", "caches")


def row_of(model, part, name):
    """The row of a format in a part, or None."""
    return next((row for row in model[part] if row["format"] == name), None)


def rows_beyond(model, others):
    """The rows of a model, by part, that none of other measurements of it has."""
    return {part: [row for row in model[part] if not any(row_of(other, part, row["format"]) for other in others)] for part in PARTS}


def prefill_of(run):
    """The type of the activations that a run multiplied by blocks in prefill; None if it measured none."""
    return run["arithmetic"].get("mica prefill")


def _references(model):
    """The perplexity of each row's reference, by the row's part and format."""
    return {(part, row["format"]): cell["reference_perplexity"] for part in PARTS for row in model[part]
            for cell in row["cells"].values() if cell}


def model_of(run, model):
    """The same model in another run; None if that has no such model, or another one of the same name. Training is only reproducible with
    the same version of torch and number of threads, so models of one name can have other weights, and their references other perplexities."""
    other = named(run, model["name"])
    if other is None:
        return None
    found, wanted = _references(other), _references(model)
    shared = found.keys() & wanted.keys()
    return other if shared and all(math.isclose(found[row], wanted[row], rel_tol=1e-3) for row in shared) else None


def names(runs):
    """The names of all models that were measured."""
    return {model["name"] for run in runs for model in run["models"]}


def runs_of(name, runs):
    """(run, model) of the newest run with a model of that name, and of others with the same model; empty without one."""
    measured = [run for run in runs if named(run, name)]
    if not measured:
        return []
    newest = named(measured[0], name)
    return [(measured[0], newest), *((run, same) for run in measured[1:] if (same := model_of(run, newest)))]


def named(run, name):
    """The model of that name in a run, or None."""
    return next((model for model in run["models"] if model["name"] == name), None)


def runs_of_other_weights(name, runs):
    """(run, model) of the newest run for each arithmetic of prefill that was only measured with other weights of the model of that name,
    from another training."""
    known = {prefill_of(run) for run, _ in runs_of(name, runs)}
    for run in runs:
        model = named(run, name)
        if model and prefill_of(run) not in known:
            known.add(prefill_of(run))
            yield run, model


#: The cells of a program, without and with `--rows int8`. It is used for both prefill and decode.
CELLS, INT8_CELLS = ("mica prefill", "mica decode"), ("mica int8 rows", "mica decode")
#: Costs: the part of a model's tables, the row (None: all of the part), and the cells. The worst of rows and cells is quoted, because a
#: message depends on neither the format of preserved blocks nor the machine.
COSTS = {"bf16": ("own", "`--weights bf16`", CELLS),
         **{name + rows: ("own", f"`--weights {options}`", cells) for rows, cells in (("", CELLS), (", int8 rows", INT8_CELLS))
            for name, options in (("int8", "int8"), ("int4", "int4"), ("int4 calibrated", "int4 --calibrate TEXT"),
                                  ("int4 imatrix", "int4 --imatrix FILE"))},
         "int8 rows": ("rows", None, INT8_CELLS),
         "int8 cache": ("caches", "`--kv int8`", CELLS)}
#: The models on which costs are measured, by how a checkpoint stores its weights.
MEASURED = {"floats": ("trained", "hybrid", "granite4", "lfm2"), "blocks": ("smollm2",)}


def decode_cell(cells, arithmetic):
    """The figures of a program in Mica's decode arithmetic: of its decode or, if only that was measured, of prefill in the same arithmetic.
    None if neither was measured."""
    prefill = cells.get("mica prefill") if arithmetic.get("mica prefill") == arithmetic.get("mica decode") else None
    return cells.get("mica decode") or prefill


def costs(kind, runs=None):
    """The costs that `mica compile` quotes for a checkpoint of "floats" or "blocks": the worst of all models and arithmetics. Without those
    that were not measured."""
    runs, result = runs or read(), {}
    models = [model for name in MEASURED[kind] for _, model in (*runs_of(name, runs), *runs_of_other_weights(name, runs))]
    for name, (part, title, cells) in COSTS.items():
        figures = [row["cells"][cell]["kl"] for model in models for row in model[part] if title in (None, row["format"])
                   for cell in cells if row["cells"].get(cell)]
        if figures:
            result[name] = quoted(max(figures))
    return result


def source():
    """Where the figures come from, for a sentence about them."""
    return "those of docs/quality.json: " + ", ".join(run["mica"] for run in read())


def figures_of(name, format, rows, runs=None, preferred=None):
    """The divergence of a program from the model in f32 on that model: {"prefill": figures, "decode": figures} of a row of the page, with
    "kl" and "same_top" (a share). `rows`: the type of prefill's activations; "" for programs without blocks. None if not measured. The
    newest run's model is preferred to other weights of that name, and runs with the `preferred` arithmetic in prefill (default: `rows`) to
    others of the same model: decode and `--rows int8` were measured by several."""
    runs, result = runs or read(), {}
    same = sorted(runs_of(name, runs), key=lambda each: prefill_of(each[0]) != (preferred or rows))
    for run, model in (*same, *runs_of_other_weights(name, runs)):
        row = row_of(model, "rows", format) or row_of(model, "own", format)
        if row is None:
            continue
        arithmetic = {cell: kind for cell, kind in run["arithmetic"].items() if rows}
        for role, cells in (("prefill", ("mica prefill", "mica int8 rows")), ("decode", ("mica decode",))):
            for cell in cells:
                if row["cells"].get(cell) and (role == "decode" or arithmetic.get(cell, "") == rows):
                    figures = row["cells"][cell]
                    result.setdefault(role, {"kl": figures["kl"], "same_top": figures["same_top"] / 100})
    return result or None
