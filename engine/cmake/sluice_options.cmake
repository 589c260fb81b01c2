# SPDX-License-Identifier: GPL-3.0-or-later
# Compiler, warnings, sanitizers, ccache and mold for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Asserts stand for programmer errors and cost little: they stay on in release builds too.
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
               CCACHE_NOHASHDIR=1 ${SLUICE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
find_program(SLUICE_MOLD mold)
if(SLUICE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Every target of ours links this one: warnings and nothing else.
add_library(sluice_warnings INTERFACE)
target_compile_options(sluice_warnings INTERFACE -Wall -Wextra $<$<BOOL:${SLUICE_WERROR}>:-Werror>
                                                 $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)

find_package(Threads REQUIRED)
link_libraries(Threads::Threads)

if(SLUICE_SANITIZER)
  if(NOT SLUICE_SANITIZER MATCHES "^(address|thread)$")
    message(FATAL_ERROR "SLUICE_SANITIZER=\"${SLUICE_SANITIZER}\" is unknown: use address or thread")
  endif()
  set(flags -fsanitize=${SLUICE_SANITIZER} -fno-omit-frame-pointer -g1)
  if(SLUICE_SANITIZER STREQUAL "address")
    list(APPEND flags -fsanitize=undefined -fno-sanitize-recover=undefined)
  endif()
  add_compile_options(${flags})
  add_link_options(${flags})
endif()

# The fuzz targets (tests/fuzz): everything is compiled for libFuzzer, with ASan and UBSan.
if(SLUICE_FUZZ)
  set(flags -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1)
  add_compile_options(${flags})
  add_link_options(${flags})
endif()
