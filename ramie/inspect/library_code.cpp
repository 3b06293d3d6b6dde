#include <ramie/inspect/library_code.hpp>

#include <algorithm>
#include <string_view>

namespace ramie::detail {

namespace {

/// The folder of the library's own files, from the path that the compiler had for this one.
std::string_view own_folder() noexcept {
  const std::string_view here{__FILE__};
  return here.substr(0, here.rfind("inspect/"));
}

}  // namespace

bool is_library_function(const char* linker_name) noexcept {
  std::string_view name{linker_name};
  if (name.starts_with("ramie_")) return true;
  if (!name.starts_with("_Z")) return false;
  name.remove_prefix(2);
  // What precedes the outermost scope: thunks, nesting, qualifiers.
  name.remove_prefix(std::min(name.find_first_not_of("ZNKVRO"), name.size()));
  return name.starts_with("St") || name.starts_with("Sa") || name.starts_with("Ss") || name.starts_with("5ramie") ||
         name.starts_with("9__gnu_cxx") || name.starts_with("10__cxxabiv1");
}

bool is_of_library(const char* file) noexcept {
  const std::string_view path{file};
  return path.find("/c++/") != path.npos || (path.starts_with(own_folder()) && path.find(".test.") == path.npos);
}

}  // namespace ramie::detail
