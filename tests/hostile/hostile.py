#!/usr/bin/env python3
"""Compiles broken model folders and checks their rejection.

    hostile.py MICA [NAME...]     all variants, or those whose names contain one of the words

Prints a line per failure and a count at the end; exits with 1 if something failed.
"""
import os
import re
import resource
import stat
import subprocess
import sys
import tempfile

import folder as model
import variants
from containers import pieces

SECONDS = 300

# Every error ends with a hint: after a semicolon, a verb of these.
HINT = re.compile(r"; (add|assign|check|choose|convert|copy|correct|create|download|free|keep|list|lower|make|merge|name|pass|put|raise|redirect|"
                  r"remove|rename|replace|set|use|write) [^\n]*\n$")


def listing(path):
    """Everything in `path`, with sizes and inodes, which a run must not change."""
    found = {}
    for parent, directories, files in os.walk(path):
        for name in directories:
            found[os.path.join(parent, name)] = -1
        for name in files:
            full = os.path.join(parent, name)
            found[full] = (os.lstat(full).st_size, os.lstat(full).st_ino)
    return found


def compile_model(mica, path, output, limit=None, command="program"):
    """Runs the compiler; with `limit` no file can exceed that many bytes, as on a full disk."""

    def bound():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    words = {"program": ["compile", path, "-o", output], "text": ["compile", path, "--emit", "fused", "-o", output],
             "page": ["explore", path, "-o", output]}
    return run([mica, *words[command]], preexec_fn=bound if limit else None)


def run(command, **options):
    return subprocess.run(command, **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                                      "timeout": SECONDS, "check": False, **options})


def faults_of(result, mention):
    """Describes faults in the rejection of a broken model."""
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
    if not HINT.search(error):
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


#: More bytes than a small model's code has, and fewer than a page.
PAGE_LIMIT = 150 << 10


def refused_target(mica, scratch, kind, prepare, limit=None, reason="", hint="", command="program"):
    """Compiles the valid model to a target that cannot or must not be written. `prepare` returns its path."""
    work = os.path.join(scratch, f"target-{kind}-{command}")
    path = os.path.join(work, "model")
    os.mkdir(work)
    model.Folder().write(path)
    output = prepare(work, "target.html")
    before = listing(work)
    if limit and command == "page":
        # Before the page is written, the model's code is linked in an in-memory file, to which the limit applies as well.
        limit = PAGE_LIMIT
    result = compile_model(mica, path, output, limit, command)
    mention = f"{output}: cannot be written ({reason}); {hint}choose another -o\n" if reason else output
    faults = list(faults_of(result, mention))
    if listing(work) != before:
        faults.append("leaves something behind")
    return faults


def directory_target(work, name):
    os.mkdir(os.path.join(work, name))
    return os.path.join(work, name)


def locked_target(work, name):
    os.mkdir(os.path.join(work, "locked"))
    os.chmod(os.path.join(work, "locked"), 0o500)
    return os.path.join(work, "locked", name)


def foreign_target(work, name):
    with open(os.path.join(work, name), "w") as file:
        file.write("notes")
    return os.path.join(work, name)


def pipe_target(work, name):
    os.mkfifo(os.path.join(work, name))
    return os.path.join(work, name)


def socket_target(work, name):
    os.mknod(os.path.join(work, name), stat.S_IFSOCK | 0o600)
    return os.path.join(work, name)


def device_target(work, name):
    """A device created for the test: one of the system's would be lost if it were replaced. If that is not allowed, a pipe."""
    try:
        os.mknod(os.path.join(work, name), stat.S_IFCHR | 0o600, os.makedev(1, 7))
    except PermissionError:
        return pipe_target(work, name)
    return os.path.join(work, name)


def link_target(to):
    def prepare(work, name):
        foreign_target(work, "notes")
        os.symlink(to, os.path.join(work, name))
        return os.path.join(work, name)
    return prepare


def in_folder(folder):
    return lambda work, name: os.path.join(folder, name)


NO_FILE, LINK = "it is not a regular file", "it is a symbolic link, which is not followed"
TARGETS = [(kind, *row, command) for command in ("program", "text", "page") for kind, *row in [
    ("missing-folder", lambda work, name: os.path.join(work, "none", name), None, "its folder does not exist", "create it or "),
    ("directory", directory_target, None, "it is a directory", ""),
    ("full", lambda work, name: os.path.join(work, name), 512, "File too large", "raise the limit (ulimit -f) or "),
    ("pipe", pipe_target, None, NO_FILE, ""),
    ("socket", socket_target, None, NO_FILE, ""),
    ("device", device_target, None, NO_FILE, ""),
    ("link", link_target("notes"), None, LINK, "name the file itself or "),
    ("link-to-nothing", link_target("nothing"), None, LINK, "name the file itself or "),
    ("in-dev", in_folder("/dev"), None, "/dev cannot hold regular files", ""),
    ("in-proc", in_folder("/proc"), None, "/proc cannot hold regular files", ""),
]]
TARGETS.append(("foreign", foreign_target, None, "it exists and is not a Mica program", "remove it or ", "program"))


def refused_own_file(mica, scratch, kind, name):
    """The target is a file of the model itself, under any name."""
    work = os.path.join(scratch, "own-" + kind)
    os.mkdir(work)
    model.Folder().write(os.path.join(work, "model"))
    os.symlink("model", os.path.join(work, "other"))
    os.symlink(os.path.join("other", "model.safetensors"), os.path.join(work, "program"))
    before = listing(work)
    result = compile_model(mica, os.path.join(work, "model"), os.path.join(work, name))
    faults = list(faults_of(result, "is a file of the model, which would be replaced; choose another -o"))
    return faults + ["leaves something behind"] * (listing(work) != before)


OWN_FILES = [("weights", "model/model.safetensors"), ("config", "model/config.json"), ("linked-weights", "program")]


def check_full_stages(mica, scratch):
    """A full disk while stages are dumped: the file is named, and complete files are kept."""
    work = os.path.join(scratch, "stages")
    os.mkdir(work)
    model.Folder().write(os.path.join(work, "model"))
    result = run([mica, "compile", os.path.join(work, "model"), "--emit", "obj", "-o", os.path.join(work, "object"),
                  "--dump-stages", os.path.join(work, "stages")],
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)))
    faults = list(faults_of(result, "cannot be written (File too large); raise the limit (ulimit -f) or choose another --dump-stages"))
    if not re.match(r"mica: error: [^ ]*/stages/\d-[a-z]+\.[a-z]+: ", result.stderr.decode()):
        faults.append(f"does not name the file: {result.stderr!r}")
    if any(".mica-" in name for name in os.listdir(os.path.join(work, "stages"))) or os.path.exists(os.path.join(work, "object")):
        faults.append("leaves something behind")
    return faults


if os.geteuid() != 0:
    TARGETS.append(("locked", locked_target, None, "Permission denied", "", "program"))


def check_whole(mica, scratch, name, prepare):
    """The model from which the variants are created is valid."""
    path = os.path.join(scratch, name)
    parts = model.Folder()
    prepare(parts)
    parts.write(path)
    result = compile_model(mica, path, os.path.join(scratch, name + "-program"))
    if result.returncode != 0:
        return [f"the unbroken model does not compile: {result.stderr.decode()[:300]!r}"]
    return []


def run_cases(label, cases, words):
    """Runs the (name, check) whose names contain one of the words, prints failures, and returns the exit status: 1 if something failed, or
    nothing was run."""
    failed = count = 0
    for name, check in cases:
        if words and not any(word in name for word in words):
            continue
        count += 1
        faults = list(check())
        failed += bool(faults)
        for fault in faults:
            print(f"{label}: {name}: {fault}")
    print(f"{label}: {count - failed} of {count} passed")
    return 1 if failed or not count else 0


WHOLE = [
    ("whole", lambda parts: None),
    ("whole-torch", variants.in_torch),
    ("whole-pieces", lambda parts: parts.extra.update({"tokenizer.model": pieces.model(128)})),
]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    mica, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="mica-hostile-") as scratch:
        cases = [(row[0], lambda r=row: check_whole(mica, scratch, *r)) for row in WHOLE]
        cases += [(name, lambda v=(name, *rest): check_variant(mica, scratch, *v)) for name, *rest in variants.VARIANTS]
        cases += [(f"target-{row[0]}-{row[-1]}", lambda r=row: refused_target(mica, scratch, *r)) for row in TARGETS]
        cases += [("own-" + row[0], lambda r=row: refused_own_file(mica, scratch, *r)) for row in OWN_FILES]
        cases += [("full-stages", lambda: check_full_stages(mica, scratch))]
        sys.exit(run_cases("hostile", cases, words))


if __name__ == "__main__":
    main()
