#!/usr/bin/env bash
# Builds oneDNN (static, threadpool runtime, matmuls only) from Debian 13's source package into a cache
# folder outside the build tree, once. Prints progress on stderr and the install prefix as the last line of stdout.
#
#   MICA_ONEDNN_PREFIX   where to install (default: ${XDG_CACHE_HOME:-~/.cache}/mica-deps/onednn-VERSION-rN)
#   MICA_ONEDNN_UKERNEL  not empty: with oneDNN's experimental ukernels, which only tests/bench measures. It is a separate
#                        installation (default: ukernel-onednn-VERSION-rN), which builds do not use by default
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
version=3.7.2+ds-2
# Increment the recipe's number whenever the options or the sources change, so that old installations are not used.
recipe=2
ukernel=${MICA_ONEDNN_UKERNEL:-}
prefix=${MICA_ONEDNN_PREFIX:-${XDG_CACHE_HOME:-$HOME/.cache}/mica-deps/${ukernel:+ukernel-}onednn-${version%%+*}-r$recipe}

if [ -f "$prefix/lib/cmake/dnnl/dnnl-config.cmake" ]; then
  echo "== oneDNN: found in ${prefix/#"$HOME"/\~}" >&2
  echo "$prefix"
  exit 0
fi

echo "== oneDNN: building $version into $prefix (five to ten minutes on two cores)" >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The machine's Debian mirror also has the source package.
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

# oneDNN generates its kernels at run time, so its speed does not depend on the compiler: -O1 is enough. Mica's matmuls have
# packed weights, which gemm kernels cannot read, so those are not built.
options=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_MESSAGE=NEVER "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG" "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"
  -DCMAKE_INSTALL_PREFIX="$work/install" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_POSITION_INDEPENDENT_CODE=ON
  -DONEDNN_LIBRARY_TYPE=STATIC -DONEDNN_CPU_RUNTIME=THREADPOOL -DONEDNN_ARCH_OPT_FLAGS=
  -DONEDNN_BUILD_GRAPH=OFF -DONEDNN_BUILD_TESTS=OFF -DONEDNN_BUILD_EXAMPLES=OFF
  -DONEDNN_ENABLE_JIT_PROFILING=OFF -DONEDNN_ENABLE_ITT_TASKS=OFF
  -DONEDNN_ENABLE_WORKLOAD=INFERENCE -DONEDNN_ENABLE_PRIMITIVE=MATMUL -DONEDNN_ENABLE_GEMM_KERNELS_ISA=NONE)
ukernel_sources=()
if [ -n "$ukernel" ]; then
  options+=(-DONEDNN_EXPERIMENTAL_UKERNEL=ON)
  ukernel_sources=(cpu/x64/brgemm/capi/brgemm_api.cpp)
fi
# Mica's compiler if it is installed: it takes about half the time of Debian's g++.
if command -v clang++-22 > /dev/null; then
  options+=(-DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22)
fi
# The folder's name is different each time; ccache must ignore it.
if command -v ccache > /dev/null; then
  export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1
  options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi

(
  cd "$work"
  apt-get "${apt[@]}" -q update
  apt-get "${apt[@]}" -q source "onednn=$version"
  mv onednn-*/ source
  ( cd source/src && find common cpu -name '*.cpp' | grep -vxFf "$here/onednn-sources.txt" -f <(printf '%s\n' "${ukernel_sources[@]}") | xargs rm )
  cp "$here/onednn-left-out.cpp" source/src/cpu/left_out.cpp
  cmake -S source -B build "${options[@]}"
  cmake --build build
  cmake --install build
  # Only links if no source refers to an omitted one.
  echo 'int main() {}' > main.cpp
  "$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' build/CMakeCache.txt)" main.cpp -o main -pthread \
    -Wl,--whole-archive install/lib/libdnnl.a -Wl,--no-whole-archive -ldl
) >&2
# Installed under a temporary name and renamed: an interrupted build is never used.
mkdir -p "$(dirname "$prefix")"
rm -rf "$prefix.partial"
cp -r "$work/install" "$prefix.partial"
rm -rf "$prefix"
mv "$prefix.partial" "$prefix"
echo "$prefix"
