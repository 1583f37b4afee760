#!/usr/bin/env python3
"""Compiles broken model folders and checks that each is refused well.

    hostile.py MICA [NAME...]     all variants, or those whose names contain one of the words

Prints one line per failure and a count at the end; exit status 1 when something failed.
"""
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

import containers
import folder as model
import variants

SECONDS = 60

# Every error ends with what to do: after a comma, a verb of these.
REMEDY = re.compile(r", (add|check|choose|convert|copy|correct|fetch|free|give|keep|lower|make|name|put|remove|set|use|write) "
                    r"[^\n]*\n$")


def listing(path):
    """Everything below `path`, with sizes and file numbers: what a run must not change."""
    found = {}
    for parent, directories, files in os.walk(path):
        for name in directories:
            found[os.path.join(parent, name)] = -1
        for name in files:
            full = os.path.join(parent, name)
            found[full] = (os.lstat(full).st_size, os.lstat(full).st_ino)
    return found


def compile_model(mica, path, output, limit=None):
    """Runs the compiler; with `limit` no file can grow beyond so many bytes, as on a full disk."""

    def bound():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [mica, "compile", path, "-o", output], preexec_fn=bound if limit else None,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS, check=False)


def faults_of(result, mention):
    """What is wrong with the way in which a broken model was refused."""
    error = result.stderr.decode("utf-8", "replace")
    if result.returncode != 1:
        yield f"exit status {result.returncode} instead of 1"
    if result.stdout:
        yield f"writes to stdout: {result.stdout[:80]!r}"
    if error.count("\n") != 1 or not error.endswith("\n"):
        yield f"{error.count(chr(10))} lines on stderr instead of 1: {error[:300]!r}"
    if not error.startswith("mica: error: "):
        yield f"does not begin with 'mica: error: ': {error[:200]!r}"
    if re.search(r"[\x00-\x09\x0b-\x1f\x7f]", error):
        yield f"control characters: {error[:200]!r}"
    if not REMEDY.search(error):
        yield f"does not say what to do: {error[:300]!r}"
    if mention not in error:
        yield f"does not mention {mention!r}: {error[:300]!r}"


def check_variant(mica, scratch, name, mention, spoil, after):
    work = os.path.join(scratch, name)
    path = os.path.join(work, "model")
    os.mkdir(work)
    parts = model.Folder()
    spoil(parts)
    parts.write(path)
    if after:
        after(path)
    before = listing(work)
    try:
        result = compile_model(mica, path, os.path.join(work, "program"))
    except subprocess.TimeoutExpired:
        return [f"does not end within {SECONDS} s"]
    faults = list(faults_of(result, mention))
    left = set(listing(work).items()) ^ set(before.items())
    if left:
        faults.append(f"leaves something behind: {sorted(item[0] for item in left)}")
    return faults


def refused_target(mica, scratch, kind, prepare, limit, mention="program"):
    """The whole model into a target that cannot or must not be written. `prepare` returns its path."""
    work = os.path.join(scratch, "target-" + kind)
    path = os.path.join(work, "model")
    os.mkdir(work)
    model.Folder().write(path)
    output = prepare(work)
    before = listing(work)
    result = compile_model(mica, path, output, limit)
    faults = list(faults_of(result, mention))
    if listing(work) != before:
        faults.append("leaves something behind")
    return faults


def directory_target(work):
    os.mkdir(os.path.join(work, "program"))
    return os.path.join(work, "program")


def locked_target(work):
    os.mkdir(os.path.join(work, "locked"))
    os.chmod(os.path.join(work, "locked"), 0o500)
    return os.path.join(work, "locked", "program")


def model_file(name):
    return lambda work: os.path.join(work, "model", name)


def linked_weights(work):
    """Another name of the weights, by way of two links."""
    os.symlink("model", os.path.join(work, "other"))
    os.symlink(os.path.join("other", "model.safetensors"), os.path.join(work, "program"))
    return os.path.join(work, "program")


def foreign_target(work):
    with open(os.path.join(work, "program"), "w") as file:
        file.write("notes")
    return os.path.join(work, "program")


def pipe_target(work):
    os.mkfifo(os.path.join(work, "program"))
    return os.path.join(work, "program")


OWN_FILE = "is a file of the model, which would be replaced, choose another -o"
TARGETS = [
    ("missing-folder", lambda work: os.path.join(work, "none", "program"), None),
    ("directory", directory_target, None),
    ("full", lambda work: os.path.join(work, "program"), 4096),
    ("weights", model_file("model.safetensors"), None, OWN_FILE),
    ("config", model_file("config.json"), None, OWN_FILE),
    ("linked-weights", linked_weights, None, OWN_FILE),
    ("foreign", foreign_target, None, "exists and is no Mica program, remove it or give another name with -o"),
    ("pipe", pipe_target, None, "is not a regular file, which a program needs, give another name with -o"),
    ("device", lambda work: "/dev/stdout", None, "names a device, but a program needs a regular file"),
    ("read-only", lambda work: "/proc/program", None),  # not even root may write there
]
if os.geteuid() != 0:
    TARGETS.append(("locked", locked_target, None))


def check_whole(mica, scratch, name, prepare):
    """What the variants break is good before."""
    path = os.path.join(scratch, name)
    parts = model.Folder()
    prepare(parts)
    parts.write(path)
    result = compile_model(mica, path, os.path.join(scratch, name + "-program"))
    if result.returncode != 0:
        return [f"the unbroken model does not compile: {result.stderr.decode()[:300]!r}"]
    return []


WHOLE = [
    ("whole", lambda parts: None),
    ("whole-torch", variants.in_torch),
    ("whole-pieces", lambda parts: parts.extra.update({"tokenizer.model": containers.sentencepiece(128)})),
]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    mica, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    failed = count = 0
    with tempfile.TemporaryDirectory(prefix="mica-hostile-") as scratch:
        cases = [(row[0], lambda r=row: check_whole(mica, scratch, *r)) for row in WHOLE]
        cases += [(name, lambda v=(name, *rest): check_variant(mica, scratch, *v)) for name, *rest in variants.VARIANTS]
        cases += [("target-" + row[0], lambda r=row: refused_target(mica, scratch, *r)) for row in TARGETS]
        for name, check in cases:
            if words and not any(word in name for word in words):
                continue
            count += 1
            faults = check()
            failed += bool(faults)
            for fault in faults:
                print(f"hostile: {name}: {fault}")
    print(f"hostile: {count - failed} of {count} passed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
