"""`mica explore`: its data connects each op to the model, and its page shows them in headless Chromium."""

import base64
import collections
import json
import os
import pathlib
import re
import shutil
import statistics
import sys
import zlib

import checkpoint
import harness
from browser import Browser
from harness import BUNDLED, Case, emit, note, program

sys.path.insert(0, str(harness.ROOT / "tests/bench"))
from shapes import SHAPES  # noqa: E402

#: The models of the page's test: a dense one, a mixture of experts, a quantized one.
MODELS = {"dense": ("minimind-dense",), "moe": ("minimind-moe",), "int8": ("minimind-dense", "--weights", "int8")}
#: MODELS, and models with other layer types, for tests of provenance.
TRACED = {**MODELS, "hybrid": (harness.GOLDENS / "models/granite-hybrid",), "delta": (harness.GOLDENS / "models/qwen3-next", "--weights", "int4"),
          "parallel": (harness.GOLDENS / "models/falcon-h1",),
          "latent": (harness.GOLDENS / "models/deepseek-v3",), "blocks": (harness.GOLDENS / "models/gpt-oss-mxfp4",)}
STAGES = ["model", "fused", "kernels", "loops", "ll", "asm"]
#: Stage `ll` in the order of compilation, in which `llvm` precedes it.
LL, ASM = 5, 6
#: Text that would run scripts, load resources or leave the page if it were parsed as markup.
HOSTILE = "</script><img src=x onerror=window.hacked=1><!--style--><!--data-->"


def explore(case, *options):
    """The path of the page for a model, or for "1b", the shape of Llama 3.2 1B in int4; written once per run."""

    def write():
        folder = harness.folder("explore")
        path, (model, *own) = os.path.join(folder, "page.html"), TRACED.get(case, ("model", "--weights", "int4"))
        model = BUNDLED / model if case in TRACED else checkpoint.sparse(folder, SHAPES["llama-3.2-1b"])
        harness.execute([harness.mica, "explore", model, *own, "-o", path, *options])
        return path

    return harness.once(("explore", case, options), write)


def profile_of(case):
    """A profile of the model's program."""
    model, *own = MODELS[case]

    def write():
        path = os.path.join(harness.folder("explore"), "profile.json")
        program(BUNDLED / model, *own).run("bench", "--prompt", 48, "--gen", 8, "--repeat", 1, "--peak-gb", 50, "--peak-gflop", 500,
                                           "--profile-json", path)
        return path

    return harness.once(("explore profile", case), write)


def data_of(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    packed = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', text)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def origins(stage, op):
    return stage["origins"][stage["origin"][op]]


def in_model(stages, index, op):
    """The ops of stage `model` from which the op originates."""
    ops, at = {op}, index
    while stages[at]["from"] >= 0:
        ops = {origin for each in ops for origin in origins(stages[at], each)}
        at = stages[at]["from"]
    return ops


def kind(stage, op):
    return stage["kinds"][stage["kind"][op]]


def places(stage, op):
    return set(stage["places"][stage["place"][op]].split())


@harness.for_each(TRACED, "provenance")
@harness.for_each(TRACED, "successors")
class Provenance(Case):
    def provenance(self, case):
        """Every op of every stage leads to the model, and so do at least 99 % of the instructions of each kernel."""
        stages = data_of(explore(case))["stages"]
        self.assertEqual([s["name"] for s in stages], STAGES)
        for index, stage in enumerate(stages[:4]):
            self.assertGreater(len(stage["line"]), 50)
            for op in range(len(stage["line"])):
                self.assertTrue(in_model(stages, index, op), f"{stage['name']}, line {stage['line'][op]}: {kind(stage, op)}")
        for index, stage in enumerate(stages[4:], 4):
            found, all_of, inferred = collections.Counter(), collections.Counter(), set(stage["inferred"])
            for op, parent in enumerate(stage["parent"]):
                if parent >= 0:
                    name = stage["places"][stage["place"][parent]]
                    all_of[name] += 1
                    found[name] += bool(in_model(stages, index, op))
            self.assertGreater(len(all_of), 10)
            for name, count in all_of.items():
                self.assertGreaterEqual(found[name], 0.99 * count, f"{stage['name']}: {name}")
            own = sum(parent >= 0 and op not in inferred for op, parent in enumerate(stage["parent"])) / sum(all_of.values())
            self.assertTrue(all(stage["origin"][op] for op in inferred))
            self.assertGreater(own, 0.8)
            note(self, f"{stage['name']}: {sum(found.values())} of {sum(all_of.values())} instructions lead to an op, {100 * own:.1f} % by their own line")
        self.lines_are_of_their_ops(stages)

    def lines_are_of_their_ops(self, stages):
        for stage in stages:
            lines = stage["text"].split("\n")
            for op, line in enumerate(stage["line"]):
                name = kind(stage, op)
                wanted = name.split(".")[-1] if name != "function" else f"{stage['places'][stage['place'][op]]}:" if stage["name"] == "asm" else "define "
                if line:
                    self.assertIn(wanted, lines[line - 1], f"{stage['name']}:{line}")

    def successors(self, case):
        """Every op of the model leads to an op of each following stage, so a fused op leads to all ops that it replaces."""
        stages = data_of(explore(case))["stages"]
        # Folding shares constants, and caches are passed to kernels without an op that reads them.
        erased = {"fused": set(), "kernels": {"arith.constant"}, "loops": {"arith.constant", "mica.kv_read"}}
        for stage in stages[1:4]:
            before, found = stages[stage["from"]], {op for each in set(stage["origin"]) for op in stage["origins"][each]}
            lost = {kind(before, op) for op in range(len(before["line"])) if op not in found}
            self.assertLessEqual(lost, erased[stage["name"]], stage["name"])

    def test_fused_ops_link_to_all_their_sources(self):
        stages = data_of(explore("dense"))["stages"]
        fused, expected = stages[1], {
            "mica.gated_linear": {"mica.linear", "mica.silu", "mica.mul"},
            "mica.qkv_append": {"mica.rope", "mica.rmsnorm", "mica.kv_append"},
        }
        for op in range(len(fused["line"])):
            wanted = expected.pop(kind(fused, op), None)
            if wanted:
                self.assertLessEqual(wanted, {kind(stages[0], each) for each in origins(fused, op)})
            if kind(fused, op) == "mica.gated_linear":
                made_of = set().union(*(places(stages[0], each) for each in origins(fused, op)))
                self.assertLessEqual({"model.layers.*.mlp.gate_proj", "model.layers.*.mlp.up_proj"}, made_of)
        self.assertEqual(expected, {})

    def test_kernels_link_to_all_their_launches(self):
        stages = data_of(explore("dense"))["stages"]
        loops = stages[3]
        launched = collections.defaultdict(set)
        lines = loops["text"].split("\n")
        for op in range(len(loops["line"])):
            if kind(loops, op) == "exec.launch":
                launched[re.search(r"exec\.launch @(\w+)", lines[loops["line"][op] - 1])[1]] |= set(origins(loops, op))
        shared = 0
        for op in range(len(loops["line"])):
            if kind(loops, op) == "func.func":
                name = re.search(r"@(\w+)\(", lines[loops["line"][op] - 1])[1]
                if name in launched:
                    self.assertLessEqual(launched[name], set(origins(loops, op)), name)
                    shared += len(launched[name]) > 1
        self.assertGreater(shared, 0)

    def test_recording_changes_nothing(self):
        """The code is that of the program: assembly and the hash in a profile are the same."""
        data = data_of(explore("dense"))
        without_comments = lambda text: [re.sub(r"\s*#.*", "", line) for line in text.split("\n") if re.sub(r"\s*#.*", "", line).strip()]
        of_debug = re.compile(r"\.Lfunc_begin|\t\.file\t|\t\.ident")
        got, wanted = ([line for line in without_comments(text) if not of_debug.match(line)]
                       for text in (data["stages"][5]["text"], emit(BUNDLED / "minimind-dense", "asm")))
        self.assertEqual(got, wanted)
        with open(profile_of("dense"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["program"]["code"], data["code"])

    def test_passes(self):
        """Each pass with the ops that it changed and the patterns that it applied."""
        passes = {p["argument"]: p for p in data_of(explore("dense"))["passes"]}
        fuse = passes["mica-fuse-gated-linear"]
        self.assertIn(["mica.gated_linear", 0, 1], fuse["ops"])
        (name, count, reason), = fuse["patterns"]
        self.assertEqual((name, count), ("GateAndUpShareOneProduct", 1))
        self.assertIn(" => gated_linear(", reason)
        self.assertTrue(fuse["changed"])
        self.assertFalse(passes["mica-verify-fused"]["changed"])
        self.assertIn("gated_linear", fuse["docs"])
        # All changes of LLVM's passes are attributed to one of them: their sum is the difference between their input and stage `ll`.
        data = data_of(explore("dense"))
        llvm = [each for each in data["passes"] if each["to"] == LL]
        self.assertLessEqual({"instcombine", "licm", "slp-vectorizer", "gvn"}, {each["argument"] for each in llvm})
        self.assertEqual(sum(each["after"] - each["before"] for each in llvm), sum(parent >= 0 for parent in data["stages"][4]["parent"]) - llvm[0]["before"])
        for each in llvm:
            self.assertEqual(sum(after - before for _, before, after in each["ops"]), each["after"] - each["before"], each["argument"])
            self.assertTrue(each["changed"] or not each["ops"], each["argument"])
            self.assertFalse(each["changed"] and each["summary"].startswith("LLVM's "), f"{each['argument']} has no description")
        # Passes on functions count only ops in functions.
        self.assertTrue(passes["mica-fuse-residual"]["onFunctions"])
        self.assertFalse(fuse["onFunctions"])
        self.assertTrue(any(reason.startswith("hoisting ") for each in llvm if each["argument"] == "licm" for _, _, reason in each["patterns"]))
        self.machine_code(data)
        for case in MODELS:
            reasons = {name: reason for each in data_of(explore(case))["passes"] for name, _, reason in each["patterns"] if name.startswith("Lower")}
            self.assertGreater(len(reasons), 8)
            self.assertEqual([name for name, reason in reasons.items() if " => " not in reason], [])

    def machine_code(self, data):
        """The passes of LLVM's code generator lead from its first machine instructions to those in assembly."""
        passes, asm = [each for each in data["passes"] if each["to"] == ASM], data["stages"][5]
        names = [each["argument"] for each in passes]
        self.assertLessEqual({"x86-isel", "greedy", "prologepilog"}, set(names))
        self.assertLess(names.index("x86-isel"), names.index("greedy"))
        self.assertLess(names.index("greedy"), names.index("prologepilog"))
        sizes = collections.Counter(asm["places"][asm["place"][parent]] for parent in asm["parent"] if parent >= 0)
        functions = {name: numbers for name, *numbers in data["machineCode"]}
        self.assertEqual(set(functions), set(sizes))
        ops = {each["argument"]: {name: (before, after) for name, before, after in each["ops"]} for each in passes}
        for name, (selected, emitted, *_) in functions.items():
            self.assertEqual(ops["x86-isel"][name], (0, selected))
            self.assertAlmostEqual(emitted / sizes[name], 1, delta=0.02, msg=name)
        for each in passes:
            self.assertEqual(each["after"] - each["before"], sum(after - before for _, before, after in each["ops"]))
        # Functions whose registers do not suffice have a stack.
        self.assertTrue(any(spills and stack for *_, spills, _, stack in functions.values()))

    def test_size(self):
        for case in (*MODELS, "1b"):
            note(self, f"{case}: {os.path.getsize(explore(case)) / 1e6:.2f} MB")
            self.assertLess(os.path.getsize(explore(case)), 5_000_000)


class Refused(Case):
    def refused(self, *arguments):
        done = harness.execute([harness.mica, "explore", *arguments], check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        return done.stderr.decode()

    def test_profiles(self):
        folder = pathlib.Path(harness.folder("explore"))
        page, file = folder / "page.html", folder / "profile.json"
        model = BUNDLED / "minimind-dense"
        with open(profile_of("dense"), encoding="utf-8") as f:
            profile = json.load(f)
        error = self.refused(model, "--weights", "f32", "-o", page, "--profile", profile_of("dense"))
        self.assertEqual(re.sub(r"code \w+ instead of \w+", "code A instead of B", error),
                         f"mica: error: {profile_of('dense')}: is a profile of another program (model minimind-dense, weights bf16, code A instead of B); "
                         "pass the model and the options with which that program was compiled\n")
        create = "create one with `PROGRAM bench --profile-json FILE`"
        for text, said in (("{", f"is not JSON; {create}"), ("[]", f"is not a profile of a program; {create}"),
                           ('{"mica_profile": 7}', "is a profile of version 7, expected 1; create it again with a program of this version"),
                           ('{"mica_profile": 1}', f"lacks `program` or `tests`; {create}")):
            file.write_text(text, encoding="utf-8")
            self.assertEqual(f"mica: error: {file}: {said}\n", self.refused(model, "-o", page, "--profile", file))
        file.write_text(json.dumps({**profile, "tests": []}), encoding="utf-8")
        self.assertEqual(f"mica: error: {file}: has no tests; {create}\n", self.refused(model, "-o", page, "--profile", file))
        kernel = profile["tests"][0]["kernels"][0]["kernel"]
        for damage, said in ((lambda t: t.pop("limits"), "a test lacks `test`, `seconds`, `tokens` or `limits`"), (lambda t: t.pop("kernels"), "a test lacks `kernels`"),
                             (lambda t: t["kernels"][0].pop("kernel"), "a kernel has no name"), (lambda t: t["kernels"][0].update(seconds=-1), f"the kernel `{kernel}` lacks `seconds` of at least 0"),
                             (lambda t: t.update(tokens=0), "a test lacks `tokens` above 0"), (lambda t: t.update(seconds=0), "a test lacks `seconds` above 0"),
                             (lambda t: t["kernels"][0].update(location="x"), f"the `location` of the kernel `{kernel}` is not a list of modules"),
                             (lambda t: t["kernels"][0].update(location=[1]), f"the `location` of the kernel `{kernel}` is not a list of modules"),
                             (lambda t: t["limits"].pop("gb_per_s"), "the limits of a test lack `gb_per_s` above 0"),
                             (lambda t: t["limits"].update(gflop_per_s=0), "the limits of a test lack `gflop_per_s` above 0")):
            wrong = json.loads(json.dumps(profile))
            damage(wrong["tests"][0])
            file.write_text(json.dumps(wrong), encoding="utf-8")
            self.assertEqual(f"mica: error: {file}: is damaged: {said}; {create}\n", self.refused(model, "-o", page, "--profile", file))
        self.assertEqual(f"mica: error: {folder}/nothing: cannot be read (No such file or directory); pass a file written by `PROGRAM bench --profile-json`\n",
                         self.refused(model, "-o", page, "--profile", folder / "nothing"))
        self.assertFalse(page.exists())

    def test_programs_and_outputs(self):
        built = program(BUNDLED / "minimind-dense")
        page = os.path.join(harness.folder("explore"), "page.html")
        self.assertIn("--weights does not apply to a program; pass the model that it was compiled from", self.refused(built.path, "--weights", "int8", "-o", page))
        self.assertIn("is a profile of another program", self.refused(built.path, "-o", page, "--profile", profile_of("int8")))
        self.assertIn("is not a Mica program", self.refused(__file__, "-o", page))
        damaged = pathlib.Path(harness.folder("explore")) / "damaged"
        damaged.write_bytes(pathlib.Path(built.path).read_bytes()[:-4096])
        self.assertIn(str(damaged), self.refused(damaged, "-o", page))
        self.assertIn("explore needs -o FILE.html", self.refused(BUNDLED / "minimind-dense"))
        self.assertFalse(os.path.exists(page))


#: Collects the kinds of controls on the page, and those of which it has got an event. Kinds are named by element and container.
WATCH = """
const name = element => element ? element.tagName.toLowerCase() + (element.id ? `#${element.id}` : element.classList.length && element.tagName !== "rect" ? `.${element.classList[0]}` : "") : "page";
const kindOf = element => `${name(element.parentElement.closest("table[id], .stack, svg, aside, .pane, .pass, .bar, nav, form"))} ${name(element)}`;
const CONTROLS = "button, select, input, summary, [role=button], .row[data-op], .value";
window.controls = {seen: new Set(), used: new Set(), keys: new Set()};
const scan = () => document.querySelectorAll(CONTROLS).forEach(each => window.controls.seen.add(kindOf(each)));
new MutationObserver(scan).observe(document.body, {childList: true, subtree: true});
scan();
for (const type of ["click", "change", "keydown"])
  addEventListener(type, event => {
    const control = event.target.closest?.(CONTROLS);
    if (type === "keydown")
      window.controls.keys.add(event.key);
    if (control && (type === "change" || (type === "click" && !control.matches("select, input")) || (type === "keydown" && control.matches("input"))))
      window.controls.used.add(kindOf(control));
  }, true);
"""


class Shown:
    """A page in a browser, with the controls that have been shown and used."""

    def __init__(self, browser, path, fragment=""):
        self.browser, self.seen, self.used, self.keys = browser, set(), set(), set()
        self.load(path, fragment)

    def load(self, path, fragment=""):
        self.collect()
        self.browser.open("about:blank")
        self.browser.open(f"file://{path}{fragment}")
        self.browser.wait("return document.documentElement.dataset.ready", "the page")
        self.run(WATCH)

    def collect(self):
        """Adds the controls of the current page."""
        if found := self.run("return window.controls ? [...Object.values(window.controls)].map(each => [...each]) : null"):
            for known, added in zip((self.seen, self.used, self.keys), found):
                known.update(added)

    def run(self, script, *arguments):
        return self.browser.run(script, *arguments)

    def state(self, name):
        return self.run("return window.page.state[arguments[0]]", name)

    def key(self, key, selector="body"):
        self.run("""document.activeElement.blur();
                    document.querySelector(arguments[1]).dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0], bubbles: true, cancelable: true}))""", key, selector)

    def choose(self, selector, value):
        """Chooses an option of the first such select element."""
        self.run("""const select = document.querySelector(arguments[0]);
                    select.value = arguments[1];
                    select.dispatchEvent(new Event('change', {bubbles: true}))""", selector, str(value))

    def click(self, selector):
        """Clicks on the first element, even if another one is in front of it."""
        self.run("document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))", selector)

    def rows(self, kind):
        """(pane, text) of the rows of that class."""
        return self.run("""return [...document.querySelectorAll('.pane')].flatMap((pane, at) =>
                           [...pane.querySelectorAll('.row.' + arguments[0])].map(row => [at, row.textContent]))""", kind)

    def click_row(self, pane, text):
        """Scrolls to the first row of an op of the pane that contains `text`, and clicks on it."""
        self.run("""const pane = window.page.views.stages.panes[arguments[0]];
                    const line = pane.stage.lines.findIndex((line, at) => pane.stage.opAt[at + 1] >= 0 && line.includes(arguments[1])) + 1;
                    pane.show(line);
                    pane.element.querySelector(`.row[data-line="${line}"]`).click()""", pane, text)


@harness.for_each(MODELS, "page")
class ExplorePage(Case):
    def page(self, case):
        """Selects an op of the model and follows it through all stages, then from an instruction back; views, search, keys."""
        with Browser() as browser:
            page = Shown(browser, explore(case))
            # An op of the model in fused and kernels.
            page.run("window.page.go({panes: [0, 1, 2]})")
            page.click_row(0, "mica.rmsnorm")
            self.assertEqual(len(page.rows("selected")), 1)
            self.assertEqual(page.run("return [...document.querySelectorAll('[aria-current]')].map(each => each.classList.contains('selected'))"), [True])
            self.assertTrue(any(pane == 1 for pane, _ in page.rows("result")))
            # Parts of a kernel are named by it, because several ops may share it.
            links = page.run("return [...document.querySelectorAll('aside .link')].map(each => each.textContent)")
            self.assertTrue(any(re.match(r"func\.func @rmsnorm\w*$", link) for link in links), links)
            self.assertTrue(any(re.match(r"\w+ in @rmsnorm\w*\.task", link) for link in links), links)
            # Then to loops, LLVM IR and assembly.
            for stage in (3, 4, 5):
                page.run("window.page.go({panes: [0, arguments[0]]})", stage)
                self.assertTrue(any(pane == 1 for pane, _ in page.rows("result")), STAGES[stage])
            # From an instruction back to the model.
            page.run("window.page.go({op: null, panes: [0, 5]})")
            data = data_of(explore(case))
            asm = data["stages"][5]
            op = next(op for op, parent in enumerate(asm["parent"]) if parent >= 0 and kind(asm, op).startswith("vfmadd"))
            page.run("window.page.go({op: [5, arguments[0]]})", op)
            self.assertTrue(any(pane == 0 for pane, _ in page.rows("origin")))
            self.assertIn("From model", page.run("return document.querySelector('aside').textContent"))
            self.assertRegex(page.run("return document.getElementById('op-modules').textContent"), r"^@[\w.]+: (model\.|lm_head)")
            # A value leads to its op.
            page.run("window.page.go({op: null, panes: [1]})")
            page.click_row(0, "mica.linear")
            page.run("document.querySelector('.row.selected').querySelectorAll('.value')[1].click()")
            self.assertEqual(len(page.rows("selected")), 1)
            self.assertGreater(page.run("return document.querySelectorAll('.value.same').length"), 1)
            # The state is in the fragment.
            fragment = page.run("return location.hash")
            page.load(explore(case), fragment)
            self.assertEqual(page.run("return location.hash"), fragment)
            self.assertEqual(len(page.rows("selected")), 1)
            # A link with a search shows its results; matches are marked.
            page.load(explore(case), "#view=passes&query=o_proj")
            self.assertEqual(page.state("view"), "passes")
            self.assertRegex(page.run("return document.getElementById('matches').textContent"), r"^\d+ lines$")
            page.load(explore(case), fragment)
            # Search.
            page.run("""document.getElementById('query').value = 'o_proj';
                        document.getElementById('search').requestSubmit()""")
            self.assertRegex(browser.wait("return document.getElementById('matches').textContent", "matches"), r"^1 of \d+$")
            page.key("n")
            self.assertRegex(page.run("return document.getElementById('matches').textContent"), r"^2 of \d+$")
            # An op selected after a search is visible, wherever the match is.
            page.run("window.page.go({panes: [0], op: [0, window.page.data.stages[0].line.length - 1]})")
            self.assertEqual(len(page.rows("selected")), 1)
            page.key("Escape")
            self.assertEqual(page.rows("selected"), [])
            # Tabs by arrow keys.
            page.run("document.getElementById('view-stages').focus()")
            page.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))")
            self.assertEqual(page.run("return [window.page.state.view, document.activeElement.id]"), ["passes", "view-passes"])
            # Passes.
            page.key("2")
            self.assertEqual(page.run("return window.page.state.view"), "passes")
            text = page.run("return document.querySelector('main').textContent")
            self.assertIn("ProductAddsItsResidual", text)
            self.assertIn("add(r, product(...)) => product(...) residual(r)", text)
            # Panes, theme.
            page.key("1")
            before = page.run("return document.querySelectorAll('.pane').length")
            page.key("-" if before > 1 else "+")
            self.assertNotEqual(page.run("return document.querySelectorAll('.pane').length"), before)
            theme = page.run("return document.documentElement.dataset.theme")
            page.key("t")
            self.assertNotEqual(page.run("return document.documentElement.dataset.theme"), theme)

            self.graph(browser, page)
            self.memory(browser, page)
            self.overview(page)
            self.prints(browser, page)
            self.narrow(browser, page)
            self.header(browser, page)
            self.panes(page)
            self.lists(page)
            self.time(page, case)
            # Nothing on the page was left out.
            page.collect()
            self.assertGreater(len(page.seen), 30)
            self.assertEqual(sorted(page.seen - page.used), [])
            self.assertLessEqual({"/", "n", "N", "j", "k", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "1", "2", "6", "+", "-", "t", "v", "Escape", "Enter"}, page.keys)

    def header(self, browser, page):
        """Tabs, search and theme by mouse and by keys, and the browser's history."""
        for view in ("passes", "graph", "time", "memory", "overview", "stages"):
            browser.click(f"view-{view}")
            self.assertEqual(page.state("view"), view)
        page.run("history.back()")
        browser.wait("return window.page.state.view === 'overview'", "the previous view")
        page.key("ArrowLeft", "#view-overview")
        self.assertEqual(page.state("view"), "memory")
        matches = "return document.getElementById('matches').textContent"
        page.key("/")
        self.assertEqual(page.run("return document.activeElement.id"), "query")
        browser.type("query", "down_proj\n")
        self.assertRegex(browser.wait(matches, "matches"), r"^1 of \d+$")
        self.assertEqual(page.state("view"), "stages")
        browser.click("next")
        self.assertRegex(page.run(matches), r"^2 of ")
        browser.click("previous")
        self.assertRegex(page.run(matches), r"^1 of ")
        page.key("n")
        page.key("N")
        self.assertRegex(page.run(matches), r"^1 of ")
        self.assertGreater(len(page.rows("match")), 0)
        page.key("Escape")
        self.assertEqual(page.run(matches), "")
        ground = "return getComputedStyle(document.body).backgroundColor"
        before = page.run(ground)
        browser.click("theme")
        self.assertNotEqual(page.run(ground), before)
        browser.click("theme")
        self.assertEqual(page.run(ground), before)

    def narrow(self, browser, page):
        """In a narrow window, panes are legible and the panel is below them."""
        devtools = lambda command, **parameters: browser.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})
        devtools("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=False)
        page.run("window.page.go({view: 'stages', panes: [0, 1], op: [0, 3]})")
        box = lambda selector: page.run("const {left, top, width, height} = document.querySelector(arguments[0]).getBoundingClientRect(); return [left, top, width, height]", selector)
        pane, aside = box(".pane"), box("aside")
        self.assertGreater(pane[2], 200)
        self.assertGreater(pane[3], 200)
        self.assertGreaterEqual(aside[1], pane[1] + pane[3] - 1)
        self.assertEqual(aside[2], 420)
        devtools("Emulation.clearDeviceMetricsOverride")

    def follow(self, page, stage, following):
        """Uses the first link of the panel to an op of `stage` that leads on, to the section `following`: some ops leave no instructions."""
        section, op = f"return [...document.querySelectorAll('aside h3')].find(each => / {stage}$/.test(each.textContent)).nextElementSibling", page.state("op")
        for link in range(page.run(f"{section}.querySelectorAll('.link').length")):
            page.run("window.page.go({op: arguments[0]})", op)
            page.run(f"{section}.querySelectorAll('.link')[arguments[0]].click()", link)
            if following in page.run("return [...document.querySelectorAll('aside h3')].map(each => each.textContent)"):
                return
        self.fail(f"no op of stage {stage} leads to a section `{following}`")

    def panes(self, page):
        """The stage of a pane, the links of the panel, and the next op by keys."""
        page.run("window.page.go({view: 'stages', panes: [0, 1], op: null, query: ''})")
        page.choose(".pane select", 4)
        self.assertEqual(page.state("panes"), [4, 1])
        page.choose(".pane select", 0)
        for count, key in ((3, "+"), (2, "-"), (1, "-"), (2, "+")):
            page.key(key)
            self.assertEqual(page.run("return document.querySelectorAll('.pane').length"), count)
        # Links lead through all stages and back.
        page.click_row(0, "mica.linear")
        for stage, following in ((1, "In kernels"), (2, "In loops"), (3, "In asm"), (5, "From ll"), (4, "From model"), (0, "In asm")):
            self.follow(page, STAGES[stage], following)
            self.assertEqual(page.state("op")[0], stage)
            self.assertEqual(len(page.rows("selected")), 1)
        self.assertIn("mica.linear", page.run("return document.querySelector('aside h2').textContent"))
        page.run("window.page.go({panes: [0], op: [0, 3]})")
        for key, line in (("j", 1), ("ArrowDown", 1), ("k", -1), ("ArrowUp", -1)):
            before = page.state("op")[1]
            page.key(key, ".pane .text")
            self.assertEqual((page.state("op")[1] - before) * line > 0, True, key)
        self.assertEqual(page.state("op"), [0, 3])
        # The values of a line by keys: its result, then its operands, whose definitions are selected, and its result again.
        page.run("window.page.go({panes: [0], op: null})")
        page.click_row(0, "mica.add")
        op, line = page.state("op"), page.rows("selected")[0][1]
        values = re.findall(r"%[\w.$-]+", line)
        self.assertEqual(len(values), 3, line)
        for value in (*values, values[0]):
            page.key("v", ".pane .text")
            self.assertEqual(page.state("value"), value)
            self.assertEqual(page.state("op") == op, value == values[0])
            self.assertIn(value, page.rows("selected")[0][1])
        # A marked value, and one of another op, which leads to its definition.
        page.run("window.page.go({panes: [1], op: null})")
        page.click_row(0, "mica.linear")
        for _ in range(2):
            page.click(".row.selected .value:last-of-type")
        page.run("document.querySelector('.value.same').click()")
        self.assertGreater(page.run("return document.querySelectorAll('.value.same').length"), 0)

    def lists(self, page):
        """The lists of passes, functions and weights."""
        page.run("window.page.go({view: 'passes', op: null})")
        passes = "return document.querySelectorAll('.pass').length"
        count = page.run(passes)
        page.click("main .bar button")
        self.assertGreater(page.run(passes), count)
        page.click("main .bar button")
        self.assertEqual(page.run(passes), count)
        page.run("document.querySelector('.pass summary').click()")
        self.assertTrue(page.run("return document.querySelector('.pass').open"))
        titles = page.run("return [...document.querySelectorAll('main h2')].map(each => each.textContent)")
        self.assertEqual(titles, ["model → fused", "fused → kernels", "kernels → loops", "loops → llvm", "llvm → ll", "ll → asm"])
        self.assertIn("instcombine", page.run("return document.querySelector('main').textContent"))
        self.assertIn("when a pass first runs", page.run("return document.querySelector('main').textContent"))
        self.assertRegex(page.run("return [...document.querySelectorAll('.pass summary')].map(each => each.textContent).find(each => each.startsWith('mica-fuse-residual'))"),
                         r"\d+ → \d+ ops in functions, ")
        # The machine code of a function leads to its assembly.
        page.click("#machine-code .link")
        self.assertEqual((page.state("op")[0], len(page.rows("selected"))), (5, 1))
        page.run("window.page.go({view: 'graph', graph: null})")
        for key in page.run("return window.page.views.graph.choices.map(each => each.key)"):
            page.choose("#graph-choice", key)
            self.assertGreater(page.run("return document.querySelectorAll('#graph .node').length"), 0, key)
        # The panel of the graph leads to the stages.
        page.run("window.page.go({graph: null})")
        page.click("#graph .node[role=button]")
        page.run("document.querySelector('aside .link').click()")
        self.assertGreater(page.state("op")[0], 0)
        page.run("window.page.go({view: 'memory', op: null})")
        for function in page.run("return window.page.data.memory.map(each => each.function)"):
            page.choose("#function", function)
            self.assertEqual(page.run("return window.page.views.memory.chosen.function"), function)
        for selector in (".buffers rect", ".lanes .read", "#weights .link"):
            page.run("""window.page.go({view: 'memory', op: null, buffers: window.page.data.memory.find(each => each.function.includes('layer')).function})""")
            page.click(selector)
            self.assertEqual(len(page.rows("selected")), 1, selector)

    def graph(self, browser, page):
        """Nodes, edges with shapes and bytes; folding; layers as one node that can be opened."""
        page.run("window.page.go({view: 'graph', graph: null, fold: null, op: null})")
        titles = page.run("return [...document.querySelectorAll('#graph .node')].map(each => each.textContent)")
        self.assertTrue(any("rmsnorm" in title for title in titles), titles)
        layer = page.run("""const view = window.page.views.graph, chosen = view.choices.find(each => each.stage.name === 'model' && each.name !== 'main');
                            window.page.go({graph: chosen.key}); return chosen.name""")
        self.assertRegex(page.run("return document.querySelector('#graph').textContent"), r"T×\d+ f32, [\d.]+ (Ki)?B per row")
        nodes = "return document.querySelectorAll('#graph .node').length"
        count = page.run(nodes)
        # Nodes show the formats and bytes of their weights; a box contains several ops.
        self.assertRegex(page.run("return document.querySelector('#graph').textContent"), r"(bf16|int8) [\d.]+ [KM]iB")
        boxes = page.run("return document.querySelectorAll('#graph .fold').length")
        page.click("#graph .fold")
        self.assertLess(page.run(nodes), count - 1)
        self.assertEqual(page.run("return document.activeElement === document.body"), True)
        page.click("#graph .node.group")
        self.assertEqual((page.run(nodes), page.run("return document.querySelectorAll('#graph .fold').length")), (count, boxes))
        page.click("#fold-all")
        self.assertLess(page.run(nodes), count // 2)
        page.click("#fold-all")
        self.assertEqual(page.run(nodes), count)
        self.assertEqual(page.run("""return [...document.querySelectorAll('#graph .node .detail')].map(each => each.textContent).filter(each => each.includes('*'))"""), [])
        # Titles of boxes and nodes do not overlap.
        self.assertEqual(page.run("""const boxOf = each => each.getBoundingClientRect(), nodes = [...document.querySelectorAll('#graph .node > rect:first-child')];
            return [...document.querySelectorAll('#graph .fold text')].filter(title => nodes.some(node => {
              const a = boxOf(title), b = boxOf(node);
              return a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top < a.bottom - 2;
            })).map(each => each.textContent)"""), [])
        self.zoom(browser, page)
        # A selected op, by keyboard, shows its text, attributes with values and meanings, and documentation.
        page.run("""const node = [...document.querySelectorAll('#graph .node')].find(each => each.textContent.startsWith('rmsnorm'));
                    node.focus(); node.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))""")
        self.assertEqual(page.run("return document.querySelectorAll('#graph .node.selected').length"), 1)
        self.assertEqual(page.run("return document.activeElement.classList.contains('selected')"), True)
        page.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}))")
        self.assertEqual(page.run("return document.activeElement.matches('#graph .node:not(.selected)')"), True)
        self.assertIn("mica.rmsnorm", page.run("return document.querySelector('#op-text').textContent"))
        attributes = dict(page.run("return [...document.querySelectorAll('#op-attributes tbody tr')].map(row => [row.children[0].textContent, row.textContent])"))
        self.assertRegex(attributes["eps"], r"^eps[\d.]+[eE]-\d+ : f64\S")
        self.assertGreater(page.run("return document.querySelector('#op-docs').textContent.length"), 20)
        # Equal layers are one node with their number; it can be unfolded in place, or shown alone.
        for stage in ("model", "kernels"):
            page.run("window.page.go({graph: window.page.views.graph.choices.find(each => each.stage.name === arguments[0] && each.name.startsWith('main')).key, open: null})", stage)
            titles = page.run("return [...document.querySelectorAll('#graph .node')].map(each => each.textContent)")
            self.assertEqual(sum(title.startswith("@") and "×" in title for title in titles), 1, titles)
            page.click("#graph .unfold")
            self.assertGreater(page.run(nodes), len(titles) + 5)
            self.assertIn("×", page.run("return document.querySelector('#graph .fold').textContent"))
            self.assertEqual(page.run("return document.querySelectorAll('#graph .unfold').length"), 0)
            # The beginning is visible.
            self.assertTrue(page.run("""const view = document.getElementById('graph').getBoundingClientRect();
                const first = [...document.querySelectorAll('#graph .node')].map(each => each.getBoundingClientRect()).reduce((a, b) => a.top <= b.top ? a : b);
                return view.left <= first.left && first.right <= view.right && view.top <= first.top"""), stage)
            page.click("#graph .fold")
            self.assertEqual(page.run(nodes), len(titles))
        page.run("""window.page.go({graph: null});
                    [...document.querySelectorAll('#graph .node[role=button]')].find(each => each.getAttribute('aria-label').startsWith('@'))
                    .dispatchEvent(new MouseEvent('dblclick', {bubbles: true}))""")
        self.assertIn(layer, page.run("return document.querySelector('#graph-choice').selectedOptions[0].textContent"))

    def zoom(self, browser, page):
        """The graph is zoomed and moved by mouse wheel, drag, buttons and keys; the visible part is in the fragment."""
        shown = lambda: page.run("const {k, x, y} = d3.zoomTransform(document.getElementById('graph')); return [k, x, y]")
        nodes = lambda: page.run("return [...document.querySelectorAll('#graph .node')].map(each => { const {left, top} = each.getBoundingClientRect(); return [left, top]; })")
        before = shown()
        for forth, back in ((lambda: browser.click("zoom-in"), lambda: browser.click("zoom-out")), (lambda: page.key("+"), lambda: page.key("-"))):
            forth()
            self.assertGreater(shown()[0], before[0])
            back()
            self.assertAlmostEqual(shown()[0], before[0], places=2)
        for key, back, axis, sign in (("ArrowUp", "ArrowDown", 1, 1), ("ArrowLeft", "ArrowRight", 0, 1)):
            page.key("+")
            page.key(back)
            first = nodes()
            page.key(key)
            self.assertAlmostEqual(nodes()[0][axis] - first[0][axis], 60 * sign, delta=1)
            page.key(back)
            self.assertAlmostEqual(nodes()[0][axis], first[0][axis], delta=1)
        # A link to the visible part.
        fragment, first = page.run("return location.hash"), shown()
        self.assertIn("zoom=", fragment)
        page.key("0")
        view = page.run("const {left, top, right, bottom} = document.getElementById('graph').getBoundingClientRect(); return [left, top, right, bottom]")
        for left, top in nodes():
            self.assertTrue(view[0] <= left <= view[2] and view[1] <= top <= view[3], (left, top, view))
        browser.click("zoom-all")
        page.run("location.hash = arguments[0]", fragment)
        browser.wait(f"return Math.abs(d3.zoomTransform(document.getElementById('graph')).k - {first[0]}) < 0.01", "the linked part")
        self.assertTrue(all(abs(a - b) < 3 * first[0] for a, b in zip(shown()[1:], first[1:])), (shown(), first))
        # By mouse.
        page.run("document.getElementById('graph').dispatchEvent(new WheelEvent('wheel', {deltaY: -200, clientX: 300, clientY: 300, bubbles: true, cancelable: true}))")
        self.assertGreater(shown()[0], first[0])
        begin = nodes()[0]
        page.run("""const at = (type, target, x, y) => target.dispatchEvent(new MouseEvent(type, {clientX: x, clientY: y, bubbles: true, cancelable: true, view: window}));
                    const graph = document.getElementById('graph');
                    at('mousedown', graph, 300, 300); at('mousemove', window, 300, 260); at('mouseup', window, 300, 260)""")
        self.assertAlmostEqual(nodes()[0][1], begin[1] - 40, delta=2)
        page.run("window.page.go({zoom: null})")

    def memory(self, browser, page):
        """A rectangle of the map leads to its op; buffers with overlapping live ranges have different addresses."""
        page.run("window.page.go({view: 'memory', op: null})")
        self.assertGreater(page.run("return document.querySelectorAll('.buffers rect').length"), 2)
        overlaps = page.run("""return window.page.data.memory.flatMap(({buffers}) => buffers.flatMap((a, i) => buffers.slice(0, i).filter(b =>
                               a[3] === b[3] && a[4] <= b[5] && b[4] <= a[5] && a[1] < b[1] + b[2] && b[1] < a[1] + a[2]).map(b => [a, b])))""")
        self.assertEqual(overlaps, [])
        page.run("""window.page.go({buffers: window.page.data.memory.find(each => each.buffers.some(a => each.buffers.some(
                        b => a !== b && a[3] === b[3] && a[1] < b[1] + b[2] && b[1] < a[1] + a[2]))).function})""")
        page.click(".buffers rect")
        self.assertEqual(page.run("return window.page.state.view"), "stages")
        self.assertIn("memref.view", page.rows("selected")[0][1])
        # The selected buffer, and buffers at the same addresses.
        page.run("history.back()")
        browser.wait("return document.querySelector('.buffers rect')", "the map")
        page.run("""const {buffers} = window.page.views.memory.chosen, shares = (a, b) => a !== b && a[3] === b[3] && a[1] < b[1] + b[2] && b[1] < a[1] + a[2];
                    window.page.go({op: [3, buffers.find(a => buffers.some(b => shares(a, b)))[0]]})""")
        self.assertGreater(page.run("return document.querySelectorAll('.buffers .chosen').length"), 0)
        self.assertGreater(page.run("return document.querySelectorAll('.buffers .alias').length"), 0)
        # Weights are read and caches written and read; a mark leads to its op.
        lanes = page.run("return window.page.data.memory.find(each => each.function.includes('layer')).lanes")
        self.assertTrue(all(kind == 1 for name, is_cache, _, uses in lanes if not is_cache for kind in uses[1::2]), lanes)
        self.assertEqual({kind & 3 for _, is_cache, _, uses in lanes if is_cache for kind in uses[1::2]}, {1, 2})
        self.assertTrue(any("o_proj" in name and size for name, _, size, _ in lanes))
        page.run("window.page.go({buffers: window.page.data.memory.find(each => each.function.includes('layer')).function, op: null})")
        self.assertGreater(page.run("return document.querySelectorAll('.lanes .read').length"), 5)
        page.click(".lanes .write")
        self.assertIn("exec.launch", page.rows("selected")[0][1])
        self.assertGreater(page.run("return window.page.data.weights.length"), 10)
        # The bar equals the bytes read per token in the manifest.
        page.run("window.page.go({view: 'time', op: null})")
        read, cost = page.run("return window.page.data.weights.reduce((sum, each) => sum + each[5], 0)"), page.run("return window.page.data.manifest.cost")
        self.assertEqual(round(read), cost["weight_bytes_per_token"])
        self.assertGreater(page.run("return document.querySelectorAll('#token-bar rect').length"), 4)
        page.click("#token-bar rect")
        self.assertIn("mica.weight", page.rows("selected")[0][1])

    def overview(self, page):
        """Properties, formats and stages in numbers."""
        page.key("6")
        self.assertEqual(page.run("return window.page.state.view"), "overview")
        text = page.run("return document.querySelector('main').innerText")
        for part in ("hidden size", "attention heads", "parameters", "weights read per token", "target", "Formats of weights"):
            self.assertIn(part, text)
        self.assertEqual(page.run("return document.querySelectorAll('#stage-list tbody tr').length"), len(STAGES))
        page.click("#stage-list tbody tr:last-child button")
        self.assertIn(5, page.run("return window.page.state.panes"))

    def prints(self, browser, page):
        """A printed page has no controls, does not truncate lists, and has a light theme."""
        devtools = lambda command, **parameters: browser.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})
        page.run("window.page.setTheme(true); window.page.go({view: 'passes'})")
        devtools("Emulation.setEmulatedMedia", media="print")
        shown = page.run("""const css = element => getComputedStyle(document.querySelector(element));
                            return [css('#views').display, css('#search').display, css('.scroll').overflow, css('body').backgroundColor]""")
        self.assertEqual(shown, ["none", "none", "visible", "rgb(255, 255, 255)"])
        self.assertGreater(page.run("return document.documentElement.scrollHeight"), 1000)
        self.assertTrue(base64.b64decode(devtools("Page.printToPDF")["data"]).startswith(b"%PDF"))
        devtools("Emulation.setEmulatedMedia", media="")
        page.run("window.page.setTheme(false)")

    def time(self, page, case):
        """Colors, the roofline and the bytes per token of a profile."""
        page.load(explore(case, "--profile", profile_of(case)), "#view=time&test=tg8&color=time")
        kernels = page.run("return window.page.views.time.current.kernels.length")
        self.assertEqual(page.run("return document.querySelectorAll('#kernels tbody tr').length"), kernels)
        # Each kernel has a point, or is named as one whose costs are not counted.
        plotted = page.run("return [...document.querySelectorAll('#roofline circle')].map(each => [each.dataset.kernel, each.classList.contains('no-flops')])")
        costs = page.run("return window.page.views.time.current.kernels.map(each => [each.kernel, each.bytes, each.flops])")
        self.assertEqual(sorted(plotted), sorted([name, not flops] for name, size, flops in costs if size))
        self.assertLessEqual({True, False}, {without for _, without in plotted})
        unplotted = page.run("return document.getElementById('unplotted').textContent")
        self.assertEqual([name for name, size, _ in costs if not size and not re.search(rf"\b{name}\b", unplotted)], [])
        # Below the roofline by the same factor as in the table.
        self.assertEqual(page.run("""const view = window.page.views.time, test = view.current, {gb_per_s: gb} = test.limits;
            const circles = new Map([...document.querySelectorAll('#roofline circle.no-flops')].map(each => [each.dataset.kernel, each.__data__]));
            return test.kernels.filter(each => circles.has(each.kernel)).filter(each => Math.abs(circles.get(each.kernel).y / (circles.get(each.kernel).x * gb) / view.roofline(test, each) - 1) > 1e-6)"""), [])
        self.assertGreater(page.run("return document.querySelectorAll('#bytes-bar rect').length"), 2)
        self.assertEqual(page.run("return document.querySelectorAll('#bytes-bar rect').length + document.querySelectorAll('#token-bar rect').length"),
                         page.run("return document.querySelectorAll('.legend .swatch').length"))
        page.run("document.querySelector('#roofline circle').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        self.assertIn("func.func", page.rows("selected")[0][1])
        self.assertIn("time per token", page.run("return document.querySelector('#op-cost').textContent"))
        for selector in ("#kernels .link", "#bytes-bar rect", "#roofline circle.no-flops"):
            page.run("window.page.go({view: 'time', op: null})")
            page.click(selector)
            self.assertEqual(len(page.rows("selected")), 1, selector)
        for color, legend in (("time", "shortlong"), ("bytes", "fewmany"), ("roofline", "farnear"), ("", "")):
            page.run("window.page.go({view: 'stages', panes: [1], op: null})")
            page.choose("#color", color)
            self.assertEqual(page.run("return document.getElementById('legend').textContent"), legend)
            if not color:
                self.assertEqual(page.run("return [...document.querySelectorAll('.row')].filter(row => row.style.boxShadow).length"), 0)
                break
            colored = page.run("return [...document.querySelectorAll('.row')].filter(row => row.style.boxShadow).map(row => row.textContent).join()")
            page.click_row(0, "mica.linear")
            colored += page.run("return [...document.querySelectorAll('.row')].filter(row => row.style.boxShadow).map(row => row.textContent).join()")
            self.assertIn("mica.linear", colored)
            page.run("window.page.go({view: 'graph', graph: null})")
            self.assertGreater(page.run("return document.querySelectorAll('#graph .heat').length"), 0, color)
        page.run("window.page.go({view: 'time'})")
        page.choose("#test", "pp48")
        self.assertEqual(page.run("return window.page.views.time.current.test"), "pp48")
        page.choose("#test", "tg8")
        # A kernel's time is divided among the ops that launch it, by number of executions; none of it is lost.
        seconds, launched, layer, phases = page.run("""
            const view = window.page.views.time, test = view.current, stage = view.page.data.stages[view.loops], costs = view.costsOf(test)[view.loops];
            const is = (op, ...kinds) => kinds.includes(kindOf(stage, op)), sum = ops => ops.reduce((all, [, cost]) => all + cost.seconds, 0);
            const launches = [...costs].filter(([op]) => is(op, "exec.launch", "exec.matmul"));
            const calls = [...costs].filter(([op]) => is(op, "func.call") && symbolIn(stage, op).includes("layer"));
            return [test.kernels.reduce((all, each) => all + each.seconds, 0), sum(launches), sum(calls),
                    [...new Set(launches.map(([op]) => symbolIn(stage, outermost(stage, op)).match(/_(small|medium|large)$/)?.[1] ?? ""))]]""")
        self.assertAlmostEqual(launched / seconds, 1, places=6)
        # The layers take a part of the time (on an idle machine most of it), and only one phase is entered.
        self.assertTrue(0 < layer / seconds <= 1.000001, layer / seconds)
        self.assertEqual(len([phase for phase in phases if phase]), 1, phases)
        # Every executed op has a kernel: the time of all kernels equals that of ops of the model.
        self.assertEqual(page.run("""const view = window.page.views.time, known = view.kernels;
                                     return view.current.kernels.filter(each => !known.get(each.kernel)?.launches.length).map(each => each.kernel)"""), [])

    def test_program(self):
        """The page of a program: its manifest, missing information, and its times."""
        built, page = program(BUNDLED / "minimind-dense").path, os.path.join(harness.folder("explore"), "page.html")
        harness.execute([harness.mica, "explore", built, "-o", page, "--profile", profile_of("dense")])
        with Browser() as browser:
            shown = Shown(browser, page)
            self.assertEqual(shown.run("return Object.keys(window.page.views)"), ["time", "memory", "overview"])
            self.assertIn("A program contains no stages", shown.run("return document.querySelector('#missing').textContent"))
            text = shown.run("return document.querySelector('main').textContent")
            for part in ("mica.gated_linear", "linear_1024x256", "model.layers.*.self_attn.o_proj", "bf16"):
                self.assertIn(part, text)
            shown.key("1")
            self.assertGreater(shown.run("return document.querySelectorAll('#roofline circle').length"), 2)
            self.assertEqual(shown.run("return document.querySelectorAll('#token-bar rect').length"), 2)
            shown.click("#roofline circle")
            shown.key("2")
            self.assertIn("Scratch memory", shown.run("return document.querySelector('#sizes').textContent"))
            self.assertGreater(shown.run("return document.querySelectorAll('#caches tbody tr').length"), 0)
            shown.run("window.page.go({query: 'x'})")
            self.assertEqual(shown.run("return document.getElementById('matches').textContent"), "0 lines")
            for key in ("+", "-", "3"):
                shown.key(key)
            self.assertEqual(shown.run("return [window.page.state.view, window.page.state.panes.length]"), ["overview", 0])
            self.assertEqual(self.violations(browser, shown, ("time", "memory", "overview")), [])

    def test_states(self):
        """Of a model with states, each layer writes both, and the page shows their sizes beside those of caches that grow."""
        caches = data_of(explore("parallel"))["manifest"]["caches"]
        layers = [each for each in data_of(explore("parallel"))["memory"] if "layer" in each["function"]]
        self.assertEqual(len(layers), 3)
        for layer in layers:
            uses = {name.rpartition(".")[2]: {kind & 3 for kind in uses[1::2]} for name, is_cache, _, uses in layer["lanes"] if is_cache}
            self.assertEqual(uses, {"k_cache": {1, 2}, "v_cache": {1, 2}, "conv_state": {2}, "recurrent_state": {2}}, layer["function"])
        with Browser() as browser:
            page = Shown(browser, explore("parallel"), "#view=memory")
            rows = page.run("return [...document.querySelectorAll('#caches tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")
        sizes = {name: numbers for name, _, _, *numbers in rows}
        # Two layers with rings of 64 rows, of which a checkpoint has 3, and with two matrices of 6 heads, of which it has one, and a ring
        # of their keys, values and decays.
        self.assertEqual(sizes, {"keys0": ["64", str(128 * 64), ""], "values0": ["64", str(128 * 64), ""],
                                 "conv_state0": ["0", str(2 * 64 * 88 * 4), str(2 * 3 * 88 * 4)],
                                 "recurrent_state0": ["0", str(2 * 6 * (2 * 10 * 8 + 64 * (10 + 8 + 1)) * 4), str(2 * 6 * 10 * 8 * 4)]})
        self.assertEqual([each["name"] for each in caches], list(sizes))

    def test_open(self):
        """--open passes the page to xdg-open, and reports an error if that is missing or fails."""
        folder = pathlib.Path(harness.folder("open"))
        page, opener = folder / "page.html", folder / "bin/xdg-open"
        command = [harness.mica, "explore", program(BUNDLED / "minimind-dense").path, "-o", page, "--open"]
        opener.parent.mkdir()
        for script, said in ((None, "--open needs xdg-open, which is not installed; open the page in a browser"), ("exit 3", "--open: xdg-open failed"), (f'echo "$1" > {folder}/opened', None)):
            if script:
                opener.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
                opener.chmod(0o755)
            done = harness.execute(command, env={"PATH": str(opener.parent)}, check=False)
            self.assertEqual(done.returncode, 1 if said else 0)
            self.assertIn(said or "wrote ", done.stderr.decode())
        self.assertEqual((folder / "opened").read_text(encoding="utf-8"), f"{page}\n")

    def test_accessibility(self):
        """axe-core finds no problem in any view, light and dark."""
        with Browser() as browser:
            page = Shown(browser, explore("dense", "--profile", profile_of("dense")), "#op=fused:40")
            self.assertEqual(self.violations(browser, page, ("stages", "passes", "graph", "time", "memory", "overview")), [])

    def violations(self, browser, page, views):
        found = []
        for theme in ("light", "dark"):
            page.run("window.page.setTheme(arguments[0])", theme == "dark")
            for view in views:
                page.run("window.page.go({view: arguments[0]})", view)
                found += [f"{view}, {theme}: {each}" for each in browser.violations()]
        return found

    def test_loads_in_a_second(self):
        with Browser() as browser:
            times = [int(Shown(browser, explore("1b")).run("return document.documentElement.dataset.ready")) for _ in range(10)]
        note(self, f"interactive after {statistics.median(times):.0f} ms, median of 10")
        # The fastest: another program on the machine may delay any of them.
        self.assertLessEqual(min(times), 1000)

    def test_text_is_never_markup(self):
        """Names in the model are treated as text, in the page's file and in the browser."""
        folder = pathlib.Path(harness.folder("hostile"))
        text = emit(BUNDLED / "minimind-dense", "model")
        text = re.sub(r'module @"[^"]*"', lambda _: f'module @"{HOSTILE}"', text, count=1).replace("model.norm.weight", "model.norm<svg/onload=window.hacked=1>")
        text = re.sub(r"@(model\.norm<[^>]*>)", r'@"\1"', text)
        (folder / "edited.mlir").write_text(text, encoding="utf-8")
        page = folder / "page.html"
        harness.execute([harness.mica, "explore", folder / "edited.mlir", "-o", page])
        html = page.read_text(encoding="utf-8")
        self.assertEqual(len(re.findall("<title>", html)), 1)
        self.assertNotIn("<img", html)
        with Browser() as browser:
            shown = Shown(browser, page)
            self.assertEqual(shown.run("return document.querySelector('h1').textContent"), HOSTILE)
            shown.run("window.page.go({view: 'stages', query: 'onload'})")
            browser.wait("return document.querySelectorAll('.row.match').length > 0", "the hostile name")
            self.assertIn("onload", shown.run("return document.querySelector('aside').textContent"))
            self.harmless(shown, page)
            shown.run("window.page.go({view: 'memory'})")
            self.assertIn("<svg/onload", shown.run("return document.querySelector('#weights').textContent"))
        # The names of tests, kernels and modules in a profile, and those of a program.
        with open(profile_of("dense"), encoding="utf-8") as f:
            profile = json.load(f)
        for test in profile["tests"]:
            test["test"] += HOSTILE
            for kernel in test["kernels"]:
                kernel["kernel"] += HOSTILE
                kernel["location"] = [HOSTILE]
        (folder / "profile.json").write_text(json.dumps(profile), encoding="utf-8")
        for model in (BUNDLED / "minimind-dense", program(BUNDLED / "minimind-dense").path):
            harness.execute([harness.mica, "explore", model, "-o", page, "--profile", folder / "profile.json"])
            with Browser() as browser:
                shown = Shown(browser, page, "#view=time")
                self.assertIn(HOSTILE, shown.run("return document.querySelector('#roofline circle').getAttribute('aria-label')"))
                self.assertIn(HOSTILE, shown.run("return document.querySelector('#kernels').textContent"))
                self.harmless(shown, page)

    def harmless(self, shown, page):
        """Text is not markup in any view, nor in the fragment."""
        for view in shown.run("return Object.keys(window.page.views)"):
            shown.run("window.page.go({view: arguments[0]})", view)
            self.assertEqual(shown.run("return window.page.state.view"), view)
            self.assertEqual(shown.run("return document.querySelectorAll('img, iframe, [onload], [onerror]').length"), 0, view)
        shown.load(page, "#view=%3Cimg%3E&graph=%3Cimg%20src=x%20onerror=window.hacked=1%3E&zoom=a,b&fold=%3Cimg%3E&query=%3Cimg%3E&test=%3Cimg%3E")
        self.assertEqual(shown.run("return document.querySelectorAll('img, iframe, [onload], [onerror]').length"), 0)
        self.assertIsNone(shown.run("return window.hacked ?? null"))


class Diff(Case):
    def diff(self, *arguments, check=True):
        return harness.execute([harness.mica, "diff", *arguments], check=check)

    def test_models(self):
        """Formats, bytes, kernels and stages of two formats of a model; equal values are not listed."""
        model = BUNDLED / "minimind-dense"
        diff = json.loads(self.diff(model, model, "--weights", "bf16,int8", "--json").stdout)
        self.assertFalse(diff["identical"])
        self.assertEqual({each["key"]: (each["a"], each["b"]) for each in diff["config"]}["weights"], ("bf16", "int8"))
        kernels = {each["kernel"]: each for each in diff["kernels"]}
        self.assertGreater(kernels["linear_1024x256"]["a"]["instructions"], 10)
        weights = {each["weight"]: each for each in diff["weights"]}["model.embed_tokens.weight"]
        self.assertEqual(weights["a"]["bytes"], 512 * 256 * 2)
        self.assertLess(weights["b"]["bytes"], weights["a"]["bytes"])
        self.assertEqual([each["stage"] for each in diff["stages"]], STAGES[1:])
        total = {each["of"]: each for each in diff["bytes"]}["weights"]
        self.assertLess(total["b"], total["a"])
        text = self.diff(model, model, "--weights", "bf16,int8").stdout.decode()
        self.assertIn("  weights: bf16 -> int8\n", text)
        self.assertRegex(text, r"\nstage fused: \d+ lines only in A, \d+ only in B\n")
        # The lines of a stage, as JSON and as a unified diff.
        both = self.diff(model, model, "--weights", "bf16,int8", "--stage", "fused,kernels", "--json")
        stages = {each["stage"]: each for each in json.loads(both.stdout)["stages"]}
        self.assertEqual({name for name, each in stages.items() if "hunks" in each}, {"fused", "kernels"})
        for count, sign in (("lines_only_in_a", "-"), ("lines_only_in_b", "+")):
            self.assertEqual(sum(line.startswith(sign) for hunk in stages["fused"]["hunks"] for line in hunk["lines"]), stages["fused"][count])
        lines = [line for hunk in stages["fused"]["hunks"] for line in hunk["lines"]]
        self.assertIn("-  mica.weight @model.embed_tokens.weight : tensor<512x256xbf16>", lines)
        self.assertIn("+  mica.weight @model.embed_tokens.weight : tensor<512x256x!mica.block<int8_g32>>", lines)
        text = self.diff(model, model, "--weights", "bf16,int8", "--stage", "fused").stdout.decode()
        self.assertRegex(text, r"\n--- A: fused\n\+\+\+ B: fused\n@@ -1,\d+ \+1,\d+ @@\n")
        # Equal differences of several layers are one line.
        text = self.diff(model, model, "--weights", "bf16,int8").stdout.decode()
        self.assertRegex(text, r"\n  model\.layers\.\*\.mlp\.down_proj\.weight \(3 times\): tensor<256x512xbf16.* -> tensor<256x512x!mica\.block<int8_g32>")
        same = self.diff(model, model, "--stage", "asm").stdout.decode()
        self.assertEqual(same, f"A: {model}\nB: {model}\nno differences\n")

    def test_sizes_and_caches(self):
        """The sizes of two models, and their caches by name."""
        text = self.diff(BUNDLED / "minimind-dense", BUNDLED / "minimind-moe").stdout.decode()
        for line in ("model.hidden: 256 -> 192", "model.layers: 3 -> 4", "model.heads: 8 -> 6", "caches.keys0.bytes_per_token: 1536 -> 512"):
            self.assertIn(f"\n  {line}\n", text)

    def test_a_model_equals_its_program(self):
        """What only a program or only a model has is not a difference."""
        model, built = BUNDLED / "minimind-dense", program(BUNDLED / "minimind-dense").path
        for a, b in ((model, built), (built, model)):
            self.assertEqual(self.diff(a, b).stdout.decode(), f"A: {a}\nB: {b}\nno differences\n")
        diff = json.loads(self.diff(built, model, "--weights", "int8", "--json").stdout)
        self.assertEqual({each["key"]: (each["a"], each["b"]) for each in diff["config"]}["weights"], ("bf16", "int8"))
        # Which kernels differ depends on the instruction set; int8 weights always add one that quantizes the rows.
        kernels = {each["kernel"]: (each["a"], each["b"]) for each in diff["kernels"]}
        self.assertIsNone(kernels["quantize"][0])
        self.assertIsNotNone(kernels["quantize"][1])
        self.assertNotIn(True, [a == b for a, b in kernels.values()])

    def test_programs(self):
        """Manifests, and on request KL divergence and speed."""
        a, b = program(BUNDLED / "minimind-dense").path, program(BUNDLED / "minimind-dense", "--weights", "int8", "--rows", "int8").path
        text = pathlib.Path(harness.folder("diff")) / "text.txt"
        text.write_text("1 + 2\n" * 40, encoding="utf-8")
        diff = json.loads(self.diff(a, b, "--json", "--text", text, "--bench").stdout)
        self.assertNotIn("stages", diff)
        # The functions of stage kernels with their numbers of ops, which manifests have.
        functions = {each["function"]: (each["a"], each["b"]) for each in diff["functions"]}
        self.assertEqual((functions["dense_layer_small"][0]["mica.linear"], functions["dense_layer_small"][1]), (3, None))
        self.assertGreater(functions["dense_layer_decode_small"][1]["mica.cast"], 0)
        self.assertRegex(self.diff(a, b).stdout.decode(), r"\nfunctions at stage kernels\n  @dense_layer_decode_large: - -> \d+ ops\n")
        total = {each["of"]: each for each in diff["bytes"]}["weights"]
        self.assertLess(total["b"], total["a"])
        self.assertGreater(diff["kl"]["mean"], 0)
        self.assertTrue(all(each["a"] > 0 and each["b"] > 0 for each in diff["speed"]))
        self.assertGreater(len(diff["speed"]), 1)
        self.assertTrue(json.loads(self.diff(a, a, "--json").stdout)["identical"])

    def test_refused(self):
        model, built = BUNDLED / "minimind-dense", program(BUNDLED / "minimind-dense").path
        for arguments, said in (((built, built, "--weights", "bf16,int8"), "--weights does not apply to a program; pass the model that it was compiled from"),
                                ((model, built, "--weights", "bf16,int8"), "--weights has a value for B, which is a program; pass one value, for the model"),
                                ((built, model, "--kv", "f32,int8"), "--kv has a value for A, which is a program; pass one value, for the model"),
                                ((model, built, "--stage", "fused"), f"{built}: is a program, which has no stages; pass the model that it was compiled from"),
                                ((model, built, "--bench"), "--bench needs two programs"), ((model, model, "--text", "x"), "--text needs two programs"),
                                ((model, "/nothing"), "/nothing"), ((model, __file__), "test_explore.py")):
            done = self.diff(*arguments, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
            self.assertIn(said, done.stderr.decode())

    def test_a_program_that_cannot_be_measured(self):
        built = program(BUNDLED / "minimind-dense").path
        copy = os.path.join(harness.folder("diff"), "copy")
        shutil.copyfile(built, copy)
        done = self.diff(copy, built, "--bench", check=False)
        self.assertEqual((done.returncode, re.sub("measured: .*;", "measured: REASON;", done.stderr.decode())),
                         (1, f"mica: error: {copy}: cannot be measured: REASON; run `PROGRAM bench` to see why\n"))
        done = harness.execute([harness.mica, "diff", built, built, "--bench"], env={**os.environ, "TMPDIR": "/nothing"}, check=False)
        self.assertEqual((done.returncode, done.stderr.decode()),
                         (1, "mica: error: --bench: cannot create a temporary file (No such file or directory); set TMPDIR to a folder with free space\n"))
