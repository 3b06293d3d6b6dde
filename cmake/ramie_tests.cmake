# Tests and examples: which sources become which program, and how ctest runs it.

# No test takes nearly this long; the limit only ends hangs, on busy machines, too. ./run test gives out two places for each
# processor, and one more. A test takes two of them; one that mostly waits takes one, and only one of these runs at a time, so that
# the processors have work meanwhile. Long ones begin early (COST).
set(ramie_test_limits TIMEOUT 600 PROCESSORS 2)
set(ramie_waiting_test_limits PROCESSORS 1 COST 100 RESOURCE_LOCK waiting)

# The library is as users get it. Its tests need not be fast: half of the time to compile them would go into that. Those that try
# orders in time, within a few instructions, are a little faster; not with AddressSanitizer, which takes longer to compile by -O1
# than the tests then win.
set(ramie_test_flags "$<$<COMPILE_LANGUAGE:CXX>:-O0>")
set(ramie_quick_test_flags "$<$<COMPILE_LANGUAGE:CXX>:-O1>")
if(RAMIE_SANITIZE MATCHES "address")
  set(ramie_quick_test_flags "${ramie_test_flags}")
elseif(NOT RAMIE_SANITIZE)
  set(ramie_quick_test_flags "$<$<COMPILE_LANGUAGE:CXX>:$<IF:$<CONFIG:Debug>,-O0,-O1>>")
endif()

# That many sources of a test program, at most, are compiled as one (RAMIE_MERGE_TESTS).
set(ramie_merged_tests 16)

# The library is compiled as users have it, by gcc if that is the compiler. Its tests may be by another: clang, where it is there, takes
# three fifths of gcc's time for sources that are not optimised, and both keep to one ABI. Not so under sanitizers, whose runtimes
# differ, and for floors whose tests look at frames and registers.
if(RAMIE_TEST_CLANG AND NOT EXISTS "${RAMIE_TEST_CLANG}")
  unset(RAMIE_TEST_CLANG CACHE)
endif()
find_program(RAMIE_TEST_CLANG NAMES clang++-19)
mark_as_advanced(RAMIE_TEST_CLANG)
function(ramie_compile_by_clang program)
  set(launcher "${CMAKE_CXX_COMPILER_LAUNCHER}")
  if(NOT launcher)
    set(launcher "-")
  endif()
  list(LENGTH launcher words)
  if(RAMIE_MERGE_TESTS AND RAMIE_TEST_CLANG AND words EQUAL 1 AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release"
     AND NOT RAMIE_SANITIZE AND NOT RAMIE_COVERAGE AND NOT RAMIE_STACK_USAGE AND NOT CMAKE_CROSSCOMPILING)
    # The headers of that gcc, not those of the newest that is there.
    if(NOT RAMIE_GCC_FOLDER)
      execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-libgcc-file-name OUTPUT_VARIABLE libgcc OUTPUT_STRIP_TRAILING_WHITESPACE)
      get_filename_component(folder "${libgcc}" DIRECTORY)
      set(RAMIE_GCC_FOLDER "${folder}" CACHE INTERNAL "")
    endif()
    target_compile_options(${program} PRIVATE "--gcc-install-dir=${RAMIE_GCC_FOLDER}")
    set_target_properties(${program} PROPERTIES CXX_COMPILER_LAUNCHER
                                                "${PROJECT_SOURCE_DIR}/cmake/by_clang.sh;${RAMIE_TEST_CLANG};${launcher}")
  endif()
endfunction()

# Makes GTest::gtest for the target system. The distribution's library is for the build machine, so a
# cross build compiles the sources that come with the same package.
macro(ramie_find_gtest)
  if(NOT TARGET GTest::gtest)
    if(CMAKE_CROSSCOMPILING)
      set(RAMIE_GTEST_SOURCE "/usr/src/googletest" CACHE PATH "Sources of GoogleTest, for cross builds")
      set(INSTALL_GTEST OFF)
      set(BUILD_GMOCK OFF)
      add_subdirectory("${RAMIE_GTEST_SOURCE}" "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL)
    else()
      find_package(GTest REQUIRED)
    endif()
  endif()
endmacro()

# Floors whose code depends on how frames and registers are laid out. Their tests are labelled `core`, their programs made by
# the target core_tests: only these are tested in a debug build. (Those of all floors, of ramie/ and tests/, are labelled `floor`,
# and made by floor_tests.)
set(ramie_core_floors base machine context stack task queue worker sched inspect)

# Headers that programs of one kind include are compiled once for all of them (RAMIE_MERGE_TESTS, gcc), with this target of theirs;
# further arguments are the headers. It takes 0.3 s to read what was made of them, and two to compile them again. No compiler cache
# is asked for these programs: what ccache makes of such headers depends on what it has seen before (issues 1196, 1615, 1686).
set(CMAKE_PCH_PROLOGUE "")  # by default they are headers of the system, whose warnings nobody sees
function(ramie_precompile_headers target)
  if(RAMIE_MERGE_TESTS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    ramie_leave_out_cache(${target})
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
function(ramie_leave_out_cache program)
  get_target_property(launcher ${program} CXX_COMPILER_LAUNCHER)
  if(launcher MATCHES "by_clang")
    set_target_properties(${program} PROPERTIES CXX_COMPILER_LAUNCHER "${PROJECT_SOURCE_DIR}/cmake/by_clang.sh;${RAMIE_TEST_CLANG};-")
    target_compile_options(${program} PRIVATE -fpch-instantiate-templates)
  else()
    set_target_properties(${program} PROPERTIES CXX_COMPILER_LAUNCHER "")
    target_compile_options(${program} PRIVATE -fpch-deps)  # ninja knows the headers behind them, too
  endif()
endfunction()

# For a program with the same flags as that target.
function(ramie_use_headers_of target program)
  if(RAMIE_MERGE_TESTS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    ramie_leave_out_cache(${program})
    target_precompile_headers(${program} REUSE_FROM ${target})
  endif()
endfunction()

# What all test programs share: their main function.
function(ramie_add_test_main)
  add_custom_target(core_tests)
  add_custom_target(floor_tests)
  add_library(ramie_test_main OBJECT "${PROJECT_SOURCE_DIR}/tests/support/main.cpp")
  target_link_libraries(ramie_test_main PUBLIC ramie::ramie GTest::gtest)
  ramie_own_code(ramie_test_main)
  target_compile_options(ramie_test_main PRIVATE ${ramie_test_flags})
  if(RAMIE_COVERAGE)
    add_library(ramie_dying OBJECT "${PROJECT_SOURCE_DIR}/tests/coverage/dying.cpp")
  endif()
endfunction()

# Sources of a test program, some at a time, as one source each. Half of what a compiler makes of a test is what it makes of the
# others, too: templates, and inline functions. A source that says "Computes" is compiled by -O1, by itself.
function(ramie_merge_tests result program sources)
  set(computing "")
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" computes REGEX "^// Computes" LIMIT_COUNT 1)
    if(computes)
      list(APPEND computing "${source}")
    endif()
  endforeach()
  if(computing)
    list(REMOVE_ITEM sources ${computing})
    set_source_files_properties(${computing} PROPERTIES COMPILE_OPTIONS "${ramie_quick_test_flags}")
  endif()
  list(LENGTH sources count)
  if(NOT RAMIE_MERGE_TESTS OR count LESS 2)
    set(${result} ${sources} ${computing} PARENT_SCOPE)
    return()
  endif()
  math(EXPR units "(${count} + ${ramie_merged_tests} - 1) / ${ramie_merged_tests}")
  set(merged "")
  foreach(unit RANGE 1 ${units})
    math(EXPR begin "(${unit} - 1) * ${count} / ${units}")
    math(EXPR size "${unit} * ${count} / ${units} - ${begin}")
    list(SUBLIST sources ${begin} ${size} of_unit)
    set(output "${PROJECT_BINARY_DIR}/merged/${program}_${unit}.cpp")
    list(TRANSFORM of_unit REPLACE "^${PROJECT_SOURCE_DIR}/" "" OUTPUT_VARIABLE names)
    list(JOIN names "|" names)
    add_custom_command(
      OUTPUT "${output}"
      COMMAND ${CMAKE_COMMAND} "-DSOURCES=${names}" "-DFOLDER=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${output}" -P
              "${PROJECT_SOURCE_DIR}/cmake/merge_tests.cmake"
      DEPENDS ${of_unit} "${PROJECT_SOURCE_DIR}/cmake/merge_tests.cmake"
      COMMENT "Merging tests of ${program}"
      VERBATIM)
    list(APPEND merged "${output}")
  endforeach()
  set(${result} ${merged} ${computing} PARENT_SCOPE)
endfunction()

# The program of these sources; further arguments are libraries to link.
function(ramie_add_test_program program sources)
  ramie_merge_tests(sources ${program} "${sources}")
  add_executable(${program} ${sources})
  target_link_libraries(${program} PRIVATE ramie_test_main ${ARGN})
  # Each source has names of its own in an unnamed namespace.
  set_target_properties(${program} PROPERTIES UNITY_BUILD OFF)
  if(RAMIE_COVERAGE)
    target_link_libraries(${program} PRIVATE ramie_dying)
  endif()
  ramie_own_code(${program})
  string(JOIN "|" core ${ramie_core_floors})
  if(program MATCHES "^test_(${core})(_|$)")
    target_compile_options(${program} PRIVATE ${ramie_quick_test_flags})
  else()
    ramie_compile_by_clang(${program})
    target_compile_options(${program} PRIVATE ${ramie_test_flags})
  endif()
endfunction()

# The cases of one source as one test. Further arguments are properties of the test.
function(ramie_add_test_run name program source filter)
  add_test(NAME ${name} COMMAND ${program} --name=${name} --file=${source} --gtest_color=no ${filter})
  set_tests_properties(${name} PROPERTIES ${ramie_test_limits} ${ARGN})
endfunction()

# All <folder>/**/*.test.cpp of one floor become one program, and each of these sources a test: ramie/stack/pool.test.cpp is in
# test_stack, and ctest calls it stack.pool, labelled `stack`. A source that replaces a function of the whole program, or that prints
# names of its types, says "A program of its own" in a comment, and is test_<floor>_<name>; one that takes seconds, and little of a processor, says
# "Mostly waits"; one that would take much longer without optimisation, "Computes". Further arguments are libraries to link.
function(ramie_add_tests folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/${folder}/*.test.cpp")
  list(FILTER sources EXCLUDE REGEX "\\.interleave\\.test\\.cpp$")
  set(programs "")
  foreach(source IN LISTS sources)
    string(REGEX REPLACE "^(ramie|components)/|\\.test\\.cpp$" "" stem "${source}")
    string(REGEX REPLACE "/.*" "" label "${stem}")
    set(program "test_${label}")
    file(STRINGS "${PROJECT_SOURCE_DIR}/${source}" of_its_own REGEX "^// A program of its own" LIMIT_COUNT 1)
    if(of_its_own)
      string(REPLACE "/" "_" program "test_${stem}")
    endif()
    list(APPEND programs ${program})
    list(APPEND sources_of_${program} "${PROJECT_SOURCE_DIR}/${source}")

    string(REPLACE "/" "." name "${stem}")
    ramie_add_test_run(${name} ${program} ${source} "")
    set_property(TEST ${name} PROPERTY LABELS "${label}")
    file(STRINGS "${PROJECT_SOURCE_DIR}/${source}" waits REGEX "^// Mostly waits" LIMIT_COUNT 1)
    if(waits)
      set_tests_properties(${name} PROPERTIES ${ramie_waiting_test_limits})
    endif()
    if(folder MATCHES "^(ramie|tests)$")
      set_property(TEST ${name} APPEND PROPERTY LABELS floor)
      list(APPEND floor_programs ${program})
    endif()
    if(label IN_LIST ramie_core_floors)
      set_property(TEST ${name} APPEND PROPERTY LABELS core)
      list(APPEND core_programs ${program})
    endif()
    # Tests whose results must not depend on the placement, under every placement but the default. Some cases are about
    # the default's own order, and skip themselves; a test that allocates nothing on one worker may fill another's
    # caches first.
    set(of_actors "^tests/(actor_edges|actor_pairs|(mailbox|receive|tree)_model|ported/(otp|caf)_[a-z_]+)$")
    if((label MATCHES "^(sync|parallel|future|channel|actor|supervise|patterns)$" OR stem MATCHES "${of_actors}") AND RAMIE_TEST_PLACEMENTS
       AND NOT stem MATCHES "/allocation$")
      foreach(placement stealing_no_affinity dedicated)
        ramie_add_test_run(placement.${placement}.${name} ${program} ${source} "" ENVIRONMENT "RAMIE_PLACEMENT=${placement}"
                           LABELS placement)
      endforeach()
    endif()
    # Every wait resumes elsewhere, and later than it could. Only sanitized builds have random yields. Left
    # out are tests that count turns.
    if(label MATCHES "^(fiber|runtime|sync|parallel|future|channel|poll|net|actor|supervise|patterns)$" AND RAMIE_TEST_PERTURBED)
      set(filter "--gtest_filter=-fairness.*:io_turns.*:mutex_on_one_worker.*:semaphores_on_one_worker.*")
      ramie_add_test_run(perturbed.${name} ${program} ${source} "${filter}" ENVIRONMENT
                         "RAMIE_MIGRATE_ALWAYS=1\\;RAMIE_RANDOM_YIELDS=30" LABELS perturbed)
      # Woken fibers change workers as often as possible, for races to show.
      if(RAMIE_SANITIZE STREQUAL "thread")
        ramie_add_test_run(at_home.${name} ${program} ${source} "${filter}" ENVIRONMENT "RAMIE_SPREADING=at_home" LABELS at_home)
      endif()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES programs)
  foreach(program IN LISTS programs)
    ramie_add_test_program(${program} "${sources_of_${program}}" ${ARGN})
  endforeach()
  if(core_programs)
    add_dependencies(core_tests ${core_programs})
  endif()
  if(floor_programs)
    add_dependencies(floor_tests ${floor_programs})
  endif()
endfunction()

# The target that builds all but the lab, for ./run test: what has no test beside those labelled `lab` is not needed there.
# To be called when all targets are known.
function(ramie_add_target_without_lab)
  add_custom_target(all_but_lab)
  set(folders "${PROJECT_SOURCE_DIR}")
  while(folders)
    list(POP_FRONT folders folder)
    get_property(below DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
    list(APPEND folders ${below})
    get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      get_target_property(type ${target} TYPE)
      get_target_property(left_out ${target} EXCLUDE_FROM_ALL)
      if(type MATCHES "EXECUTABLE|LIBRARY" AND NOT left_out AND NOT target MATCHES "^(ramie[-_]lab|ramie-web|test_lab.*|fuzz_lab_.*|measure_cluster|cluster_soak)$")
        add_dependencies(all_but_lab ${target})
      endif()
    endforeach()
  endwhile()
endfunction()

# ramie-soak, a random mix of everything: for hours by ./run soak, and its first rounds as a test.
function(ramie_add_soak)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/soak/*.cpp")
  add_executable(ramie-soak ${sources})
  target_link_libraries(ramie-soak PRIVATE ramie::ramie)
  ramie_own_code(ramie-soak)
  target_compile_options(ramie-soak PRIVATE ${ramie_quick_test_flags})
  set(rounds 40)
  if(RAMIE_SANITIZE OR CMAKE_CROSSCOMPILING)
    set(rounds 10)
  endif()
  add_test(NAME soak COMMAND ramie-soak --seed 1 --rounds ${rounds})
  set_tests_properties(soak PROPERTIES ${ramie_test_limits} LABELS "soak;floor")
  add_dependencies(floor_tests ramie-soak)
endfunction()

# tests/fuzz/<name>.cpp are fuzzers with RAMIE_FUZZ (clang's libFuzzer), and otherwise programs that try random inputs.
# Those of components are added where these are.
function(ramie_add_fuzzers)
  foreach(name IN ITEMS select_cases timer_sequence mailbox_order)
    ramie_add_fuzzer(${name} "${PROJECT_SOURCE_DIR}/tests/fuzz/${name}.cpp" ramie::ramie)
    add_dependencies(floor_tests fuzz_${name})
    if(TEST fuzz.${name})
      set_property(TEST fuzz.${name} APPEND PROPERTY LABELS floor)
    endif()
  endforeach()
  if(TARGET ramie_lab)
    ramie_add_fuzzer(lab_results "${PROJECT_SOURCE_DIR}/tests/fuzz/lab_results.cpp" ramie_lab)
  endif()
endfunction()

# One of them; further arguments are libraries to link.
function(ramie_add_fuzzer name source)
  add_executable(fuzz_${name} "${source}")
  target_link_libraries(fuzz_${name} PRIVATE ${ARGN})
  ramie_own_code(fuzz_${name})
  if(RAMIE_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    ramie_compile_by_clang(fuzz_${name})
    target_compile_options(fuzz_${name} PRIVATE ${ramie_test_flags})
    if(NOT TARGET ramie_fuzz_standalone)
      add_library(ramie_fuzz_standalone OBJECT "${PROJECT_SOURCE_DIR}/tests/fuzz/standalone.cpp")
      target_compile_features(ramie_fuzz_standalone PUBLIC cxx_std_20)
      ramie_own_code(ramie_fuzz_standalone)
    endif()
    target_link_libraries(fuzz_${name} PRIVATE ramie_fuzz_standalone)
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} --runs 2000)
    set(label fuzz)
    if(name MATCHES "^lab")
      set(label lab)
    endif()
    set_tests_properties(fuzz.${name} PROPERTIES ${ramie_test_limits} LABELS ${label})
  endif()
endfunction()

# The library built for a simulated scheduler (docs/design/interleaving.md), and the programs that run it:
# tests/interleave/<name>.interleave.test.cpp is test_interleave_<name>. They take seconds; the release build is enough.
function(ramie_add_interleaving_tests)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR CMAKE_CROSSCOMPILING OR RAMIE_SANITIZE)
    return()
  endif()
  get_target_property(library_sources ramie SOURCES)
  # It has a kernel of its own.
  list(FILTER library_sources EXCLUDE REGEX "ramie/poll/system\\.cpp$")
  file(GLOB simulator CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/interleave/*.cpp" "${PROJECT_SOURCE_DIR}/tests/interleave/kernel/*.cpp")
  list(FILTER simulator EXCLUDE REGEX "\\.test\\.cpp$")
  add_library(ramie_interleave STATIC EXCLUDE_FROM_ALL ${library_sources} ${simulator})
  target_compile_features(ramie_interleave PUBLIC cxx_std_20)
  target_compile_definitions(ramie_interleave PUBLIC RAMIE_INTERLEAVE=1)
  # The instrumentation for ThreadSanitizer, without its library and its macro: tests/interleave/plain_memory.hpp.
  target_compile_options(ramie_interleave PUBLIC "$<$<COMPILE_LANGUAGE:CXX>:-O1;-g1;-fsanitize=thread>"
                                                 "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-U__SANITIZE_THREAD__>")
  set_source_files_properties(${simulator} PROPERTIES COMPILE_OPTIONS "-fno-sanitize=thread;-O2")
  target_include_directories(ramie_interleave PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(ramie_interleave PUBLIC Threads::Threads GTest::gtest)
  set_target_properties(ramie_interleave PROPERTIES UNITY_BUILD ${RAMIE_MERGE_TESTS} UNITY_BUILD_BATCH_SIZE 16)
  target_compile_options(ramie_interleave PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>")
  ramie_own_code(ramie_interleave)

  add_library(ramie_interleave_main OBJECT EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tests/support/main.cpp")
  target_link_libraries(ramie_interleave_main PUBLIC ramie_interleave)
  ramie_own_code(ramie_interleave_main)
  ramie_precompile_headers(ramie_interleave_main <gtest/gtest.h> <ramie/ramie.hpp>)

  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/interleave/*.interleave.test.cpp")
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME_WE)
    add_executable(test_interleave_${name} "${source}")
    target_link_libraries(test_interleave_${name} PRIVATE ramie_interleave_main)
    ramie_own_code(test_interleave_${name})
    ramie_use_headers_of(ramie_interleave_main test_interleave_${name})
    ramie_add_test_run(interleave.${name} test_interleave_${name} tests/interleave/${name}.interleave.test.cpp "" COST 10 LABELS interleave)
  endforeach()
endfunction()

# Every examples/*.cpp becomes an example.
function(ramie_add_examples)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp")
  set(first "")
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME_WE)
    ramie_add_example(${name} "${source}")
    if(first)
      ramie_use_headers_of(${first} example_${name})
    else()
      set(first example_${name})
      ramie_precompile_headers(${first} <ramie/ramie.hpp> <ramie/net.hpp>)
    endif()
  endforeach()
endfunction()

# The program example_<name> and the test example.<name>, which must exit with 0 and, if there is an <name>.expected
# beside the source, print exactly that. Further arguments are libraries to link.
function(ramie_add_example name source)
  set(program "example_${name}")
  add_executable(${program} "${source}")
  target_link_libraries(${program} PRIVATE ramie::ramie ${ARGN})
  ramie_own_code(${program})
  ramie_compile_by_clang(${program})
  # gcc 12 takes the strings of a temporary that is made by designated initialisers, such as child_options{.id = "x"}, for
  # uninitialised where it unwinds.
  target_compile_options(${program} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>")
  # They show how, not how fast.
  target_compile_options(${program} PRIVATE ${ramie_test_flags})
  if(NOT RAMIE_BUILD_TESTS)
    return()
  endif()
  string(REGEX REPLACE "\\.cpp$" ".expected" expected "${source}")
  file(GLOB expected CONFIGURE_DEPENDS "${expected}")
  if(expected)
    list(JOIN CMAKE_CROSSCOMPILING_EMULATOR "|" emulator)
    add_test(
      NAME example.${name}
      COMMAND ${CMAKE_COMMAND} "-DPROGRAM=$<TARGET_FILE:${program}>" "-DEXPECTED=${expected}" "-DEMULATOR=${emulator}" -P
              "${PROJECT_SOURCE_DIR}/cmake/run_example.cmake")
  else()
    add_test(NAME example.${name} COMMAND ${program})
  endif()
  set_tests_properties(example.${name} PROPERTIES ${ramie_test_limits} LABELS example)
  # This one starts itself anew, which an emulator does not.
  if(CMAKE_CROSSCOMPILING_EMULATOR AND name STREQUAL "hand_over")
    set_tests_properties(example.${name} PROPERTIES DISABLED TRUE)
  endif()
endfunction()

# tests/examples/<name>_test.py as the test example.<name>.outside, or, with clients (plain sockets, real programs), a test for
# each of them.
function(ramie_add_example_test name)
  set(clients ${ARGN})
  if(NOT clients)
    set(clients outside)
  endif()
  foreach(client IN LISTS clients)
    set(arguments "${PROJECT_SOURCE_DIR}/tests/examples/${name}_test.py" "$<TARGET_FILE:example_${name}>")
    if(ARGN)
      list(APPEND arguments ${client})
    endif()
    add_test(NAME example.${name}.${client} COMMAND "${Python3_EXECUTABLE}" ${arguments})
    set_tests_properties(example.${name}.${client} PROPERTIES ${ramie_test_limits} LABELS example SKIP_RETURN_CODE 77
                                                              ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endfunction()

# Profilers' call chains: by tables in optimised code, by frame pointers if all code has them.
function(ramie_add_perf_test)
  find_package(Python3 COMPONENTS Interpreter)
  if(NOT Python3_Interpreter_FOUND OR CMAKE_CROSSCOMPILING OR RAMIE_SANITIZE OR RAMIE_COVERAGE)
    return()
  endif()
  set(method dwarf)
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(method fp)
  endif()
  add_executable(perf_subject "${PROJECT_SOURCE_DIR}/tests/perf/subject.cpp")
  target_link_libraries(perf_subject PRIVATE ramie::ramie)
  ramie_own_code(perf_subject)
  add_test(NAME perf.${method} COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/perf/perf_test.py"
                                       "$<TARGET_FILE:perf_subject>" ${method})
  add_dependencies(core_tests perf_subject)
  set_tests_properties(perf.${method} PROPERTIES ${ramie_test_limits} SKIP_RETURN_CODE 77 LABELS "project;core"
                                                 ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1")
endfunction()

# Tests of the project rather than of the code. They do not depend on how the library was compiled, so the release builds
# are enough.
function(ramie_add_project_tests)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR CMAKE_CROSSCOMPILING OR RAMIE_SANITIZE)
    return()
  endif()

  # ./run check house also compiles every header alone, which takes minutes.
  find_package(Python3 COMPONENTS Interpreter)
  if(Python3_Interpreter_FOUND AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_test(NAME house COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/house_check.py" --no-compile)
    add_test(NAME house.finds_mistakes COMMAND "${Python3_EXECUTABLE}"
                                               "${PROJECT_SOURCE_DIR}/tests/house/house_check_test.py")
    add_test(NAME house.tidy COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/house/tidy_test.py")
    add_test(NAME house.mutants COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/house/mutants_test.py")
    add_test(NAME house.verdict COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/house/verdict_test.py")
    # The tests that docs/promises.md names exist.
    add_test(NAME promises COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/promises_check.py")
    # docs/environment.md lists all variables.
    add_test(NAME environment COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/environment_check.py")
    add_test(NAME environment.finds_mistakes
             COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/house/environment_check_test.py")
    set_tests_properties(environment environment.finds_mistakes
                         PROPERTIES ${ramie_test_limits} LABELS project ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1")
    set_tests_properties(promises PROPERTIES ${ramie_test_limits} LABELS project)
    # What the compiler says to usual mistakes.
    add_test(NAME mistakes COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/mistakes/mistakes_test.py"
                                   "${CMAKE_CXX_COMPILER}")
    set_tests_properties(mistakes PROPERTIES ${ramie_test_limits} LABELS project ENVIRONMENT
                                             "PYTHONDONTWRITEBYTECODE=1")
    # The code in the documents compiles, runs, and prints what they show.
    add_test(NAME docs COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/docs_check.py" --compiler
                               "${CMAKE_CXX_COMPILER}" --library $<TARGET_FILE:ramie> --jobs 2)
    add_test(NAME docs.finds_mistakes COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/docs/docs_check_test.py")
    set_tests_properties(docs docs.finds_mistakes PROPERTIES ${ramie_test_limits} COST 20 LABELS project)
    set_tests_properties(house house.finds_mistakes house.tidy house.mutants house.verdict
                         PROPERTIES ${ramie_test_limits} LABELS project)
  endif()

  # The debugger's extension needs debugging information of the program, not of the library.
  if(Python3_Interpreter_FOUND)
    add_executable(gdb_subject "${PROJECT_SOURCE_DIR}/tests/gdb/subject.cpp")
    target_link_libraries(gdb_subject PRIVATE ramie::ramie)
    ramie_own_code(gdb_subject)
    target_compile_options(gdb_subject PRIVATE -O1 -g)
    add_test(NAME gdb COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/gdb/gdb_test.py" "$<TARGET_FILE:gdb_subject>")
    set_tests_properties(gdb PROPERTIES ${ramie_test_limits} SKIP_RETURN_CODE 77 LABELS project
                                        ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1")
  endif()

  if(Python3_Interpreter_FOUND AND RAMIE_BUILD_EXAMPLES)
    foreach(example IN ITEMS pipeline actors)
      add_test(NAME trace.${example} COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/trace/trace_test.py"
                                             "${PROJECT_BINARY_DIR}/bin/example_${example}")
      set_tests_properties(trace.${example} PROPERTIES ${ramie_test_limits} LABELS project ENVIRONMENT
                                                      "PYTHONDONTWRITEBYTECODE=1")
    endforeach()
    ramie_add_example_test(echo_server sockets nc socat)
    set_tests_properties(example.echo_server.sockets PROPERTIES ${ramie_waiting_test_limits})
    ramie_add_example_test(proxy sockets curl nc socat)
    ramie_add_example_test(redis_server sockets redis-cli redis-benchmark)
    ramie_add_example_test(log_tailer)
    ramie_add_example_test(dns_lookup)
  endif()

  # The library measures the stack that a program's fibers use; the tool computes it.
  if(Python3_Interpreter_FOUND)
    add_test(NAME tools.stack COMMAND "${Python3_EXECUTABLE}" -m unittest --quiet stack.stack_test WORKING_DIRECTORY
                                      "${PROJECT_SOURCE_DIR}/tools")
    set_tests_properties(
      tools.stack
      PROPERTIES ${ramie_test_limits} LABELS project ENVIRONMENT
                 "PYTHONDONTWRITEBYTECODE=1;RAMIE_LIBRARY=$<TARGET_FILE:ramie>;RAMIE_COMPILER=${CMAKE_CXX_COMPILER}")
  endif()

  # lab/<folder>/<name>_test.py is the test lab.<folder>.<name>.
  if(Python3_Interpreter_FOUND)
    file(GLOB python_tests CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/lab" "${PROJECT_SOURCE_DIR}/lab/*/*_test.py")
    foreach(source IN LISTS python_tests)
      string(REGEX REPLACE "\\.py$" "" module "${source}")
      string(REPLACE "/" "." module "${module}")
      string(REGEX REPLACE "_test$" "" name "lab.${module}")
      add_test(
        NAME ${name}
        COMMAND "${Python3_EXECUTABLE}" -m unittest --quiet ${module}
        WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}/lab")
      set_tests_properties(
        ${name} PROPERTIES ${ramie_test_limits} LABELS lab ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1")
    endforeach()
  endif()

  set(ways add_subdirectory fetch_content sanitized conan vcpkg)
  if(RAMIE_INSTALL)
    list(APPEND ways find_package packaged)
  endif()
  foreach(way IN LISTS ways)
    # One way is among ./run test; the others, which compile the library once more each, are ./run check repeats.
    set(label consumer)
    if(way STREQUAL "find_package")
      set(label project)
    endif()
    add_test(NAME consumer.${way} COMMAND "${PROJECT_SOURCE_DIR}/tests/consumer/run.sh" ${way} "${PROJECT_BINARY_DIR}")
    set_tests_properties(
      consumer.${way} PROPERTIES ${ramie_test_limits} COST 30 SKIP_RETURN_CODE 77 LABELS ${label} ENVIRONMENT
                                 "CMAKE=${CMAKE_COMMAND};CXX=${CMAKE_CXX_COMPILER}")
  endforeach()
  if(Python3_Interpreter_FOUND)
    add_test(NAME vcpkg_port COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/tests/consumer/vcpkg_port_test.py")
    set_tests_properties(vcpkg_port PROPERTIES ${ramie_test_limits} LABELS project ENVIRONMENT
                                               "PYTHONDONTWRITEBYTECODE=1")
  endif()
endfunction()
