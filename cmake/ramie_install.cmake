# Installs the library, its headers and what find_package(ramie) and pkg-config need to find them.
include(CMakePackageConfigHelpers)

set(ramie_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ramie")

install(
  TARGETS ramie
  EXPORT ramieTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development
  LIBRARY
    DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    COMPONENT runtime
    NAMELINK_COMPONENT development)
# Headers directly in ramie/ are for users. The folders are installed because the templates need them.
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/ramie/"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ramie"
  COMPONENT development
  FILES_MATCHING
  PATTERN "*.hpp"
  # Helpers of tests are not installed.
  PATTERN "*testing.hpp" EXCLUDE)

# For gdb, which finds that of a shared library by itself, in its folder for scripts of installed files.
install(
  FILES "${PROJECT_SOURCE_DIR}/tools/gdb/ramie.py"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/ramie/gdb"
  COMPONENT development)
get_target_property(ramie_type ramie TYPE)
if(ramie_type STREQUAL "SHARED_LIBRARY")
  install(
    FILES "${PROJECT_SOURCE_DIR}/tools/gdb/ramie.py"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/gdb/auto-load${CMAKE_INSTALL_FULL_LIBDIR}"
    RENAME "libramie.so.${PROJECT_VERSION}-gdb.py"
    COMPONENT development)
endif()

install(
  EXPORT ramieTargets
  NAMESPACE ramie::
  DESTINATION "${ramie_package_dir}"
  COMPONENT development)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/ramieConfig.cmake.in" "${PROJECT_BINARY_DIR}/ramieConfig.cmake"
  INSTALL_DESTINATION "${ramie_package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ramieConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ramieConfig.cmake" "${PROJECT_BINARY_DIR}/ramieConfigVersion.cmake"
        DESTINATION "${ramie_package_dir}" COMPONENT development)

# In ramie.pc paths are relative to the file itself, so that a moved prefix keeps working. That needs relative directories.
file(RELATIVE_PATH ramie_pc_to_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(ramie_pc_prefix "${CMAKE_INSTALL_PREFIX}")
  set(ramie_pc_libdir "${CMAKE_INSTALL_FULL_LIBDIR}")
  set(ramie_pc_includedir "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
else()
  set(ramie_pc_prefix "\${pcfiledir}/${ramie_pc_to_prefix}")
  set(ramie_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(ramie_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/ramie.pc.in" "${PROJECT_BINARY_DIR}/ramie.pc" @ONLY)
install(
  FILES "${PROJECT_BINARY_DIR}/ramie.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
  COMPONENT development)
