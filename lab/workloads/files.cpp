// Experiment 6b: reads of 4 KiB from a file, in order or at random, from the page cache or past it (O_DIRECT), one or
// several under way at a time.
#include <lab/harness/error.hpp>
#include <lab/harness/session.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ramie::lab {
namespace {

constexpr std::size_t block_bytes = 4096;

[[noreturn]] void fail(const std::string& what) {
  throw lab_error{fmt::format("{}: {}", what, std::generic_category().message(errno))};
}

struct free_memory {
  void operator()(std::byte* p) const noexcept { std::free(p); }
};
/// A block where O_DIRECT may write to.
using block = std::unique_ptr<std::byte, free_memory>;
block new_block() {
  auto* p = static_cast<std::byte*>(std::aligned_alloc(block_bytes, block_bytes));
  if (p == nullptr) throw std::bad_alloc{};
  return block{p};
}

/// Each block begins with its number and ends with the number's complement.
void write_block(std::byte* to, std::uint64_t number) {
  std::memset(to, 0, block_bytes);
  std::memcpy(to, &number, sizeof number);
  number = ~number;
  std::memcpy(to + block_bytes - sizeof number, &number, sizeof number);
}
bool is_block(const std::byte* b, std::uint64_t number) {
  std::uint64_t first = 0, last = 0;
  std::memcpy(&first, b, sizeof first);
  std::memcpy(&last, b + block_bytes - sizeof last, sizeof last);
  return first == number && last == ~number;
}

/// A file without a name, in TMPDIR or else /var/tmp, which is on a disk more often than /tmp. It is on that disk and
/// in the page cache.
class test_file {
 public:
  explicit test_file(std::int64_t megabytes) : blocks_{static_cast<std::uint64_t>(megabytes) * 256} {
    const char* folder = std::getenv("TMPDIR");
    std::string name = fmt::format("{}/ramie-lab.XXXXXX", folder == nullptr ? "/var/tmp" : folder);
    fd_ = mkostemp(name.data(), O_CLOEXEC);
    if (fd_ < 0) fail(name);
    unlink(name.c_str());
    const block b = new_block();
    for (std::uint64_t i = 0; i < blocks_; ++i) {
      write_block(b.get(), i);
      if (pwrite(fd_, b.get(), block_bytes, static_cast<off_t>(i * block_bytes)) != block_bytes) fail("pwrite");
    }
    if (fsync(fd_) != 0) fail("fsync");
  }
  test_file(const test_file&) = delete;
  test_file& operator=(const test_file&) = delete;
  ~test_file() { close(fd_); }

  /// Another name of it, to open it by.
  [[nodiscard]] std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }
  [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }

  /// One for each size, for all runs of this process.
  static const test_file& of(std::int64_t megabytes) {
    static std::unique_ptr<test_file> last;
    if (last == nullptr || last->blocks_ != static_cast<std::uint64_t>(megabytes) * 256)
      last = std::make_unique<test_file>(megabytes);
    return *last;
  }

 private:
  std::uint64_t blocks_;
  int fd_ = -1;
};

/// What is read next, by the first fiber that is free.
class sequence {
 public:
  sequence(session& s, std::uint64_t blocks)
      : blocks_{blocks}, count_{s.parameter("count")}, in_order_{s.parameter("sequential") != 0} {}
  /// False: there is no more.
  bool next(std::uint64_t& number) noexcept {
    const std::int64_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= count_) return false;
    auto x = static_cast<std::uint64_t>(i);
    if (!in_order_) {  // SplitMix64 (Steele, Lea, Flood 2014)
      x = (x + 1) * 0x9E3779B97F4A7C15U;
      x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
      x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
      x ^= x >> 31;
    }
    number = x % blocks_;
    return true;
  }

 private:
  std::uint64_t blocks_;
  std::int64_t count_;
  bool in_order_;
  std::atomic<std::int64_t> next_{0};
};

/// Reads all of the sequence by `read(number, into)`, from one of the `depth` that do so at a time.
template <class Read>
std::int64_t read_all(sequence& all, Read read) {
  const block b = new_block();
  std::int64_t right = 0;
  for (std::uint64_t number = 0; all.next(number);) {
    read(number, b.get());
    if (is_block(b.get(), number)) ++right;
  }
  return right;
}

run_result result_of(session& s, double seconds, std::int64_t right) {
  const std::int64_t count = s.parameter("count");
  const double cpu_ns = s.busy_cores().value_or(0) * seconds / static_cast<double>(count) * 1e9;
  return {.seconds = seconds,
          .units = count,
          .ok = right == count,
          .figures = {{"cpu_ns_per_read", cpu_ns}, {"reads_per_second", static_cast<double>(count) / seconds}}};
}

int open_again(session& s, const test_file& f) {
  const int fd = ::open(f.path().c_str(), O_RDONLY | O_CLOEXEC | (s.parameter("direct") != 0 ? O_DIRECT : 0));
  if (fd < 0) fail("open");
  return fd;
}

void pread_block(int fd, std::uint64_t number, std::byte* into) {
  if (pread(fd, into, block_bytes, static_cast<off_t>(number * block_bytes)) != block_bytes) fail("pread");
}

run_result by_threads(session& s) {
  const test_file& f = test_file::of(s.parameter("megabytes"));
  sequence all{s, f.blocks()};
  const int fd = open_again(s, f);
  std::atomic<std::int64_t> right = 0;
  const auto one = [&] {
    right += read_all(all, [fd](std::uint64_t number, std::byte* into) { pread_block(fd, number, into); });
  };
  const double seconds = s.time([&] {
    std::vector<std::jthread> others;
    for (std::int64_t i = 1; i < s.parameter("depth"); ++i) others.emplace_back(one);
    one();
  });
  close(fd);
  return result_of(s, seconds, right);
}

/// Opens the file, and lets `depth` fibers call read(file, number, into).
template <class Read>
run_result by_readers(session& s, Read read) {
  const test_file& f = test_file::of(s.parameter("megabytes"));
  sequence all{s, f.blocks()};
  std::atomic<std::int64_t> right = 0;
  net::file file = net::file::open(f.path(), {.direct = s.parameter("direct") != 0});
  const double seconds = s.time([&] {
    ramie::scope readers;
    for (std::int64_t i = 0; i < s.parameter("depth"); ++i)
      readers.spawn(
          [&] { right += read_all(all, [&](std::uint64_t number, std::byte* into) { read(file, number, into); }); });
    readers.join();
  });
  return result_of(s, seconds, right);
}

run_result by_fibers(session& s) {
  return by_readers(s, [](net::file& f, std::uint64_t number, std::byte* into) {
    f.read_at(number * block_bytes, {into, block_bytes});
  });
}

run_result by_blocking(session& s) {
  return by_readers(s, [](net::file& f, std::uint64_t number, std::byte* into) {
    ramie::blocking([&] { pread_block(f.native_handle(), number, into); });
  });
}

}  // namespace

workload files_workload() {
  return {
      .name = "files",
      .summary = "experiment 6b: reads of 4 KiB from a file, cached or not, in order or at random",
      .unit = "read",
      .parameters = {{.name = "count", .help = "reads", .standard = 200'000, .min = 1, .max = 1'000'000'000},
                     {.name = "depth", .help = "reads under way at a time", .standard = 1, .min = 1, .max = 1024},
                     {.name = "megabytes", .help = "size of the file", .standard = 64, .min = 1, .max = 1 << 20},
                     {.name = "sequential", .help = "in order, not at random", .standard = 0, .min = 0, .max = 1},
                     {.name = "direct", .help = "past the page cache (O_DIRECT)", .standard = 0, .min = 0, .max = 1}},
      .styles =
          {
              {"pread", "pread(2) in a plain thread for each read under way", false, by_threads},
              {"fiber", "net::file, a fiber for each read under way", true, by_fibers},
              {"blocking", "pread(2) by ramie::blocking, a fiber for each read under way", true, by_blocking},
          },
      .yardstick = "",
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
