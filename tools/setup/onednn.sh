#!/usr/bin/env bash
# Builds oneDNN (static, threadpool runtime, matmul and reorder only) from Debian 13's source package into a cache
# folder outside the build tree, once. Prints progress on stderr and the install prefix as the last line of stdout.
#
#   MICA_ONEDNN_PREFIX   where to install (default: ${XDG_CACHE_HOME:-~/.cache}/mica-deps/onednn-VERSION-rN)
set -euo pipefail
version=3.7.2+ds-2
# Raise the recipe's number whenever the options below change, so that old installations are not taken for new ones.
recipe=1
prefix=${MICA_ONEDNN_PREFIX:-${XDG_CACHE_HOME:-$HOME/.cache}/mica-deps/onednn-${version%%+*}-r$recipe}

if [ -f "$prefix/lib/cmake/dnnl/dnnl-config.cmake" ]; then
  echo "== oneDNN: found in $prefix" >&2
  echo "$prefix"
  exit 0
fi

echo "== oneDNN: building $version into $prefix (about ten minutes on two cores)" >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The Debian mirror that this machine already uses also carries the source package.
mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' | awk '$2 == "bookworm" { print $1; exit }')
if [ -z "$mirror" ]; then
  echo "mica: error: apt has no index of Debian 12; run 'apt-get update' as root and try again" >&2
  exit 1
fi
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
echo "deb-src [signed-by=$keyring] $mirror trixie main" > "$work/apt/sources.list"
apt=(-o "Dir::Etc::SourceList=$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$work/apt/lists"
     -o "Dir::Cache=$work/apt/cache" -o APT::Sandbox::User=root)
(
  cd "$work"
  apt-get "${apt[@]}" -q update
  apt-get "${apt[@]}" -q source "onednn=$version"
  cmake -S onednn-*/ -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$work/install" -DCMAKE_INSTALL_LIBDIR=lib \
    -DONEDNN_LIBRARY_TYPE=STATIC -DONEDNN_CPU_RUNTIME=THREADPOOL -DONEDNN_BUILD_GRAPH=OFF -DONEDNN_BUILD_TESTS=OFF \
    -DONEDNN_BUILD_EXAMPLES=OFF -DONEDNN_BUILD_DOC=OFF -DONEDNN_ENABLE_WORKLOAD=INFERENCE -DONEDNN_EXPERIMENTAL_UKERNEL=ON \
    "-DONEDNN_ENABLE_PRIMITIVE=MATMUL;REORDER" -DCMAKE_POSITION_INDEPENDENT_CODE=ON
  cmake --build build
  cmake --install build
) >&2
# Installed under another name and moved: an interrupted build is never taken for a finished one.
mkdir -p "$(dirname "$prefix")"
rm -rf "$prefix.partial"
cp -r "$work/install" "$prefix.partial"
rm -rf "$prefix"
mv "$prefix.partial" "$prefix"
echo "$prefix"
