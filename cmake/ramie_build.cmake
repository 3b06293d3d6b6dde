# Flags of ramie's own code: here, not in the library's interface, so that users keep their own flags.

if(ramie_top_level)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo or MinSizeRel" FORCE)
  endif()
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

  find_program(RAMIE_CCACHE ccache)
  mark_as_advanced(RAMIE_CCACHE)
  if(RAMIE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT RAMIE_STACK_USAGE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${RAMIE_CCACHE}")
  endif()
endif()

# Everything in this build is instrumented alike, GoogleTest built from source included.
if(RAMIE_SANITIZE)
  add_compile_options(-fsanitize=${RAMIE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${RAMIE_SANITIZE})
  if(RAMIE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
if(RAMIE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(RAMIE_STACK_USAGE)
  # Beside each object file, one with its functions' frames and calls, for tools/stack. A compiler cache would not
  # know that it belongs to the result.
  add_compile_options(-fcallgraph-info=su)
  unset(CMAKE_CXX_COMPILER_LAUNCHER)
  unset(CMAKE_CXX_COMPILER_LAUNCHER CACHE)
endif()
if(RAMIE_COVERAGE)
  # Counted from several threads.
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

# Half of the time to compile a library goes into headers that eight of its sources read once, together. So users build it, too.
function(ramie_compile_in_units target)
  if(NOT DEFINED CMAKE_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
  endif()
  # More at a time, and two unnamed namespaces may have the same name.
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 8)
  get_target_property(unity ${target} UNITY_BUILD)
  if(unity)
    # To gcc a source within a unit is a header, whose unnamed namespaces others could include again.
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>")
  endif()
endfunction()

# Warnings for a target that is compiled from our own sources.
function(ramie_own_code target)
  set(cxx "$<COMPILE_LANGUAGE:CXX>")
  set(clang "$<AND:${cxx},$<CXX_COMPILER_ID:Clang,AppleClang>>")
  set(gcc "$<AND:${cxx},$<CXX_COMPILER_ID:GNU>>")
  target_compile_options(
    ${target}
    PRIVATE "$<${cxx}:-Wall;-Wextra;-Wconversion;-Wshadow>"
            # gcc's -Wconversion leaves signs alone, and its -Wshadow captures, and what another source of a unit has: ask both
            # compilers for the same. gcc says of our own code what is deprecated; clang also of std::stable_sort as it is in GCC 12.
            "$<${clang}:-Wno-sign-conversion;-Wno-shadow;-Wno-deprecated-declarations>"
            # gcc 12 takes "text" + std::string{} for an overlapping copy (gcc bug 105651, gone in 13).
            "$<$<AND:${gcc},$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>")
  # By default gcc collects garbage from 128 MB on, again and again in a source that was merged of many: a fifth of its time.
  if(RAMIE_MERGE_TESTS)
    target_compile_options(${target} PRIVATE "$<${gcc}:--param=ggc-min-heapsize=1000000>")
  endif()
  if(RAMIE_WERROR)
    target_compile_options(${target} PRIVATE "$<${cxx}:-Werror>")
    if(RAMIE_SANITIZE)
      # Instrumentation confuses gcc's flow analysis, and -Wtsan warns of every fence, which TSan does not support.
      target_compile_options(
        ${target} PRIVATE "$<${gcc}:-Wno-error=maybe-uninitialized;-Wno-error=stringop-overflow;-Wno-error=tsan>")
    endif()
  endif()
endfunction()

# A shared library exports ramie's symbols, under the version of its ABI, and hides those of its dependencies.
function(ramie_export_symbols target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    set(RAMIE_ABI "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
    configure_file("${PROJECT_SOURCE_DIR}/cmake/ramie.map.in" "${PROJECT_BINARY_DIR}/ramie.map" @ONLY)
    target_link_options(${target} PRIVATE "LINKER:--version-script=${PROJECT_BINARY_DIR}/ramie.map")
    set_target_properties(${target} PROPERTIES LINK_DEPENDS "${PROJECT_BINARY_DIR}/ramie.map")
  endif()
endfunction()
