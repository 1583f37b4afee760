#!/usr/bin/env bash
# Builds the Debian package, installs it in a Debian 12 created by debootstrap, and uses it.
# Exits with 77 if that is not possible: without root, debootstrap, or Debian's mirror.
#
#   deb.sh CPACK BUILD-FOLDER MODEL TOOL...
set -euo pipefail
cpack=$1 build=$2 model=$3
shift 3

skip() {
  echo "deb: skipped: $*" >&2
  exit 77
}
fail() {
  echo "deb: $*" >&2
  exit 1
}

[ "$(id -u)" = 0 ] || skip "only root can make a root folder of Debian"
command -v debootstrap > /dev/null || skip "debootstrap is not installed"
unshare --mount true 2> /dev/null || skip "no namespace of mounts can be made here"
for tool in "$@"; do
  [ -x "$build/bin/$tool" ] || skip "$build/bin/$tool has not been built"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$build" && "$cpack" -G DEB -B "$work/package" > "$work/cpack.log" 2>&1) || { cat "$work/cpack.log" >&2; fail "cpack fails"; }
package=$(echo "$work"/package/mica_*_amd64.deb)
[ -f "$package" ] || fail "cpack wrote no package"

debootstrap --variant=minbase bookworm "$work/root" > "$work/debootstrap.log" 2>&1 ||
  skip "debootstrap fails: $(tail -n 1 "$work/debootstrap.log")"
cp "$package" "$work/root/tmp/mica.deb"
cp -r "$model" "$work/root/tmp/model"
# In a chroot; programs need /proc to find their own file.
cat > "$work/root/tmp/use.sh" << 'USE'
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get install -q -y --no-install-recommends /tmp/mica.deb
for tool in "$@"; do "$tool" --help > /dev/null || { echo "$tool --help does not work" >&2; exit 1; }; done
for file in man/man1/mica-compile.1 bash-completion/completions/mica zsh/vendor-completions/_mica fish/vendor_completions.d/mica.fish; do
  [ -s "/usr/share/$file" ] || { echo "/usr/share/$file is missing" >&2; exit 1; }
done
cd /tmp
mica compile model -o program
mica explore model -o page.html
grep -q 'id="data"' page.html && grep -q dagre page.html && grep -q d3js.org page.html || { echo "page.html lacks its data or its scripts" >&2; exit 1; }
./program -p 'count from 7 to 12:' --temperature 0 > text
apt-get purge -q -y mica
[ ! -e /usr/lib/mica ] || { echo "/usr/lib/mica is left" >&2; exit 1; }
# Compiled programs need no package.
./program -p 'count from 7 to 12:' --temperature 0 | cmp - text
USE
# The environment of a fresh shell: variables of the tests name folders that this root does not have.
unshare --mount bash -c 'mount --make-rprivate / && mount -t proc proc "$0/proc" && exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$0" bash /tmp/use.sh "$@"' \
  "$work/root" "$@" > "$work/use.log" 2>&1 || { tail -n 20 "$work/use.log" >&2; fail "the package does not work in a bare Debian 12"; }
text=$(cat "$work/root/tmp/text")
[ "$text" = ' 7 8 9 10 11 12' ] || fail "the program wrote '$text'"
