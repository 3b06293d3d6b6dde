# cmake -DSOURCES=A|B... -DFOLDER=F -DOUTPUT=O -P: writes the sources in the folder F into the one source O. The unnamed namespace
# of each gets a name around it, so that they may use the same names. Files and lines of messages are those of the sources. No
# path depends on where F is, so that a compiler cache knows O in another clone, too.

string(REPLACE "|" ";" sources "${SOURCES}")
set(text "// Made by cmake/merge_tests.cmake.\n")
set(number 0)
foreach(source IN LISTS sources)
  file(READ "${FOLDER}/${source}" own)
  string(REPLACE "\nnamespace {\n" "\nnamespace source_${number} { namespace {\n" own "${own}")
  string(REPLACE "\n}  // namespace\n" "\n}}  // namespace\n" own "${own}")
  # A header beside a source is not beside the result.
  get_filename_component(place "${FOLDER}/${source}" DIRECTORY)
  string(REGEX MATCHALL "\n#include \"[^\"]+\"" includes "${own}")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^.*\"([^\"]+)\"$" "\\1" header "${include}")
    if(EXISTS "${place}/${header}")
      get_filename_component(path "${place}/${header}" ABSOLUTE)
      string(REPLACE "${FOLDER}/" "" path "${path}")
      string(REPLACE "#include \"${header}\"" "#include \"${path}\"" own "${own}")
    endif()
  endforeach()
  string(APPEND text "#line 1 \"${source}\"\n${own}")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}" "${text}")
