#!/usr/bin/env bash
# Runs clang-tidy with the tree's .clang-tidy on FILES, on files that differ from BRANCH, or on all C++ files of the tree
# (one processor hour), and fails if it finds anything. Needs a complete build (MICA_BUILD_DIR, default: build/release) for its
# compile commands, generated headers and precompiled header. Without the clang-tidy of tools/setup/packages.txt the check is
# skipped (status 77).
#
#   tests/tools/check_tidy.sh [FILES... | --changed [BRANCH]]      MICA_JOBS files at once (default: one)
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${MICA_BUILD_DIR:-build/release}
tidy=$(grep -x 'clang-tidy-[0-9]*' tools/setup/packages.txt)
if ! command -v "$tidy" > /dev/null; then
  printf 'tests/tools/check_tidy.sh: Skipped\n%s is not installed\n' "$tidy"
  exit 77
fi
if [ ! -e "$build/compile_commands.json" ]; then
  echo "$build has no compile_commands.json: configure and build it, or name another one in MICA_BUILD_DIR" >&2
  exit 1
fi
# What the build compiles.
sources=('*.cpp' ':!tests/lit' ':!tools/setup')
if [ "${1:-}" = --changed ]; then
  mapfile -t files < <(git diff --name-only --diff-filter=d "${2:-main}" -- "${sources[@]}")
elif [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(git ls-files -- "${sources[@]}")
fi
[ ${#files[@]} -eq 0 ] && exit 0
# xargs fails if one of them does.
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "${MICA_JOBS:-1}" "$tidy" --quiet --warnings-as-errors='*' -p "$build"
