"""The part of docs/scale.md that follows from cost_model.py and from what tests/bench/ranks.py has measured: tables and docs/scale.svg."""

import json
import math
import pathlib
import sys
import textwrap

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[2] / "tests/tools")]
import chart  # noqa: E402
import cost_model  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: The output of tests/bench/ranks.py; without it, the page has only the model.
MEASURED = ROOT / "tests/bench/ranks.json"
#: The same with latencies that are added to the link.
DELAYED = ROOT / "tests/bench/ranks-latency.json"
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
    found = cost_model.replicas_from(shape, form, link, ranks)
    return "never" if found is None else "do not fit" if found == 0 else str(found)


def replica_rows():
    for shape in cost_model.SHAPES:
        for form in cost_model.FORMATS:
            yield [shape.name, form.name, *(replica_cell(shape, form, link, ranks) for ranks in (2, 8) for link in cost_model.LINKS)]


def decode_speeds(result):
    """(figures of decoding with two ranks, tokens/s of one process, microseconds of the exchanges of a layer by link)"""
    for each in result["speeds"]:
        if not each["mpi"] or each["test"] != "decode" or not each["ratio"] or each["mpi"] != result["speeds"][1]["mpi"]:
            continue
        one = next(other for other in result["speeds"]
                   if not other["mpi"] and (other["weights"], other["test"]) == (each["weights"], "decode"))
        exchange = "four gathers, " + ("bf16 and f32" if each["weights"] == "bf16" else "f32")
        layers = {other["link"]: other["median_us"]["median"] for other in result["exchanges"] if other["median_us"]
                  and (other["exchange"], other["by"], other["mpi"], other["ranks"]) == (exchange, "mica", each["mpi"], 2)}
        if each["link"] in layers:
            yield each, one["tokens_per_s"]["median"], layers


def measured_speeds(result):
    """(weights, link, tokens/s, ratio, ratio of the model) of decoding with two ranks; the model has the measured exchanges."""
    for each, one, layers in decode_speeds(result):
        layer = layers[each["link"]]
        predicted = cost_model.predicted_ratio(one, layer, layer / 4, cost_model.SHAPES[0])
        yield each["weights"], LINES[each["link"]], each["tokens_per_s"]["median"], each["ratio"]["median"], predicted


def latency_rows(result):
    """The model adds the latency to the four exchanges that were measured without it."""
    for each, one, layers in decode_speeds(result):
        link, _, latency = each["link"].partition(" +")
        added = float(latency.removesuffix("us") or 0)
        if link not in layers:
            continue
        layer = layers[link] + 4 * added
        yield [each["weights"], f"{added:.0f}", number(layers[each["link"]]), number(layer), number(each["tokens_per_s"]["median"]),
               f"{each['ratio']['median']:.2f}", f"{cost_model.predicted_ratio(one, layer, layer / 4, cost_model.SHAPES[0]):.2f}"]


def origin(result):
    machine = result["machine"]
    return (f"Measured with `{result['command']}`, commit {result['commit']}: {machine['cpu']}, {machine['processors']} processors, "
            f"Linux {machine['kernel']}, medians of {result['rounds']} rounds.")


def check_latency(result):
    words = (f"{origin(result)} A latency is added to each exchange between two ranks on a link without a limit: the microseconds of the "
             "exchanges of a layer, and tokens per second relative to one process with two threads, both measured and as the model predicts "
             "them from the exchanges without it:")
    return [paragraph(words), "",
            table(["weights", "latency, us", "layer, us", "predicted", "tokens/s", "ratio", "predicted"], latency_rows(result)), ""]


def check(result):
    rows = [[weights, link, number(speed), f"{ratio:.2f}", f"{predicted:.2f}"]
            for weights, link, speed, ratio, predicted in measured_speeds(result)]
    layers = [[each["exchange"], str(each["latencies"]), kib(each["bytes"]), LINES[each["link"]],
               ("Mica, " if each["by"] == "mica" else "") + each["mpi"], str(each["ranks"]), number(each["median_us"]["median"])]
              for each in result["exchanges"] if each["median_us"]]
    words = (f"{origin(result)} Two ranks of one thread, relative to one process with two threads, and what the model predicts from the "
             "measured exchanges of a layer:")
    prompts = [[each["weights"], LINES[each["link"]], number(each["tokens_per_s"]["median"]), f"{each['ratio']['median']:.2f}"]
               for each in result["speeds"] if each["mpi"] == result["speeds"][1]["mpi"] and each["test"] == "prefill" and each["ratio"]]
    return [paragraph(words), "",
            table(["weights", "link", "tokens/s", "ratio", "predicted ratio"], rows), "",
            "The same for a prompt of 512 tokens:", "",
            table(["weights", "link", "tokens/s", "ratio"], prompts), "",
            "Exchanges of a layer of the 1B shape, in microseconds:", "",
            table(["exchange", "latencies", "KiB", "link", "by", "ranks", "us"], layers), ""]


def passage(result, delayed=None):
    machine = cost_model.MACHINE
    links = [[link.name, f"{1e6 * link.latency:.0f}", f"{link.bandwidth / 1e9:g}"] for link in cost_model.LINKS]
    pairs = [(ranks, link) for ranks in (2, 8) for link in cost_model.LINKS]
    lines = [f"Per rank: memory with {machine.bandwidth / 1e9:.0f} GB/s, {machine.flops / 1e12:.0f} TFLOP/s, "
             f"{machine.memory / 1e9:.0f} GB. Each sequence has {cost_model.CONTEXT} cached positions.", "",
             table(["link", "latency, us", "GB/s"], links),
             "", paragraph("Exchanges per token between four ranks, as number and KiB, and their time in milliseconds with gathers / with "
                           "reductions:"), "",
             table(["model", "weights", "gathers", "reductions", *(link.name for link in cost_model.LINKS)], exchange_rows()), "",
             paragraph("Tokens per second of a single sequence; `-`: the number of heads is not a multiple of the number of ranks, or a part of "
                       "the model does not fit into the memory of a rank:"), "",
             table(["model", "weights", "link", *(f"{ranks} rank{'s' * (ranks > 1)}" for ranks in cost_model.RANKS)], speed_rows()), "",
             "![Tokens per second over ranks](scale.svg)", "",
             paragraph("The number of concurrent sequences from which a replica on each rank generates more tokens per second than one "
                       f"model on all ranks (`never`: not up to {cost_model.MOST_SEQUENCES}):"), "",
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
    """The measured machine: marks, and lines to what the model predicts from its exchanges."""
    found = [(*each, each[2] / each[3]) for each in measured_speeds(result) if each[0] in ("bf16", "int4")]
    speeds = [speed for _, _, two, ratio, predicted, one in found for speed in (one, two, one * predicted)]
    panel = Panel("1B, measured: two ranks that share the processors of one machine", index, (1, 2), speeds)
    for weights, link, two, _, predicted, one in found:
        panel.line(f"{weights}, {link}", [(1, one), (2, one * predicted)], COLORS[link], weights == "bf16")
        panel.point(f"{weights}, {link}, one process", 1, one, COLORS[link])
        panel.point(f"{weights}, {link}, two ranks", 2, two, COLORS[link])
    return panel.draw()


def picture(result):
    panels = [model_panel(shape, index) for index, shape in enumerate(cost_model.SHAPES)]
    return chart.document(panels + ([measured_panel(result, len(panels))] if result else []))


def load(path=MEASURED):
    """What was measured, or None."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
