#include <ramie/net/testing.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <limits>
#include <optional>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

class net_file : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "ramie_file.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder / name; }
  /// Bytes that depend on their place.
  static std::vector<std::byte> pattern(std::size_t size, std::uint64_t from = 0) {
    std::vector<std::byte> all(size);
    for (std::size_t i = 0; i < size; ++i) all[i] = byte_at(from + i);
    return all;
  }

  std::filesystem::path folder;
};

TEST_F(net_file, reads_what_was_written) {
  with_workers([&] {
    file f = file::create(path("a"));
    f.write_at(0, bytes_of("hello"));
    f.write_at(7, bytes_of("world"));
    EXPECT_EQ(f.size(), 12u);
    std::array<std::byte, 100> into;
    ASSERT_EQ(f.read_at(0, into), 12u);
    EXPECT_EQ(text_of(std::span{into}.first(12)), std::string("hello\0\0world", 12));
    EXPECT_EQ(f.read_at(10, into), 2u);
    EXPECT_EQ(f.read_at(12, into), 0u);
    EXPECT_EQ(f.read_at(1'000'000, into), 0u);
    EXPECT_EQ(f.read_at(0, {}), 0u);
    f.resize(5);
    EXPECT_EQ(f.read_at(0, into), 5u);
    f.sync();
    f.sync(true);
  });
}

TEST_F(net_file, reads_what_is_not_cached) {
  const auto all = pattern(3'000'000);
  with_workers([&] {
    file f = file::create(path("large"));
    f.write_at(0, all);
    f.sync(true);
    ASSERT_EQ(::posix_fadvise(f.native_handle(), 0, 0, POSIX_FADV_DONTNEED), 0);
    std::vector<std::byte> into(all.size() + 1);
    EXPECT_EQ(f.read_at(0, into), all.size());
    into.pop_back();
    EXPECT_TRUE(into == all);
  });
}

TEST_F(net_file, is_replaced_with_its_permissions_and_leaves_nothing_beside) {
  with_workers([] {
    const scratch_folder own;
    const std::string path = own / "secret";
    write_file(path, "old", 0600);
    write_file(path, "new");
    struct stat now{};
    ASSERT_EQ(::stat(path.c_str(), &now), 0);
    EXPECT_EQ(now.st_mode & 07777u, 0600u);
    ASSERT_EQ(::chmod(path.c_str(), 06755), 0);
    write_file(path, "new");
    ASSERT_EQ(::stat(path.c_str(), &now), 0);
    EXPECT_EQ(now.st_mode & 07777u, 0755u);
    EXPECT_EQ(read_file(path), "new");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{own.path()}, {}), 1);
    using namespace std::string_literals;
    EXPECT_THROW(write_file(path + "\0x"s, ""), invalid_argument);
    EXPECT_THROW(static_cast<void>(read_file(path + "\0x"s)), invalid_argument);
  });
}

TEST_F(net_file, is_copied_behind_what_another_has) {
  with_workers([] {
    const scratch_folder own;
    write_file(own / "log", "old ");
    write_file(own / "more", "newer");
    file more = file::open(own / "more");
    file log = file::open(own / "log", {.write = true, .append = true});
    std::uint64_t copied = 0;
    EXPECT_EQ(log.copy_from(more, 0, 0, 3, &copied), 3u);
    EXPECT_EQ(copied, 3u);
    EXPECT_EQ(read_file(own / "log"), "old new");
    more.close();
    EXPECT_EQ(code_of([&] { log.copy_from(more, 0, 0, 3, &copied); }), io_errc::closed);
    EXPECT_EQ(copied, 0u);
  });
}

TEST_F(net_file, is_shared_by_fibers) {
  with_workers([&] {
    file f = file::create(path("shared"));
    constexpr std::size_t part = 4096 + 17, parts = 64;
    scope s;
    for (std::size_t i = 0; i < parts; ++i) s.spawn([&, i] { f.write_at(i * part, pattern(part, i * part)); });
    s.join();
    for (std::size_t i = 0; i < parts; ++i)
      s.spawn([&, i] {
        std::vector<std::byte> into(part);
        EXPECT_EQ(f.read_at(i * part, into), part);
        EXPECT_TRUE(into == pattern(part, i * part)) << i;
      });
    s.join();
    EXPECT_EQ(f.size(), part * parts);
  });
}

TEST_F(net_file, says_which_file_and_why) {
  with_workers([&] {
    const std::string missing = path("missing");
    try {
      static_cast<void>(file::open(missing));
      FAIL();
    } catch (const io_error& e) {
      EXPECT_EQ(e.code(), std::errc::no_such_file_or_directory);
      EXPECT_NE(std::string{e.what()}.find("open \"" + missing + "\""), std::string::npos) << e.what();
    }
    file directory = file::open(folder);
    std::array<std::byte, 10> into;
    EXPECT_EQ(code_of([&] { directory.read_at(0, into); }), std::errc::is_a_directory);
    file full = file::open("/dev/full", {.write = true});
    try {
      std::size_t written = 99;
      full.write_at(0, bytes_of("x"), &written);
      FAIL();
    } catch (const io_error& e) {
      EXPECT_EQ(e.code(), std::errc::no_space_on_device);
      EXPECT_NE(std::string{e.what()}.find("after 0 of 1 bytes"), std::string::npos) << e.what();
    }
    file reading = file::open("/dev/null");
    EXPECT_EQ(code_of([&] { reading.write_at(0, bytes_of("x")); }), std::errc::bad_file_descriptor);
    EXPECT_THROW(reading.read_at(std::numeric_limits<std::uint64_t>::max(), into), invalid_argument);
  });
}

TEST_F(net_file, refuses_options_that_contradict_each_other) {
  with_workers([&] {
    for (const file_options& o :
         {file_options{.create = true}, file_options{.truncate = true}, file_options{.append = true},
          file_options{.write = true, .exclusive = true}, file_options{.read = false}})
      EXPECT_THROW(static_cast<void>(file::open(path("never"), o)), invalid_argument);
    EXPECT_FALSE(std::filesystem::exists(path("never")));
    const file_options fresh{.write = true, .create = true, .exclusive = true, .permissions = 0600};
    EXPECT_EQ(code_of([&] { static_cast<void>(file::open(path("fresh"), fresh)); }), std::error_code{});
    EXPECT_EQ(code_of([&] { static_cast<void>(file::open(path("fresh"), fresh)); }), std::errc::file_exists);
    EXPECT_EQ(std::filesystem::status(path("fresh")).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    std::filesystem::remove(path("fresh"));
  });
}

TEST_F(net_file, appends) {
  with_workers([&] {
    std::filesystem::remove(path("log"));
    file log = file::open(path("log"), {.write = true, .create = true, .append = true});
    scope s;
    for (int i = 0; i < 50; ++i) s.spawn([&] { log.write_at(0, bytes_of("a line\n")); });
    s.join();
    std::string lines;
    for (int i = 0; i < 50; ++i) lines += "a line\n";
    EXPECT_EQ(read_file(path("log")), lines);
  });
}

/// While it lives, files of this process have `most` bytes at most.
class size_limit {
 public:
  explicit size_limit(rlim_t most) : handler_{std::signal(SIGXFSZ, SIG_IGN)} {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit few{most, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &few);
  }
  size_limit(const size_limit&) = delete;
  size_limit& operator=(const size_limit&) = delete;
  ~size_limit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(net_file, ends_at_the_limit_of_sizes) {
  with_workers([&] {
    file f = file::create(path("limited"));
    std::size_t written = 0;
    const std::error_code code = [&] {
      const size_limit few{1000};
      return code_of([&] { f.write_at(0, pattern(3000), &written); });
    }();
    EXPECT_EQ(code, std::errc::file_too_large);
    EXPECT_EQ(written, 1000u) << "nothing that was written may be forgotten";
    EXPECT_EQ(f.size(), 1000u);
  });
}

TEST_F(net_file, is_closed_while_fibers_use_it) {
  with_workers([&] {
    file f = file::create(path("closed"));
    f.write_at(0, pattern(100'000));
    std::array<int, 8> ends{};
    scope s;
    for (int& end : ends)
      s.spawn([&] {
        std::vector<std::byte> into(100'000);
        const auto all = pattern(100'000);
        try {
          for (;;) {
            ASSERT_EQ(f.read_at(0, into), into.size());
            ASSERT_TRUE(into == all);
            this_fiber::yield();
          }
        } catch (const io_error& e) {
          end = e.code() == io_errc::closed ? 1 : 2;
        }
      });
    for (int i = 0; i < 100; ++i) this_fiber::yield();
    f.close();
    s.join();
    for (const int end : ends) EXPECT_EQ(end, 1);
    EXPECT_EQ(code_of([&] { f.sync(); }), io_errc::closed);
    EXPECT_EQ(code_of([] { file{}.sync(); }), io_errc::closed);
  });
}

TEST_F(net_file, keeps_what_a_cancelled_fiber_has_written) {
  with_workers([&] {
    file f = file::create(path("cancelled"));
    std::size_t rounds = 0;
    auto writer = spawn([&] {
      for (;; ++rounds) {
        f.write_at(rounds * 1000, pattern(1000, rounds * 1000));
        f.sync();
      }
    });
    while (f.size() < 5000) this_fiber::yield();
    writer.request_stop();
    EXPECT_THROW(writer.join(), cancelled);
    const std::uint64_t size = f.size();
    EXPECT_EQ(size % 1000, 0u);
    EXPECT_GE(size, rounds * 1000);
    std::vector<std::byte> into(size);
    EXPECT_EQ(f.read_at(0, into), size);
    EXPECT_TRUE(into == pattern(size));
  });
}

TEST_F(net_file, copies) {
  const auto all = pattern(1'000'000);
  with_workers([&] {
    file from = file::create(path("from"));
    from.write_at(0, all);
    file to = file::create(path("to"));
    EXPECT_EQ(to.copy_from(from, 1000, 10, 500'000), 500'000u);
    EXPECT_EQ(to.size(), 500'010u);
    std::vector<std::byte> into(500'000);
    EXPECT_EQ(to.read_at(10, into), into.size());
    EXPECT_TRUE(into == pattern(500'000, 1000));
    EXPECT_EQ(to.copy_from(from, 999'990, 0, 1'000'000), 10u) << "the source ends";
    // From a file system that is made up: through memory.
    file version = file::open("/proc/version");
    EXPECT_GT(to.copy_from(version, 0, 0, 5), 0u);
  });
}

TEST_F(net_file, is_read_and_written_whole) {
  with_workers([&] {
    for (const std::size_t size : {0u, 1u, 65'536u, 300'000u}) {
      const auto bytes = pattern(size);
      const std::string content = text_of(bytes);
      write_file(path("whole"), content);
      EXPECT_EQ(read_file(path("whole")), content);
      EXPECT_EQ(read_file(path("whole"), size), content);
      if (size == 0) continue;
      EXPECT_EQ(code_of([&] { static_cast<void>(read_file(path("whole"), size - 1)); }), io_errc::too_long);
    }
    EXPECT_NE(read_file("/proc/self/status").find("Threads:"), std::string::npos);
    EXPECT_EQ(code_of([&] { write_file(path("no/folder"), "x"); }), std::errc::no_such_file_or_directory);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{folder}, {}), 1) << "no other file is left behind";
  });
}

TEST_F(net_file, is_sent_to_sockets_and_pipes) {
  const auto all = pattern(1'000'000);
  with_workers([&] {
    file f = file::create(path("sent"));
    f.write_at(0, all);
    f.sync();
    for (const bool cached : {true, false}) {
      if (!cached) ::posix_fadvise(f.native_handle(), 0, 0, POSIX_FADV_DONTNEED);
      auto [a, b] = tcp_pair();
      auto reader = spawn([&b] { return read_all(b); });
      EXPECT_EQ(f.send_to(a, 1000, 2'000'000), all.size() - 1000);  // to its end
      a.shutdown_write();
      EXPECT_EQ(reader.join(), text_of(std::span{all}.subspan(1000)));
      auto [r, w] = make_pipe();
      auto other = spawn([&r] { return read_all(r); });
      EXPECT_EQ(f.send_to(w, 0, 300'000), 300'000u);
      w.close();
      EXPECT_EQ(other.join(), text_of(std::span{all}.first(300'000)));
    }
    auto [a, b] = unix_stream::pair();
    std::uint64_t written = 1;
    EXPECT_THROW(with_timeout(5ms, [&] { return f.send_to(a, 0, all.size(), &written); }), timeout_error);
    EXPECT_GT(written, 0u);  // as much as the buffers hold
    EXPECT_LT(written, all.size());
    a.shutdown_write();
    EXPECT_EQ(read_all(b), text_of(std::span{all}.first(written)));
    auto [c, d] = unix_stream::pair();
    d.close();
    EXPECT_EQ(code_of([&] { f.send_to(c, 0, 10); }).value(), EPIPE);
  });
}

/// Whatever it is: read once more, and not made non-blocking for others.
TEST_F(net_file, standard_input_is_read) {
  const int kept = ::dup(0);
  int both[2];
  ASSERT_EQ(::pipe(both), 0);
  ASSERT_EQ(::dup2(both[0], 0), 0);
  with_workers([&] {
    pipe_reader in = standard_input();
    auto reader = spawn([&] {
      std::array<std::byte, 5> five;
      EXPECT_TRUE(in.read_exactly(five));
      return text_of(five);
    });
    this_fiber::yield();
    ASSERT_EQ(::write(both[1], "lines", 5), 5);
    EXPECT_EQ(reader.join(), "lines");
    EXPECT_EQ(::fcntl(0, F_GETFL) & O_NONBLOCK, 0);
  });
  ::dup2(kept, 0);
  for (const int fd : {kept, both[0], both[1]}) ::close(fd);
}

TEST_F(net_file, is_a_stream_for_a_cursor) {
  with_workers([&] {
    file f = file::create(path("lines"));
    file_cursor out{f};
    out.write_all("first\n");
    {
      buffered_writer buffered{out};
      for (int i = 0; i < 10'000; ++i) buffered.write(std::to_string(i) + "\n");
      buffered.flush();
    }
    EXPECT_EQ(out.position(), f.size());
    file_cursor in{f};
    buffered_reader lines{in};
    EXPECT_EQ(lines.read_line(), "first");
    for (int i = 0; i < 10'000; ++i) ASSERT_EQ(lines.read_line(), std::to_string(i));
    EXPECT_EQ(lines.read_line(), std::nullopt);

    file other = file::create(path("other"));
    file_cursor from{f, 6}, to{other};
    EXPECT_EQ(copy(from, to), f.size() - 6);
    EXPECT_EQ(read_file(path("other")), read_file(path("lines")).substr(6));
    from.move_to(1);
    std::array<std::byte, 4> some;
    EXPECT_EQ(from.read_some(some), 4u);
    EXPECT_EQ(text_of(some), "irst");
    EXPECT_EQ(from.position(), 5u);
    from.move_to(f.size());
    EXPECT_EQ(from.read_some(some), 0u);
  });
}

TEST_F(net_file, moves_a_cursor_behind_what_it_has_taken) {
  with_workers([&] {
    file f = file::create(path("limited"));
    file_cursor out{f, 10};
    std::size_t written = 0;
    const std::error_code code = [&] {
      const size_limit few{1000};
      return code_of([&] { out.write_all(pattern(3000), &written); });
    }();
    EXPECT_EQ(code, std::errc::file_too_large);
    EXPECT_EQ(written, 990u);
    EXPECT_EQ(out.position(), 1000u);
  });
}

TEST_F(net_file, of_a_plain_thread) {
  write_file(path("plain"), "text");
  EXPECT_EQ(read_file(path("plain")), "text");
}

}  // namespace
}  // namespace ramie::net
