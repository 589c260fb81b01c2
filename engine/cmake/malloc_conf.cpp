// SPDX-License-Identifier: GPL-3.0-or-later
// jemalloc reads this symbol of the program at its start. Freed pages are kept: memory stays at its peak until arenas are
// purged, in exchange for no page faults on the large temporaries of every step.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1";
}
