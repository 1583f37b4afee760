# Functions for compiler libraries, which may use LLVM and MLIR, and for runtime libraries, which must not.
include_guard()

add_compile_options(-Wall -Wextra -Wno-unused-parameter -ffunction-sections -fdata-sections)
add_link_options(-fuse-ld=lld -Wl,--gc-sections)
add_compile_definitions(MICA_VERSION="${PROJECT_VERSION}")
if(MICA_SANITIZE)
  add_compile_options(-fsanitize=${MICA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MICA_SANITIZE})
endif()
if(MICA_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Flags, includes and the precompiled header that all compiler libraries share.
add_library(MicaCompilerOptions INTERFACE)
target_include_directories(MicaCompilerOptions INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_include_directories(MicaCompilerOptions SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(MicaCompilerOptions INTERFACE ${LLVM_DEFINITIONS})

foreach(language C CXX)
  if(CMAKE_${language}_COMPILER_LAUNCHER STREQUAL "ccache")
    set(CMAKE_${language}_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/cmake/ccache.sh ${CMAKE_SOURCE_DIR})
  endif()
endforeach()

add_library(MicaPch OBJECT ${CMAKE_SOURCE_DIR}/cmake/Pch.cpp)
target_compile_options(MicaPch PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
target_link_libraries(MicaPch PRIVATE MicaCompilerOptions)
# With angle brackets, the file that CMake generates to include it is the same in every folder.
target_precompile_headers(MicaPch PRIVATE <cmake/Pch.h>)

# mica_add_compiler_library(NAME source... [LINK lib...] [DEPENDS tablegen-target...])
function(mica_add_compiler_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC MicaCompilerOptions ${ARG_LINK} MLIR LLVM)
  target_precompile_headers(${name} REUSE_FROM MicaPch)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# mica_add_tool(NAME source... [LINK lib...] [OPTIONAL]): a compiler tool in bin/, which is installed; with OPTIONAL, only if
# it has been built.
function(mica_add_tool name)
  cmake_parse_arguments(ARG "OPTIONAL" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE MicaCompilerOptions ${ARG_LINK} MLIR LLVM)
  # The precompiled header is compiled with -fPIC, which does not match an executable's -fPIE.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} REUSE_FROM MicaPch)
  set_property(GLOBAL APPEND PROPERTY MICA_TOOLS ${name})
  if(ARG_OPTIONAL)
    install(TARGETS ${name} RUNTIME DESTINATION bin OPTIONAL)
  else()
    install(TARGETS ${name} RUNTIME DESTINATION bin)
  endif()
endfunction()

# mica_add_runtime_library(NAME source... [LINK lib...]): no LLVM, baseline x86-64.
function(mica_add_runtime_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()

# mica_add_mpi_plugin(NAME MODULE source...): a plug-in that lib/mica/ has next to the launcher, through which programs use
# the implementation of MPI that is pkg-config's MODULE. Without it, there is no plug-in.
function(mica_add_mpi_plugin name module)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(${module} QUIET IMPORTED_TARGET ${module})
  if(NOT ${module}_FOUND)
    message(STATUS "No ${module}: programs for several ranks cannot be started by its mpirun")
    return()
  endif()
  add_library(${name} MODULE ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE PkgConfig::${module})
  target_compile_definitions(${name} PRIVATE _POSIX_C_SOURCE=200809L)
  set_target_properties(${name} PROPERTIES PREFIX "" C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/mica SKIP_BUILD_RPATH ON)
  # The packages name libraries that only the implementation itself uses.
  target_link_options(${name} PRIVATE -Wl,--as-needed)
  install(FILES $<TARGET_FILE:${name}> DESTINATION lib/mica OPTIONAL)
endfunction()
