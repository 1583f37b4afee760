#!/usr/bin/env bash
# Needs tmux. Records the quickstart and a conversation with the bundled model in tmux, as text: docs/terminal.txt.
#
#   tools/docs/record-terminal.sh [FILE]
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-docs/terminal.txt}
. tools/docs/recorder.sh
trap '"${tmux[@]}" kill-server 2> /dev/null || true' EXIT

"${tmux[@]}" new-session -d -x 110 -y 60 "env PS1='\$ ' LC_ALL=C.UTF-8 bash --norc --noprofile"

await '$' 10
enter 'tools/quickstart.sh' '$' 1800
enter 'build/release/demo/minimind-dense chat --temperature 0' '>'
enter '27 + 15' '>'
enter 'sort d b a c' '>'
enter 'count from 7 to 12' '>'
enter 'Ada the red fox has 12 nuts and finds 5 more. Now Ada has' '>'
enter '/exit'
screen | sed '$d' > "$out"
