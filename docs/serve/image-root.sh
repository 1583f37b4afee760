#!/bin/sh
# image-root.sh PROGRAM ROOT
#
# Writes to the folder ROOT what an image needs to run a compiled program: the program as /model, and the libraries that it loads, at
# their places. Inside, the program needs /proc, which container runtimes mount.
set -eu
[ $# = 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2; }
program=$1 root=$2
mkdir -p "$root/proc"
install -m 755 "$program" "$root/model"
# Lines are "NAME => PATH (ADDRESS)", or "PATH (ADDRESS)" for what loads the others.
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
  install -D -m 755 "$library" "$root$library"
done
