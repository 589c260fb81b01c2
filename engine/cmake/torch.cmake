# SPDX-License-Identifier: GPL-3.0-or-later
# sluice::torch_cpu: libtorch out of the pinned PyPI wheel, unpacked once into the cache folder that all presets share.
# Not find_package(Torch): that injects flags, guesses GPU architectures and wants nvcc.
#
# libtorch_cpu needs libcudart and libcupti even for CPU work. They come from two small NVIDIA wheels, unpacked next to
# torch/, where libtorch_cpu's own run path ($ORIGIN/../../nvidia/cu13/lib) looks, so no CUDA toolkit is needed.
include(cache_dir)

set(SLUICE_TORCH_LIBS libtorch_cpu.so libc10.so libgomp.so.1)

# Reads a pin of packaging/wheels.txt and finds its wheel; sets <prefix>_VERSION, _SHA256 and _WHEEL in the caller.
function(sluice_find_wheel name prefix)
  file(STRINGS ${CMAKE_SOURCE_DIR}/packaging/wheels.txt line REGEX "^${name}==")
  if(NOT line MATCHES "^${name}==([^ ]+) --hash=sha256:([0-9a-f]+)$")
    message(FATAL_ERROR "packaging/wheels.txt has no pin for ${name}")
  endif()
  set(version ${CMAKE_MATCH_1})
  set(sha256 ${CMAKE_MATCH_2})
  string(REPLACE "-" "_" file_name ${name})
  file(GLOB wheel ${SLUICE_CACHE_DIR}/wheels/${file_name}-${version}-*.whl)
  if(NOT wheel)
    message(FATAL_ERROR "${name} ${version} is not in ${SLUICE_CACHE_DIR}/wheels: run packaging/fetch.sh "
                        "(or configure with -DSLUICE_TORCH=OFF to build without the model)")
  endif()
  list(GET wheel 0 wheel)
  set(${prefix}_VERSION ${version} PARENT_SCOPE)
  set(${prefix}_SHA256 ${sha256} PARENT_SCOPE)
  set(${prefix}_WHEEL ${wheel} PARENT_SCOPE)
endfunction()

function(sluice_extract_wheel wheel sha256 folder)
  file(SHA256 ${wheel} found)
  if(NOT found STREQUAL sha256)
    message(FATAL_ERROR "${wheel} does not have the pinned hash: run packaging/fetch.sh, which replaces it")
  endif()
  file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${folder} PATTERNS ${ARGN})
endfunction()

# Unpacks to a folder whose stamp names all hashes; sets <out> to it. A lock keeps other configure runs out meanwhile.
function(sluice_unpack_torch out)
  sluice_find_wheel(torch torch)
  sluice_find_wheel(nvidia-cuda-runtime cudart)
  sluice_find_wheel(nvidia-cuda-cupti cupti)
  set(root ${SLUICE_CACHE_DIR}/torch-${torch_VERSION})
  set(want "${torch_SHA256} ${cudart_SHA256} ${cupti_SHA256} ${SLUICE_TORCH_LIBS}")
  file(LOCK ${SLUICE_CACHE_DIR}/unpack.lock GUARD FUNCTION TIMEOUT 300)
  set(have "")
  if(EXISTS ${root}/stamp)
    file(READ ${root}/stamp have)
  endif()
  if(NOT have STREQUAL want)
    message(STATUS "Unpacking libtorch ${torch_VERSION} to ${root} (once)")
    file(REMOVE_RECURSE ${root} ${root}.part)
    list(TRANSFORM SLUICE_TORCH_LIBS PREPEND torch/lib/ OUTPUT_VARIABLE libs)
    sluice_extract_wheel(${torch_WHEEL} ${torch_SHA256} ${root}.part torch/include/* ${libs})
    sluice_extract_wheel(${cudart_WHEEL} ${cudart_SHA256} ${root}.part nvidia/cu13/lib/libcudart.so.13)
    sluice_extract_wheel(${cupti_WHEEL} ${cupti_SHA256} ${root}.part nvidia/cu13/lib/libcupti.so.13)
    file(WRITE ${root}.part/stamp "${want}")
    file(RENAME ${root}.part ${root})
  endif()
  set(${out} ${root} PARENT_SCOPE)
endfunction()

sluice_unpack_torch(SLUICE_TORCH_ROOT)

foreach(lib IN LISTS SLUICE_TORCH_LIBS)
  string(REGEX REPLACE "^lib([a-z0-9_]+)\\.so.*$" "sluice_wheel_\\1" target ${lib})
  add_library(${target} SHARED IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${SLUICE_TORCH_ROOT}/torch/lib/${lib} IMPORTED_SONAME ${lib})
endforeach()

# at::parallel_for lives in headers: compiled without -fopenmp it runs serially and says nothing. The OpenMP library is
# the wheel's own, so that a process has exactly one. csrc/api is for c10d. SYSTEM includes, since they warn otherwise.
add_library(sluice_torch_cpu INTERFACE IMPORTED GLOBAL)
add_library(sluice::torch_cpu ALIAS sluice_torch_cpu)
target_include_directories(sluice_torch_cpu SYSTEM INTERFACE ${SLUICE_TORCH_ROOT}/torch/include
                                                             ${SLUICE_TORCH_ROOT}/torch/include/torch/csrc/api/include)
target_compile_options(sluice_torch_cpu INTERFACE -fopenmp)
target_link_options(sluice_torch_cpu INTERFACE -Wl,--allow-shlib-undefined)
target_link_libraries(sluice_torch_cpu INTERFACE sluice_wheel_torch_cpu sluice_wheel_c10 sluice_wheel_gomp)
