# sp3_join_sources(<target>): compiles the sources of each folder as one, if SP3_UNITY asks for it,
# because most of the time goes into headers and templates that a folder's sources share. A source
# whose properties differ stays alone. Names in unnamed namespaces are then a folder's, not a file's.
#
# Call it in the target's own folder, after all sources are known.
function(sp3_join_sources target)
  if(NOT SP3_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME folder)
    set_property(SOURCE "${source}" PROPERTY UNITY_GROUP ${folder})
  endforeach()
endfunction()
