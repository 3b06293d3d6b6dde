# Native build with the newest clang installed: distributions name it by its version.
foreach(version RANGE 30 15 -1)
  list(APPEND names clang++-${version})
endforeach()
find_program(RAMIE_CLANG NAMES clang++ ${names} REQUIRED)
unset(names)
set(CMAKE_CXX_COMPILER "${RAMIE_CLANG}")
set(CMAKE_ASM_COMPILER "${RAMIE_CLANG}")
