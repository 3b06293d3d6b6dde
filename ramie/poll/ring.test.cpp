// Files by io_uring, and what happens where the kernel refuses it.
#include <ramie/poll/ring.hpp>

#include <ramie/base/testing.hpp>
#include <ramie/net/testing.hpp>
#include <ramie/poll/poller.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;
using ramie::detail::file_facts;

constexpr std::size_t block = 4096;

struct freed {
  void operator()(std::byte* p) const noexcept { std::free(p); }
};
using aligned_bytes = std::unique_ptr<std::byte[], freed>;
aligned_bytes aligned(std::size_t size) {
  return aligned_bytes{static_cast<std::byte*>(std::aligned_alloc(block, size))};
}

class temporary_folder {
 public:
  temporary_folder() {
    std::string name = std::filesystem::temp_directory_path() / "ramie_ring.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    at_ = name;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() { std::filesystem::remove_all(at_); }
  [[nodiscard]] std::string path(const std::string& name) const { return at_ / name; }

 private:
  std::filesystem::path at_;
};

/// Writes `blocks` blocks, each byte of which depends on its place.
void fill(const std::string& path, std::size_t blocks) {
  std::vector<std::byte> all(blocks * block);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = byte_at(i);
  file f = file::create(path);
  f.write_at(0, all);
  f.sync();
}

std::size_t wrong_in(std::span<const std::byte> bytes, std::uint64_t from) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) wrong += bytes[i] != byte_at(from + i) ? 1 : 0;
  return wrong;
}

/// Empty where the file system has no direct reads.
std::optional<file> open_direct(const std::string& path) {
  try {
    return file::open(path, {.direct = true});
  } catch (const io_error& e) {
    if (e.code().value() != EINVAL) throw;
    return std::nullopt;
  }
}

/// `fibers` of them read blocks that are not cached, each checks what it gets.
void read_at_random(const std::string& path, std::size_t blocks, int fibers, int reads) {
  std::optional<file> direct = open_direct(path);
  file cached = file::open(path);
  scope all;
  for (int i = 0; i < fibers; ++i)
    all.spawn([&, i] {
      const aligned_bytes into = aligned(block);
      std::uint64_t state = static_cast<std::uint64_t>(i);
      for (int n = 0; n < reads; ++n) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const std::uint64_t at = (state >> 33) % blocks * block;
        if (!direct) ::posix_fadvise(cached.native_handle(), static_cast<off_t>(at), block, POSIX_FADV_DONTNEED);
        file& from = direct ? *direct : cached;
        ASSERT_EQ(from.read_at(at, {into.get(), block}), block);
        ASSERT_EQ(wrong_in({into.get(), block}, at), 0u);
      }
    });
  all.join();
}

std::string dumped() {
  std::string name = std::filesystem::temp_directory_path() / "ramie_dump.XXXXXX";
  const int fd = ::mkstemp(name.data());
  dump(fd);
  std::string text(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(::pread(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  ::close(fd);
  std::filesystem::remove(name);
  return text;
}

TEST(net_ring, reads_what_is_not_cached_and_says_how) {
  with_workers([] {
    const temporary_folder folder;
    fill(folder.path("blocks"), 256);
    read_at_random(folder.path("blocks"), 256, 8, 50);
    const std::string text = dumped();
    const bool refused = detail::poller_here().ring_for_files() == nullptr;
    EXPECT_NE(text.find(refused ? "files by helper threads, for io_uring was refused: " : "files by io_uring"),
              std::string::npos)
        << text;
  });
}

/// More at once than the completion queue has places: the rest is done by helper threads.
TEST(net_ring, has_a_bound) {
  with_workers([] {
    const temporary_folder folder;
    fill(folder.path("blocks"), 256);
    read_at_random(folder.path("blocks"), 256, RAMIE_TSAN ? 200 : 400, 5);
  });
}

TEST(net_ring, writes_and_syncs_past_the_cache) {
  with_workers([] {
    const temporary_folder folder;
    file f;
    try {
      f = file::open(folder.path("direct"), {.write = true, .create = true, .direct = true});
    } catch (const io_error& e) {
      if (e.code().value() == EINVAL) GTEST_SKIP() << "no direct writes in this file system";
      throw;
    }
    constexpr std::size_t size = 64 * block;
    const aligned_bytes all = aligned(size);
    for (std::size_t i = 0; i < size; ++i) all[i] = byte_at(i);
    std::size_t written = 0;
    f.write_at(0, {all.get(), size}, &written);
    EXPECT_EQ(written, size);
    f.sync();
    f.sync(true);
    const aligned_bytes back = aligned(size);
    EXPECT_EQ(f.read_at(0, {back.get(), size}), size);
    EXPECT_EQ(wrong_in({back.get(), size}, 0), 0u);
    EXPECT_EQ(f.read_at(size, {back.get(), block}), 0u);  // the end
    // What is not aligned: the kernel refuses it, but for file systems in memory.
    std::size_t there = 0;
    const int code = code_of([&] { there = f.read_at(1, {back.get() + 1, 7}); }).value();
    if (code != EINVAL) {
      EXPECT_EQ(code, 0);
      EXPECT_EQ(there, 7u);
      EXPECT_EQ(wrong_in({back.get() + 1, 7}, 1), 0u);
    }
  });
}

/// A read that is under way is waited for, and its buffer is not touched afterwards; one that has not begun is not
/// made.
TEST(net_ring, is_not_interrupted_once_the_kernel_has_the_buffer) {
  with_workers([] {
    const temporary_folder folder;
    fill(folder.path("blocks"), 256);
    const std::string name = folder.path("blocks");
    for (int i = 0; i < 100; ++i) {
      const aligned_bytes into = aligned(16 * block);
      auto reader = spawn([&] {
        std::optional<file> direct = open_direct(name);
        file f = direct ? std::move(*direct) : file::open(name);
        if (!direct) ::posix_fadvise(f.native_handle(), 0, 0, POSIX_FADV_DONTNEED);
        return f.read_at(0, {into.get(), 16 * block});
      });
      if (i % 2 == 0) this_fiber::sleep_for(std::chrono::microseconds{10 * i});
      reader.request_stop();
      try {
        EXPECT_EQ(reader.join(), 16 * block);
        EXPECT_EQ(wrong_in({into.get(), 16 * block}, 0), 0u);
      } catch (const cancelled&) {
      }
      std::memset(into.get(), 7, 16 * block);
      this_fiber::yield();
      for (std::size_t k = 0; k < 16 * block; ++k) ASSERT_EQ(into[k], std::byte{7}) << "written later";
    }
  });
}

TEST(net_ring, with_reads_under_way_is_no_deadlock_and_outlives_a_fork) {
  runtime rt{{.workers = 2, .name = "ring"}};
  rt.run([] {
    const temporary_folder folder;
    fill(folder.path("blocks"), 64);
    read_at_random(folder.path("blocks"), 64, 4, 20);
    const pid_t child = ::fork();
    if (child == 0) ::_exit(3);  // its parent's ring is not mapped there, and closed by exec
    int status = 0;
    ASSERT_EQ(blocking([&] { return ::waitpid(child, &status, 0); }), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    read_at_random(folder.path("blocks"), 64, 4, 20);
  });
}

// ---- refusals ------------------------------------------------------------------------------------------------------

#if RAMIE_CAN_REFUSE_CALLS
void read_with_refusal(int code, const char* message) {
  if (code != 0) refuse_calls(SYS_io_uring_setup, code);
  runtime rt{{.workers = 2}};
  bool right = false;
  rt.run([&] {
    const temporary_folder folder;
    fill(folder.path("blocks"), 64);
    read_at_random(folder.path("blocks"), 64, 8, 20);
    const std::string text = dumped();
    right = text.find(message) != std::string::npos;
    if (!right) std::fprintf(stderr, "%s\n", text.c_str());
  });
  ::_exit(right && !::testing::Test::HasFailure() ? 7 : 8);
}

TEST(net_ring, that_is_refused_is_replaced_by_helper_threads) {
  if (ramie::detail::testing::emulated()) GTEST_SKIP() << "an emulator makes the calls itself";
  GTEST_FLAG_SET(death_test_style, ramie::detail::testing::death_test_style());
  for (const int code : {EPERM, ENOSYS, ENOMEM, EINVAL}) {
    const std::string text =
        std::string{"files by helper threads, for io_uring was refused: "} + ::strerrordesc_np(code);
    EXPECT_EXIT(read_with_refusal(code, text.c_str()), ::testing::ExitedWithCode(7), "");
  }
}

void read_without_locked_memory() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_MEMLOCK, &none);
  read_with_refusal(0, "files by ");  // either way, as the kernel counts it
}
TEST(net_ring, works_or_is_replaced_where_no_memory_may_be_locked) {
  GTEST_FLAG_SET(death_test_style, ramie::detail::testing::death_test_style());
  EXPECT_EXIT(read_without_locked_memory(), ::testing::ExitedWithCode(7), "");
}

void wait_without_epoll() {
  refuse_calls(SYS_epoll_create1, EPERM);
  runtime rt{{.workers = 2}};
  std::string message;
  rt.run([&] {
    auto [a, b] = unix_stream::pair();
    try {
      std::array<std::byte, 1> one;
      b.read_some(one);
    } catch (const io_error& e) {
      message = e.what();
    }
    const temporary_folder folder;  // files do without
    fill(folder.path("blocks"), 4);
    read_at_random(folder.path("blocks"), 4, 2, 2);
  });
  std::fprintf(stderr, "%s\n", message.c_str());
  ::_exit(::testing::Test::HasFailure() ? 8 : 7);
}
TEST(net_events, without_epoll_are_a_clear_error) {
  if (ramie::detail::testing::emulated()) GTEST_SKIP() << "an emulator makes the calls itself";
  GTEST_FLAG_SET(death_test_style, ramie::detail::testing::death_test_style());
  EXPECT_EXIT(wait_without_epoll(), ::testing::ExitedWithCode(7),
              "cannot wait for input or output: epoll_create1 .*: Operation not permitted");
}
#endif

}  // namespace
}  // namespace ramie::net
