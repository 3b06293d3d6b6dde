// The main function of all test programs. A program has the cases of a whole floor; ctest runs those of one source at a
// time:
//
//   test_stack --file=ramie/stack/pool.test.cpp        the cases of this source; --gtest_filter is applied to them
//   test_stack --name=stack.pool                       what RAMIE_TEST_COUNTS calls this run
//
// If the environment variable RAMIE_TEST_COUNTS names a file, a run that completes appends a line to it: its name, and
// how many cases passed, failed and were skipped. Before it there is a line for each case that failed: the run's name,
// "failed", the case, and "alone" if until its end the process had started neither a thread nor another process. Then
// no slowness of the machine explains the failure (scripts/verdict.py).
#include <fcntl.h>
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

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

/// In one piece, because programs run at the same time.
void append_to(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0 || ::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::perror(path);
  if (file >= 0) ::close(file);
}

/// Has the process started neither a thread nor (as far as it has waited for them) another process?
bool is_alone() {
#if __has_include(<sys/single_threaded.h>)
  rusage children{};
  ::getrusage(RUSAGE_CHILDREN, &children);
  return __libc_single_threaded != 0 && children.ru_maxrss == 0;
#else
  return false;
#endif
}

/// Collects the lines about the cases that failed.
class failures : public testing::EmptyTestEventListener {
 public:
  explicit failures(std::string name) : name_(std::move(name)) {}

  void OnTestEnd(const testing::TestInfo& info) override {
    if (!info.result()->Failed()) return;
    lines_ += name_ + " failed " + info.test_suite_name() + "." + info.name() + (is_alone() ? " alone\n" : " beside\n");
  }

  [[nodiscard]] std::string report() const {
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    return lines_ + name_ + " " + std::to_string(all.successful_test_count()) + " " +
           std::to_string(all.failed_test_count()) + " " + std::to_string(all.skipped_test_count()) + "\n";
  }

 private:
  std::string name_;
  std::string lines_;
};

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
  failures* const seen = new failures{name};
  testing::UnitTest::GetInstance()->listeners().Append(seen);  // and owned there
  const int status = RUN_ALL_TESTS();
  if (const char* counts = std::getenv("RAMIE_TEST_COUNTS"); counts != nullptr && !name.empty())
    append_to(counts, seen->report());
  return status;
}
