#!/usr/bin/env bash
# Installs a build into a folder, moves the folder, and uses it with nothing of Mica in PATH or HOME.
#
#   install.sh CMAKE BUILD-FOLDER MODEL TOOL...
set -euo pipefail
source=$(realpath "$(dirname "$0")/../..")
cmake=$1 build=$2 model=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "install: $*" >&2
  exit 1
}

"$cmake" --install "$build" --prefix "$work/first" > /dev/null

# Tools that have not been built are skipped: the same installation from a folder with only mica, its generated files and its
# launcher.
mkdir -p "$work/build/bin" "$work/build/lib/mica"
cp "$build/bin/mica" "$work/build/bin"
cp -r "$build/share" "$work/build"
cp "$build/lib/mica/mica-launcher" "$work/build/lib/mica"
(cd "$build" && find . -name cmake_install.cmake) | while read -r script; do
  mkdir -p "$work/build/$(dirname "$script")"
  sed "s|$build|$work/build|g" "$build/$script" > "$work/build/$script"
done
"$cmake" -DCMAKE_INSTALL_PREFIX="$work/part" -P "$work/build/cmake_install.cmake" > /dev/null
[ "$(ls "$work/part/bin")" = mica ] || fail "of a build of mica alone: $(ls "$work/part/bin")"
mv "$work/first" "$work/moved"
mkdir "$work/home"
cd "$work/home"
export PATH=/usr/bin:/bin HOME=$work/home
unset XDG_CACHE_HOME LD_LIBRARY_PATH

for tool in "$@"; do
  "$work/moved/bin/$tool" --help > /dev/null || fail "$tool --help does not work"
done
for file in man/man1/mica.1 man/man1/mica-compile.1 man/man1/mica-program.1 bash-completion/completions/mica zsh/site-functions/_mica \
  fish/vendor_completions.d/mica.fish; do
  [ -s "$work/moved/share/$file" ] || fail "share/$file is missing"
done
for file in README.md CONTRIBUTING.md LICENSE copyright.d3 copyright.dagre docs/dialect.md docs/explore-graph.png docs/serve/nginx.conf; do
  [ -s "$work/moved/share/doc/mica/$file" ] || fail "share/doc/mica/$file is missing"
done
python3 "$source/tests/tools/check_links.py" --no-names "$work/moved/share/doc/mica" > "$work/links.log" ||
  { cat "$work/links.log" >&2; fail "pages have links that lead nowhere"; }

"$work/moved/bin/mica" compile "$model" -o program
"$work/moved/bin/mica" explore "$model" -o page.html
grep -q 'id="data"' page.html && grep -q dagre page.html && grep -q d3js.org page.html || fail "page.html lacks its data or its scripts"
text=$(./program -p 'count from 7 to 12:' --temperature 0)
[ "$text" = ' 7 8 9 10 11 12' ] || fail "the program wrote '$text'"
# Through a link, from PATH, and with the cache, whose folder it creates.
mkdir "$work/links"
ln -s "$work/moved/bin/mica" "$work/links/mica"
text=$(PATH=$work/links:$PATH mica run "$model" -p 'count from 7 to 12:' --temperature 0)
[ "$text" = ' 7 8 9 10 11 12' ] || fail "mica run wrote '$text'"

# It uses no launcher but its own.
rm "$work/moved/lib/mica/mica-launcher"
if error=$("$work/moved/bin/mica" compile "$model" -o other 2>&1); then
  fail "compiles without its launcher"
fi
case $error in
  "mica: error: $work/moved/lib/mica/mica-launcher: is missing; "*) ;;
  *) fail "without its launcher: $error" ;;
esac
