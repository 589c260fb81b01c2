# SPDX-License-Identifier: GPL-3.0-or-later
# sluice::jemalloc: what both programs link as their allocator. libtorch has no caching CPU allocator, so with glibc every
# large result is mapped, faulted in and unmapped again; jemalloc with decay off keeps the pages. Sanitizers bring their
# own allocator: there the target is empty.
add_library(sluice_jemalloc INTERFACE)
add_library(sluice::jemalloc ALIAS sluice_jemalloc)
if(NOT SLUICE_SANITIZER)
  find_library(SLUICE_JEMALLOC_LIBRARY jemalloc)
  if(NOT SLUICE_JEMALLOC_LIBRARY)
    message(FATAL_ERROR "jemalloc is not installed: run packaging/deps.sh (Debian package libjemalloc-dev)")
  endif()
  target_sources(sluice_jemalloc INTERFACE ${CMAKE_CURRENT_LIST_DIR}/malloc_conf.cpp)
  target_link_libraries(sluice_jemalloc INTERFACE ${SLUICE_JEMALLOC_LIBRARY})
endif()
