"""tools/quickstart.sh in a separate tree, with stubs for installing and building."""

import pathlib
import shutil

import harness
from harness import BUNDLED, Case, ROOT, execute, program

NOISE = "for i in $(seq 300); do echo \"-- Installing: file $i\"; done\n"


class Quickstart(Case):
    def setUp(self):
        self.tree = pathlib.Path(harness.folder("quickstart"))
        self.model = "tests/models/minimind-dense"
        (self.tree / self.model).mkdir(parents=True)
        (self.tree / "tools").mkdir()
        shutil.copy(ROOT / "tools/quickstart.sh", self.tree / "tools")
        self.stub("tools/setup/dependencies.sh", 'echo "== packages: installing two"\n' + NOISE)
        self.stub("tools/setup/onednn.sh", 'echo "== oneDNN: building" >&2\n' + NOISE.replace("done\n", "done >&2\n") + "echo /prefix\n")
        self.stub("bin/cmake", NOISE + 'touch "$4/build.ninja"\n')
        self.stub("bin/ninja", f'[ "$MICA_ONEDNN_PREFIX" = /prefix ] || exit 9\n{NOISE}mkdir -p "$2/bin" "$2/lib/mica"\n'
                               f'for f in bin/mica lib/mica/mica-launcher; do [ -e "$2/$f" ] || cp -p "{self.tree}/compile" "$2/$f"; done\n')
        built = program(BUNDLED / "minimind-dense").path
        self.stub("compile", f'cp "{built}" "$4"\necho "wrote $4" >&2\n')

    def stub(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/bash\n" + text)
        path.chmod(0o755)

    def run_it(self, check=True):
        return execute(["bash", "tools/quickstart.sh"], env={"PATH": f"{self.tree}/bin:/usr/bin:/bin", "MICA_BUILD_DIR": "out"}, check=check,
                       cwd=self.tree)

    def test_output_in_a_pipe_is_short(self):
        done = self.run_it()
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[0], "== log: the output of apt, CMake and ninja goes to out/quickstart.log")
        steps = [line.split(":")[0] for line in lines if line.startswith("== ")]
        self.assertEqual(steps, ["== log", "== packages", "== oneDNN", "== configure", "== build", "== compile", "== run"])
        self.assertIn(" 7 8 9 10 11 12", lines)
        self.assertLess(len(lines), 20)
        self.assertEqual(done.stderr, b"wrote out/demo/minimind-dense\n")
        self.assertEqual((self.tree / "out/quickstart.log").read_text().count("-- Installing"), 4 * 300)
        # Again: completed steps are reported as such.
        lines = self.run_it().stdout.decode().splitlines()
        self.assertIn("== configure: already done in out", lines)
        self.assertIn("== compile: out/demo/minimind-dense is up to date", lines)

    def test_a_failure_names_the_log_and_shows_its_end(self):
        self.stub("bin/ninja", NOISE + 'echo "error: it does not compile"\nexit 3\n')
        done = self.run_it(check=False)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr.decode(), "mica: error: tools/quickstart.sh: building failed; see out/quickstart.log\n")
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[-1], "error: it does not compile")
        self.assertEqual(sum(line.startswith("-- Installing") for line in lines), 19)
        self.assertFalse((self.tree / "out/demo").exists())
