"""Completion scripts in real shells, man pages, and the files that an installation gets."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time

import harness
from harness import Case, GOLDENS, execute, program

SHELLS = ("bash", "zsh", "fish")
# Typed text -> words among the candidates, and words that are not.
MICA = (
    ("mica comp", {"compile", "completion"}, {"run"}),
    ("mica compile --wei", {"--weights"}, {"--kv"}),
    ("mica compile --weights ", {"f32", "bf16", "int8", "int4"}, {"--kv"}),
    ("mica compile --weights=int", {"int8", "int4"}, {"bf16"}),
    ("mica compile -o compile --k", {"--kv"}, {"--kind"}),
    ("mica compile mod", {"model.gguf", "models/"}, {"other"}),
    ("mica compile --dump-stages m", {"models/"}, {"model.gguf"}),
    ("mica run model.gguf ch", {"chat"}, {"compile"}),
    ("mica run model.gguf chat --sys", {"--system"}, {"--sequences"}),
    ("mica run model.gguf --temp", {"--temp", "--temperature"}, {"--text"}),
    ("mica completion ", set(SHELLS), {"compile"}),
)
PROGRAM = (
    ("./smol be", {"bench"}, {"chat"}),
    ("smol chat --his", {"--history"}, {"--help"}),
    ("smol chat --history mod", {"model.gguf", "models/"}, {"other"}),
    ("smol -p chat --mirostat-", {"--mirostat-ent", "--mirostat-lr"}, {"--mirostat"}),
)


def folder():
    place = pathlib.Path(harness.folder("completion"))
    for name in ("model.gguf", "other"):
        (place / name).touch()
    (place / "models").mkdir()
    return place


def bash(script, line, place):
    """Calls the script as readline does: '=' is a separate word."""
    words = [w for w in re.split(r"(=)| ", line) if w]
    words += [""] if line.endswith(" ") else []
    function = re.search(r"complete -F (\w+) -- '(\w+)'", script)[1]
    test = (f"source /dev/stdin <<'SCRIPT'\n{script}\nSCRIPT\nCOMP_WORDS=({' '.join(map(repr, words))})\n"
            f"COMP_CWORD={len(words) - 1}\n{function}\n"
            'for word in "${COMPREPLY[@]}"; do [ -d "$word" ] && word+=/; printf "%s\\n" "$word"; done\n')
    return subprocess.run(["bash", "--norc"], input=test.encode(), capture_output=True, cwd=place, check=True,
                          timeout=harness.SECONDS).stdout.decode().splitlines()


def fish(script, line, place):
    (place / "script.fish").write_text(script)
    done = subprocess.run(["fish", "--no-config", "-c", f"source script.fish; complete -C '{line}'"], capture_output=True, cwd=place,
                          check=True, timeout=harness.SECONDS, env={**os.environ, "HOME": str(place)})
    # A word and its description; after '=' with the option.
    return [w.split("\t")[0].rsplit("=", 1)[-1] for w in done.stdout.decode().splitlines()]


def zsh(script, line, place):
    """On a terminal, through compinit."""
    functions = place / "functions"
    functions.mkdir(exist_ok=True)
    name = re.match(r"#compdef (\w+)\n", script)[1]
    (functions / f"_{name}").write_text(script)
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(place)
        os.environ.update(TERM="dumb", HOME=str(place), LINES="200", COLUMNS="200")
        os.execvp("zsh", ["zsh", "-f", "-i"])

    def read_until(text, seconds=30):
        out, end = b"", time.monotonic() + seconds
        while text not in out and time.monotonic() < end:
            if select.select([fd], [], [], 0.1)[0]:
                out += os.read(fd, 1 << 16)
        return out
    os.write(fd, f"fpath=({functions} $fpath) LISTMAX=1000; unset zle_bracketed_paste; autoload -Uz compinit; compinit -u -D; "
                 "unsetopt beep list_ambiguous; complete() { zle expand-or-complete; zle -R; print '\\n<end>' }; zle -N complete; "
                 f"bindkey '^T' complete; echo rea''dy\n".encode())
    read_until(b"ready\r\n")
    # Inserts the common prefix of all candidates, and lists them if there are several.
    os.write(fd, line.encode() + b"\x14")
    out = read_until(b"<end>").decode()
    os.close(fd)
    os.waitpid(pid, 0)
    # Without descriptions.
    return [word.rsplit("=", 1)[-1] for row in out.splitlines() for word in re.split(r" -- .*$", row)[0].split()]


@harness.for_each(SHELLS, "shell")
class Completion(Case):
    def shell(self, name):
        if not shutil.which(name):
            self.skipTest(f"needs {name}, which is not installed")
        place = folder()
        built = place / "smol"
        os.symlink(program(GOLDENS / "models/llama-gqa").path, built)
        for command, cases in ((harness.mica, MICA), (built, PROGRAM)):
            script = execute([command, "completion", name]).stdout.decode()
            for line, expected, absent in cases:
                with self.subTest(line):
                    found = set(globals()[name](script, line, place))
                    self.assertLessEqual(expected, found)
                    self.assertFalse(absent & found, found)

    def test_other_shells_are_refused(self):
        for command in ([harness.mica], [program(GOLDENS / "models/llama-gqa").path]):
            done = execute([*command, "completion", "tcsh"], check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn("SHELL: 'tcsh' is not one of bash, zsh, fish", done.stderr.decode())
        done = execute([harness.mica, "run", GOLDENS / "models/llama-gqa", "completion", "bash"], check=False)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn("`mica completion bash` completes `mica run` as well", done.stderr.decode())

    def test_files_of_an_installation(self):
        place = pathlib.Path(harness.folder("reference"))
        execute([harness.mica, "reference", "--install", place])
        files = {str(f.relative_to(place)): f.read_text() for f in place.rglob("*") if f.is_file()}
        commands = re.findall(r"(?m)^  (\w+) ", execute([harness.mica, "--help"]).stdout.decode().split("Commands:\n")[1].split("\nExamples:")[0])
        self.assertIn("compile", commands)
        pages = {f"man/man1/{name}.1" for name in ("mica", "mica-program", *(f"mica-{c}" for c in commands))}
        scripts = {"bash-completion/completions/mica", "zsh/site-functions/_mica", "fish/vendor_completions.d/mica.fish"}
        self.assertEqual(set(files), pages | scripts)
        self.assertEqual(files["zsh/site-functions/_mica"], execute([harness.mica, "completion", "zsh"]).stdout.decode())
        for name, words in (("mica", (r"Compile a model to a program", r".BR mica\-compile (1),")),
                            ("mica-compile", (r".B \-\-weights FORMAT", r"mica compile model.gguf \-o model && ./model chat")),
                            ("mica-program", (r".SH SAMPLING", r".SH CHAT COMMAND", r".B \-n, \-\-n\-predict N", ".SH EXAMPLES\n"))):
            for word in words:
                self.assertIn(word, files[f"man/man1/{name}.1"])
        if not shutil.which("mandoc"):
            self.skipTest("needs mandoc, which is not installed, to check man pages")
        for page in sorted(pages):
            done = execute(["mandoc", "-T", "lint", "-W", "warning", place / page], check=False)
            # Man pages of one build do not change from day to day.
            self.assertEqual([line for line in done.stdout.decode().splitlines() if "missing date" not in line], [], page)
