// The main function of all test programs. A program has the cases of a whole floor; ctest runs those of one source at a
// time:
//
//   test_stack --file=ramie/stack/pool.test.cpp        the cases of this source; --gtest_filter is applied to them
//   test_stack --name=stack.pool                       what RAMIE_TEST_COUNTS calls this run
//
// If the environment variable RAMIE_TEST_COUNTS names a file, a run that completes appends a line to it: its name, and
// how many cases passed, failed and were skipped.
#include <fcntl.h>
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

bool ends_with_path(std::string_view path, std::string_view end) {
  return path.ends_with(end) && (path.size() == end.size() || path[path.size() - end.size() - 1] == '/');
}

/// Does one of the patterns, separated by colons, match?
bool fits_one(std::string_view patterns, const std::string& name) {
  for (;;) {
    const std::size_t end = patterns.find(':');
    if (::fnmatch(std::string{patterns.substr(0, end)}.c_str(), name.c_str(), 0) == 0) return true;
    if (end == std::string_view::npos) return false;
    patterns.remove_prefix(end + 1);
  }
}

/// As GoogleTest's --gtest_filter: patterns, and after a minus sign the patterns to leave out.
bool fits(std::string_view filter, const std::string& name) {
  const std::size_t minus = filter.find('-');
  const std::string_view wanted = filter.substr(0, minus);
  if (!wanted.empty() && !fits_one(wanted, name)) return false;
  return minus == std::string_view::npos || !fits_one(filter.substr(minus + 1), name);
}

/// Keeps the cases of this source that match the filter; false if the source has no cases.
bool filter_by_file(std::string_view file) {
  const std::string filter = GTEST_FLAG_GET(filter);
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string chosen;
  bool found = false;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& info = *suite.GetTestInfo(t);
      if (!ends_with_path(info.file(), file)) continue;
      found = true;
      const std::string name = std::string{suite.name()} + "." + info.name();
      if (fits(filter, name)) chosen += (chosen.empty() ? "" : ":") + name;
    }
  }
  GTEST_FLAG_SET(filter, chosen.empty() ? "-*" : chosen);
  return found;
}

void append_counts(const char* path, const std::string& name) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const std::string line = name + " " + std::to_string(all.successful_test_count()) + " " +
                           std::to_string(all.failed_test_count()) + " " + std::to_string(all.skipped_test_count()) +
                           "\n";
  // In one piece, because programs run at the same time.
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0 || ::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::perror(path);
  if (file >= 0) ::close(file);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::string file, name;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--file=")) {
      file = word.substr(7);
    } else if (word.starts_with("--name=")) {
      name = word.substr(7);
    } else {
      std::fprintf(stderr, "%s: there is no option %s\n", argv[0], argv[i]);
      return 2;
    }
  }
  if (!file.empty() && !filter_by_file(file)) {
    std::fprintf(stderr, "%s: no case is from %s\n", argv[0], file.c_str());
    return 2;
  }
  const int status = RUN_ALL_TESTS();
  if (const char* counts = std::getenv("RAMIE_TEST_COUNTS"); counts != nullptr && !name.empty())
    append_counts(counts, name);
  return status;
}
