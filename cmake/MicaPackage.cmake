# The Debian package, which `cpack` creates in the build folder. Debian 12 has no LLVM 22: the package contains the two
# shared libraries of LLVM that the tools need, in lib/mica, and depends on Debian's packages for everything else.
include_guard()

get_property(MICA_TOOLS GLOBAL PROPERTY MICA_TOOLS)
# If the libraries are not installed with the tools, as in `cmake --install`, the loader searches LLVM's own folder next.
set_target_properties(${MICA_TOOLS} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/mica;${LLVM_LIBRARY_DIR}")
set(MICA_LLVM_LIBRARIES $<TARGET_FILE:MLIR> $<TARGET_FILE:LLVM>)
install(CODE "
  foreach(library ${MICA_LLVM_LIBRARIES})
    # The file itself, not Debian's link to it in LLVM's folder.
    file(REAL_PATH \"\${library}\" file)
    file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/mica\" TYPE SHARED_LIBRARY FILES \"\${file}\")
  endforeach()
  file(GLOB terms /usr/share/doc/libllvm${LLVM_VERSION_MAJOR}/copyright)
  file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/share/doc/mica\" FILES \${terms} RENAME copyright.llvm)" COMPONENT llvm EXCLUDE_FROM_ALL)

# Debian's zsh looks for the completions of packages here.
install(FILES ${CMAKE_BINARY_DIR}/share/zsh/site-functions/_mica DESTINATION share/zsh/vendor-completions
  COMPONENT debian EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME mica)
set(CPACK_PACKAGE_VENDOR Mica)
set(CPACK_PACKAGE_CONTACT "The authors of Mica <mica@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler from published language models to one native executable")
set(CPACK_PACKAGE_DESCRIPTION "Reads a Hugging Face folder or a GGUF file and writes a program with code, weights and tokenizer
inside, which needs neither this package nor the model's folder.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL Unspecified llvm debian)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# Listed here, because dpkg-shlibdeps would require LLVM's package; tests/install/deb.sh checks that the list is complete.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36), libcurl4 (>= 7.85), libedit2, libffi8, libgcc-s1, libicu72, libsentencepiece0, libstdc++6 (>= 12), libtinfo6, libxml2, libz3-4, libzstd1, zlib1g")
# For https of `mica pull`.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS ca-certificates)
# For programs that several processes run.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "openmpi-bin | mpich")
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
include(CPack)
