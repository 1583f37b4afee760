#!/usr/bin/env bash
# Lists the C++ files that clang-format would change, and fails if there are any; --fix changes them. Versions differ, so only
# the one in tools/setup/packages.txt is used; without it the check is skipped (status 77).
set -euo pipefail
cd "$(dirname "$0")/../.."
format=$(grep -x 'clang-format-[0-9]*' tools/setup/packages.txt)
if ! command -v "$format" > /dev/null; then
  # In GoogleTest's format, which count_results.py reads.
  printf 'tests/tools/check_format.sh: Skipped\n%s is not installed\n' "$format"
  exit 77
fi
mapfile -t files < <(find cmake ir frontend passes backends tools tests -name '*.cpp' -o -name '*.h')
if [ "${1:-}" = --fix ]; then
  "$format" -i "${files[@]}"
elif ! findings=$("$format" --dry-run -Werror "${files[@]}" 2>&1); then
  echo "not formatted (tests/tools/check_format.sh --fix):"
  grep -o '^[^ ]*:[0-9]*:[0-9]*: error: ' <<< "$findings" | cut -d: -f1 | sort -u || echo "$findings"
  exit 1
fi
