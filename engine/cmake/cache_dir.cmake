# SPDX-License-Identifier: GPL-3.0-or-later
# Where downloads and what is unpacked from them live, outside the clone and shared by all presets; the same rule as in
# packaging/fetch.sh. sluice::cache_dir hands the folder to sources as SLUICE_CACHE_DIR; the embedded model is
# <cache>/models/SmolLM2-135M-Instruct.Q4_1.gguf.
if(DEFINED ENV{SLUICE_CACHE_DIR})
  set(default $ENV{SLUICE_CACHE_DIR})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(default $ENV{XDG_CACHE_HOME}/sluice)
else()
  set(default $ENV{HOME}/.cache/sluice)
endif()
set(SLUICE_CACHE_DIR ${default} CACHE PATH "Folder of downloaded wheels, unpacked libtorch and models")

add_library(sluice_cache_dir INTERFACE)
add_library(sluice::cache_dir ALIAS sluice_cache_dir)
target_compile_definitions(sluice_cache_dir INTERFACE SLUICE_CACHE_DIR="${SLUICE_CACHE_DIR}")
