function(mica_add_compiler_library name)
  target_link_libraries(${name} PUBLIC High)
endfunction()
