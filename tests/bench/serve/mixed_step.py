#!/usr/bin/env python3
"""Measures a step that decodes and processes a chunk of a prompt: its two calls, compared with a single call with all of these rows.

    mixed_step.py PROGRAM [--streams 1,4,8] [--chunks 32,128,512] [--rounds 5] [--threads 2]

In programs whose arithmetic depends on the role of rows, all rows of a call have the same role, so a single call is simulated by a chunk
with as many additional rows. This is a lower bound for such a call, in which decode rows would be computed as prefill rows. The output is
Markdown: milliseconds, medians over rounds in alternation.
"""

import argparse
import json
import re
import statistics
import subprocess


def numbers(text):
    return [int(number) for number in text.split(",")]


def calls(options, chunk):
    """(seconds by number of prefill rows, seconds with decode rows) of a call of the model."""
    prompts = [chunk, *(chunk + streams for streams in options.streams)]
    done = subprocess.run([options.program, "bench", *(word for rows in prompts for word in ("--prompt", str(rows))), "--gen", "16",
                           *(word for streams in options.streams for word in ("--batch", str(streams))), "--depth", str(options.depth),
                           "--prefill-chunk", str(max(prompts)), "--repeat", "5", "--threads", str(options.threads), "--json"],
                          stdin=subprocess.DEVNULL, capture_output=True, check=True, encoding="utf-8")
    prompt, decode = {}, {}
    for result in json.loads(done.stdout)["results"]:
        kind, number, streams = re.match(r"(pp|tg)(\d+)(?:@b(\d+))?", result["test"]).groups()
        if kind == "pp":
            prompt[int(number)] = int(number) / result["tokens_per_s"]
        else:
            decode[int(streams or 1)] = int(streams or 1) / result["tokens_per_s"]
    return prompt, decode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--streams", type=numbers, default=[1, 4, 8])
    parser.add_argument("--chunks", type=numbers, default=[32, 128, 512])
    parser.add_argument("--depth", type=int, default=512, help="positions that every sequence has")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    samples = {chunk: [] for chunk in options.chunks}
    for _ in range(options.rounds):
        for chunk, found in samples.items():
            found.append(calls(options, chunk))
    print("| chunk | streams | decoding | chunk alone | both, two calls | one call | two over one |\n|---|---|---|---|---|---|---|")
    for chunk, found in samples.items():
        for streams in options.streams:
            decoding, alone, together = (statistics.median(pick(prompt, decode) for prompt, decode in found) for pick in (
                lambda _, decode: decode[streams], lambda prompt, _: prompt[chunk], lambda prompt, _: prompt[chunk + streams]))
            ratio = statistics.median((decode[streams] + prompt[chunk]) / prompt[chunk + streams] for prompt, decode in found)
            print(f"| {chunk} | {streams} | {1e3 * decoding:.2f} | {1e3 * alone:.2f} | {1e3 * (decoding + alone):.2f} | "
                  f"{1e3 * together:.2f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
