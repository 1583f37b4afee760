# The lit suite. Tests mirror the source tree; RUN lines find Mica's tools and LLVM's on the PATH.
import os
import shutil

import lit.formats

config.name = "Mica"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.mica_build_dir, "tests", "lit")

search_path = [config.mica_tools_dir, config.llvm_tools_dir, config.environment.get("PATH", os.defpath)]
config.environment["PATH"] = os.pathsep.join(search_path)

config.substitutions += [
    ("%python", config.python),
    ("%cxx", config.cxx),
    ("%llvm_include", config.llvm_include_dir),
    ("%mica_source", config.mica_source_dir),
    ("%mica_build", config.mica_build_dir),
    ("%test_data", os.path.join(config.mica_source_dir, "tests", "data")),
    ("%tests_tools", os.path.join(config.mica_source_dir, "tests", "tools")),
]

# Features for REQUIRES. `shared-data` stands for optional models and texts beside the checkout.
shared = os.path.join(config.mica_source_dir, os.pardir, "shared")
config.substitutions.append(("%shared", os.path.normpath(shared)))
if os.path.isdir(os.path.join(shared, "models")):
    config.available_features.add("shared-data")
else:
    lit_config.note("no optional data beside the checkout: tests that need `shared-data` do not run")
with open(os.path.join(config.mica_source_dir, "tools", "setup", "packages.txt"), encoding="utf-8") as packages:
    if any(shutil.which(name) for name in packages.read().split() if name.startswith("clang-tidy-")):
        config.available_features.add("clang-tidy")
    else:
        lit_config.note("clang-tidy is not installed: the test of names does not run")
if shutil.which("qemu-x86_64"):
    config.available_features.add("qemu")
for name in ("openmpi", "mpich"):
    if os.path.exists(os.path.join(config.mica_tools_dir, os.pardir, "lib", "mica", f"mica-mpi-{name}.so")):
        config.available_features.add("mpi-" + name)
    else:
        lit_config.note(f"there is no plug-in for {name}: tests that need `mpi-{name}` do not run")


def cpu_flags():
    """The instruction sets of this machine, by their names in Linux."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = [line for line in file if line.startswith("flags")]
    except OSError:
        return []
    return lines[0].split(":")[1].split() if lines else []


for flag in ("avx2", "avx512f", "avx512_bf16", "avx512_vnni"):
    if flag in cpu_flags():
        config.available_features.add("cpu-" + flag)
