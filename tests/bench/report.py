"""Computes medians, ratios and a table from samples."""

import statistics

import goals


def spread(values):
    """Median, minimum and maximum of a list; None for an empty one."""
    values = list(values)
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "values": values} if values else None


def pairwise(ours, theirs):
    """Quotients of values from the same round; both are {round: value}."""
    return spread(ours[r] / theirs[r] for r in sorted(ours) if theirs.get(r))


def best_of(peers):
    """The better peer of each round in which all available peers were measured."""
    peers = [by_round for by_round in peers if by_round]
    rounds = set.intersection(*(set(by_round) for by_round in peers)) if peers else set()
    return {r: max(by_round[r] for by_round in peers) for r in rounds}


def summary(row, info):
    """Adds medians, ratios, shares of the limits and goals to the values in a compare.Row for a program with that `info`."""
    speeds = {name: {r: s.tokens_per_s for r, s in samples.items()} for name, samples in row.samples.items()}
    mica = row.samples["Mica"]
    read = {r: s.gb_per_s for r, s in mica.items()} if row.test.gen else {}
    shares = {r: s.share_of_peak for r, s in mica.items() if s.share_of_peak}
    figures = {
        "test": row.test.key,
        "title": row.test.title,
        "tokens_per_s": {name: spread(by_round.values()) for name, by_round in speeds.items()},
        "runs": {name: [s.runs for s in samples.values()] for name, samples in row.samples.items()},
        "ratios": {name: pairwise(speeds["Mica"], by_round) for name, by_round in speeds.items() if name != "Mica"},
        "better": pairwise(speeds["Mica"], best_of([by_round for name, by_round in speeds.items() if name != "Mica"])),
        "gb_per_s": spread(read.values()),
        "memory_gb_per_s": spread(row.bandwidth.values()),
        "share_of_bandwidth": pairwise(read, row.bandwidth),
        "share_of_peak": spread(shares.values()),
        "trouble": row.trouble,
    }
    return {**figures, "goals": goals.judge(goals.goals_of(row.test.key, info), figures)}


def figure(values, digits, unit=""):
    if values is None:
        return "-"
    low, high = (f"{values[key]:.{digits}f}" for key in ("min", "max"))
    return f"{values['median']:.{digits}f}{unit} ({low} - {high})"


def speed(values):
    return figure(values, 1 if values and values["median"] < 1000 else 0)


def cell(row, name):
    """A speed, or why there is none."""
    if name in row["trouble"]:
        return row["trouble"][name]["state"]
    return speed(row["tokens_per_s"].get(name))


def speeds_head(peers):
    return ["Mica", *(h for name in peers for h in (name, "ratio")), "better"]


def speed_cells(row, peers):
    ratios = [each for name in peers for each in (cell(row, name), figure(row["ratios"].get(name), 2, "x"))]
    return [cell(row, "Mica"), *ratios, figure(row["better"], 2, "x")]


def limit_cells(row):
    return [figure(row["share_of_bandwidth"] or row["share_of_peak"], 2), goals.cell(row["goals"])]


def table(rows, peers):
    head = ["tokens/s", *speeds_head(peers), "memory GB/s", "share", "goals"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in rows:
        cells = [row["title"], *speed_cells(row, peers), figure(row["memory_gb_per_s"], 1), *limit_cells(row)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def divergences(found):
    return ", ".join(f"{rows} {figures['kl']:.2g} (same top {100 * figures['same_top']:.1f} %)" for rows, figures in found.items())


def quality_markdown(case):
    """A line for each engine, whose reference is the same weights in f32, computed by that engine; or for each quoted model."""
    lines = []
    for name, found in (case["quality"] or {}).items():
        if case.get("quoted"):
            lines.append(f"- KL divergence of this format in the model {name}: {divergences(found)} ({case['quoted']})")
        else:
            text = f"failed: {found['failed']}" if "failed" in found else divergences(found)
            lines.append(f"- KL divergence of {name} from its reference in f32: {text}")
    return lines


def trouble_markdown(case, title=""):
    """What was not measured, and why."""
    return [f"- {title}{row['title']}, {name}: {trouble['state']}: {trouble['message']}"
            for row in case["rows"] for name, trouble in row["trouble"].items()]


def is_unjudged(case):
    """Whether shares have no goal."""
    return case["small"] and any(row["share_of_bandwidth"] or row["share_of_peak"] for row in case["rows"])


def case_markdown(case, peers):
    load = case["load"]
    lines = [f"### {case['name']}", "", *table(case["rows"], peers), "", *trouble_markdown(case)]
    if is_unjudged(case):
        lines.append(f"- {goals.UNJUDGED}")
    lines += quality_markdown(case)
    for name, version in case["versions"].items():
        lines.append(f"- {name}: {version}")
    lines.append(f"- load during the run: other processes used {load['others']:.2f} processors, steal time {load['stolen']:.2f} "
                 f"processors, over {load['seconds']:.0f} s")
    return lines + [""]


def conditions(report):
    machine, settings = report["machine"], report["settings"]
    return (f"`{report['command']}`, commit {report['commit']}: {machine['cpu']}, {machine['processors']} processors, {settings['threads']} "
            f"threads; medians of {settings['pairs']} alternating rounds (minimum - maximum). A ratio is the median of the ratios of all "
            "rounds; `better` is the ratio to the fastest peer in each round. `share` is the share of the memory bandwidth, or "
            "for prefill the share of the processor's peak during matmuls, measured in a separate run. Goals are compared with medians.")


def brief(report):
    """One table of all cases, with a column for each model whose KL divergence was measured."""
    peers, cases = list(report["settings"]["peers"]), report["cases"]
    measured = list(dict.fromkeys(name for case in cases for name, found in (case["quality"] or {}).items() if "failed" not in found))
    head = ["program", "test", *(f"KL of {name}" for name in measured), *speeds_head(peers), "share", "goals"]
    lines = [conditions(report), "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for case in cases:
        for row in case["rows"]:
            role = "prefill" if row["test"] in ("prefill", "long") else "decode"
            found = [(case["quality"] or {}).get(name, {}).get(role) for name in measured]
            cells = [case["name"], row["title"], *(f"{figures['kl']:.2g}" if figures else "-" for figures in found),
                     *speed_cells(row, peers), *limit_cells(row)]
            lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    for case in cases:
        lines += trouble_markdown(case, f"{case['name']}, ")
        lines += [f"- {case['name']}, KL divergence of {name}: failed: {found['failed']}"
                  for name, found in (case["quality"] or {}).items() if "failed" in found]
    lines += [f"- KL divergences are {source}" for source in sorted({case["quoted"] for case in cases if case.get("quoted")})]
    if any(map(is_unjudged, cases)):
        lines.append(f"- {goals.UNJUDGED}")
    for name, version in sorted({item for case in cases for item in case["versions"].items() if item[0] != "Mica"}):
        lines.append(f"- {name}: {version}")
    others, stolen = (max((case["load"][key] for case in cases), default=0) for key in ("others", "stolen"))
    lines.append(f"- load, at most: other processes used {others:.2f} processors, steal time {stolen:.2f} processors")
    return "\n".join(lines)


def markdown(report):
    lines = [conditions(report), ""]
    for case in report["cases"]:
        lines += case_markdown(case, list(report["settings"]["peers"]))
    return "\n".join(lines)
