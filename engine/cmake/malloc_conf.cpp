// SPDX-License-Identifier: GPL-3.0-or-later
// jemalloc reads this symbol of the program at its start. Freed pages are kept: memory stays at its peak until arenas are
// purged, in exchange for no page faults on the large temporaries of every step. Any freed extent may be cut for any
// allocation: by default (at most 64 times as large) what an adapter gave back had grown together into extents too large
// for the parts of the next one, and a thousand loads took 2.5 GB.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1,lg_extent_max_active_fit:20";
}
