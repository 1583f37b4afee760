#!/usr/bin/env bash
# Needs tmux. Records the quickstart and a conversation with the bundled model on a terminal of tmux, as text: docs/terminal.txt.
#
#   tools/docs/record-terminal.sh [FILE]
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-docs/terminal.txt}
tmux=(tmux -L "mica-record-$$" -f /dev/null)
trap '"${tmux[@]}" kill-server 2> /dev/null || true' EXIT

"${tmux[@]}" new-session -d -x 110 -y 60 "env PS1='\$ ' LC_ALL=C.UTF-8 bash --norc --noprofile"

screen() { "${tmux[@]}" capture-pane -p | sed -e 's/[[:space:]]*$//' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'; }
# Waits, at most so many seconds, until the last line of the screen is as given.
await() {
  for ((i = 0; i < $2 * 5; i++)); do
    [[ $(screen | tail -n 1) == "$1" ]] && return
    sleep 0.2
  done
  echo "record-terminal.sh: '$1' does not come on the screen:" >&2
  screen >&2
  exit 1
}
# Types a line and waits for the prompt after what it brings.
enter() {
  "${tmux[@]}" send-keys -l -- "$1"
  sleep 0.3
  "${tmux[@]}" send-keys Enter
  sleep 0.3
  await "$2" "${3:-60}"
}

await '$' 10
enter 'tools/quickstart.sh' '$' 1800
enter 'build/release/demo/minimind-dense chat --temperature 0' '>'
enter '27 + 15' '>'
enter 'sort d b a c' '>'
enter 'count from 7 to 12' '>'
enter 'Ada the red fox has 12 nuts and finds 5 more. Now Ada has' '>'
enter '/exit' '$'
screen | sed '$d' > "$out"
