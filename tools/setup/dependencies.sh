#!/usr/bin/env bash
# Installs missing Debian packages of packages.txt or of LIST. Without root it names them and stops.
#
#   dependencies.sh [LIST]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
list=${1:-$here/packages.txt}

missing=()
while read -r package; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done < <(grep -v '^#' "$list")

if [ ${#missing[@]} -eq 0 ]; then
  echo "== packages: all installed"
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "mica: error: missing Debian packages and not root; as root run: apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "== packages: installing ${#missing[@]} with what they need, up to 2 GB (a few minutes): ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
apt-get -q -y install --no-install-recommends "${missing[@]}"
