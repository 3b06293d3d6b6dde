# Not by its own package for CMake: Debian's names a static library that is not there, and ends in an error.
find_path(RAMIE_NATS_INCLUDE_DIR nats/nats.h)
find_library(RAMIE_NATS_LIBRARY nats)
mark_as_advanced(RAMIE_NATS_INCLUDE_DIR RAMIE_NATS_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ramie_nats REQUIRED_VARS RAMIE_NATS_LIBRARY RAMIE_NATS_INCLUDE_DIR)
if(ramie_nats_FOUND AND NOT TARGET ramie_nats::nats)
  add_library(ramie_nats::nats UNKNOWN IMPORTED)
  set_target_properties(ramie_nats::nats PROPERTIES IMPORTED_LOCATION "${RAMIE_NATS_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                                             "${RAMIE_NATS_INCLUDE_DIR}")
endif()
