"""The tables of docs/cli.md: options of llama.cpp and ollama, and their names here."""

import json
import os
import pathlib
import re

import harness
import hub_server
from harness import BUNDLED, Case, ROOT, execute, program
from test_pull import NAME, model_files

MODEL = BUNDLED / "minimind-dense"
PROMPT = "count from 2 to 9:"
TEXT = b" 2 3 4 5 6 7 8 9\n"
GREEDY = ("-p", PROMPT, "--temp", 0)
# A text that depends on sampling, with a fixed seed.
SAMPLED = ("-p", "Ada", "-n", 12, "--seed", 5, "--temp", 4)


def rows():
    """(first column, second column) of the tables."""
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    page = page[page.index("## Coming from llama.cpp"):page.index("## Options")]
    cells = [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in page.splitlines() if line.startswith("| ")]
    return [row for row in cells if row[1] != "Mica"]


def same(*pairs):
    """Both argument lists of each pair result in the same text."""
    def test(case):
        for first, second in pairs:
            one, other = (case.built.run(*arguments).stdout for arguments in (first, second))
            case.assertEqual(one, other)
    return test


def works(*lists, stdin=None, text=None):
    """These arguments of a program are accepted, and result in the text."""
    def test(case):
        for arguments in lists:
            done = case.built.run(*arguments, stdin=stdin)
            if text is not None:
                case.assertIn(text, done.stdout + done.stderr)
    return test


def changes(*lists):
    """Each of these options is accepted and changes the text."""
    def test(case):
        plain = case.built.run(*SAMPLED).stdout
        for arguments in lists:
            case.assertNotEqual(case.built.run(*SAMPLED, *arguments).stdout, plain, arguments)
    return test


def missing(*lists):
    """Programs accept none of these."""
    def test(case):
        for arguments in lists:
            done = execute([case.built.path, *arguments], check=False)
            case.assertEqual((done.returncode, done.stdout), (2, b""), arguments)
    return test


def hinted(words, *lists):
    """Programs accept none of these, and the error has a hint."""
    def test(case):
        missing(*lists)(case)
        for arguments in lists:
            done = execute([case.built.path, *arguments], check=False)
            case.assertIn(f"{arguments[0]}: ", done.stderr.decode())
            case.assertIn(words, done.stderr.decode())
    return test


def missing_command(*names):
    """Neither `mica` nor a program has such a command."""
    def test(case):
        for name in names:
            done = execute([harness.mica, name, "x"], check=False)
            case.assertEqual((done.returncode, done.stdout), (2, b""))
            case.assertNotRegex(case.built.run("--help").stdout.decode(), rf"(?m)^  {name} ")
    return test


def serves(case):
    """Programs have the command; tests/e2e/test_serve.py has what it does."""
    case.assertIn(b"/v1/chat/completions", case.built.run("serve", "--help").stdout)


def mica(*arguments, text=None, hub=False):
    def test(case):
        done = execute([harness.mica, *(a(case) if callable(a) else a for a in arguments)], env=case.hub_env() if hub else None)
        if text is not None:
            case.assertIn(text, done.stdout)
    return test


def several(*tests):
    def test(case):
        for each in tests:
            each(case)
    return test


def file_of(text):
    path = pathlib.Path(harness.folder("text")) / "file"
    path.write_text(text, encoding="utf-8")
    return path


def output(case):
    return os.path.join(harness.folder("habits"), "program")


def built_path(case):
    return case.built.path


def max_seq(case):
    """-c of compile and run."""
    shorter = program(MODEL, "-c", "64")
    case.assertIn(b"64 positions", shorter.run("info").stdout)
    info = execute([harness.mica, "run", MODEL, "-c", 64, "info"], env={"XDG_CACHE_HOME": harness.folder("cache")})
    case.assertIn(b"64 positions", info.stdout)


def int8_cache(case):
    case.assertIn(b"cache         int8", program(MODEL, "--kv", "int8").run("info").stdout)


def display_prompt(case):
    case.assertEqual(case.built.run(*GREEDY).stdout, TEXT)


def seed(case):
    texts = [case.built.run("-p", "Ada", "-n", 12, "--temp", 4, "--seed", number).stdout for number in (5, 5, 6)]
    case.assertEqual(texts[0], texts[1])
    case.assertNotEqual(texts[0], texts[2])


def ignore_eos(case):
    case.assertEqual(len(case.built.run(*GREEDY, "-n", 40, "--ignore-eos", "--print-tokens").stdout.split()), 40)
    case.assertLess(len(case.built.run(*GREEDY, "-n", 40, "--print-tokens").stdout.split()), 40)


def leave(case):
    case.assertEqual(case.built.run("chat", "--temp", 0, stdin=b"/exit\n27 + 15\n").stdout, b"")


def chat(stdin, text):
    return works(["chat", "--temp", 0], stdin=stdin, text=text)


def saved(case):
    path = os.path.join(harness.folder("saved"), "conversation")
    case.built.run("chat", "--temp", 0, stdin=f"27 + 15\n/save {path}\n".encode())
    case.assertEqual(json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["messages"][0]["content"], "27 + 15")
    case.assertIn(b"messages", case.built.run("chat", "--temp", 0, stdin=f"/load {path}\n".encode()).stderr)


def template(case):
    path = file_of("{{ messages[0].content }}")
    case.assertEqual(case.built.run("--chat", "-p", PROMPT, "--temp", 0, "--chat-template", path).stdout, TEXT)


def hub_home(case):
    """HF_HOME decides where models are."""
    env = case.hub_env()
    execute([harness.mica, "pull", NAME], env=env)
    case.assertTrue(os.path.exists(os.path.join(env["HF_HOME"], "hub")))


def quantized(case):
    for weights in ("int8", "int4"):
        case.assertIn(weights.encode(), program(MODEL, "--weights", weights).run("info").stdout)


def calibrated(case):
    text = file_of(PROMPT * 100)
    done = execute([harness.mica, "compile", MODEL, "--weights", "int4", "--calibrate", text, "-o", output(case)])
    case.assertIn(b"int4", done.stderr)


def selection(case):
    """OWNER/NAME:QUANTIZATION is the GGUF file whose name ends with it; test_pull runs one."""
    done = execute([harness.mica, "pull", NAME + ":Q4_K_M"], env=case.hub_env(), check=False)
    case.assertEqual(done.returncode, 1)
    case.assertIn(b"Q4_K_M", done.stderr)


TESTS = {
    "`-m FILE`": several(mica("compile", "-m", MODEL, "--emit", "fused", text=b"mica."), missing(["-m", "model.gguf"])),
    "`-hf OWNER/NAME:Q4_K_M`": selection,
    "`-p TEXT`": several(works(["-p", PROMPT, "--temp", 0], [PROMPT, "--temp", 0], text=TEXT),
                         works(["--temp", 0], stdin=PROMPT.encode(), text=TEXT)),
    "`-f FILE`": lambda case: case.assertEqual(case.built.run("-f", file_of(PROMPT), "--temp", 0).stdout, TEXT),
    "`-n N`, `--n-predict N`": works([*GREEDY, "-n", 2], [*GREEDY, "--n-predict", 2], text=b" 2\n"),
    "`-c N`": max_seq,
    "`-t N`, `--threads N`": works([*GREEDY, "-t", 2], [*GREEDY, "--threads", 2], text=TEXT),
    "`-b N`, `-ub N`": several(works([*GREEDY, "--prefill-chunk", 4], text=TEXT),
                               hinted("use --prefill-chunk N", ["-b", 4], ["-ub", 4])),
    "`-tb N`": hinted("use --threads N", ["-tb", 2], ["--threads-batch", 2]),
    "`--flash-attn`": hinted("always on", ["--flash-attn", "on"]),
    "`--rope-scaling`, `--rope-freq-base` and the like": missing(["--rope-scaling", "yarn"], ["--rope-freq-base", 1e4], ["--rope-freq-scale", 1]),
    "`-e`": missing(["-e", "-p", "a"]),
    "`-s N`, `--seed N`": seed,
    "`--temp X`": same((("Ada", "-n", 12, "--temp", 0), ("Ada", "-n", 12, "--temperature", 0))),
    "`--top-k N`, `--top-p X`, `--min-p X`": changes(["--top-k", 1], ["--top-p", 0.1], ["--min-p", 1]),
    "`--typical X`": several(changes(["--typical-p", 0.05]), hinted("use --typical-p X", ["--typical", 0.05])),
    "`--repeat-penalty X`": same(((*GREEDY, "--repeat-penalty", 9), (*GREEDY, "--repetition-penalty", 9))),
    "`--repeat-last-n N`": missing(["--repeat-last-n", 4]),
    "`--presence-penalty X`, `--frequency-penalty X`": changes(["--presence-penalty", 50], ["--frequency-penalty", 50]),
    "`--dry-multiplier X` and the other `--dry-...`": works(
        [*GREEDY, "--dry-multiplier", 0.8, "--dry-base", 1.75, "--dry-allowed-length", 2, "--dry-penalty-last-n", -1,
         "--dry-sequence-breaker", "none"]),
    "`--xtc-probability X`, `--xtc-threshold X`": changes(["--xtc-probability", 1, "--xtc-threshold", 0.001]),
    "`--mirostat N`, `--mirostat-lr X`, `--mirostat-ent X`": changes(
        ["--mirostat", 2, "--mirostat-lr", 0.1, "--mirostat-ent", 0.1]),
    "`--top-n-sigma X`, `--dynatemp-range X`, `--samplers LIST`": missing(
        ["--top-n-sigma", 1], ["--dynatemp-range", 0.5], ["--samplers", "top_k"]),
    "`--logit-bias ID+X`": several(changes(["--logit-bias", "20=100"]), missing(["--logit-bias", "20+100"])),
    "`--ignore-eos`": ignore_eos,
    "`-r TEXT`, `--reverse-prompt TEXT`": several(works([*GREEDY, "--stop", " 5"], text=b" 2 3 4\n"),
                                                  hinted("use --stop TEXT", ["-r", " 5"], ["--reverse-prompt", " 5"])),
    "`-cnv`": several(chat(b"27 + 15\n", b" 42\n"), hinted("use the command chat", ["-cnv"], ["--conversation"])),
    "`-st`": several(works(["--chat", "-p", "27 + 15", "--temp", 0], text=b" 42\n"),
                     hinted("use --chat -p TEXT", ["-st"], ["--single-turn"])),
    "`-sys TEXT`": works(["chat", "-sys", "a", "--temp", 0], ["chat", "--system", "a", "--temp", 0], stdin=b"/system\n", text=b"a\n"),
    "`--jinja`": several(chat(b"27 + 15\n", b" 42\n"), hinted("always on", ["--jinja"])),
    "`--chat-template-file FILE`": several(template, hinted("use --chat-template FILE", ["--chat-template-file", "f"])),
    "`--context-shift`": works(["chat", "--context-shift", "--temp", 0], stdin=b"27 + 15\n", text=b" 42\n"),
    "`--no-display-prompt`": several(display_prompt, hinted("always on", ["--no-display-prompt"])),
    "`--special`": works([*GREEDY, "--print-tokens"], ["--chat", "--special", "-p", "27 + 15", "--temp", 0]),
    "`-ctk q8_0 -ctv q8_0`": several(int8_cache, hinted("mica compile --kv int8", ["-ctk", "q8_0"], ["-ctv", "q8_0"])),
    "`--no-mmap`": several(works([*GREEDY, "--huge-pages"], text=TEXT), hinted("use --huge-pages", ["--no-mmap"])),
    "`--mlock`": missing(["--mlock"]),
    "`--numa TYPE`, `-C MASK`": missing(["--numa", "distribute"], ["-C", "3"]),
    "`-ngl N`, `-dev LIST`": hinted("there is no GPU backend", ["-ngl", 99], ["--n-gpu-layers", 99], ["-dev", "CUDA0"]),
    "`--grammar TEXT`, `--grammar-file FILE`": missing(["--grammar", "root ::= 'a'"], ["--grammar-file", "f"]),
    "`-j SCHEMA`, `--json-schema SCHEMA`": missing(["-j", "{}"], ["--json-schema", "{}"]),
    "`--lora FILE`": hinted("merge it into the model", ["--lora", "f"]),
    "`--mmproj FILE`, `--image FILE`": missing(["--mmproj", "f"], ["--image", "f"]),
    "`-md FILE`": several(hinted("use --lookup N", ["-md", "f"]), works([*GREEDY, "--lookup", 4], text=TEXT)),
    "`--prompt-cache FILE`": several(missing(["--prompt-cache", "f"]), saved),
    "`llama-bench -p N -n N`": works(["bench", "--prompt", 16, "--gen", 4, "--repeat", 1], text=b"pp16"),
    "`llama-perplexity -f FILE`": mica("eval", built_path, "--text", lambda case: file_of(PROMPT * 100), text=b"perplexity"),
    "`llama-perplexity --kl-divergence`": mica("eval", built_path, "--reference", built_path, "--text", lambda case: file_of(PROMPT * 100),
                                               text=b"KL(reference || program)"),
    "`llama-quantize`": quantized,
    "`llama-imatrix`": calibrated,
    "`llama-server --host ADDRESS --port N -np N`": serves,
    "`llama-tokenize`": serves,
    "`llama-embedding`": missing_command("embed", "embedding"),

    "`ollama pull NAME`": mica("pull", NAME, text=b"snapshots", hub=True),
    "`ollama run NAME`": lambda case: case.assertEqual(
        execute([harness.mica, "run", NAME, "chat", "--temp", 0], env=case.hub_env(), stdin=b"27 + 15\n").stdout, b" 42\n"),
    "`ollama run NAME PROMPT`": mica("run", NAME, "--chat", "-p", "27 + 15", "--temp", "0", text=b" 42\n", hub=True),
    "`ollama run --verbose`": works([*GREEDY, "-v"], text=b"per second"),
    "`ollama run --format json`": missing(["--format", "json"]),
    "`ollama list`": mica("list", hub=True),
    "`ollama rm NAME`": several(mica("pull", NAME, hub=True), mica("rm", NAME, hub=True)),
    "`ollama show NAME`": several(mica("inspect", NAME, text=b"parameters", hub=True), works(["info"], text=b"vocabulary")),
    "`ollama create -f Modelfile`": mica("compile", MODEL, "-o", output),
    "`ollama ps`": missing_command("ps"),
    "`ollama serve`": serves,
    "`ollama stop NAME`": missing_command("stop"),
    "`ollama push NAME`": missing_command("push"),
    "`ollama cp`": missing_command("cp"),
    "`num_ctx`": lambda case: case.assertIn(b"64 positions", program(MODEL, "--max-seq", "64").run("info").stdout),
    "`SYSTEM`, `TEMPLATE` of a Modelfile": several(template, works(["chat", "--system", "a", "--temp", 0], stdin=b"/system\n", text=b"a\n")),
    "`OLLAMA_HOST`, `OLLAMA_NUM_PARALLEL`": serves,
    "`OLLAMA_KV_CACHE_TYPE=q8_0`": int8_cache,
    "`OLLAMA_MODELS`": hub_home,
    "`/set parameter NAME VALUE`": chat(b"/set temperature 0.2\n/set\n", b"0.2"),
    "`/show parameters`": chat(b"/set\n", b"temperature"),
    "`/set system TEXT`": chat(b"/system be brief\n/system\n", b"be brief\n"),
    "`/save NAME`, `/load NAME`": saved,
    "`/show info`": works(["info"], text=b"vocabulary"),
    "`/set verbose`": works(["chat", "-v", "--temp", 0], stdin=b"27 + 15\n", text=b"cached"),
    "`/set history`": works(["chat", "--history", "/dev/null", "--temp", 0], stdin=b"27 + 15\n", text=b" 42\n"),
    "`/clear`": chat(b"27 + 15\n/reset\n1 + 2\n", b" 42\n 3\n"),
    "`/?`": chat(b"/help\n", b"/regenerate"),
    "`/bye`": leave,
    '`"""` around several lines': chat(b'"""\nsort d b a c\n"""\n', b" a b c d\n"),
}


@harness.for_each(range(len(rows())), "row")
class Habits(Case):
    def setUp(self):
        self.built = program(MODEL)
        self.env = None

    def hub_env(self):
        """A local hub that has the model."""
        if not self.env:
            hub = self.enterContext(hub_server.Hub())
            hub.repositories[NAME] = hub_server.Repository(model_files())
            self.env = {"HF_ENDPOINT": hub.endpoint, "HF_HOME": harness.folder("hub-home"), "XDG_CACHE_HOME": harness.folder("hub-cache"),
                        "HF_TOKEN": "", "HF_HUB_OFFLINE": "", "HF_HUB_CACHE": "", "HUGGINGFACE_HUB_CACHE": "", "no_proxy": "*"}
        return self.env

    def row(self, index):
        name, said = rows()[index]
        self.assertIn(name, TESTS, "a row of docs/cli.md without a test")
        TESTS[name](self)

    def test_every_test_is_a_row(self):
        self.assertEqual(set(TESTS), {name for name, _ in rows()})
        self.assertEqual(len(rows()), len(TESTS), "a row stands there twice")

    def test_options_that_are_named_exist(self):
        """Each option in the second column is in the reference below the tables."""
        page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
        reference = page[page.index("## Options"):]
        for name, said in rows():
            for option in re.findall(r"(?<![\w-])--?[a-z][\w-]*", " ".join(re.findall(r"`([^`]+)`", said))):
                self.assertTrue(option == "-sys" or re.search(rf"`[^`]*{option}\b[^`]*` \|", reference), f"{name}: {option}")
