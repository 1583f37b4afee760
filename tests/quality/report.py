"""Makes the page and its picture from the runs in docs/quality.json, and the speeds of the page from docs/speeds.json. Page and picture
have no other source, so that a change of a sentence needs no measurement."""

import math
import pathlib
import sys
from xml.sax.saxutils import escape

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import chart  # noqa: E402
import models as origins  # noqa: E402
import precision_goals  # noqa: E402
from published import PARTS, decode_cell, named, names, prefill_of, row_of, rows_beyond, runs_of, runs_of_other_weights, small  # noqa: E402

#: Cells of a row: title and, in the picture, color and whether the mark is filled. Rows of int8 are only in the tables.
CELLS = {"mica prefill": ("Mica, prefill", "#0b62a4", True), "mica decode": ("Mica, decode", "#0b62a4", False),
         "mica int8 rows": ("Mica, prefill", "#3aa17e", True),
         "llama prefill": ("llama.cpp, prefill", "#d1495b", True), "llama decode": ("llama.cpp, decode", "#d1495b", False)}


def key_of(name, arithmetic):
    """The key of a cell in joined tables: "mica prefill:bf16"."""
    return f"{name}:{arithmetic[name]}" if name in arithmetic else name


def role_of(key):
    return key.partition(":")[0]


def title_of(key):
    """The title of a column: "Mica, prefill (bf16)"."""
    role, _, arithmetic = key.partition(":")
    return CELLS[role][0] + (f" ({arithmetic})" if arithmetic else "")


def joined(runs, other_columns=True):
    """The models of all runs with their descriptions. Each row is that of the newest run that has it. The key of a cell of Mica names the
    arithmetic, and each other run of the same model adds its prefill, if its arithmetic is not that of a run before."""
    measured = names(runs)
    return [joined_model(name, runs, other_columns) for name in origins.DESCRIPTIONS if name in measured]


def joined_model(name, runs, other_columns):
    same = runs_of(name, runs)
    title, note = origins.DESCRIPTIONS[name]
    result = {**same[0][1], "title": title, "note": note, "missed": list(missed_goals(name, runs)),
              "other_weights": list(runs_of_other_weights(name, runs))}
    for part in PARTS:
        # The programs whose caches are measured have no blocks.
        has_blocks = part != "caches"
        formats = dict.fromkeys(row["format"] for _, model in sorted(same, key=lambda each, part=part: -len(each[1][part])) for row in model[part])
        result[part] = [joined_row([(run["arithmetic"] if has_blocks else {}, row) for run, model in same if (row := row_of(model, part, each))],
                                   other_columns and has_blocks) for each in formats]
    return result


def joined_row(measured, other_columns):
    """A row from (arithmetic, row) of runs, the newest first."""
    (arithmetic, newest), *others = measured
    cells = {key_of(name, arithmetic): cell for name, cell in newest["cells"].items()}
    for other, row in others if other_columns else ():
        if "mica prefill" in row["cells"]:
            cells.setdefault(key_of("mica prefill", other), row["cells"]["mica prefill"])
    return {**newest, "cells": cells, "decode": decode_cell(newest["cells"], arithmetic)}


def missed_goals(name, runs):
    """The goals for precision that a model misses in the newest run and in others, also with other weights."""
    same = runs_of(name, runs)
    for run, model in (*[(run, unmeasured_before(at, same)) for at, (run, _) in enumerate(same)], *runs_of_other_weights(name, runs)):
        weights = "" if any(run is each for each, _ in same) else ", with other weights"
        other = "" if run is same[0][0] else f" (run with prefill in {run['arithmetic'].get('mica prefill', 'another arithmetic')}{weights})"
        for line in precision_goals.missed(model, run["arithmetic"], lambda cell, run=run: title_of(key_of(cell, run["arithmetic"]))):
            yield line + other


def unmeasured_before(at, same):
    """The model of a run, of those of one model, with the rows that no newer run has measured in the same arithmetic."""
    run, model = same[at]
    return {**model, **rows_beyond(model, [newer for each, newer in same[:at] if prefill_of(each) == prefill_of(run)])}


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def cell(figures):
    if figures is None:
        return "-"
    return f"{small(figures['kl'])} / {figures['same_top']:.1f} % / {figures['perplexity']:.2f}"


def cell_with_error(figures):
    if figures is None:
        return "-"
    error = f" ± {small(figures['kl_error'])}" if "kl_error" in figures else ""
    return cell(figures).replace(" / ", f"{error} / ", 1)


def tail(figures):
    if figures is None:
        return "-"
    return (f"{small(figures['p99'])} / {small(figures['p99_9'])} / {small(figures['max'])} / "
            f"{figures['rms_delta_p']:.2f}")


def columns(rows):
    keys = dict.fromkeys(key for row in rows for key in row["cells"])
    return sorted(keys, key=lambda key: list(CELLS).index(role_of(key)))


def reference_perplexity(row):
    for figures in row["cells"].values():
        if figures:
            return f"{figures['reference_perplexity']:.2f}"
    return "-"


def bits(row):
    return f"{row['bits']:.2f}" if row["bits"] else "-"


def merged_columns(rows):
    """The columns, as title and key: prefill and decode with the same arithmetic and the same figures in all rows are one."""
    names, result, merged = columns(rows), [], set()
    for name in names:
        decode = name.replace("mica prefill", "mica decode")
        if decode != name and decode in names and all(row["cells"].get(name) == row["cells"].get(decode) for row in rows):
            merged.add(decode)
            result.append((title_of(name).replace("prefill", "prefill and decode"), name))
        elif name not in merged:
            result.append((title_of(name), name))
    return result


def comparison(rows, show, first):
    shown = merged_columns(rows)
    head = [first, "bits per weight", "perplexity of the reference", *(title for title, _ in shown)]
    return table(head, [[row["format"], bits(row), reference_perplexity(row), *(show(row["cells"].get(name)) for _, name in shown)]
                        for row in rows])


def unquantized(model):
    """The reference of a model's own formats, in words."""
    return "the file in f32" if model["requantized"] else "the checkpoint in f32"


#: Above the table of a distribution's tail, which follows the one with its means.
TAIL = "Same reference. KL at 99 % / 99.9 % / maximum / RMS delta p in percentage points:"


#: Mica's formats that are compared with llama.cpp's, and whether those include formats with an importance matrix.
COMPARED = {"`--weights int4`": False, "`--weights int4 --calibrate TEXT`": True, "`--weights int4 --imatrix FILE`": True}
#: A difference of fewer standard errors is not significant.
SIGNIFICANT = 2


def with_error(figures):
    return f"{small(figures['kl'])} ± {small(figures['kl_error'])}"


def difference(own, other):
    """How another divergence differs from Mica's, in words."""
    errors = (other["kl"] - own["kl"]) / math.hypot(own["kl_error"], other["kl_error"])
    if abs(errors) < SIGNIFICANT:
        return f"not significantly different ({abs(errors):.1f} standard errors)"
    return f"{'higher' if errors > 0 else 'lower'} by {abs(errors):.1f} standard errors"


def decode_figures(row):
    """The figures in Mica's decode arithmetic, in which the weights decide; None without a standard error."""
    return row["decode"] if row["decode"] and row["decode"].get("kl_error") else None


def by_llama(row):
    """The divergence as computed by llama.cpp, if it was measured."""
    cell = next((row["cells"][role] for role in ("llama decode", "llama prefill") if row["cells"].get(role)), None)
    return f" ({small(cell['kl'])} by llama.cpp)" if cell else ""


def comparison_with_neighbors(row, peers):
    """A line for one of Mica's formats: the most precise of llama.cpp's formats with no more bits, and the next larger one. Empty if
    nothing can be compared."""
    own = decode_figures(row)
    measured = [(peer, figures) for peer in peers if peer["bits"] and (figures := decode_figures(peer))]
    smaller = [each for each in measured if each[0]["bits"] <= row["bits"]]
    larger = [each for each in measured if each[0]["bits"] > row["bits"]]
    found = []
    if smaller:
        found.append(("the most precise with no more bits is", *min(smaller, key=lambda each: each[1]["kl"])))
    if larger:
        found.append(("the next larger one is", *min(larger, key=lambda each: (each[0]["bits"], each[1]["kl"]))))
    if not own or not found:
        return ""
    texts = [f"{words} {peer['format']} with {bits(peer)} bits, {with_error(figures)}{by_llama(peer)}, {difference(own, figures)}"
             for words, peer, figures in found]
    return f"- {row['format']} with {bits(row)} bits, {with_error(own)}. Of llama.cpp's formats, {'; '.join(texts)}."


def verdict(model):
    """Whether Mica's 4-bit format is on llama.cpp's curve; empty if the table lacks either."""
    peers = [row for row in model["own"] if not is_own(row)]
    lines = [comparison_with_neighbors(row, [peer for peer in peers if weighted or "imatrix" not in peer["format"]])
             for name, weighted in COMPARED.items() if (row := row_of(model, "own", name))]
    lines = [line for line in lines if line]
    if not lines:
        return ""
    return "\n".join(["KL divergence (with its standard error) of 4-bit weights and of llama.cpp's formats of similar size, all in Mica's "
                      "decode arithmetic, in which the weights decide. `--calibrate` and `--imatrix` are compared with the formats with "
                      f"importance matrix as well. A difference of fewer than {SIGNIFICANT} standard errors, computed as if both were independent, is not "
                      "significant.", "", *lines])


def short_cell(figures):
    return f"{small(figures['kl'])} / {figures['same_top']:.1f} %" if figures else "-"


def worst(rows, name):
    """The largest divergence and the lowest same top of a cell in all rows."""
    cells = [row["cells"][name] for row in rows if row["cells"].get(name)]
    return {"kl": max(cell["kl"] for cell in cells), "same_top": min(cell["same_top"] for cell in cells)} if cells else None


def other_weights(run, model):
    """What a run measured with other weights of a model."""
    cells = [name for name in CELLS if name.startswith("mica") and any(row["cells"].get(name) for row in model["rows"] + model["own"])]
    rows = []
    if model["rows"]:
        rows.append([f"blocks preserved, worst of {len(model['rows'])} files", *(short_cell(worst(model["rows"], name)) for name in cells)])
    rows += [[row["format"], *(short_cell(row["cells"].get(name)) for name in cells)] for row in model["own"] if is_own(row)]
    return "\n\n".join([f"With other weights, from another training, {run['mica']} was measured on a processor where prefill is in "
                        f"{run['arithmetic'].get('mica prefill', 'floats')}, with the references above. KL divergence / same top, of preserved blocks the largest and the lowest of all files:",
                        table(["weights", *(title_of(key_of(name, run["arithmetic"])) for name in cells)], rows)])


def unmeasured(model):
    """What a model's tables lack of llama.cpp, in a sentence; empty if nothing."""
    missing = []
    if model["rows"] and not any("llama decode" in row["cells"] for row in model["rows"]):
        missing.append("llama.cpp's decode")
    peers = [row for row in model["own"] if not is_own(row)]
    if model["own"] and not peers:
        missing.append("llama.cpp's formats relative to " + ("the published file" if model["requantized"] else "the checkpoint") + " in f32")
    if any(row["decode"] and not cells_of(row, "mica decode") for row in peers):
        missing.append("Mica's decode of llama.cpp's formats relative to " + ("the published file" if model["requantized"] else "the checkpoint") +
                       " in f32, whose arithmetic is that of prefill on that processor")
    return f"Not measured: {'; '.join(missing)}." if missing else ""


#: What the tables do not show about families with states.
UNTRAINED = (
    "Of the families with states, small models of Qwen3.5, Granite 4 and LFM2 were trained. The layers with states of Mamba 2 and Bamba are "
    "those of Granite 4, those of Qwen3-Next and of Qwen3.5 with experts those of Qwen3.5, and those of LFM2 with experts those of LFM2.",
    "", "Falcon H1 (multipliers, attention and Mamba 2 in parallel), Nemotron-H (one block per layer, relu2) and Gemma 4 have arithmetic that "
    "none of these models has. No model of theirs was trained, and their divergence in bf16 and int8 was not measured.")


def of_model(model):
    """The tables of one model, each with its reference."""
    parts = [f"## {model['title']}", model["note"], unmeasured(model)]
    if model["missed"]:
        parts += ["Missed goals:", "\n".join(f"- {line}" for line in model["missed"])]
    elif model["rows"] or model["own"]:
        no_peers = model["own"] and all(is_own(row) for row in model["own"])
        parts += ["All measured figures reach the [goals](#goals)" +
                  ("; that of `--weights int4` is relative to Q4_K_M, which was not measured." if no_peers else ".")]
    if model["rows"]:
        parts += ["Reference: the same file computed in f32. KL divergence / same top / perplexity:", comparison(model["rows"], cell, "file")]
        parts += [TAIL, comparison(model["rows"], tail, "file")]
    if model["own"]:
        made = ("Requantized from the file's blocks (`mica compile` warns)" if model["requantized"] else
                "Quantized from the checkpoint in f32")
        makers = "by Mica (`--weights`)" + " and by llama-quantize" * any(not is_own(row) for row in model["own"])
        parts += [f"{made}, {makers}. Reference: {unquantized(model)}, so that the quantization error is included. KL divergence (with its "
                  "standard error) / same top / perplexity:",
                  comparison(model["own"], cell_with_error, "weights")]
        parts += [TAIL, comparison(model["own"], tail, "weights"), verdict(model)]
    if model["caches"]:
        parts += ["Only the cache is quantized, everything else is f32. Reference: a cache in f32. KL divergence / same top / perplexity:",
                  comparison(model["caches"], cell, "cache")]
    parts += [other_weights(*measured) for measured in model["other_weights"]]
    return "\n\n".join(part for part in parts if part)


def tables(models):
    return "\n\n".join(of_model(model) for model in models) + "\n"


def versions(run):
    """What was measured, and on what."""
    machine = run["machine"]
    target = f", programs for {run['target']}" if run["target"] else ""
    return ((f"`{run['command']}`: " if run["command"] else "") +
            f"{run['mica']} and llama.cpp {run['llama']}, {machine['cpu']} ({machine['processors']} processors{target}), Linux "
            f"{machine['kernel']}.")


def method(run):
    """How a run was measured."""
    rows = f" Prefill with int8 activations: `{run['mica_rows']}`." if run["mica_rows"] else ""
    return (f"Text: {run['text']}, windows of 512 tokens, of which the second half is scored. `--calibrate TEXT` and "
            f"llama.cpp's importance matrices: {run['calibration']}, on which the small Llama was trained. Prefill: one window per call. "
            f"Decode: one row per call (Mica `{run['mica_decode']}`, llama.cpp `{run['llama_decode']}`).{rows}")


def prefill_is_decode(run):
    """Whether prefill and decode have equal figures in all rows of a run in which both were measured."""
    cells = [row["cells"] for model in run["models"] for part in PARTS for row in model[part]]
    both = [(each["mica prefill"], each["mica decode"]) for each in cells if each.get("mica prefill") and each.get("mica decode")]
    return bool(both) and all(prefill == decode for prefill, decode in both)


def parts_of(run, runs):
    """What of the page a run measured, in words: sections of models, rows or a column in others, and summaries of other weights."""
    whole, rows, column, summary = [], [], [], []
    for name, (title, _) in origins.DESCRIPTIONS.items():
        if not (model := named(run, name)):
            continue
        same = runs_of(name, runs)
        at = next((at for at, (each, _) in enumerate(same) if each is run), None)
        if at is None:
            summary.append(title)
        elif at == 0:
            whole.append(title)
        else:
            if any(rows_beyond(model, [newer for _, newer in same[:at]]).values()):
                rows.append(title)
            if all(prefill_of(newer) != prefill_of(run) for newer, _ in same[:at]):
                column.append(title)
    if whole:
        yield joined_words(whole)
    if rows:
        yield f"rows of {joined_words(rows)} that those above lack"
    if column:
        yield f"the column {title_of(key_of('mica prefill', run['arithmetic']))} of {joined_words(column)}"
    if summary:
        yield f"the summary of other weights at the end of {joined_words(summary)}"


def joined_words(words):
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def conditions(runs):
    """The paragraphs about the runs: what each measured, with what, and how, if it differs from the run before."""
    before = None
    for run in runs:
        text = f"{joined_words(list(parts_of(run, runs)))}: {versions(run)}"
        text = text[0].upper() + text[1:]
        if method(run) != before:
            text += f" {method(run)}"
        before = method(run)
        if prefill_is_decode(run):
            text += (" In this run, prefill and decode have the same figures in all rows of which both were measured, because the same "
                     "kernels compute them: the columns of decode are those of prefill on such processors as well.")
        if "+changes" in run["mica"]:
            text += " Its tree had uncommitted changes."
        yield from (text, "")
    if any(list(runs_of_other_weights(name, runs)) for name in names(runs)):
        yield from ("Training is only reproducible with the same version of torch, number of threads and processor: runs of a trained model on "
                    "different machines measured different weights. The tables have the figures of the newest run, and summaries those of others.", "")


CHOICES = [
    "## What to choose", "",
    "[benchmarks.md](benchmarks.md) compares speeds with those of peers, with machine and commits.",
    "",
    "- **A GGUF file without options**: its blocks are preserved. In prefill they are multiplied by bf16 rows or, on processors without",
    "  bf16 products, by 16-bit integers as in decode; the table below has the error of both.",
    "- **`--rows int8`**: prefill uses 8-bit integer activations with a scale per 32; decode is unchanged. Whether it is",
    "  faster depends on the format and the processor ([benchmarks.md](benchmarks.md)): measure it with `bench --prompt 512`. In a model with many outliers in its",
    "  activations, single positions can diverge by more than 1, as in llama.cpp: for the bundled model with a channel in a hundred 64 times",
    "  as large as the others (Q4_1), `tests/e2e/test_formats.py` bounds the KL divergence by .012, more than the goal below, and by .00003",
    "  with 16-bit integers.",
    "- **`--weights int8`** for a checkpoint in f32, f16 or bf16: half the size of bf16, and half the bytes to read per decoded token.",
    "- **`--weights int4`**: 4.6 bits per weight in the layers, 6.3 in embedding and lm_head.",
    "  `--calibrate TEXT` runs the model on a text first and weights errors by the activations;",
    "  `--imatrix FILE` uses llama.cpp's statistics instead. Use a text similar to the intended input; up to 49,152 tokens of it are read.",
    "- Requantizing a file that is already block-quantized (`--weights` with a GGUF file) adds the new format's error to the existing one. Avoid",
    "  it unless memory requires it, and then use `--calibrate`. `--weights bf16` expands the blocks: the program is larger, slower in decode",
    "  and less precise there than with preserved blocks.",
    "- **`--kv int8`** halves the cache. **`--weights f32`** keeps the checkpoint's precision, **`bf16`** that of a checkpoint in bf16.", ""]

#: Choice, row of the model's tables ("rows" or "own" or "caches"), and the cells of its figures for prefill and for decoding.
CHOICE_ROWS = [*((f"{name}, {title}", "rows", name, prompt, "mica decode") for name in ("Q4_1", "Q4_K_M", "Q8_0")
                 for title, prompt in (("preserved", "mica prefill"), ("`--rows int8`", "mica int8 rows"))),
               *((name, "own", name, "mica prefill", "mica decode")
                 for name in ("`--weights bf16`", "`--weights int8`", "`--weights int4`", "`--weights int4 --calibrate TEXT`",
                              "`--weights int4 --imatrix FILE`")),
               *((name, "caches", name, "mica prefill", "mica decode") for name in ("`--kv bf16`", "`--kv int8`"))]


#: The models of the table of choices.
CHOICE_MODELS = ("trained", "hybrid", "smollm2")


def cells_of(row, role):
    """The cells of a role by arithmetic, that of the newest run of the model first."""
    return {key.partition(":")[2]: cell for key, cell in row["cells"].items() if role_of(key) == role}


def divergences(cells):
    """The divergence of cells by arithmetic, which is named if they differ."""
    texts = {arithmetic: small(cell["kl"]) for arithmetic, cell in cells.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{text} ({arithmetic})" for arithmetic, text in texts.items())


def choice_cells(model, part, name, prompt, decode):
    """Bits and divergence of a choice on a model; None if it was not measured."""
    row = row_of(model, part, name)
    cells = [cells_of(row, role) for role in (prompt, decode)] if row else [{}]
    return (bits(row), " / ".join(map(divergences, cells))) if all(cells) else None


#: The choice to which the speeds of most others are related.
BASELINE = CHOICE_ROWS[0][0]


def cache_title(name):
    """The title of the program of a cache type whose speed is measured: the baseline with `name`, an option in code quotes."""
    return f"{BASELINE}, {name}"


def speed_cells(speeds, title, baseline, *tests):
    """Divergence and speed of a choice in each of the tests, of the same program; speeds are relative to the baseline."""
    measured, related = speeds["choices"][title], speeds["choices"].get(baseline, {})
    for test in tests:
        if test in measured and test in related:
            yield small(measured["kl"][test])
            yield f"{measured[test]['median'] / related[test]['median']:.2f}"
        else:
            yield from ("-", "-")


def arithmetic_of(speeds, runs):
    """The activations of prefill in the programs whose speeds were measured: those of the run with the same divergence. None if there is no
    such run."""
    _, part, name, cell, _ = CHOICE_ROWS[0]
    measured = speeds["choices"].get(BASELINE, {}).get("kl", {}).get("prefill")
    for run, model in runs_of(speeds["model"], runs):
        row = row_of(model, part, name)
        if measured and row and row["cells"].get(cell) and small(row["cells"][cell]["kl"]) == small(measured):
            return run["arithmetic"].get(cell)
    return None


def baseline_of(name, prompt):
    """The choice to which the speeds of a row of CHOICE_ROWS are related: with `--rows int8`, the same file without it."""
    return f"{name}, preserved" if prompt == "mica int8 rows" else BASELINE


def speed_table(speeds, runs):
    """The speeds of the choices."""
    rows = [[title, *speed_cells(speeds, title, baseline_of(name, prompt), "decode", "prefill")]
            for title, _, name, prompt, _ in CHOICE_ROWS if title in speeds["choices"]]
    return [speed_conditions(speeds, arithmetic_of(speeds, runs)), "",
            table(["choice", "KL, decode", "speed of decode", "KL, prefill", "speed of prefill"], rows), "", *cache_table(speeds)]


def cache_table(speeds):
    """The speeds of the cache types; nothing if none was measured."""
    titles = [cache_title(name) for name, part, *_ in CHOICE_ROWS if part == "caches" and cache_title(name) in speeds["choices"]]
    if not titles:
        return []
    differed = spread({"choices": {title: speeds["choices"][title] for title in titles}})
    return [f"In the same rounds, decode of {speeds['gen']} tokens after {speeds['depth']} tokens in the context, relative to {titles[0]}. Reference "
            "of the KL divergence, in windows of 512 tokens: the same file with weights and cache in f32. These speeds differed by up to a "
            f"factor of {differed:.1f} between rounds.", "",
            table(["choice", "KL, decode", "speed of decode"], [[title, *speed_cells(speeds, title, titles[0], "deep")] for title in titles]), ""]


def spread(speeds):
    """The largest ratio of two rounds of one program."""
    return max(figures["max"] / figures["min"] for choice in speeds["choices"].values() for test, figures in choice.items() if test != "kl")


def speed_conditions(speeds, arithmetic):
    """How the speeds were measured, and on what."""
    machine, load = speeds["machine"], speeds["load"]
    rows = f", with {arithmetic} activations of blocks unless `--rows int8` is given" if arithmetic else ""
    return (f"Speeds of programs of {origins.DESCRIPTIONS[speeds['model']][0]}, relative to that of {BASELINE} (with `--rows int8`, "
            "to that of the same file without it), with the KL divergence of the same "
            f"programs on that processor (references as above): decode of {speeds['gen']} tokens, and prefill of "
            f"{speeds['prompt']} tokens{rows}. Ratios of medians of {speeds['rounds']} alternating rounds: "
            f"`{speeds['command']}` at commit {speeds['commit']}, {machine['cpu']} ({machine['processors']} processors), "
            f"{speeds['threads']} threads; other processes used {load['others']:.2f} processors, steal time {load['stolen']:.2f} "
            f"processors. The speed of a program differed by up to a factor of {spread(speeds):.1f} between rounds, so small differences "
            "between ratios mean nothing; [benchmarks.md](benchmarks.md) has speeds in tokens/s, and more precise ratios for `--rows int8`. "
            "`--rows int8` does not change decode.")


def choice_references(models):
    """The reference of the choices' figures: a model that is only available as block-quantized file is its own reference."""
    text = "The reference of block-quantized files is the same file in f32. For weights that Mica quantizes it is the checkpoint in f32"
    for model in models:
        if model["requantized"]:
            text += f", and for {model['title']} the {model['stored']} file in f32, whose blocks are requantized"
    return text + "."


def choices(models):
    """The loss of each choice on each model, as a table."""
    rows = []
    for title, *where in CHOICE_ROWS:
        cells = [choice_cells(model, *where) for model in models]
        if any(cells):
            rows.append([title, *(text for cell in cells for text in cell or ("-", "-"))])
    head = ["choice", *(text for model in models for text in ("bits per weight", f"KL, prefill / decode: {model['title']}"))]
    notes = [choice_references(models) + " Where prefill was measured in several arithmetics with different results, each is named. `mica "
             "compile` quotes the largest of SmolLM2's or, for unquantized checkpoints, of all models trained in f32, also with other weights "
             "(at the end of its section). For preserved blocks with `--rows int8` it quotes the largest of all formats.", ""]
    return [*CHOICES, table(head, rows), "", *notes]


def page(runs, speeds=()):
    models, failed = joined(runs), [line for run in runs for line in run["failed"]]
    lines = ["# Quality", "",
             "The cost of weight formats and their arithmetic in precision. Generated by `tests/quality/measure.py` from "
             "[quality.json](quality.json); do not edit.",
             "",
             *conditions(runs),
             "Columns name the type of the activations that are multiplied by block-quantized weights: bf16, or integers of 16 or 8 bits with "
             "a scale per 32. Prefill uses bf16 on processors with AVX512-BF16, 16-bit integers like decode on others, and 8-bit integers with "
             "`--rows int8`. Programs of `--weights bf16` and `f32` multiply floats in all columns.", "",
             "Bits per weight are computed over all tensors of the file (including embedding, norms and scales) without its metadata; for "
             "Mica's own formats, over the program's packed weights. The figures are defined in `mica eval --help` and match those of "
             "llama.cpp's `llama-perplexity --kl-divergence`. The latter stores the reference's log probabilities in 16 bits and its cache "
             "in f16, so its figures have a floor of about 1e-6 to 1e-5.", "",
             "If the reference is the same file in f32, the figures measure only arithmetic and repacking: zero means no difference, and the error of "
             "the format itself is visible only in the perplexity of the reference. The table of quantized weights of each model, and the picture, include it.", "",
             "![KL divergence over bits per weight](quality.svg)", "",
             "The lines connect the Pareto-optimal formats of llama.cpp without importance matrix: no smaller one is as precise. Red lines "
             "are computed by llama.cpp, blue ones by Mica, solid in prefill and dashed in decode. The panel of a model that is published as a block-quantized file shows that file as well.", "",
             *choices([model for model in models if model["name"] in CHOICE_MODELS]), *(line for each in speeds for line in speed_table(each, runs)),
             "## Goals", "", "The reference is that of the tables, whose sections name the goals that they miss. "
             "[benchmarks.md](benchmarks.md) has the goals for speeds.", "", precision_goals.table(), "", *UNTRAINED, ""]
    if failed:
        lines += ["Not measured:", ""] + [f"- {line}" for line in failed] + [""]
    return "\n".join(lines) + "\n" + tables(models)


# ---------------------------------------------------------------- picture

#: Cells in the picture, of the newest run of each model.
DRAWN = ("mica prefill", "mica decode", "llama prefill", "llama decode")


def is_own(row):
    """Whether Mica quantized the weights of a row."""
    return row["format"].startswith("`")


def front(rows, name):
    """The points (bits, divergence) of llama.cpp's formats than which no smaller one is as precise, in order of bits."""
    points = sorted((row["bits"], row["cells"][name]["kl"]) for row in rows
                    if not is_own(row) and "imatrix" not in row["format"] and not row.get("stored") and row["cells"].get(name) and
                    row["cells"][name]["kl"] > 0)
    best = []
    for x, y in points:
        if not best or y < best[-1][1]:
            best.append((x, y))
    return best


class Panel(chart.Panel):
    """One chart: divergence, logarithmic, over bits per weight. A line for llama.cpp's formats, marks for all but bf16."""

    def __init__(self, title, rows, index):
        self.rows = [row for row in rows if row["bits"] and row["format"] != "`--weights bf16`"]
        xs = [row["bits"] for row in self.rows]
        ys = [cell["kl"] for row in self.rows for key, cell in row["cells"].items() if role_of(key) in DRAWN and cell["kl"] > 0]
        ticks = range(math.floor(min(xs)), math.ceil(max(xs) + 0.01) + 1)
        first, last = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
        super().__init__(title, index, {value: str(value) for value in ticks}, "bits per weight", (first, max(last, first + 1)))

    def of(self, divergence):
        return self.y(math.log10(divergence))

    def legend(self, names):
        entries = [(name, own) for own in (False, True) for name in names
                   if any(is_own(row) == own and row["cells"].get(name) for row in self.rows)]
        for index, (name, own) in enumerate(entries):
            _, color, filled = CELLS[role_of(name)]
            place = self.legend_place(index)
            yield (chart.mark(*place, OWN_COLOR if own else color, filled, own) +
                   chart.legend_text(place, title_of(name).replace("Mica", "own formats") if own else title_of(name)))

    def line(self, name):
        points = front(self.rows, name)
        if len(points) < 2:
            return []
        _, color, filled = CELLS[role_of(name)]
        return [chart.polyline([(self.x(x), self.of(y)) for x, y in points], color, dashed=not filled)]

    def marks(self, row, names):
        points = [(row["cells"][name]["kl"], title_of(name), *CELLS[role_of(name)][1:]) for name in names
                  if row["cells"].get(name) and row["cells"][name]["kl"] > 0]
        for value, title, color, filled in points:
            note = f"{row['format']}, {title}: {small(value)} at {row['bits']:.2f} bits"
            drawn = chart.mark(self.x(row["bits"]), self.of(value), OWN_COLOR if is_own(row) else color, filled, is_own(row))
            yield f"<g><title>{escape(note)}</title>{drawn}</g>"
        # Formats with an importance matrix have as many bits as without: their names would overlap.
        if points and "imatrix" not in row["format"]:
            above = not is_own(row)
            value = (max if above else min)(value for value, *_ in points)
            x, y = self.x(row["bits"]) + 3, self.of(value) + (-8 if above else 12)
            yield (f'<text transform="translate({x:.1f} {y:.1f}) rotate({-50 if above else 40})" class="name">'
                   f'{escape(row["format"].replace("`", "").replace("--weights ", ""))}</text>')

    def draw(self):
        names = [name for name in columns(self.rows) if role_of(name) in DRAWN]
        text = [*self.frame(), *self.legend(names)]
        for name in names:
            text += self.line(name)
        for row in self.rows:
            text += self.marks(row, names)
        return "\n".join(text)


#: Of marks, squares, of Mica's own formats.
OWN_COLOR = "#2b8a57"


def drawn_rows(model):
    """The rows of a model's panel: those of quantized weights and, if these are made from a block-quantized file, the file itself, whose
    reference is the same."""
    stored = row_of(model, "rows", model["stored"]) if model["requantized"] else None
    return model["own"] + ([{**stored, "format": f"{model['stored']}, as published", "stored": True}] if stored else [])


def picture(runs):
    """KL divergence from the unquantized model over bits per weight: a panel for each model."""
    models = [model for model in joined(runs, other_columns=False) if any(row["cells"] for row in model["own"])]
    return chart.document([Panel(f"{model['title']}: KL divergence from {unquantized(model)}", drawn_rows(model), index).draw()
                           for index, model in enumerate(models)])
