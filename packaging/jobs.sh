# SPDX-License-Identifier: GPL-3.0-or-later
# Sourced by the other scripts.

# Compilers at a time: one a core, and 1.5 GB of memory each, which a file that includes libtorch needs.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable/ { print int($2 / 1572864) }' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}
