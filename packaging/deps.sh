#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# deps.sh GROUP...: installs what is missing of the groups of packaging/packages.txt (build, gui, test), as root or with
# sudo; without either it says what to install and fails. Quick when nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- build gui
missing=()
for group in "$@"; do
  while read -r package; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done < <(awk -v g="$group" '$1 == g { print $2 }' packaging/packages.txt)
done
[ ${#missing[@]} -gt 0 ] || exit 0

install_line="apt-get install --no-install-recommends ${missing[*]}"
command -v apt-get >/dev/null || { echo "deps: this is not a Debian system; install what corresponds to: ${missing[*]}" >&2; exit 1; }
as_root=()
if [ "$(id -u)" != 0 ]; then
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    as_root=(sudo)
  else
    printf 'deps: %d packages are missing and this is not root. Install them with:\n  %s\n' ${#missing[@]} "$install_line" >&2
    exit 1
  fi
fi

echo "deps: installing ${#missing[@]} Debian packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 "$@" </dev/null 2>&1 | tee -a "$log"; }
fail() { tail -n 15 "$log" >&2; echo "deps: $1" >&2; exit 1; }
apt update >/dev/null || fail "apt-get update failed: check the network and /etc/apt/sources.list"
# One line a download or package would be hundreds: every twentieth is enough to see that it moves.
apt install --no-install-recommends "${missing[@]}" | awk '
  / newly installed/ { print "deps:   " $0; fflush() }
  /^Get:/ { if (++got % 20 == 0) { print "deps:   " got " packages downloaded"; fflush() } }
  /^Setting up / { if (++set % 20 == 0) { print "deps:   " set " packages set up"; fflush() } }' \
  || fail "apt-get could not install: ${missing[*]}"
echo "deps: done"
