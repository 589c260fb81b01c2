# SPDX-License-Identifier: GPL-3.0-or-later
# sluice_layer(<folder> SOURCES ... HEADERS ... [LINKS ...] [PRIVATE_LINKS ...])
# One folder of engine/ = one static library sluice_<folder> (slashes become underscores). LINKS are the arrows of the
# layer graph (folders of ours, named by their path); PRIVATE_LINKS are outside libraries. tests/tools/check_layers.py
# compares the includes of each folder with these arrows. Each of HEADERS must compile alone without outside libraries
# (target all_verify_interface_header_sets); headers that need one, as *_at.h does, are private: list them in SOURCES.
function(sluice_layer folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;HEADERS;LINKS;PRIVATE_LINKS" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  set(target sluice_${name})
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE sluice_warnings ${ARG_PRIVATE_LINKS})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${CMAKE_SOURCE_DIR}/engine)
  foreach(link IN LISTS ARG_LINKS)
    string(REPLACE "/" "_" link_name ${link})
    target_link_libraries(${target} ${scope} sluice_${link_name})
  endforeach()
  if(ARG_HEADERS)
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}/engine FILES ${ARG_HEADERS})
    set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  endif()
endfunction()
