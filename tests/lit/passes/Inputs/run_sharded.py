#!/usr/bin/env python3
"""Compares the logits of one rank with those of several: run_sharded.py FOLDER MODEL.mlir WEIGHTS RANKS [OPTIONS OF mica-to-fused]

Runs a prompt of two sequences and then a step of decoding by the interpreter: the model as it is, or at stage `fused` with these options.
Both are partitioned for RANKS, separated by commas. Their logits must have the same bits.
"""

import os
import re
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../ir/Inputs"))
import make_npy

STEPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "two_steps.py")
ROWS = {"tokens": ("5,7,60,3,11", "9,33"), "sequences": ("0,0,0,1,1", "0,1"), "positions": ("0,1,2,0,1", "3,2"),
        "logit_indices": ("0,1,2,3,4", "0,1"), "lengths": ("4,4,4,3,3", "4,3")}


def run(*command, stdin=None):
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr.strip()}")
    return done.stdout


def logits_of(folder, name, text, weights):
    """The bytes of the logits of both steps."""
    path = os.path.join(folder, name)
    with open(path + ".mlir", "w", encoding="utf-8") as file:
        file.write(run(sys.executable, STEPS, stdin=text))
    roles = re.findall(r'mica\.role = "(\w+)"', re.search(r"func\.func @main\((.*?)\)\s*->", text, re.S)[1])
    inputs = []
    for step in (0, 1):
        for role in roles:
            if role in ROWS:
                inputs += ["--input", f"{path}.{role}{step}.npy"]
                make_npy.write(inputs[-1], role, "i32:" + ROWS[role][step])
    run("mica-interpret", path + ".mlir", "--function", "steps", "--cache", "2x4", "--weights", weights, *inputs,
        "--output-prefix", path + ".")
    return [open(f"{path}.{step}.npy", "rb").read() for step in (0, 1)]


def main():
    folder, model, weights, ranks, *options = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    fused = " ".join(options)

    def partitioned(ranks):
        if options:
            return run("mica-opt", model, f"--mica-to-fused={fused} ranks={ranks}")
        return run("mica-opt", model, f"--mica-shard=ranks={ranks}")

    whole = logits_of(folder, "one", partitioned(1), weights)
    for count in map(int, ranks.split(",")):
        text = partitioned(count)
        parts = len(re.findall(rf"mica\.weight .* shard <axis = \d, ranks = {count}", text))
        matrices = re.findall(r"mica\.weight .* : tensor<\d+x\d+x.*", text)
        of_matrices = sum(f"ranks = {count}" in matrix for matrix in matrices)
        if of_matrices * 2 < len(matrices):
            sys.exit(f"{count} ranks: {of_matrices} of {len(matrices)} matrices are partitioned, which is less than half")
        if logits_of(folder, f"of{count}", text, weights) != whole:
            sys.exit(f"{count} ranks: other logits than those of one rank")
        print(f"{os.path.basename(model)} {fused or 'as it is'}: {count} ranks, {parts} parts of weights, same logits")


if __name__ == "__main__":
    main()
