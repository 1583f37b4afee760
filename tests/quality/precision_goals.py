"""The goals for the precision of programs, and which figures of docs/quality.json miss them. Goals for speeds: tests/bench/goals.py."""

import dataclasses

from published import CELLS, decode_cell, small


@dataclasses.dataclass(frozen=True)
class Goal:
    """Limits for rows of a part of a model's tables. `row`: its name, None for all of the part. A limit that is None is no goal."""

    program: str
    part: str
    row: str | None
    cells: tuple
    max_kl: float
    min_same_top: float | None = None

    def limits(self):
        """(the limit in words, the figure of a cell in words, whether a cell is within the limit)."""
        yield f"KL at most {self.max_kl:g}", lambda cell: small(cell["kl"]), lambda cell: cell["kl"] <= self.max_kl
        if self.min_same_top is not None:
            yield (f"same top at least {self.min_same_top:g} %", lambda cell: f"{cell['same_top']:.2f} %",
                   lambda cell: cell["same_top"] >= self.min_same_top)


INT8_ROWS = ("mica int8 rows",)
GOALS = (Goal("blocks preserved", "rows", None, CELLS, 0.001, 98),
         Goal("blocks preserved, `--rows int8`", "rows", None, INT8_ROWS, 0.0035, 96),
         Goal("`--weights int8`", "own", "`--weights int8`", CELLS, 0.002, 97.5),
         Goal("`--weights int8 --rows int8`", "own", "`--weights int8`", INT8_ROWS, 0.005, 97.5),
         Goal("`--kv bf16`", "caches", "`--kv bf16`", CELLS, 0.0002),
         Goal("`--kv int8`", "caches", "`--kv int8`", CELLS, 0.001))
#: Mica's formats that shall have a lower divergence than one of llama.cpp's, with no more bits, in Mica's decode arithmetic.
BELOW = (("`--weights int4`", "Q4_K_M"), ("`--weights int4 --calibrate TEXT`", "Q4_K_M, imatrix"))


def missed(model, arithmetic, title_of):
    """Lines about the goals that a model's figures miss, as measured in one run: the program, the column, the limit, and the figures beyond
    it. `arithmetic`: that of the run; `title_of`: the title of a cell's column. The goals for own formats are for checkpoints in f32, which a
    line says for others."""
    requantized = " (set for checkpoints in f32)" * model["requantized"]
    for goal in GOALS:
        rows = [row for row in model[goal.part] if goal.row in (None, row["format"])]
        for cell in goal.cells:
            measured = [(row["format"], row["cells"][cell]) for row in rows if row["cells"].get(cell)]
            for limit, shown, is_within in goal.limits():
                if beyond := [(name, figures) for name, figures in measured if not is_within(figures)]:
                    texts = [shown(figures) if goal.row else f"{name} {shown(figures)}" for name, figures in beyond]
                    yield f"{goal.program}, {limit}{requantized * (goal.part == 'own')}; {title_of(cell)}: {', '.join(texts)}"
    for name, peer in BELOW:
        pair = [(row["bits"], cell["kl"]) for each in (name, peer) for row in model["own"]
                if row["format"] == each and (cell := decode_cell(row["cells"], arithmetic))]
        if len(pair) == 2 and not (pair[0][0] <= pair[1][0] and pair[0][1] < pair[1][1]):
            yield (f"{name}, KL below that of {peer} at no more bits{requantized}; {title_of('mica decode')}: " +
                   " against ".join(f"{small(kl)} at {bits:.2f} bits" for bits, kl in pair))


def table():
    """The goals as Markdown."""
    lines = ["| program | KL divergence | same top |", "|---|---|---|"]
    for goal in GOALS:
        top = "" if goal.min_same_top is None else f">= {goal.min_same_top:g} %"
        lines.append(f"| {goal.program} | <= {goal.max_kl:g} | {top} |")
    lines += [f"| {name} of a checkpoint in f32 | below {peer}, at no more bits | |" for name, peer in BELOW]
    return "\n".join(lines)
