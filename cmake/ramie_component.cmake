# Leaves ramie::<name> out, by returning from the file that calls it, because `lacking` is missing ("libfoo here (Debian: libfoo-dev)");
# an error if it was asked for by the option RAMIE_<NAME>. A macro: a function would return from itself.
macro(ramie_leave_component_out name lacking)
  string(TOUPPER "RAMIE_${name}" ramie_component_option)
  if("${${ramie_component_option}}" STREQUAL "AUTO")
    message(STATUS "ramie::${name} and its tests are left out: no ${lacking}")
    return()
  endif()
  message(FATAL_ERROR "${ramie_component_option} is ${${ramie_component_option}}, but there is no ${lacking}")
endmacro()

# The library ramie::<name> of components/<name>: all its sources there and in the folders named behind ROOMS, the headers in its
# folder ramie/, and its tests. Further arguments are libraries that it is linked with, and its users, too.
function(ramie_add_component name)
  set(library "ramie_${name}")
  cmake_parse_arguments(PARSE_ARGV 1 of "" "" "ROOMS")
  set(patterns "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  foreach(room IN LISTS of_ROOMS)
    list(APPEND patterns "${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cpp")
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  list(FILTER sources EXCLUDE REGEX "\\.test\\.cpp$")
  add_library(${library} ${sources})
  add_library(ramie::${name} ALIAS ${library})
  target_include_directories(
    ${library}
    PUBLIC "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>" "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${library} PUBLIC ramie::ramie ${of_UNPARSED_ARGUMENTS})
  set_target_properties(
    ${library} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                          VISIBILITY_INLINES_HIDDEN ON EXPORT_NAME ${name})
  ramie_compile_in_units(${library})
  ramie_export_symbols(${library})
  ramie_own_code(${library})

  if(RAMIE_BUILD_TESTS)
    ramie_add_tests(components/${name} ramie::${name})
  endif()

  if(RAMIE_INSTALL)
    install(
      TARGETS ${library}
      EXPORT ${library}Targets
      ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${name}
      LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT ${name})
    install(
      DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/ramie"
      DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
      COMPONENT ${name})
    install(
      EXPORT ${library}Targets
      NAMESPACE ramie::
      DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/ramie"
      COMPONENT ${name})
  endif()
endfunction()
