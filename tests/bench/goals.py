"""What programs are to reach, beside peers and beside what the machine can do."""

import dataclasses

import engines

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


def _bandwidth(least):
    return Goal("share_of_bandwidth", least)


SMALL_DECODE = (Goal("llama.cpp", 1.5), Goal("ik_llama.cpp", 1.1))
#: Programs whose matrices are bf16: prompts are bound by the processor's products of bf16.
BF16 = {"decode": (_better(1.0), _bandwidth(0.92)), "prefill": (_better(1.12), Goal("share_of_peak", 0.95)),
        "deep": (_better(1.2),), "long": (_better(1.3),)}
#: Programs whose matrices are blocks, by the type of the rows of their prompts.
BLOCKS = {
    "bf16": {"decode": (_better(1.0), _bandwidth(0.92)), "prefill": (_better(1.05),), "deep": (_better(1.2),)},
    "int8": {"decode": (_better(1.0), _bandwidth(0.92)), "prefill": (_better(1.5),), "deep": (_better(1.2),),
             "long": (_better(1.3),)},
}
#: Blocks of 2 and 3 bits are unpacked with more instructions per byte.
FEW_BITS = ("q2_k", "q3_k")
FEW_BITS_DECODE = (_better(1.0), _bandwidth(0.85))
#: Eight sequences at once, Mica's own format of 8 bits beside the peer's Q8_0.
OWN_INT8, OWN_INT8_BATCH = "int8_g32", (_better(1.5),)


def goals_of(test, info):
    """Of a test (its key) of a program whose `info --json` is given."""
    manifest = info.get("manifest", {})
    small = 0 < manifest.get("parameters", 0) < SMALL
    formats = manifest.get("block_formats", {})
    if not formats:
        if small:
            return SMALL_DECODE if test == "decode" else ()
        return BF16.get(test, ()) if info.get("weights") == "bf16" else ()
    goals = goals_of_blocks(test, formats, engines.has_integer_prompts(info))
    # Shares of the machine's limits are no goals of small models, ratios to peers are.
    return tuple(goal for goal in goals if goal.of == "better") if small else goals


def goals_of_blocks(test, formats, integer_prompts):
    if test == "batch":
        return OWN_INT8_BATCH if OWN_INT8 in formats else ()
    if test == "decode" and any(format in formats for format in FEW_BITS):
        return FEW_BITS_DECODE
    return BLOCKS["int8" if integer_prompts else "bf16"].get(test, ())


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
