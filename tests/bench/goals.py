"""The goals for programs, relative to peers and to the machine's limits."""

import dataclasses
import re

import engines

#: Models with fewer parameters have no goals relative to the machine's limits, for the reason in `UNJUDGED`.
SMALL = 300e6
UNJUDGED = ("`share` has no goal for a model of fewer than 300 million parameters: norms, attention and the synchronization of threads take a "
            "considerable share of its time, and its weights may partly be in the processor's cache")


@dataclasses.dataclass(frozen=True)
class Goal:
    """A minimum. `of` is a key of report.summary's figures, or the name of the peer in a ratio."""

    of: str
    minimum: float

    def text(self):
        kind = {"better": "x the better peer", "share_of_bandwidth": " of the bandwidth", "share_of_peak": " of the peak"}
        return f">= {self.minimum:g}{kind.get(self.of, 'x ' + self.of)}"


def _better(minimum):
    return Goal("better", minimum)


def _bandwidth(minimum):
    return Goal("share_of_bandwidth", minimum)


SMALL_DECODE = (Goal("llama.cpp", 1.5), Goal("ik_llama.cpp", 1.1))
#: Programs with bf16 matrices: prefill is limited by the processor's bf16 matmuls.
BF16 = {"decode": (_better(1.0), _bandwidth(0.92)), "prefill": (_better(1.12), Goal("share_of_peak", 0.95)),
        "deep": (_better(1.2),), "long": (_better(1.3),)}
#: Programs with block-quantized matrices, by the rows of prefill: exact (bf16 or int16) or int8.
BLOCKS = {
    "exact": {"decode": (_better(1.0), _bandwidth(0.92)), "prefill": (_better(1.05),), "deep": (_better(1.2),)},
    "int8": {"decode": (_better(1.0), _bandwidth(0.92)), "prefill": (_better(1.5),), "deep": (_better(1.2),),
             "long": (_better(1.3),)},
}
#: Blocks of so few bits, which their names state, take more instructions per byte to unpack.
FEW_BITS = 3
FEW_BITS_DECODE = (_better(1.0), _bandwidth(0.85))
#: Programs with recurrent states.
HYBRID = {"decode": (_better(1.0), _bandwidth(0.9)), "prefill": (_better(1.3),)}
#: Eight concurrent sequences, Mica's own 8-bit format compared with the peer's Q8_0.
OWN_INT8, OWN_INT8_BATCH = "int8_g32", (_better(1.5),)


def is_small(info):
    return 0 < info.get("manifest", {}).get("parameters", 0) < SMALL


def has_few_bits(formats):
    """Whether most block-quantized matrices have few bits. `formats`: the number of matrices of each format. The files that llama-quantize
    writes hold a few matrices of other formats than their name says, and `info` has no sizes."""
    name = max(formats, key=formats.get)
    return int(re.search(r"\d", name)[0]) <= FEW_BITS


def goals_of(test, info):
    """The goals of a test (its key) for a program with that `info --json`."""
    manifest = info.get("manifest", {})
    if any("matrix" in cache for cache in manifest.get("caches", [])):
        return HYBRID.get(test, ())
    small = is_small(info)
    formats = manifest.get("block_formats", {})
    if not formats:
        if small:
            return SMALL_DECODE if test == "decode" else ()
        return BF16.get(test, ()) if info.get("weights") == "bf16" else ()
    goals = goals_of_blocks(test, formats, engines.prompt_rows(info))
    return tuple(goal for goal in goals if goal.of == "better") if small else goals


def goals_of_blocks(test, formats, prompt_rows):
    if test == "batch":
        return OWN_INT8_BATCH if OWN_INT8 in formats else ()
    if test == "decode" and has_few_bits(formats):
        return FEW_BITS_DECODE
    return BLOCKS["int8" if prompt_rows.startswith("int8") else "exact"].get(test, ())


def judge(goals, row):
    """The result of each goal: its text, the median of the figure (None if there is none) and whether it is reached."""
    verdicts = []
    for goal in goals:
        figure = row["ratios"].get(goal.of) if goal.of not in row else row[goal.of]
        reached = figure["median"] if figure else None
        verdicts.append({"goal": goal.text(), "median": reached, "reached": reached is not None and reached >= goal.minimum})
    return verdicts


def cell(verdicts):
    def words(verdict):
        if verdict["reached"]:
            return f"{verdict['goal']}: reached"
        return f"{verdict['goal']}: " + ("-" if verdict["median"] is None else f"short, {verdict['median']:.2f}")
    return "; ".join(map(words, verdicts)) or "-"
