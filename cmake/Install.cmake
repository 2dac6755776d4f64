# 'cmake --install' gives a prefix that find_package(sp3) and pkg-config both understand.
# tests/consumer checks this from outside.
include(CMakePackageConfigHelpers)
set(sp3_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/sp3")

install(TARGETS sp3 EXPORT sp3Targets FILE_SET HEADERS FILE_SET detail)
install(EXPORT sp3Targets NAMESPACE sp3:: DESTINATION "${sp3_cmake_dir}")
if(TARGET sp3_tool)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/tools/report"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/sp3" FILES_MATCHING PATTERN "*.py")
endif()
# Where an installed tool finds a shared sp3: from its own place, as far as that is fixed.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_BINDIR}")
  set(sp3_tool_rpath "${CMAKE_INSTALL_FULL_LIBDIR}")
else()
  file(RELATIVE_PATH sp3_lib_from_bin "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set(sp3_tool_rpath "$ORIGIN/${sp3_lib_from_bin}")
endif()
# `sp3 sim` starts sp3-sim, which it expects beside itself.
foreach(tool IN ITEMS sp3_tool sp3_sim_tool)
  if(TARGET ${tool})
    if(BUILD_SHARED_LIBS)
      set_property(TARGET ${tool} APPEND PROPERTY INSTALL_RPATH "${sp3_tool_rpath}")
    endif()
    install(TARGETS ${tool})
  endif()
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/sp3Config.cmake.in" "${PROJECT_BINARY_DIR}/sp3Config.cmake"
  INSTALL_DESTINATION "${sp3_cmake_dir}"
  NO_SET_AND_CHECK_MACRO)
# Before 1.0 every minor version may change the API.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/sp3ConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(
  FILES
    "${PROJECT_BINARY_DIR}/sp3Config.cmake"
    "${PROJECT_BINARY_DIR}/sp3ConfigVersion.cmake"
  DESTINATION "${sp3_cmake_dir}")

# The .pc file finds its prefix from its own place, so that an installed tree can be moved. One in
# an absolute place stays there and says where all is. Spaces are escaped as pkg-config wants it.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  string(REPLACE " " "\\ " sp3_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH sp3_prefix_from_pc "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" sp3_prefix_from_pc "${sp3_prefix_from_pc}")
  set(sp3_pc_prefix "\${pcfiledir}/${sp3_prefix_from_pc}")
endif()
foreach(dir IN ITEMS LIBDIR INCLUDEDIR)
  string(REPLACE " " "\\ " sp3_pc_${dir} "${CMAKE_INSTALL_${dir}}")
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    string(PREPEND sp3_pc_${dir} "\${prefix}/")
  endif()
endforeach()
# A shared sp3 has linked what it needs: its users want none of it, not even to be installed.
set(sp3_pc_requires_private "libpmem libisal fmt tbb")
set(sp3_pc_libs_private "-pthread")
if(BUILD_SHARED_LIBS)
  set(sp3_pc_requires_private "")
elseif(CMAKE_POSITION_INDEPENDENT_CODE)
  string(APPEND sp3_pc_libs_private " -Wl,-z,nodelete")
endif()
configure_file(
  "${PROJECT_SOURCE_DIR}/cmake/sp3.pc.in" "${PROJECT_BINARY_DIR}/sp3.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/sp3.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
