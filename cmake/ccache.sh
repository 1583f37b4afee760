#!/bin/sh
# ccache.sh TREE COMPILER ARGUMENT...: compiles through ccache so that a file is found in the cache wherever the tree stands.
# What depends on the tree's folder is taken out of what ccache compares.
tree=$1 header='' dependencies=''
shift
# Files that use a precompiled header are served only if ccache is told that this is all right.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_BASEDIR="$tree"
# The bytes of a precompiled header name its folder. ccache takes the checksum beside it instead, made below.
export CCACHE_PCH_EXTSUM=1
for argument; do
  shift
  case $argument in
    # CMake hands this file to clang in a way that ccache leaves alone.
    "$PWD"/*/cmake_pch.hxx) argument=${argument#"$PWD/"} ;;
    *.pch) header=$argument ;;
    *.pch.d) dependencies=$argument ;;
  esac
  set -- "$@" "$argument"
done
[ -n "$dependencies" ] || exec ccache "$@"
# A precompiled header is made where it is used: that of another folder would look for its headers there.
"$@" || exit
# Of the headers in its list.
headers=$(sed -e '1s/^[^:]*://' -e 's/\\$//' "$dependencies" | tr -s ' ' '\n' | grep -v '^$')
if sums=$(printf '%s\n' "$headers" | xargs sha256sum); then
  printf '%s\n' "$sums" | cut -d ' ' -f 1 | sha256sum > "$header.sum"
else
  rm -f "$header.sum"
fi
