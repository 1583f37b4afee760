# Dependencies: Debian's packages, and oneDNN from tools/setup/onednn.sh or any other installation.

# Debian's MLIR version file requires major.minor.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
set(LLVM_LINK_LLVM_DYLIB ON)
set(MLIR_LINK_MLIR_DYLIB ON)
set(LLVM_EXTERNAL_LIT ${LLVM_TOOLS_BINARY_DIR}/lit)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
separate_arguments(LLVM_DEFINITIONS)

# From Debian's liblld-22-dev; its CMake package needs LLVM's static libraries, so the archives are linked directly.
find_library(MICA_LLD_ELF lldELF HINTS ${LLVM_LIBRARY_DIR} REQUIRED)
find_library(MICA_LLD_COMMON lldCommon HINTS ${LLVM_LIBRARY_DIR} REQUIRED)

if(NOT DEFINED dnnl_DIR)
  file(GLOB MICA_ONEDNN_CACHED "$ENV{XDG_CACHE_HOME}/mica-deps/onednn-*" "$ENV{HOME}/.cache/mica-deps/onednn-*")
  # The newest recipe first.
  list(SORT MICA_ONEDNN_CACHED COMPARE NATURAL ORDER DESCENDING)
endif()
find_package(dnnl 3.7 REQUIRED CONFIG HINTS $ENV{MICA_ONEDNN_PREFIX} ${MICA_ONEDNN_CACHED})

find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(Threads REQUIRED)
# For tools/hub only.
find_package(CURL 7.85 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)
pkg_check_modules(ICU REQUIRED IMPORTED_TARGET icu-uc)
find_library(MICA_PCRE2 NAMES libpcre2-8.a REQUIRED)
# Line editing, linked into programs: archives in the order of their dependencies.
set(MICA_EDIT "")
foreach(library edit bsd md tinfo)
  find_library(MICA_EDIT_${library} NAMES lib${library}.a REQUIRED)
  list(APPEND MICA_EDIT ${MICA_EDIT_${library}})
endforeach()
find_path(MICA_EDIT_INCLUDE histedit.h REQUIRED)
find_path(MICA_XXHASH_INCLUDE xxhash.h REQUIRED)
find_package(GTest REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
find_package(benchmark REQUIRED)
