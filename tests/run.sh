#!/usr/bin/env bash
# Installs and builds what is missing, then runs all tests: GoogleTest and the replay of fuzz corpora (ctest), lit, and the
# end-to-end tests. Only failures are printed in full. The last line is `N passed, N failed, N skipped`;
# the exit status is 0 only if nothing failed.
#
#   MICA_BUILD_DIR        the build folder (default: build/release)
#   MICA_JOBS             number of parallel jobs (default: the number of processors)
#   MICA_OBJECT_CACHE     folder of the code that LLVM compiled (default: ~/.cache/mica-objects)
#   MICA_SANITIZE_SERVE   "address", "thread" or both: also test the server with sanitizers, see sanitize_serve.sh (default: none)
#
# To run a part: `ctest --test-dir build/release -R NAME`, `build/release/bin/` and a GoogleTest program with --gtest_filter,
# `lit -v build/release/tests/lit --filter NAME`, `tests/e2e/run.py --mica build/release/bin/mica NAME`.
set -uo pipefail
if [ $# -gt 0 ]; then
  sed -n '/^#!/d; /^#/!q; s/^# \{0,1\}//p' "$0"
  [ "$*" = --help ] || exit 2
  exit
fi
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
export HOME=${HOME:-/root}
export CCACHE_DIR=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ccache}
# Most of the time of the tests is that of compilations; code that has not changed since an earlier run is reused.
export MICA_OBJECT_CACHE=${MICA_OBJECT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mica-objects}
mkdir -p "$MICA_OBJECT_CACHE"
build=${MICA_BUILD_DIR:-$here/build/release}
jobs=${MICA_JOBS:-$(nproc)}
results=$build/test-results
# Debian's, which has the package python3-numpy; another one may precede it in PATH.
python=/usr/bin/python3

# step "what it does" LOG command...: no output unless it fails; then the log is printed and this script ends.
step() {
  local what=$1 log=$2 start=$SECONDS
  shift 2
  echo "== $what"
  if ! "$@" > "$log" 2>&1 < /dev/null; then
    cat "$log"
    echo "mica: error: tests/run.sh: $what failed, see above"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
  fi
  echo "   done in $((SECONDS - start)) s"
}

rm -rf "$results"
mkdir -p "$results"
step "packages: installing what is missing" "$results/packages.log" tools/setup/dependencies.sh
if ! tools/setup/dependencies.sh tests/packages.txt > "$results/test-packages.log" 2>&1 < /dev/null; then
  echo "-- not all packages of tests/packages.txt could be installed: tests that need them are skipped"
fi
step "oneDNN: building it unless it is there" "$results/onednn.log" tools/setup/onednn.sh
onednn=$(tools/setup/onednn.sh 2> /dev/null | tail -n 1)
export MICA_ONEDNN_PREFIX=$onednn
step "configuring $build" "$results/configure.log" cmake --preset release -B "$build" \
  -DPython3_EXECUTABLE=$python
step "building the tools and the tests" "$results/build.log" ninja -C "$build" -j "$jobs" all mica-unit-tests

# The output of a runner goes to its log; failures are read from the files that it writes.
echo "== GoogleTest, fuzz corpora, hostile input (ctest)"
ctest --test-dir "$build" -j "$jobs" --no-tests=error --output-on-failure --timeout 1200 --test-output-size-failed 100000 \
  --output-junit "$results/ctest.xml" > "$results/ctest.log" 2>&1 < /dev/null
ctest_status=$?
echo "== lit"
LIT_OPTS="--xunit-xml-output=$results/lit.xml -j $jobs" ninja -C "$build" check-mica > "$results/lit.log" 2>&1 < /dev/null
lit_status=$?
echo "== end to end, through compiled programs"
$python tests/e2e/run.py --mica "$build/bin/mica" --junit "$results/e2e.xml" -j "$jobs" > "$results/e2e.log" 2>&1 < /dev/null
e2e_status=$?
sanitized=()
for kind in ${MICA_SANITIZE_SERVE:-}; do
  echo "== the server with the sanitizer '$kind'"
  MICA_BUILD_DIR=$build tests/sanitize_serve.sh "$kind" > "$results/sanitize-$kind.log" 2>&1 < /dev/null
  sanitized+=("e2e-$kind" $? "build/sanitize-serve-$kind/e2e.xml" "$results/sanitize-$kind.log")
done

$python tests/tools/count_results.py \
  ctest "$ctest_status" "$results/ctest.xml" "$results/ctest.log" \
  lit "$lit_status" "$results/lit.xml" "$results/lit.log" \
  e2e "$e2e_status" "$results/e2e.xml" "$results/e2e.log" ${sanitized[@]+"${sanitized[@]}"}
