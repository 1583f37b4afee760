#!/usr/bin/env bash
# Tests `PROGRAM serve` with sanitizers: builds the launcher of programs with them, and runs the end-to-end tests of the server and the
# random schedules with programs that begin with this launcher. Generated code and oneDNN are not instrumented.
#
#   tests/sanitize_serve.sh [address] [thread] [-- FILTER...]
#
# Default: both sanitizers (address includes undefined), and all tests of the server except those with other programs as clients, with idle
# connections, of the page and of deployment. Leaks are reported when a server ends by itself, as in the test with clients that misbehave;
# most others are killed.
#
#   MICA_BUILD_DIR      the build folder with the compiler (default: build/release)
#   MICA_JOBS           number of parallel jobs (default: the number of processors)
#   MICA_SOAK_SECONDS   duration of the test with clients that misbehave (default: 60)
#   MICA_SCHEDULES      number of random schedules for each weight format (default: 4); MICA_SCHEDULES_SEED selects others
#
# Exits with 1 if a test failed or a sanitizer reported something.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
build=$(realpath "${MICA_BUILD_DIR:-build/release}")
jobs=${MICA_JOBS:-$(nproc)}
kinds=()
while [ $# -gt 0 ]; do
  case $1 in
    address | thread) kinds+=("$1") ;;
    --) shift && break ;;
    *)
      sed -n '/^#!/d; /^#/!q; s/^# \{0,1\}//p' "$0"
      [ "$1" = --help ]
      exit $(($? * 2))
      ;;
  esac
  shift
done
[ ${#kinds[@]} -gt 0 ] || kinds=(address thread)
[ $# -gt 0 ] || set -- test_serve. test_serve_fields test_serve_http test_serve_limits test_serve_deadlines test_serve_process test_serve_load.Load.test_closed_loop test_serve_load.Load.test_misbehaving_clients_joined test_serve_load.Load.test_misbehaving_clients_interrupted test_serve_schedules test_serve_tools
if [ ! -x "$build/bin/mica" ]; then
  echo "mica: error: $build/bin/mica: is missing; build it with tests/run.sh, or set MICA_BUILD_DIR" >&2
  exit 1
fi

failed=0
mkdir -p build
for kind in "${kinds[@]}"; do
  own=$here/build/sanitize-serve-$kind
  echo "== $kind: building the launcher"
  sanitizers=$kind
  [ "$kind" = thread ] || sanitizers=address,undefined
  cmake --preset sanitize -B "$own" -DMICA_SANITIZE="$sanitizers" -DPython3_EXECUTABLE=/usr/bin/python3 > "$own.log" 2>&1 &&
    ninja -C "$own" -j "$jobs" mica-launcher mica-schedules >> "$own.log" 2>&1 || {
    tail -n 50 "$own.log"
    exit 1
  }
  # The compiler finds the launcher relative to its own file, and the test of schedules their program beside the compiler.
  tree=$own/tree reports=$own/reports
  rm -rf "$tree" "$reports" "$own/e2e.xml"
  mkdir -p "$tree/bin" "$tree/lib/mica" "$reports"
  ln -f "$build/bin/mica" "$tree/bin/mica" 2> /dev/null || cp "$build/bin/mica" "$tree/bin/mica"
  ln -f "$own/bin/mica-schedules" "$tree/bin"
  ln -f "$own/lib/mica/mica-launcher" "$tree/lib/mica"
  echo "== $kind: running the tests"
  # Reports go to files, since most servers are killed at the end of their test.
  # Freed memory that AddressSanitizer holds back (256 MiB by default) would hide whether memory is flat.
  export ASAN_OPTIONS=log_path=$reports/address:quarantine_size_mb=16 UBSAN_OPTIONS=log_path=$reports/undefined:print_stacktrace=1
  export TSAN_OPTIONS=log_path=$reports/thread:history_size=4
  # Sanitizers take memory of their own: tests that limit memory are skipped.
  export MICA_SANITIZER=$kind
  /usr/bin/python3 tests/e2e/run.py --mica "$tree/bin/mica" --junit "$own/e2e.xml" -j "$jobs" "$@" || failed=1
  if [ -n "$(ls -A "$reports")" ]; then
    head -n 60 "$reports"/*
    echo "mica: error: the sanitizer '$kind' reported problems: see $reports"
    failed=1
  fi
done
exit $failed
