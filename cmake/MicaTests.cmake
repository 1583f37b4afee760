# Functions for tests. `ninja check-mica` runs lit, `ninja check-unit` all GoogleTests, and ctest both.
include_guard()
include(GoogleTest)
enable_testing()

add_custom_target(mica-unit-tests)
configure_file(${CMAKE_SOURCE_DIR}/tests/unit/Paths.h.in ${CMAKE_BINARY_DIR}/tests/unit/Paths.h)
add_custom_target(check-unit
  COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${CMAKE_BINARY_DIR} -L unit --output-on-failure
  DEPENDS mica-unit-tests USES_TERMINAL)

# mica_add_unit_test(NAME source... [LINK lib...] [RUNTIME]): a GoogleTest program in bin/, each of its cases a test of
# ctest. Tests of compiler libraries get the compiler's flags and its precompiled header; with RUNTIME, LLVM is neither
# included nor linked. tests/unit/Paths.h defines the folders of the tree.
function(mica_add_unit_test name)
  cmake_parse_arguments(ARG "RUNTIME" "" "LINK" ${ARGN})
  add_executable(${name} EXCLUDE_FROM_ALL ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_RUNTIME)
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
    target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
  else()
    target_link_libraries(${name} PRIVATE MicaCompilerOptions ${ARG_LINK} MLIR LLVM GTest::gmock GTest::gtest_main)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)
    target_precompile_headers(${name} REUSE_FROM MicaPch)
  endif()
  add_dependencies(mica-unit-tests ${name})
  # Discovery at test time, so that a build does not run incomplete programs.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 300 PROPERTIES LABELS unit)
endfunction()
