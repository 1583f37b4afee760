"""The table of goals.py: from the figures of all rounds to rows with goals and verdicts."""

import dataclasses
import json
import pathlib
import re
import statistics
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "quality"))
import published  # noqa: E402

PEER = "llama-server"
HEAD = f"| program, peer | KL, decode | work | Mica | {PEER} | ratio | goal |\n|---|---|---|---|---|---|---|"
#: A share of a processor that other processes used; below, it is not mentioned.
OTHERS = 0.03


@dataclasses.dataclass(frozen=True)
class Goal:
    sign: str
    value: float | None  # None: see STREAMS
    of_peer: bool = False  # whether it is about the ratio to the peer
    word: str = ""  # of a goal without a number, to which ours gives one

    def reached(self, value):
        return value >= self.value if self.sign == ">=" else value <= self.value


@dataclasses.dataclass(frozen=True)
class Figure:
    """A figure that measurements return: its text in the table, its format, and its goal."""
    text: str
    form: str
    goal: Goal | None = None
    has_ratio: bool = False


#: For "8 over 1": a step that is limited by reading weights gains more.
STREAMS = {"bf16": 4, "int8": 4, "q8_0": 4}
STREAMS_OTHERWISE = 2.5

#: By work and figure. Other figures, such as the sizes of a loop, are part of texts.
FIGURES = {
    "streams": {
        "tokens/s of 1": Figure("1 stream, tokens/s", ".1f", has_ratio=True),
        "tokens/s of 8": Figure("8 streams, tokens/s", ".1f", Goal(">=", 1.5, of_peer=True), has_ratio=True),
        "8 over 1": Figure("8 streams, speedup over one", ".2f", Goal(">=", None)),
        "tokens/s of 8, sampled": Figure("8 streams at temperature 0.8, tokens/s", ".1f", has_ratio=True),
    },
    "arrival": {
        "p99 gap undisturbed, ms": Figure("4 streams: 99th percentile of gaps, ms", ".0f"),
        "p99 gap during prefill, ms": Figure("the same during the prefill of a prompt of 2048 tokens", ".0f"),
        "gaps during prefill over undisturbed": Figure("the same, over the gaps of undisturbed streams", ".2f", Goal("<=", 2)),
        "gaps over undisturbed": Figure("the same for the gaps of the whole time of the streams", ".2f"),
        "cost over one after the other": Figure("time of streams and prompt, over that of one after the other", ".3f", Goal("<=", 1.15)),
    },
    "loop": {
        "tokens/s": Figure("{clients} clients in a closed loop, prompts of {shortest prompt} to {longest prompt} tokens, answers of {shortest answer} to "
                           "{longest answer}{scaled}: tokens/s", ".1f", Goal(">=", 1.5, of_peer=True), has_ratio=True),
        "p99 first token, s": Figure("the same: 99th percentile of the time to the first token, s", ".0f", Goal("<=", 1, of_peer=True), has_ratio=True),
        "p99 gap, ms": Figure("the same: 99th percentile of gaps, ms", ".0f"),
        "requests per client": Figure("the same: requests per client", ".1f"),
    },
    "turn": {
        "computed over new": Figure("second turn of a conversation of 4096 tokens: computed tokens over new ones", ".2f", Goal("<=", 1)),
        "computed": Figure("the same: computed tokens", ".0f"),
        "second turn, s": Figure("the same: time to its first token, s", ".2f"),
    },
    "idle": {
        "MB more": Figure("5000 idle connections, MB", ".1f", Goal("<=", 50)),
        "gaps over undisturbed": Figure("99th percentile of a stream's gaps beside them, over the gaps without them", ".2f", Goal("<=", 1.1, word="undisturbed")),
    },
    "batch": {
        "time over --batch": Figure("32 requests, time over `--batch`", ".2f", Goal("<=", 1.03)),
        "time over --batch, streamed": Figure("the same, streamed", ".2f", Goal("<=", 1.03)),
        "seconds": Figure("the same: time of `--batch`, s", ".1f"),
    },
}
#: Of the loop, before its sizes were recorded.
SIZES = {"clients": 64, "shortest prompt": 32, "longest prompt": 2048, "shortest answer": 16, "longest answer": 256, "scale": 1}


def row(work, name, ours, theirs, weights):
    """A line of the table; `ours` and `theirs`: the figures of each round."""
    figure = FIGURES[work][name]
    mine, others = ([each[name] for each in rounds] for rounds in (ours, theirs))
    ratios = [a / b for a, b in zip(mine, others)]
    sizes = {**SIZES, **{key: value for key, value in ours[0].items() if key in SIZES}}
    sizes["scaled"] = f" (1/{sizes['scale']} of the goal's)" if sizes["scale"] > 1 else ""
    line = {"work": work, "figure": name, "text": figure.text.format(**sizes), "mica": statistics.median(mine), "peer": None, "ratio": None, "goal": None,
            "reached": None, "verdict": ""}
    if theirs:
        line["peer"], line["ratio"] = statistics.median(others), statistics.median(ratios)
    if goal := figure.goal:
        if goal.value is None:
            goal = dataclasses.replace(goal, value=STREAMS.get(weights, STREAMS_OTHERWISE))
        unit, form = ("x", ".2f") if goal.of_peer else ("", figure.form)
        line["goal"] = f"{goal.sign} {goal.value:g}{unit}" + (f' (ours for "{goal.word}")' if goal.word else "")
        if values := ratios if goal.of_peer else mine:
            line["reached"], line["verdict"] = judged(goal, form, values, requests_of(work, [*ours, *theirs]))
    return line


def requests_of(work, rounds):
    """The fewest requests per client of a closed loop; None if they were not recorded, 2 for other work."""
    return 2 if work != "loop" else min((each.get("requests per client", -1) for each in rounds)) if all("requests per client" in each for each in rounds) else None


def judged(goal, form, values, requests):
    """(whether the goal is reached; None: not measured, text)."""
    if requests is None or requests < 2:
        return None, "not measured: " + ("the requests per client were not recorded" if requests is None else f"{requests:.1f} requests per client")
    median = statistics.median(values)
    reached = goal.reached(median)
    spread = "1 round" if len(values) == 1 else f"{min(values):{form}} to {max(values):{form}}"
    return reached, ("reached" if reached else f"missed: {median:{form}}") + f" ({spread})"


def lines_of(rounds, weights):
    """The lines of a table, for {work: {engine: figures of each round}}."""
    lines = []
    for work, engines in rounds.items():
        ours, theirs = engines["Mica"], engines.get(PEER, [])
        lines += [row(work, name, ours, theirs, weights) for name in FIGURES[work] if all(name in each for each in [*ours, *theirs])]
    return lines


def divergence(weights):
    """The KL divergence of such weights in decode, on the small Llama: those of the programs that are served are random."""
    figures = published.figures_of("trained", f"`--weights {weights}`", "") or published.figures_of("trained", weights.upper(), "")
    return published.small(figures["decode"]["kl"]) if figures else "-"


def formatted(line, program, kl):
    figure = FIGURES[line["work"]][line["figure"]]
    shown = lambda value: "-" if value is None else f"{value:{figure.form}}"
    ratio = f"{line['ratio']:.2f}x" if figure.has_ratio and line["ratio"] is not None else ""
    goal = f"{line['goal']}: {line['verdict']}" if line["goal"] and line["verdict"] else line["goal"] or ""
    return re.sub(" +", " ", f"| {program} | {kl} | {line['text']} | {shown(line['mica'])} | {shown(line['peer'])} | {ratio} | {goal} |")


def counted(number, noun):
    return f"{number} {noun}" + ("s" if number > 1 else "")


def name_of(path, conditions):
    """The program and the peer's file: by the name of the file of figures, shape-weights[-rows-int8]-commit..."""
    found = re.match(r"(.*?)-(bf16|f32|int8|int4|q\w+)(-rows-int8)?-", pathlib.Path(path).name)
    program = f"{found[1]} {found[2]}" + (", `--rows int8`" if found[3] else "") if found else pathlib.Path(path).stem
    peer = re.search(r"--peer \S+ \S*?(\w+)\.gguf", conditions["command"])
    return program + (f", {peer[1]}" if peer else "")


def table_of(paths):
    """The table of files of figures. Runs of the same program, commit, machine and work are merged: their rounds count alike. A file may have a
    note, about all work or some of it; of an incomplete round, none is used."""
    groups = {}
    for path in paths:
        found = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        conditions = found["conditions"]
        for work, engines in found["rounds"].items():
            notes = filter(None, (conditions.get("note"), found.get("notes", {}).get(work)))
            key = (name_of(path, conditions), conditions["mica"], re.sub(r"^[\d.]+-", "", conditions["kernel"]), work)
            group = groups.setdefault(key, {"runs": 0, "rounds": {}, "others": 0, "notes": [], **conditions})
            group["runs"] += 1
            group["notes"] += notes
            group["others"] = max(group["others"], found.get("load", {}).get(work, {}).get("others", 0))
            complete = min(map(len, engines.values()))
            if complete < max(map(len, engines.values())) and "note" not in conditions:
                raise ValueError(f"{path}: {work} has not the same number of rounds for each program, and no note")
            for engine, rounds in engines.items():
                group["rounds"].setdefault(engine, []).extend(rounds[:complete])
    text = [HEAD]
    for (program, commit, kernel, work), group in groups.items():
        runs = counted(group["runs"], "run") + ", " if group["runs"] > 1 else ""
        cell = f"{program}; commit {commit}; {kernel}; {runs}{counted(len(group['rounds']['Mica']), 'round')}"
        if group["others"] > OTHERS:
            cell += f"; other processes used {group['others']:.2f} processors"
        cell += "".join(f"; {note}" for note in group["notes"])
        kl = divergence(group["weights"])
        for line in lines_of({work: group["rounds"]}, group["weights"]):
            text.append(formatted(line, cell, kl))
            cell = kl = ""
    return "\n".join(text)
