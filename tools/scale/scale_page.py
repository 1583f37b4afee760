"""The part of docs/scale.md that follows from cost_model.py and from what tests/bench/ranks.py has measured: tables and docs/scale.svg."""

import dataclasses
import json
import math
import pathlib
import re
import statistics
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), *(str(ROOT / "tests" / each) for each in ("tools", "quality", "bench"))]
import chart  # noqa: E402
import cost_model  # noqa: E402
import published  # noqa: E402
import rpc_peer  # noqa: E402

#: Files of the output of tests/bench/ranks.py; several have different parts of it. Without any, the page has only the model.
MEASURED = sorted((ROOT / "tests/bench").glob("ranks*.json"))
#: The same with latencies that are added to the link.
DELAYED = [path for path in MEASURED if path.name.startswith("ranks-latency")]
#: Output of tests/bench/rpc_peer.py.
RPC = ROOT / "tests/bench/rpc.json"
COLORS = {"shared memory": "#0b62a4", "100 Gb/s": "#2b8a57", "cable": "#2b8a57", "10 Gb/s": "#d1495b", "1 Gb/s": "#8b5fbf"}
#: A link of ranks.py -> its line.
LINES = {"shared memory": "shared memory", "cable": "cable", "cable 10gbit": "10 Gb/s", "cable 1gbit": "1 Gb/s"}


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)])


def number(value):
    """Three digits."""
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}"


def kib(value):
    return f"{value / 1024:,.0f}"


def paragraph(text):
    return textwrap.fill(text, 138, break_long_words=False, break_on_hyphens=False)


def exchange_rows():
    """What a rank of four exchanges per token."""
    for shape in cost_model.SHAPES:
        for form in cost_model.FORMATS[:2]:
            gathers, sums = (cost_model.exchanges(shape, form, 4, reductions=each) for each in (False, True))
            times = [cost_model.exchange_time(found, link, 4) for link in cost_model.LINKS for found in (gathers, sums)]
            yield [shape.name, "bf16" if form.name == "bf16" else "int8, int4", f"{gathers.latencies}, {kib(gathers.bytes)}",
                   f"{sums.latencies}, {kib(sums.bytes)}", *(f"{1e3 * a:.2f} / {1e3 * b:.2f}" for a, b in zip(times[::2], times[1::2]))]


def speed_rows():
    for shape in cost_model.SHAPES:
        for form in cost_model.FORMATS:
            for link in cost_model.LINKS:
                speeds = cost_model.possible_speeds(shape, form, link)
                yield [shape.name, form.name, link.name, *(number(speeds[ranks]) if ranks in speeds else "-" for ranks in cost_model.RANKS)]


def replica_cell(shape, form, link, ranks):
    """With the bandwidth of the model; of a network also with that of the link, which long exchanges did not reach on the test machine."""
    links = [link] + [dataclasses.replace(link, bulk=link.bandwidth)] * ("Gb/s" in link.name)
    found = [cost_model.replicas_from(shape, form, each, ranks) for each in links]
    return " / ".join(dict.fromkeys("never" if each is None else "do not fit" if each == 0 else str(each) for each in found))


def replica_rows():
    for shape in cost_model.SHAPES:
        for form in cost_model.FORMATS:
            yield [shape.name, form.name, *(replica_cell(shape, form, link, ranks) for ranks in (2, 8) for link in cost_model.LINKS)]


def price_rows():
    """The speed with gathers, relative to the speed with reductions."""
    for shape in cost_model.SHAPES:
        for form in cost_model.FORMATS:
            yield [shape.name, form.name,
                   *(f"{cost_model.speed_of_gathers(shape, form, link, ranks):.2f}" if cost_model.is_possible(shape, form, ranks) else "-"
                     for link in cost_model.LINKS for ranks in (2, 4, 8))]


# ---------------------------------------------------------------- what was measured


def first_mpi(result):
    """The implementation that all links were measured with."""
    return next((each["mpi"] for part in ("speeds", "exchanges") for each in result[part] if each["mpi"]), None)


def decode_speeds(result):
    """(figures of decoding with two ranks, tokens/s of one process, microseconds of the exchanges of a layer by link)"""
    for each in result["speeds"]:
        if not each["mpi"] or each["test"] != "decode" or not each["ratio"] or each["mpi"] != first_mpi(result):
            continue
        one = next(other for other in result["speeds"]
                   if not other["mpi"] and (other["weights"], other["test"]) == (each["weights"], "decode"))
        exchange = "four gathers, " + ("bf16 and f32" if each["weights"] == "bf16" else "f32")
        layers = {other["link"]: other["median_us"]["median"] for other in result["exchanges"] if other["median_us"]
                  and (other["exchange"], other["by"], other["mpi"], other["ranks"]) == (exchange, "mica", each["mpi"], 2)}
        yield each, one["tokens_per_s"]["median"], layers


def measured_time(layer):
    """Seconds of the exchanges of a step, from the microseconds of those of a layer."""
    return cost_model.measured_exchange_time(layer, layer / 4, cost_model.SHAPES[0])


def model_of(link):
    """The link of the model, or None."""
    return next((each for each in cost_model.LINKS if each.name == LINES.get(link)), None)


def model_ratio(each, one):
    """The ratio to one process with the links of the model, or None."""
    form = next(form for form in cost_model.FORMATS if form.name == each["weights"])
    if link := model_of(each["link"]):
        return cost_model.predicted_ratio(one, cost_model.exchange_time(cost_model.exchanges(cost_model.SHAPES[0], form, 2), link, 2))
    return None


def decimals(value):
    return "-" if value is None else f"{value:.2f}"


def spread(values, shown):
    """Median, minimum and maximum."""
    return f"{shown(values['median'])} ({shown(values['min'])} - {shown(values['max'])})"


def rounds(values):
    return f"{len(values['values'])} rounds"


def verdict(worst, best):
    """Of a goal that the worst and the best round reach, or not."""
    return "reached" if worst else "undecided" if best else "missed"


def ratio_verdict(each):
    return verdict(each["ratio"]["min"] >= each["goal"], each["ratio"]["max"] >= each["goal"])


def exchange_verdict(each):
    return verdict(each["median_us"]["max"] <= each["goal"], each["median_us"]["min"] <= each["goal"])


def memory_verdict(each):
    """It is measured once."""
    return verdict(each["ratio"] <= each["goal"], each["ratio"] <= each["goal"])


def goal_cell(each, judge):
    return "-" if each.get("goal") is None else f"{each['goal']}: {judge(each)}"


def ratio_cells(each):
    return [spread(each["tokens_per_s"], number), spread(each["ratio"], decimals), goal_cell(each, ratio_verdict)]


def divergence(weights, role="decode", cpu=""):
    """The KL divergence of programs with these weights. Without instructions for bf16, prefill with quantized weights is in int16."""
    prefill = "" if weights == "bf16" or "_bf16" in cpu else "int16"
    return published.small(published.figures_of("trained", f"`--weights {weights}`", prefill)[role]["kl"])


def divergences():
    formats = [form.name for form in cost_model.FORMATS]
    return ("Several ranks compute the same numbers as one process, so the KL divergence of a format is that of one process. It is quoted from "
            f"[quality.md](quality.md), of the small Llama trained in f32: {', '.join(f'{name} {divergence(name)}' for name in formats)}.")


def decode_rows(result):
    for each, one, layers in decode_speeds(result):
        measured = cost_model.predicted_ratio(one, measured_time(layers[each["link"]])) if each["link"] in layers else None
        yield [each["weights"], divergence(each["weights"]), LINES[each["link"]], *ratio_cells(each), decimals(measured),
               decimals(model_ratio(each, one))]


def other_rows(result):
    """Prompts, and decoding with the other implementation."""
    for cpu, each in ((run["machine"]["cpu"], each) for run in result["runs"] for each in run["speeds"]):
        if each["mpi"] and each["ratio"] and (each["test"] == "prefill" or each["mpi"] != first_mpi(result)):
            role = "prefill" if each["test"] == "prefill" else "decode"
            yield [each["weights"], divergence(each["weights"], role, cpu), "512 tokens" if role == "prefill" else "decode", LINES[each["link"]],
                   each["mpi"], *ratio_cells(each)]


def measured_points(result):
    """(weights, link, tokens/s of two ranks and of one process, ratio predicted from measured exchanges)"""
    for each, one, layers in decode_speeds(result):
        if each["link"] in layers:
            yield (each["weights"], LINES[each["link"]], each["tokens_per_s"]["median"], one,
                   cost_model.predicted_ratio(one, measured_time(layers[each["link"]])))


def received(each):
    """Bytes that a rank receives: of rows that are gathered, what other ranks send; of sums, about two rows."""
    return each["bytes"] * (each["ranks"] - 1) / each["ranks"] * (2 if "reductions" in each["exchange"] else 1)


def model_us(each):
    """Of measured exchanges, or None."""
    if link := model_of(each["link"]):
        whole = round(received(each) * each["ranks"] / (each["ranks"] - 1))
        return 1e6 * cost_model.exchange_time(cost_model.Exchanges(each["latencies"], whole), link, each["ranks"])
    return None


def exchange_cell(by, link, mpi, kinds):
    """Microseconds by these kinds. Mica's exchange through shared memory was measured once for all implementations."""
    ours = by.get((link, "mica", mpi)) or (link == "shared memory" and next((by[key] for key in by if key[:2] == (link, "mica")), None))
    theirs = by.get((link, "mpi", mpi))
    if not ours and not theirs:
        return "-"
    found = {"model": model_us(ours or theirs), "mica": ours and ours["median_us"]["median"], "mpi": theirs and theirs["median_us"]["median"]}
    return " / ".join(number(found[kind]) if found[kind] else "-" for kind in kinds)


def exchange_table(measured, mpi, kinds):
    """Exchanges that an implementation has started, between one number of ranks."""
    links = [link for link in LINES if any(each["link"] == link for each in measured)]
    rows = []
    for name in dict.fromkeys(each["exchange"] for each in measured):
        by = {(each["link"], each["by"], each["mpi"]): each for each in measured if each["exchange"] == name}
        rows.append([name, kib(received(next(iter(by.values())))), *(exchange_cell(by, link, mpi, kinds) for link in links)])
    return table(["exchange", "KiB", *(LINES[link] for link in links)], rows)


def repeats_text(measured):
    """How often exchanges were repeated: "500 repetitions (one gather of 16 KiB), 100 (one row), 25 (32 rows), 5 (512 rows)"."""
    found = {}
    for each in measured:
        rows = re.search(r"[0-9]+ rows", each["exchange"])
        found.setdefault(rows.group() if rows else each["exchange"] if each["latencies"] == 1 else "one row", each["repeat"])
    first, *rest = [f"{repeat}{{}} ({words})" for words, repeat in found.items()]
    return ", ".join([first.format(" repetitions"), *(each.format("") for each in rest)])


def reduction_rows(measured):
    """The time of two reductions relative to four gathers, by the exchange of programs, for one row in f32."""
    for ranks in sorted({each["ranks"] for each in measured}):
        cells = []
        for link in LINES:
            gathers, sums = (next((each["median_us"]["median"] for each in measured
                                   if (each["exchange"], each["by"], each["link"], each["ranks"]) == (name, "mica", link, ranks)), None)
                             for name in ("four gathers, f32", "two reductions, f32"))
            cells.append(decimals(gathers and sums and sums / gathers))
        yield [str(ranks), *cells]


def exchange_passage(result):
    """Where ranks share processors, neither the model holds nor a comparison with MPI's functions, which poll without leaving them."""
    measured = [each for each in result["exchanges"] if each["median_us"]]
    if not measured:
        return []
    processors = min(run["machine"]["processors"] for run in result["runs"])
    spreads = [(each["median_us"]["max"] - each["median_us"]["min"]) / each["median_us"]["median"] for each in measured]
    lines = [paragraph("Exchanges of a layer of the 1B shape, in microseconds: by the model (not for links that it does not have) / by Mica / by "
                       "MPI_Allgather or MPI_Allreduce. KiB: what a rank receives. Mica does not reduce: its figure is that of a sum in a fixed "
                       "order, for which a rank gathers the rows of all N ranks, N / 2 times as many bytes. Through shared memory, MPI only "
                       f"starts Mica's ranks. Between rounds, an exchange differs by {100 * statistics.median(spreads):.0f} % (median of all; "
                       f"at most {100 * max(spreads):.0f} %). A round is the median of {repeats_text(measured)}."), ""]
    for ranks in sorted({each["ranks"] for each in measured}):
        of_ranks = [each for each in measured if each["ranks"] == ranks]
        for mpi in dict.fromkeys(each["mpi"] for each in of_ranks):
            kinds, words = ("model", "mica", "mpi"), ""
            if ranks > processors:
                kinds, words = ("mica",), f", by Mica only: they share {processors} processors"
            lines += [f"Between {ranks} ranks started by {mpi}{words}:", "", exchange_table(of_ranks, mpi, kinds), ""]
    return lines + ["Two reductions of one row in f32 relative to four gathers, by Mica:", "",
                    table(["ranks", *LINES.values()], reduction_rows(measured)), ""]


def memory_passage(result):
    rows = [[each["weights"], each["mpi"] or "one process", ", ".join(f"{size / 1e6:.0f}" for size in each["bytes"]), decimals(each["ratio"]),
             goal_cell(each, memory_verdict)] for each in result["memory"] if each["ratio"] is not None]
    return ["Peak resident memory of each process, in MB, with 512 cached positions:", "",
            table(["weights", "ranks", "MB", "largest / one process", "goal, at most"], rows), ""] if rows else []


def ids_passage(result):
    """Whether the ids of ranks are those of one process; files of older measurements do not tell."""
    verdicts = {}
    for each in result["ids"]:
        if each["equal"] is not None:
            key = f"{each['generated']} ids, generated after a prompt of {each['prompt']} random ids"
            verdicts.setdefault((each["equal"], key), []).append(f"{each['weights']} with the link {LINES[each['link']]}, {each['mpi']}")
    return [line for (equal, key), found in verdicts.items()
            for line in (paragraph(f"Ids {'equal' if equal else 'not equal'} to those of one process ({key}): {'; '.join(found)}."), "")]


def judged_goals(result):
    """(verdict, description) of all goals."""
    for each in result["speeds"]:
        if each.get("goal") and each["ratio"]:
            test = "prefill" if each["test"] == "prefill" else "decode"
            yield ratio_verdict(each), (f"{test} in {each['weights']} with the link {LINES[each['link']]}, {each['mpi']} "
                                        f"({spread(each['ratio'], decimals)} in {rounds(each['ratio'])}, at least {each['goal']})")
    for each in result["memory"]:
        if each.get("goal") and each["ratio"] is not None:
            yield memory_verdict(each), f"memory in {each['weights']}, {each['mpi']} ({decimals(each['ratio'])}, at most {each['goal']})"
    for each in result["exchanges"]:
        if each.get("goal") and each["median_us"]:
            yield exchange_verdict(each), (f"{each['exchange']}, median of {each['repeat']} ({spread(each['median_us'], number)} us in "
                                           f"{rounds(each['median_us'])}, at most {each['goal']})")


def absent(result):
    """What was not measured, for each part and implementation."""
    for part, words in (("speeds", "tokens per second"), ("exchanges", "exchanges"), ("memory", "memory of processes")):
        found = {each["mpi"] for each in result[part] if each["mpi"]}
        yield from [f"{words} with {name}" for name in ("openmpi", "mpich") if name not in found] if found else [words]


def goals_passage(result):
    """The verdicts on goals, and what has none because it was not measured."""
    judged = list(judged_goals(result))

    def those(found):
        texts = [text for each, text in judged if each == found]
        return f"{len(texts)} of {len(judged)}" + (": " if texts else "") + "; ".join(texts) + "."

    missing = ", ".join(absent(result))
    return [paragraph(f"Goals missed: {those('missed')} Undecided, because some rounds reach the goal and some do not: {those('undecided')}"
                      + (f" Not measured: {missing}." if missing else "")), ""]


def origin(result):
    """How everything was measured."""
    texts = []
    for run in result["runs"]:
        machine = run["machine"]
        versions = "".join(f", {name} {version}" for name, version in run.get("mpi", {}).items())
        # Memory is measured once, and whatever else runs.
        rounds_text = (f"; medians of {run['rounds']} rounds (minimum - maximum); other processes used up to "
                       f"{max(load['others'] for load in run['load'].values()):.2f} processors" if run["load"] else "")
        texts.append(f"Measured with `{run['command']}`, commit {run['commit']}: {machine['cpu']}, {machine['processors']} processors, "
                     f"Linux {machine['kernel']}{versions}{rounds_text}.")
    return " ".join(texts)


def noise(result):
    """How much the speed of one process differs between rounds, relative to its median."""
    speeds = [each["tokens_per_s"] for each in result["speeds"] if not each["mpi"] and each["tokens_per_s"]]
    return max(((each["max"] - each["min"]) / each["median"] for each in speeds), default=0)


def check_latency(result):
    words = (f"{origin(result)} A latency is added to each exchange between two ranks, on a link without a limit. Decoding relative to one "
             "process with two threads, as measured, and as it follows from the exchanges without an added latency and four latencies per layer:")
    rows = []
    for each, one, layers in decode_speeds(result):
        link, _, latency = each["link"].partition(" +")
        if link in layers:
            layer = layers[link] + 4 * float(latency.removesuffix("us") or 0)
            rows.append([each["weights"], divergence(each["weights"]), latency.removesuffix("us") or "0", *ratio_cells(each)[:2],
                         decimals(cost_model.predicted_ratio(one, measured_time(layer)))])
    return [paragraph(words), "", table(["weights", "KL", "latency, us", "tokens/s", "ratio", "expected"], rows), ""]


def check(result):
    lines = [paragraph(origin(result)), ""]
    if result["speeds"]:
        words = ("Decoding with two ranks of one thread, relative to one process with two threads on the same processors; the goal; and what is "
                 "expected if the exchanges take the measured time, and the time of the model. The tokens per second of one process differ by up "
                 f"to {100 * noise(result):.0f} % between rounds: smaller differences are noise. The weights are random, so the KL divergence "
                 "is that of the small Llama, in the same format and arithmetic.")
        others = [*other_rows(result)]
        lines += [paragraph(words), "",
                  table(["weights", "KL", "link", "tokens/s", "ratio", "goal, at least", "by measured exchanges", "by the model"], decode_rows(result)), "",
                  "The same for a prompt" + ", and for other implementations of MPI" * any(each[4] != first_mpi(result) for each in others)
                  + ":", "",
                  table(["weights", "KL", "test", "link", "MPI", "tokens/s", "ratio", "goal, at least"], others), ""]
    return lines + ids_passage(result) + exchange_passage(result) + memory_passage(result) + goals_passage(result)


def rpc_passage():
    """Two ranks against llama.cpp's RPC backend."""
    conditions, *lines = rpc_peer.markdown(json.loads(RPC.read_text(encoding="utf-8"))).split("\n")
    return "\n".join([paragraph(conditions), *lines, ""])


def passage(result, delayed=None):
    machine = cost_model.MACHINE
    links = [[link.name, f"{1e6 * link.latency:.0f}", f"{link.bandwidth / 1e9:g}", f"{link.bulk / 1e9:g}"] for link in cost_model.LINKS]
    pairs = [(ranks, link) for ranks in (2, 8) for link in cost_model.LINKS]
    lines = [f"Per rank: memory with {machine.bandwidth / 1e9:.0f} GB/s, {machine.flops / 1e12:.0f} TFLOP/s, "
             f"{machine.memory / 1e9:.0f} GB. Each sequence has {cost_model.CONTEXT} cached positions.", "",
             table(["link", "latency, us", "GB/s", f"GB/s beyond {cost_model.EAGER >> 10} KiB"], links),
             "", paragraph("Exchanges per token between four ranks, as number and KiB, and their time in milliseconds with gathers / with "
                           "reductions:"), "",
             table(["model", "weights", "gathers", "reductions", *(link.name for link in cost_model.LINKS)], exchange_rows()), "",
             paragraph(divergences()), "",
             paragraph("Tokens per second of a single sequence; `-`: the number of heads is not a multiple of the number of ranks, or a part of "
                       "the model does not fit into the memory of a rank:"), "",
             table(["model", "weights", "link", *(f"{ranks} rank{'s' * (ranks > 1)}" for ranks in cost_model.RANKS)], speed_rows()), "",
             "![Tokens per second over ranks](scale.svg)", "",
             paragraph("What exactness costs: the same with gathers, relative to the speed with reductions. Reductions have a lower bound of their "
                       "time, the fewest rounds and the fewest bytes:"), "",
             table(["model", "weights", *(f"{ranks} ranks, {link.name}" for link in cost_model.LINKS for ranks in (2, 4, 8))], price_rows()), "",
             paragraph("The number of concurrent sequences from which a replica on each rank generates more tokens per second than one "
                       f"model on all ranks (`never`: not up to {cost_model.MAX_SEQUENCES}). Of networks, two numbers: with the bandwidth that long "
                       "exchanges reached on the test machine / if they reach that of the link:"), "",
             table(["model", "weights", *(f"{ranks} ranks, {link.name}" for ranks, link in pairs)], replica_rows()), ""]
    return "\n".join(lines + (check(result) if result else []) + (check_latency(delayed) if delayed else []))


def decades(speeds):
    return math.floor(math.log10(min(speeds))), math.ceil(math.log10(max(speeds)))


class Panel(chart.Panel):
    """Tokens per second, logarithmic, over ranks."""

    def __init__(self, title, index, ranks, speeds):
        super().__init__(title, index, {math.log2(each): str(each) for each in ranks}, "ranks", decades(speeds),
                         lambda power: f"{10.0 ** power:g}")
        self.text, self.entries = list(self.frame()), 0

    def at(self, ranks, speed):
        return self.x(math.log2(ranks)), self.y(math.log10(speed))

    def line(self, title, points, color, dashed):
        """A line with its entry in the legend; points are (ranks, tokens/s)."""
        x, y = self.legend_place(self.entries)
        self.entries += 1
        self.text += [chart.polyline([self.at(*point) for point in points], color, dashed),
                      chart.polyline([(x - 7, y), (x + 7, y)], color, dashed), chart.legend_text((x, y), title)]

    def point(self, title, ranks, speed, color):
        drawn = chart.mark(*self.at(ranks, speed), color)
        self.text.append(f"<g><title>{title}: {number(speed)} tokens/s</title>{drawn}</g>")

    def draw(self):
        return "\n".join(self.text)


def model_panel(shape, index):
    """A line for each link, dashed for bf16, solid for int4."""
    lines = [(form, link, list(cost_model.possible_speeds(shape, form, link).items()))
             for form in (cost_model.FORMATS[2], cost_model.FORMATS[0]) for link in cost_model.LINKS]
    panel = Panel(f"{shape.name}: tokens per second of one sequence", index, cost_model.RANKS,
                  [speed for *_, points in lines for _, speed in points])
    for form, link, points in lines:
        panel.line(f"{form.name}, {link.name}", points, COLORS[link.name], form.name == "bf16")
    return panel.draw()


def measured_panel(result, index):
    """The measured machine: marks, and lines to what the model predicts from its exchanges; nothing if no speeds were measured."""
    found = [each for each in measured_points(result) if each[0] in ("bf16", "int4")]
    if not found:
        return []
    speeds = [speed for _, _, two, one, predicted in found for speed in (one, two, one * predicted)]
    panel = Panel("1B, measured: two ranks that share the processors of one machine", index, (1, 2), speeds)
    for weights, link, two, one, predicted in found:
        panel.line(f"{weights}, {link}", [(1, one), (2, one * predicted)], COLORS[link], weights == "bf16")
        panel.point(f"{weights}, {link}, one process", 1, one, COLORS[link])
        panel.point(f"{weights}, {link}, two ranks", 2, two, COLORS[link])
    return [panel.draw()]


def picture(result):
    panels = [model_panel(shape, index) for index, shape in enumerate(cost_model.SHAPES)]
    return chart.document(panels + (measured_panel(result, len(panels)) if result else []))


def merged(results):
    """What several runs have measured; None if there are none."""
    parts = ("speeds", "exchanges", "ids", "memory")
    return {"runs": results, **{part: [each for result in results for each in result.get(part, [])] for part in parts}} if results else None


def load(paths=None):
    """What was measured, by default without added latencies, or None."""
    paths = [path for path in MEASURED if path not in DELAYED] if paths is None else paths
    return merged([json.loads(path.read_text(encoding="utf-8")) for path in paths])
