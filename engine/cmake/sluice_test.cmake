# SPDX-License-Identifier: GPL-3.0-or-later
# sluice_test(<name> SOURCES ... LINKS ... [LABELS ...]): a GoogleTest program. Suites appear in CTest one program a line,
# so that the summary counts programs while each prints its own number of tests.
find_package(GTest REQUIRED)
function(sluice_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE sluice_warnings ${ARG_LINKS} GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE SLUICE_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data"
                                             SLUICE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" ENVIRONMENT "LC_ALL=C.UTF-8")
endfunction()
