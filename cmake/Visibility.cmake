# sp3_hide_internals(<library>): a shared library shows of its own what include/sp3 marks with
# SP3_API and nothing else. Not where our own programs are built: they use what is inside.
function(sp3_hide_internals library)
  if(NOT BUILD_SHARED_LIBS OR SP3_BUILD_TESTS OR SP3_BUILD_TOOLS OR SP3_BUILD_BENCH)
    return()
  endif()
  set_target_properties(${library} PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
endfunction()
