# `cpack -G DEB` in the build directory: libramie-dev, and of a shared library libramie<ABI> beside it. lintian has no complaints
# if CMAKE_INSTALL_PREFIX is /usr: only then does CMake use Debian's folders for libraries.
set(RAMIE_PACKAGE_MAINTAINER "The ramie maintainers <ramie@example.org>" CACHE STRING "Whom a package names as its maintainer")

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
    "Development files: headers, the library to link, and what CMake and\npkg-config need to find them.")

# What Debian requires of each package. Other installations do not need it.
function(ramie_package_documents component package)
  set(place "${PROJECT_BINARY_DIR}/package/${package}")
  file(READ "${PROJECT_SOURCE_DIR}/LICENSE" license)
  string(REGEX REPLACE "\n\n+" "\n.\n" license "${license}")
  string(REGEX REPLACE "\n$" "" license "${license}")
  string(REPLACE "\n" "\n " license "${license}")
  file(
    WRITE "${place}/copyright"
    "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\n"
    "Files: *\nCopyright: 2025-2026 The ramie authors\nLicense: BSL-1.0\n\nLicense: BSL-1.0\n ${license}\n")
  set(documents "${place}/copyright")
  # The project's own changes, and Debian's list, which must have Debian's format.
  string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(
    WRITE "${place}/changelog"
    "ramie (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * See NEWS.gz.\n\n -- ${RAMIE_PACKAGE_MAINTAINER}  ${now}\n")
  find_program(RAMIE_GZIP gzip)
  mark_as_advanced(RAMIE_GZIP)
  if(RAMIE_GZIP)
    execute_process(COMMAND "${RAMIE_GZIP}" -9nc "${PROJECT_SOURCE_DIR}/CHANGELOG.md" OUTPUT_FILE "${place}/NEWS.gz")
    execute_process(COMMAND "${RAMIE_GZIP}" -9nc "${place}/changelog" OUTPUT_FILE "${place}/changelog.gz")
    list(APPEND documents "${place}/NEWS.gz" "${place}/changelog.gz")
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
  # Debian's present way to renew the cache of libraries. CPack adds scripts that do it as well, which cannot be avoided.
  file(WRITE "${PROJECT_BINARY_DIR}/package/triggers" "activate-noawait ldconfig\n")
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/package/triggers")
  file(WRITE "${PROJECT_BINARY_DIR}/package/${ramie_runtime_package}.overrides"
       "# Written by CPack.\n${ramie_runtime_package}: maintscript-calls-ldconfig *\n")
  install(
    FILES "${PROJECT_BINARY_DIR}/package/${ramie_runtime_package}.overrides"
    DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/lintian/overrides"
    RENAME ${ramie_runtime_package}
    COMPONENT runtime
    EXCLUDE_FROM_ALL)
  # Both inspect libraries with file(1), which small systems lack: their packages list fewer dependencies.
  find_program(RAMIE_FILE file)
  find_program(RAMIE_SHLIBDEPS dpkg-shlibdeps)
  mark_as_advanced(RAMIE_FILE RAMIE_SHLIBDEPS)
  if(RAMIE_FILE)
    set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
    if(RAMIE_SHLIBDEPS)
      set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
    endif()
  endif()
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${ramie_runtime_package} (= ${PROJECT_VERSION})")
  ramie_package_documents(runtime ${ramie_runtime_package})
endif()

include(CPack)
