# `cpack -G DEB` in the build directory: libramie-dev, and of a shared library libramie<ABI> beside it.
set(RAMIE_PACKAGE_MAINTAINER "The ramie maintainers <ramie@localhost>" CACHE STRING "Whom a package names as its maintainer")

set(CPACK_PACKAGE_NAME ramie)
set(CPACK_PACKAGE_VENDOR ramie)
set(CPACK_PACKAGE_CONTACT "${RAMIE_PACKAGE_MAINTAINER}")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "stackful fibers, channels and actors on one scheduler")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL development)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(ramie_dev_package libramie-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME ${ramie_dev_package})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
    "Development files: headers, the library to link, and what CMake and pkg-config need to find them.")

# What Debian wants to know of each package. Who installs for himself does not need it.
function(ramie_package_documents component package)
  set(place "${PROJECT_BINARY_DIR}/package/${package}")
  configure_file("${PROJECT_SOURCE_DIR}/LICENSE" "${place}/copyright" COPYONLY)
  set(documents "${place}/copyright")
  find_program(RAMIE_GZIP gzip)
  mark_as_advanced(RAMIE_GZIP)
  if(RAMIE_GZIP)
    execute_process(COMMAND "${RAMIE_GZIP}" -9nc "${PROJECT_SOURCE_DIR}/CHANGELOG.md" OUTPUT_FILE "${place}/changelog.gz")
    list(APPEND documents "${place}/changelog.gz")
  endif()
  install(
    FILES ${documents}
    DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}"
    COMPONENT ${component}
    EXCLUDE_FROM_ALL)
endfunction()
ramie_package_documents(development ${ramie_dev_package})

if(BUILD_SHARED_LIBS)
  list(APPEND CPACK_COMPONENTS_ALL runtime)
  set(ramie_runtime_package "libramie${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${ramie_runtime_package})
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
      "The shared library, for the programs that were linked with it.")
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
  find_program(RAMIE_SHLIBDEPS dpkg-shlibdeps)
  mark_as_advanced(RAMIE_SHLIBDEPS)
  if(RAMIE_SHLIBDEPS)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
  endif()
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${ramie_runtime_package} (= ${PROJECT_VERSION})")
  ramie_package_documents(runtime ${ramie_runtime_package})
endif()

include(CPack)
