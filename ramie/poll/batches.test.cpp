// A program of its own: it counts how often fibers that read files enter the kernel, and lets that fail.
#include <ramie/poll/testing.hpp>

#include <ramie/net/testing.hpp>
#include <ramie/poll/poller.hpp>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace ramie::net {
namespace {

constexpr std::size_t block = 4096, blocks = 64;

struct freed {
  void operator()(std::byte* p) const noexcept { std::free(p); }
};
using aligned_bytes = std::unique_ptr<std::byte[], freed>;
aligned_bytes one_block() { return aligned_bytes{static_cast<std::byte*>(std::aligned_alloc(block, block))}; }

/// A file each byte of which depends on its place, to be read past the cache.
class direct_file {
 public:
  direct_file() {
    std::string name = std::filesystem::temp_directory_path() / "ramie_batches.XXXXXX";
    const int fd = ::mkstemp(name.data());
    ::close(fd);
    name_ = name;
    std::vector<std::byte> all(blocks * block);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = byte_at(i);
    write_file(name_, text_of(all));
    try {
      file_ = file::open(name_, {.direct = true});
      works_ = detail::poller_here().ring_for_files() != nullptr;
    } catch (const io_error&) {
    }
  }
  direct_file(const direct_file&) = delete;
  direct_file& operator=(const direct_file&) = delete;
  ~direct_file() { std::filesystem::remove(name_); }

  /// False: no direct reads in this file system, or no ring.
  [[nodiscard]] bool works() const noexcept { return works_; }
  void read_and_check(std::size_t number) {
    const aligned_bytes into = one_block();
    const std::uint64_t at = number % blocks * block;
    ASSERT_EQ(file_.read_at(at, {into.get(), block}), block);
    for (std::size_t i = 0; i < block; ++i) ASSERT_EQ(into[i], byte_at(at + i)) << "block " << number % blocks;
  }
  /// `fibers` of them at once.
  void read_in(std::size_t fibers, std::size_t reads) {
    scope all;
    for (std::size_t i = 0; i < fibers; ++i)
      all.spawn([this, i, reads] {
        for (std::size_t n = 0; n < reads; ++n) read_and_check(7 * i + n);
      });
    all.join();
  }

 private:
  std::string name_;
  file file_;
  bool works_ = false;
};

/// Counts calls, or lets one of them fail, as long as it lives.
class watched_calls {
 public:
  explicit watched_calls(faults::mode m) {
    for (auto& n : faults::made) n.store(0);
    faults::now.store(m, std::memory_order_release);
  }
  watched_calls(const watched_calls&) = delete;
  watched_calls& operator=(const watched_calls&) = delete;
  ~watched_calls() { faults::now.store(faults::mode::off, std::memory_order_release); }
  [[nodiscard]] int entered() const noexcept {
    return faults::made[static_cast<std::size_t>(faults::call_id::io_uring_enter)].load();
  }
};

/// Each leaves its read to the next fiber, as long as there is one: the last hands all of them to the kernel.
TEST(net_ring_batches, go_to_the_kernel_together) {
  runtime rt{{.workers = 1, .name = "ring", .spare_workers = 0}};
  rt.run([&] {
    direct_file f;
    if (!f.works()) GTEST_SKIP() << "no direct reads, or no ring";
    const watched_calls calls{faults::mode::count};
    const std::uint64_t polls = rt.statistics().io_polls;
    f.read_in(64, 1);
    EXPECT_GE(calls.entered(), 1);
    // One, but for polls meanwhile: on a slow machine there are many.
    EXPECT_LE(static_cast<std::uint64_t>(calls.entered()), 1 + rt.statistics().io_polls - polls);
  });
}

/// A read that was left to the next fiber is handed over although that one computes.
TEST(net_ring_batches, do_not_wait_for_a_fiber_that_computes) {
  runtime rt{{.workers = 1, .name = "ring", .spare_workers = 0}};
  rt.run([] {
    direct_file f;
    if (!f.works()) GTEST_SKIP() << "no direct reads, or no ring";
    const watched_calls calls{faults::mode::count};
    std::atomic<bool> reads{false};
    auto computer = spawn([&] {
      while (!reads.load()) this_fiber::yield();
      while (calls.entered() == 0) {
      }
    });
    auto reader = spawn([&] {
      reads.store(true);
      f.read_and_check(0);
    });
    computer.join();
    reader.join();
  });
}

/// What the kernel does not take is read by helper threads.
TEST(net_ring_batches, that_the_kernel_refuses_are_read_otherwise) {
  runtime rt{{.workers = 2, .name = "ring"}};
  rt.run([] {
    direct_file f;
    if (!f.works()) GTEST_SKIP() << "no direct reads, or no ring";
    for (const int code : {EAGAIN, EBUSY, EINTR})
      for (const int number : {0, 1, 3}) {
        faults::victim.store(faults::call_id::io_uring_enter);
        faults::victim_code.store(code);
        faults::victim_number.store(number);
        const watched_calls calls{faults::mode::one_fails};
        f.read_in(8, 8);
        EXPECT_GT(calls.entered(), number);
      }
  });
}

}  // namespace
}  // namespace ramie::net
