# Sourced by record-*.sh: types lines into tmux and reads its screen.

tmux=(tmux -L "mica-record-$$" -f /dev/null)

# The screen without trailing empty lines.
screen() { "${tmux[@]}" capture-pane -p | sed -e 's/[[:space:]]*$//' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'; }
# await LINE SECONDS: waits until the last line of the screen is LINE.
await() {
  for ((i = 0; i < $2 * 5; i++)); do
    [[ $(screen | tail -n 1) == "$1" ]] && return
    sleep 0.2
  done
  echo "${0##*/}: '$1' does not come on the screen:" >&2
  screen >&2
  exit 1
}
# enter TEXT [PROMPT [SECONDS]]: types a line and waits for the prompt after its output.
enter() {
  "${tmux[@]}" send-keys -l -- "$1"
  sleep 0.3
  "${tmux[@]}" send-keys Enter
  sleep 0.3
  await "${2-\$}" "${3:-300}"
}
