"""The tables of docs/cli.md: options of llama.cpp and ollama, and their names here."""

import json
import os
import pathlib
import re

import gguf_file
import harness
import hub_server
from harness import BUNDLED, Case, ROOT, execute, program
from test_pull import NAME, model_files
from served import Server

MODEL = BUNDLED / "minimind-dense"
PROMPT = "count from 2 to 9:"
TEXT = b" 2 3 4 5 6 7 8 9\n"
GREEDY = ("-p", PROMPT, "--temp", 0)
# A text that depends on sampling, with a fixed seed.
SAMPLED = ("-p", "Ada", "-n", 12, "--seed", 5, "--temp", 4, "--ignore-eos")


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


def hinted(words, *lists, command=()):
    """Programs accept none of these, and the error has a hint."""
    def test(case):
        missing(*([*command, *arguments] for arguments in lists))(case)
        for arguments in lists:
            done = execute([case.built.path, *command, *arguments], check=False)
            case.assertIn(str(arguments[0]).partition("=")[0] + ": ", done.stderr.decode())
            case.assertIn(words, done.stderr.decode())
    return test


def hinted_by_mica(words, *lists):
    """`mica` accepts none of these, and the error has a hint."""
    def test(case):
        for arguments in lists:
            done = execute([harness.mica, *arguments], env={"XDG_CACHE_HOME": harness.folder("cache")}, check=False)
            case.assertEqual((done.returncode, done.stdout, done.stderr.count(b"\n")), (2, b"", 1), arguments)
            case.assertIn(words, done.stderr.decode())
    return test


def renamed_command(name, equivalent):
    """The error for another tool's command names the equivalent."""
    return hinted_by_mica(f"there is no command '{name}'; use `{equivalent}`; see mica --help", [name, "x"])


def missing_command(*names):
    """Neither `mica` nor a program has such a command."""
    def test(case):
        for name in names:
            done = execute([harness.mica, name, "x"], check=False)
            case.assertEqual((done.returncode, done.stdout), (2, b""))
            case.assertNotRegex(case.built.run("--help").stdout.decode(), rf"(?m)^  {name} ")
    return test


def serves(case):
    """At the address and with the sequences that are requested."""
    with Server("--host", "127.0.0.2", "--sequences", "3") as own:
        case.assertEqual((own.host, own.sequences), ("127.0.0.2", 3))
        case.assertEqual(own.chat([{"role": "user", "content": "27 + 15"}])["choices"][0]["message"]["content"].split(), ["42"])


def serves_options(case):
    with Server("--sequences", "1", "--prefill-chunk", "7", "--request-timeout", "60") as own:
        case.assertEqual(own.chat([{"role": "user", "content": "27 + 15"}])["choices"][0]["message"]["content"].split(), ["42"])
        case.assertEqual(own.ask("GET", "/metrics")[0], 200)


def reuses_prefixes(case):
    with Server("--sequences", "1") as own:
        prompt = own.post("/tokenize", {"content": PROMPT})[1]["tokens"]
        for last in (3, 4):
            usage = own.complete([*prompt, last, *prompt], max_tokens=1)["usage"]
        case.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], len(prompt))


def keeps_sequences(case):
    """As many texts as sequences keep their caches."""
    texts = [[token] * 20 for token in (5, 6, 7)]
    for sequences, cached in ((2, 0), (3, 19)):
        with Server("--sequences", str(sequences)) as own:
            for text in (*texts, texts[0]):
                usage = own.complete(text, max_tokens=1)["usage"]
            case.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], cached)


def limits_times(case):
    with Server("--sequences", "1", "--receive-timeout", "1", "--send-timeout", "60", "--request-timeout", "60") as own:
        with own.connect() as client:
            client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
            case.assertRegex(client.recv(4096), b"^HTTP/1.1 408 ", "the time for a body is over")


def missing_paths(case):
    with Server("--sequences", "1") as own:
        for path in ("/slots", "/props", "/completion", "/infill", "/v1/embeddings", "/v1/responses"):
            case.assertEqual(own.post(path, {"prompt": "a"})[0], 404, path)


def tokenizes(case):
    with Server("--sequences", "1") as own:
        status, answer = own.post("/tokenize", {"content": PROMPT})
    case.assertEqual(status, 200)
    ids = ",".join(map(str, answer["tokens"]))
    case.assertEqual(case.built.run("--tokens", ids, "--temp", 0).stdout, TEXT)


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
    """-c and --ctx-size of compile and run."""
    for option in ("-c", "--ctx-size"):
        case.assertIn(b"64 positions", program(MODEL, option, "64").run("info").stdout)
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
    for command in (b"/exit", b"/bye"):
        case.assertEqual(case.built.run("chat", "--temp", 0, stdin=command + b"\n27 + 15\n").stdout, b"")


def chat(stdin, text):
    return works(["chat", "--temp", 0], stdin=stdin, text=text)


def saved(case):
    path = os.path.join(harness.folder("saved"), "conversation")
    case.built.run("chat", "--temp", 0, stdin=f"27 + 15\n/save {path}\n".encode())
    case.assertEqual(json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["messages"][0]["content"], "27 + 15")
    case.assertIn(b"messages", case.built.run("chat", "--temp", 0, stdin=f"/load {path}\n".encode()).stderr)


def template(case):
    path = file_of("{{ messages[0].content }}")
    for option in ("--chat-template", "--chat-template-file"):
        case.assertEqual(case.built.run("--chat", "-p", PROMPT, "--temp", 0, option, path).stdout, TEXT)


def no_built_in_template(case):
    """The option is the path of a file, also for a name of a template of llama.cpp."""
    done = execute([case.built.path, "--chat", "-p", PROMPT, "--chat-template", "chatml"], check=False)
    case.assertEqual((done.returncode, done.stdout, done.stderr.count(b"\n")), (1, b"", 1))
    case.assertIn(b"chatml", done.stderr)


def hub_home(case):
    """HF_HOME sets the folder of models."""
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
    """OWNER/NAME:QUANTIZATION is the GGUF file whose name ends with it."""
    file = gguf_file.Converter(MODEL, "F32").convert().write(os.path.join(harness.folder("gguf"), "model.gguf"))
    files = {"mini-Q4_K_M.gguf": pathlib.Path(file).read_bytes(), "mini-Q8_0.gguf": b"GGUF"}
    done = execute([harness.mica, "run", "mica-test/mini-GGUF:Q4_K_M", *GREEDY],
                   env=case.hub_env({"mica-test/mini-GGUF": hub_server.Repository(files)}))
    case.assertEqual(done.stdout, TEXT)


def removes(case):
    """What was pulled, and nothing else."""
    env = case.hub_env({"mica-test/other": hub_server.Repository(model_files())})
    for name in (NAME, "mica-test/other"):
        execute([harness.mica, "pull", name], env=env)
    case.assertIn(NAME.encode(), execute([harness.mica, "list"], env=env).stdout)
    execute([harness.mica, "rm", NAME], env=env)
    listed = execute([harness.mica, "list"], env=env).stdout
    case.assertNotIn(NAME.encode(), listed)
    case.assertIn(b"mica-test/other", listed)
    folders = os.listdir(os.path.join(env["HF_HOME"], "hub"))
    case.assertNotIn("models--" + NAME.replace("/", "--"), folders)


def options_before_the_model(case):
    """Of the program and of the compiler."""
    env = {"XDG_CACHE_HOME": harness.folder("cache")}
    for before in (["-t", 2], ["-t2", "--kv", "f32"], ["--temp=0", "-n", 40, "-c", 64]):
        done = execute([harness.mica, "run", *before, MODEL, *GREEDY[:2], *([] if "--temp=0" in before else GREEDY[2:])], env=env)
        case.assertEqual(done.stdout, TEXT)


TESTS = {
    "`-m FILE`": several(mica("compile", "-m", MODEL, "--emit", "fused", text=b"mica."), missing(["-m", "model.gguf"])),
    "`-hf OWNER/NAME:Q4_K_M`": several(selection, hinted("the program contains its model", ["-hf", "a/b"]),
                                       hinted_by_mica("-hf: pass OWNER/NAME", ["run", "-hf", "a/b"], ["compile", "-hf", "a/b"])),
    "`-p TEXT`": several(works(["-p", PROMPT, "--temp", 0], [PROMPT, "--temp", 0], text=TEXT),
                         works(["--temp", 0], stdin=PROMPT.encode(), text=TEXT)),
    "`-f FILE`": lambda case: case.assertEqual(case.built.run("-f", file_of(PROMPT), "--temp", 0).stdout, TEXT),
    "`-n N`, `--n-predict N`": works([*GREEDY, "-n", 2], [*GREEDY, "--n-predict", 2], text=b" 2\n"),
    "`-c N`, `--ctx-size N`": several(max_seq, hinted("mica compile --max-seq N", ["-c", 64], ["-c64"])),
    "`-t N`, `--threads N`": several(works([*GREEDY, "-t", 2], [*GREEDY, "--threads", 2], text=TEXT), options_before_the_model),
    "`-b N`, `-ub N`": several(works([*GREEDY, "--prefill-chunk", 4], text=TEXT),
                               hinted("use --prefill-chunk N", ["-b", 4], ["-ub", 4])),
    "`-tb N`": hinted("use --threads N", ["-tb", 2], ["--threads-batch", 2]),
    "`-fa`, `--flash-attn`": several(
        hinted("always on", ["-fa", "on"], ["-fa", "1", *GREEDY], ["--flash-attn", "on"]),
        hinted_by_mica("-fa: always on", ["run", MODEL, "-fa", "on"], ["run", "-fa", "on", MODEL], ["compile", MODEL, "-fa", "-o", "x"])),
    "`--rope-scaling`, `--rope-freq-base` and the like": missing(["--rope-scaling", "yarn"], ["--rope-freq-base", 1e4], ["--rope-freq-scale", 1]),
    "`-e`": missing(["-e", "-p", "a"]),
    "`-s N`, `--seed N`": several(seed, same(((*SAMPLED[:4], *SAMPLED[6:], "-s", 5), SAMPLED), ((*SAMPLED[:4], *SAMPLED[6:], "-s5"), SAMPLED))),
    "`--temp X`": same((("Ada", "-n", 12, "--temp", 0), ("Ada", "-n", 12, "--temperature", 0))),
    "`--top-k N`, `--top-p X`, `--min-p X`": changes(["--top-k", 1], ["--top-p", 0.1], ["--min-p", 1]),
    "`--typical X`": several(changes(["--typical-p", 0.05]), same(((*SAMPLED, "--typical", 0.05), (*SAMPLED, "--typical-p", 0.05)))),
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
    "`-no-cnv`": several(works([*GREEDY], text=TEXT), hinted("leave it out", ["-no-cnv"], ["-no-cnv", *GREEDY])),
    "`-st`": several(works(["--chat", "-p", "27 + 15", "--temp", 0], text=b" 42\n"),
                     hinted("use --chat -p TEXT", ["-st"], ["--single-turn"])),
    "`-sys TEXT`": works(["chat", "-sys", "a", "--temp", 0], ["chat", "--system", "a", "--temp", 0], stdin=b"/system\n", text=b"a\n"),
    "`--jinja`": several(chat(b"27 + 15\n", b" 42\n"), hinted("always on", ["--jinja"])),
    "`--chat-template-file FILE`": template,
    "`--chat-template NAME`": no_built_in_template,
    "`--context-shift`": works(["chat", "--context-shift", "--temp", 0], stdin=b"27 + 15\n", text=b" 42\n"),
    "`--no-display-prompt`": several(display_prompt, hinted("always on", ["--no-display-prompt"])),
    "`--special`": works([*GREEDY, "--print-tokens"], ["--chat", "--special", "-p", "27 + 15", "--temp", 0]),
    "`-ctk q8_0 -ctv q8_0`": several(int8_cache, hinted("mica compile --kv int8", ["-ctk", "q8_0"], ["-ctv", "q8_0"]),
                                      hinted_by_mica("-ctk: use --kv int8", ["compile", MODEL, "-ctk", "q8_0"])),
    "`--no-mmap`": several(works([*GREEDY, "--huge-pages"], text=TEXT), hinted("use --huge-pages", ["--no-mmap"])),
    "`--mlock`": missing(["--mlock"]),
    "`--numa TYPE`, `-C MASK`": missing(["--numa", "distribute"], ["-C", "3"]),
    "`-ngl N`, `-dev LIST`, `-ts LIST`, `-ot LIST`, `-nkvo`, `-fit`": several(
        hinted("there is no GPU backend", ["-ngl", 99], ["-ngl99"], ["--n-gpu-layers=99"], ["-dev", "CUDA0"], ["-ts", "1,1"], ["-ot", "a=CPU"],
               ["-nkvo"], ["-fit", "off"]),
        hinted_by_mica("there is no GPU backend", ["run", "-ngl", 99, MODEL], ["compile", MODEL, "-ngl", 99])),
    "`--grammar TEXT`, `--grammar-file FILE`": missing(["--grammar", "root ::= 'a'"], ["--grammar-file", "f"]),
    "`-j SCHEMA`, `--json-schema SCHEMA`": missing(["-j", "{}"], ["--json-schema", "{}"]),
    "`--lora FILE`": hinted("merge it into the model", ["--lora", "f"]),
    "`--mmproj FILE`, `--image FILE`": missing(["--mmproj", "f"], ["--image", "f"]),
    "`-md FILE`": several(hinted("use --lookup N", ["-md", "f"]), works([*GREEDY, "--lookup", 4], text=TEXT)),
    "`--prompt-cache FILE`": several(missing(["--prompt-cache", "f"]), saved),
    "`llama-bench -p N -n N -d N -r N`": several(
        works(["bench", "--prompt", 16, "--gen", 4, "--depth", 8, "--repeat", 1], text=b"pp16"),
        *(hinted(f"use {name} N", [option, 4], [f"{option}4"], command=["bench"])
          for option, name in (("-p", "--prompt"), ("-n", "--gen"), ("-d", "--depth"), ("-r", "--repeat")))),
    "`llama-perplexity -f FILE`": mica("eval", built_path, "--text", lambda case: file_of(PROMPT * 100), text=b"perplexity"),
    "`llama-perplexity --kl-divergence`": mica("eval", built_path, "--reference", built_path, "--text", lambda case: file_of(PROMPT * 100),
                                               text=b"KL(reference || program)"),
    "`convert_hf_to_gguf.py FOLDER`": mica("compile", MODEL, "-o", output),
    "`llama-quantize`": quantized,
    "`llama-imatrix`": calibrated,
    "`llama-server --host ADDRESS --port N -np N`": several(
        serves, hinted("use --sequences N", ["-np", 2], ["-np2"], ["--parallel", 2], command=["serve"]), hinted("use --batch B", ["-np", 2]),
        renamed_command("server", "mica run MODEL serve")),
    "`llama-server -c N`": lambda case: case.assertIn(b"64 positions", program(MODEL, "--max-seq", "64").run("info").stdout),
    "`llama-server -b N`, `-ub N`": serves_options,
    "`llama-server --cache-reuse N`": several(missing(["serve", "--cache-reuse", 1]), reuses_prefixes),
    "`llama-server --cache-ram N`": several(missing(["serve", "--cache-ram", 1]), keeps_sequences),
    "`llama-server --metrics`": several(missing(["serve", "--metrics"]), serves_options),
    "`llama-server --timeout N`": several(missing(["serve", "--timeout", 1]), limits_times),
    "`llama-server`'s `/slots`, `/props`, `/completion`, `/infill`, `/v1/embeddings`, `/v1/responses`": missing_paths,
    "`llama-tokenize`": tokenizes,
    "`llama-embedding`": missing_command("embed", "embedding"),

    "`ollama pull NAME`": mica("pull", NAME, text=b"snapshots", hub=True),
    "`ollama run NAME`": lambda case: case.assertEqual(
        execute([harness.mica, "run", NAME, "chat", "--temp", 0], env=case.hub_env(), stdin=b"27 + 15\n").stdout, b" 42\n"),
    "`ollama run NAME PROMPT`": mica("run", NAME, "--chat", "-p", "27 + 15", "--temp", "0", text=b" 42\n", hub=True),
    "`ollama run --verbose`": works([*GREEDY, "-v"], text=b"per second"),
    "`ollama run --format json`": missing(["--format", "json"]),
    "`ollama run --think`": missing(["--think"], ["--think=false"]),
    "`ollama run --keepalive TIME`": missing(["--keepalive", "5m"]),
    "`ollama list`": several(mica("list", hub=True), renamed_command("ls", "mica list")),
    "`ollama rm NAME`": removes,
    "`ollama show NAME`": several(mica("inspect", NAME, text=b"parameters", hub=True), works(["info"], text=b"vocabulary"),
                                  renamed_command("show", "mica inspect")),
    "`ollama create -f Modelfile`": several(mica("compile", MODEL, "-o", output), renamed_command("create", "mica compile")),
    "`ollama ps`": missing_command("ps"),
    "`ollama serve`": several(serves, renamed_command("serve", "mica run MODEL serve")),
    "`ollama stop NAME`": missing_command("stop"),
    "`ollama push NAME`": missing_command("push"),
    "`ollama cp`": missing_command("cp"),
    "`num_ctx`, `OLLAMA_CONTEXT_LENGTH`": lambda case: case.assertIn(b"64 positions", program(MODEL, "--max-seq", "64").run("info").stdout),
    "`num_predict`": works([*GREEDY, "-n", 2], text=b" 2\n"),
    "`temperature`, `top_k`, `top_p`, `min_p`, `repeat_penalty`, `seed`, `stop`": several(
        changes(["--top-k", 1], ["--top-p", 0.1], ["--min-p", 1], ["--repeat-penalty", 9]),
        works([*GREEDY, "--stop", " 5"], text=b" 2 3 4\n")),
    "`repeat_last_n`, `draft_num_predict`": missing(["--repeat-last-n", 4], ["--draft-num-predict", 4]),
    "`ADAPTER` of a Modelfile": hinted("merge it into the model", ["--lora", "f"]),
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
    "`/clear`": several(*(chat(b"27 + 15\n" + command + b"\n1 + 2\n", text)
                         for command in (b"/reset", b"/clear") for text in (b" 42\n 3\n", b"the conversation is cleared"))),
    "`/?`": several(chat(b"/help\n", b"/regenerate"), chat(b"/?\n", b"/regenerate")),
    "`/bye`": leave,
    '`"""` around several lines': chat(b'"""\nsort d b a c\n"""\n', b" a b c d\n"),
}


@harness.for_each(range(len(rows())), "row")
class Habits(Case):
    def setUp(self):
        self.built = program(MODEL)
        self.env = None

    def hub_env(self, others={}):
        """Starts a local hub with the model and other repositories."""
        if not self.env:
            hub = self.enterContext(hub_server.Hub())
            hub.repositories.update({NAME: hub_server.Repository(model_files()), **others})
            self.env = hub.environment(harness.folder("hub-home"), harness.folder("hub-cache"))
        return self.env

    def row(self, index):
        name, said = rows()[index]
        self.assertIn(name, TESTS, "a row of docs/cli.md without a test")
        TESTS[name](self)

    def test_every_test_has_a_row(self):
        self.assertEqual(set(TESTS), {name for name, _ in rows()})
        self.assertEqual(len(rows()), len(TESTS), "duplicate row")

    def test_options_that_are_named_exist(self):
        """Each option in the second column is in the reference below the tables."""
        page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
        reference = page[page.index("## Options"):]
        for name, said in rows():
            for option in re.findall(r"(?<![\w-])--?[a-z][\w-]*", " ".join(re.findall(r"`([^`]+)`", said))):
                self.assertTrue(option == "-sys" or re.search(rf"`[^`]*{option}\b[^`]*` \|", reference), f"{name}: {option}")
