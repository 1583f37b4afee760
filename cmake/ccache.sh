#!/bin/sh
# ccache.sh TREE COMPILER ARGUMENT...: compiles with ccache such that a file is found in the cache independent of the tree's path.
# Paths of the tree are removed from the input that ccache hashes.
tree=$1 header='' dependencies=''
shift
# Without these settings, ccache does not cache files that use a precompiled header.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_BASEDIR="$tree"
# A precompiled header contains its path. ccache hashes the checksum file next to it instead, which is created below.
export CCACHE_PCH_EXTSUM=1
for argument; do
  shift
  case $argument in
    # CMake passes this file to clang by an option that ccache does not make relative.
    "$PWD"/*/cmake_pch.hxx) argument=${argument#"$PWD/"} ;;
    *.pch) header=$argument ;;
    *.pch.d) dependencies=$argument ;;
  esac
  set -- "$@" "$argument"
done
[ -n "$dependencies" ] || exec ccache "$@"
# A precompiled header is never cached, because it refers to headers by path.
"$@" || exit
# The checksum of the headers in its dependency file.
headers=$(sed -e '1s/^[^:]*://' -e 's/\\$//' "$dependencies" | tr -s ' ' '\n' | grep -v '^$')
if sums=$(printf '%s\n' "$headers" | xargs sha256sum); then
  printf '%s\n' "$sums" | cut -d ' ' -f 1 | sha256sum > "$header.sum"
else
  rm -f "$header.sum"
fi
