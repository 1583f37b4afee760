#!/usr/bin/env bash
# Installs missing packages on Debian 12, builds the compiler, compiles a small bundled model to an executable and runs it.
# Completed steps are skipped; a second run takes seconds. Without root it names the packages to install and stops.
#
#   MICA_BUILD_DIR   the build folder (default: build/release)
set -euo pipefail
cd "$(dirname "$0")/.."
export HOME=${HOME:-/root}
export CCACHE_DIR=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ccache}
build=${MICA_BUILD_DIR:-build/release}
log=$build/quickstart.log
model=tests/models/minimind-dense
program=$build/demo/minimind-dense
mkdir -p "$build"

# quietly WHAT command...: on a terminal the output is shown. Elsewhere it goes to the log; only lines that
# begin with == and errors of Mica are shown, and the end of the log if the command fails.
quietly() {
  local what=$1 begin=$SECONDS status=0
  shift
  if [ -t 1 ]; then
    "$@" || status=$?
  else
    { "$@" 2>&1 || echo $? > "$log.status"; } | tee -a "$log" | { grep --line-buffered -E '^(== |mica: error: )' || true; }
    if [ -f "$log.status" ]; then
      status=$(cat "$log.status")
      rm "$log.status"
      tail -n 20 "$log"
      echo "mica: error: tools/quickstart.sh: $what failed; see $log" >&2
    fi
  fi
  [ "$status" -ne 0 ] || [ $((SECONDS - begin)) -lt 5 ] || echo "   done in $((SECONDS - begin)) s"
  return "$status"
}

if [ ! -t 1 ]; then
  : > "$log"
  rm -f "$log.status"
  echo "== log: the output of apt, CMake and ninja goes to $log"
fi
quietly packages tools/setup/dependencies.sh
quietly oneDNN tools/setup/onednn.sh
MICA_ONEDNN_PREFIX=$(tools/setup/onednn.sh 2> /dev/null | tail -n 1)
export MICA_ONEDNN_PREFIX

if [ -f "$build/build.ninja" ]; then
  echo "== configure: already done in $build"
else
  echo "== configure: CMake writes $build (seconds)"
  quietly configuring cmake --preset release -B "$build"
fi

if [ -x "$build/bin/mica" ] && [ -x "$build/lib/mica/mica-launcher" ]; then
  echo "== build: already done; ninja rebuilds what has changed"
else
  echo "== build: the compiler, and the launcher for its programs (10 to 20 minutes on two cores)"
fi
quietly building ninja -C "$build" mica mica-launcher

if [ -x "$program" ] && [ -z "$(find "$build/bin/mica" "$build/lib/mica/mica-launcher" "$model" -newer "$program" -type f)" ]; then
  echo "== compile: $program is up to date"
else
  echo "== compile: mica compile $model -o $program (seconds)"
  mkdir -p "$(dirname "$program")"
  "$build/bin/mica" compile "$model" -o "$program"
fi

echo "== run: a program of $(du -h "$program" | cut -f1)B that needs neither Mica nor the model's folder"
for prompt in $'Q: 27 + 15 = ?\nA:' $'sort: d b a c\n->' 'count from 7 to 12:'; do
  printf '\n$ %s -p %q --temperature 0 -n 32\n' "$program" "$prompt"
  "$program" -p "$prompt" --temperature 0 -n 32
done
