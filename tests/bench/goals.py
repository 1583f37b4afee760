"""What programs are to reach, beside peers and beside what the machine can do."""

import dataclasses

#: Below so many parameters what surrounds the products takes a good part of the time.
SMALL = 300e6


@dataclasses.dataclass(frozen=True)
class Goal:
    """At least so much. `of` is a key of report.summary's figures, or the name of a peer that the ratio is to."""

    of: str
    least: float

    def text(self):
        kind = {"better": "x the better peer", "share_of_bandwidth": " of the bandwidth", "share_of_peak": " of the peak"}
        return f">= {self.least:g}{kind.get(self.of, 'x ' + self.of)}"


def _better(least):
    return Goal("better", least)


DECODE = (_better(1.0), Goal("share_of_bandwidth", 0.92))
SMALL_DECODE = (Goal("llama.cpp", 1.5), Goal("ik_llama.cpp", 1.1))
#: By test and by the precision of the weights.
GOALS = {
    "decode": {weights: DECODE for weights in ("bf16", "int8", "int4")},
    "prefill": {"bf16": (_better(1.12), Goal("share_of_peak", 0.95)), "int8": (_better(1.8),), "int4": (_better(1.5),)},
    "batch": {"int8": (_better(2.0),)},
    "deep": {weights: (_better(1.2),) for weights in ("bf16", "int8", "int4")},
    "long": {weights: (_better(1.3),) for weights in ("bf16", "int8", "int4")},
}


def goals_of(test, info):
    """Of a test (its key) of a program whose `info --json` is given."""
    weights, parameters = info.get("weights"), info.get("manifest", {}).get("parameters", 0)
    if 0 < parameters < SMALL:
        return SMALL_DECODE if test == "decode" and weights in GOALS["decode"] else ()
    return GOALS.get(test, {}).get(weights, ())


def judge(goals, row):
    """What became of each: its text, the figure's median (None where there is none) and whether it is reached."""
    verdicts = []
    for goal in goals:
        figure = row["ratios"].get(goal.of) if goal.of not in row else row[goal.of]
        reached = figure["median"] if figure else None
        verdicts.append({"goal": goal.text(), "median": reached, "reached": reached is not None and reached >= goal.least})
    return verdicts


def cell(verdicts):
    def words(verdict):
        if verdict["reached"]:
            return f"{verdict['goal']}: reached"
        return f"{verdict['goal']}: " + ("-" if verdict["median"] is None else f"short, {verdict['median']:.2f}")
    return "; ".join(map(words, verdicts)) or "-"
