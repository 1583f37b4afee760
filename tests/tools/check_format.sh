#!/usr/bin/env bash
# Names the C++ files that clang-format would change, and fails if there are any; --fix changes them.
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -t files < <(git ls-files '*.cpp' '*.h')
if [ "${1:-}" = --fix ]; then
  clang-format-22 -i "${files[@]}"
  exit 0
fi
bad=$(for file in "${files[@]}"; do clang-format-22 --dry-run -Werror "$file" 2> /dev/null || echo "$file"; done)
[ -z "$bad" ] || { echo "not formatted (tests/tools/check_format.sh --fix):"; echo "$bad"; exit 1; }
