// Where the kernel is not as for TCP: reads that end early although there is more, hang-ups and errors that pass, edges
// of a call that was cut off.
#include <ramie/net/listener.hpp>
#include <ramie/net/pipe.hpp>
#include <ramie/net/select.hpp>
#include <ramie/net/testing.hpp>

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

/// Both ends of a terminal; reads of the second end at each line.
struct terminal {
  int master = -1;
  std::string name;
  terminal() {
    master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    std::array<char, 64> of_other{};
    if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0 ||
        ::ptsname_r(master, of_other.data(), of_other.size()) != 0)
      return;
    name = of_other.data();
  }
  [[nodiscard]] int open() const { return ::open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC); }
};

template <class Stream>
bool waits_in_read(Stream& from, std::chrono::milliseconds limit = 5ms) {
  try {
    std::array<std::byte, 10> some;
    with_timeout(limit, [&] { from.read_some(some); });
  } catch (const timeout_error&) {
    return true;
  }
  return false;
}

template <class Stream>
std::string some_of(Stream& from) {
  std::array<std::byte, 100> some;
  return text_of(std::span{some}.first(from.read_some(some)));
}

// ---- reads that end early -------------------------------------------------------------------------------------------

TEST(net_edges, come_once_for_all_lines_of_a_terminal) {
  with_workers([] {
    for (const bool waited : {false, true}) {
      const terminal t;
      if (t.name.empty()) GTEST_SKIP() << "no terminals here";
      auto lines = pipe_reader::adopt(t.open());
      if (waited) static_cast<void>(waits_in_read(lines));
      ASSERT_EQ(::write(t.master, "one\ntwo\nthree\n", 14), 14);
      EXPECT_EQ(some_of(lines), "one\n");
      EXPECT_EQ(some_of(lines), "two\n");
      EXPECT_EQ(some_of(lines), "three\n");
      EXPECT_TRUE(waits_in_read(lines));
      ::close(t.master);
    }
  });
}

/// Reads end where bytes come with a descriptor.
template <class Stream>
void expect_all_of_a_cut_message(unix_stream& from, Stream& to) {
  from.write_all("before");
  from.send_descriptors(std::array{from.native_handle()}, bytes_of("with"));
  from.write_all("after");
  std::string all;
  while (all.size() < 15) all += some_of(to);
  EXPECT_EQ(all, "beforewithafter");
}

TEST(net_edges, come_once_for_bytes_before_and_after_a_descriptor) {
  with_workers([] {
    for (const bool waited : {false, true}) {
      auto [a, b] = unix_stream::pair();
      if (waited) static_cast<void>(waits_in_read(b));
      expect_all_of_a_cut_message(a, b);
    }
  });
}

TEST(net_edges, come_once_for_the_packets_of_a_pipe) {
  with_workers([] {
    int both[2];
    ASSERT_EQ(::pipe2(both, O_CLOEXEC | O_NONBLOCK | O_DIRECT), 0);
    auto from = pipe_reader::adopt(both[0]);
    auto to = pipe_writer::adopt(both[1]);
    EXPECT_TRUE(waits_in_read(from));
    to.write_all("one");
    to.write_all("two");
    EXPECT_EQ(some_of(from), "one");
    EXPECT_EQ(some_of(from), "two");
  });
}

TEST(net_edges, of_a_tcp_listener_at_a_name_are_those_of_local_sockets) {
  with_workers([] {
    const endpoint at = endpoint::local("@ramie_edges_" + std::to_string(::getpid()));
    tcp_listener l{at};
    auto client = spawn([&] { return unix_stream::connect(at); });
    tcp_stream b = l.accept();
    unix_stream a = client.join();
    static_cast<void>(waits_in_read(b));
    expect_all_of_a_cut_message(a, b);
  });
}

/// What is adopted as a TCP stream may be another socket.
TEST(net_edges, of_an_adopted_socket_are_those_of_its_kind) {
  with_workers([] {
    int both[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
    auto a = unix_stream::adopt(both[0]);
    auto b = tcp_stream::adopt(both[1]);
    EXPECT_TRUE(waits_in_read(b));
    expect_all_of_a_cut_message(a, b);
  });
}

// ---- hang-ups and errors that pass ----------------------------------------------------------------------------------

TEST(net_edges, of_a_fifo_without_a_writer_pass_when_one_comes) {
  with_workers([] {
    const scratch_folder folder;
    const std::string path = folder / "fifo";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    auto from = pipe_reader::adopt(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    for (int round = 0; round < 3; ++round) {
      auto to = pipe_writer::adopt(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      // No bytes, and no end: every kind of call waits, and can be cut off.
      EXPECT_TRUE(waits_in_read(from));
      EXPECT_THROW(with_timeout(5ms, [&] { from.wait_readable(); }), timeout_error);
      EXPECT_EQ(select(on_readable(from), on_timeout(5ms)), 1u);
      to.write_all("some");
      EXPECT_EQ(some_of(from), "some");
      auto at_end = spawn([&] { return some_of(from); });
      if (round % 2 == 0) this_fiber::sleep_for(1ms);
      to.close();
      EXPECT_EQ(at_end.join(), "");
      EXPECT_EQ(some_of(from), "");
      EXPECT_EQ(select(on_readable(from), on_timeout(60s)), 0u);
    }
  });
}

TEST(net_edges, of_a_fifo_without_a_reader_pass_when_one_comes) {
  with_workers([] {
    const scratch_folder folder;
    const std::string path = folder / "fifo", much(1'000'000, 'x');
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const auto open_to_read = [&] { return ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); };
    int reader = open_to_read();
    auto to = pipe_writer::adopt(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    for (int round = 0; round < 3; ++round) {
      EXPECT_THROW(with_timeout(5ms, [&] { to.write_all(much); }), timeout_error);  // it is full
      EXPECT_THROW(with_timeout(5ms, [&] { to.wait_writable(); }), timeout_error);
      EXPECT_EQ(select(on_writable(to), on_timeout(5ms)), 1u);
      ::close(reader);
      EXPECT_EQ(code_of([&] { to.write_all(much); }), (std::error_code{EPIPE, std::system_category()}));
      reader = open_to_read();
    }
    ::close(reader);
  });
}

TEST(net_edges, of_a_terminal_that_nobody_has_pass_when_it_is_opened) {
  with_workers([] {
    const terminal t;
    if (t.name.empty()) GTEST_SKIP() << "no terminals here";
    auto from = pipe_reader::adopt(t.master);
    for (int round = 0; round < 3; ++round) {
      const int slave = t.open();
      EXPECT_TRUE(waits_in_read(from));
      EXPECT_EQ(select(on_readable(from), on_timeout(5ms)), 1u);
      ASSERT_EQ(::write(slave, "x", 1), 1);
      EXPECT_EQ(some_of(from), "x");
      auto at_end = spawn([&] { return code_of([&] { some_of(from); }); });
      if (round % 2 == 0) this_fiber::sleep_for(1ms);
      ::close(slave);
      EXPECT_EQ(at_end.join(), (std::error_code{EIO, std::system_category()}));
    }
  });
}

/// The kernel reports what is in a socket's queue of errors, which no read takes.
TEST(net_edges, of_the_queue_of_errors_do_not_end_a_stream) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    const int on = 1;
    if (::setsockopt(a.native_handle(), SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0)
      GTEST_SKIP() << "a kernel without SO_ZEROCOPY";
    EXPECT_TRUE(waits_in_read(a));
    if (::send(a.native_handle(), "some", 4, MSG_ZEROCOPY) != 4) GTEST_SKIP() << "no memory may be locked";
    EXPECT_EQ(some_of(b), "some");
    pollfd entry{a.native_handle(), 0, 0};
    while (::poll(&entry, 1, 0) == 0) this_fiber::sleep_for(1ms);
    EXPECT_TRUE(waits_in_read(a, 20ms));
    b.write_all("answer");
    EXPECT_EQ(some_of(a), "answer");
    b.close();
    EXPECT_EQ(some_of(a), "");
  });
}

// ---- calls that are cut off -----------------------------------------------------------------------------------------

/// The edge that told of a connection has been used up by then.
TEST(net_edges, of_an_accept_cut_off_in_a_shortage_are_those_of_the_next) {
  with_workers_in_a_shortage([] {
    tcp_listener l{{"127.0.0.1", 0}};
    const auto cut_off = [&](auto when) {
      auto accepting = spawn([&] { static_cast<void>(l.accept()); });
      when();
      accepting.request_stop();
      EXPECT_THROW(accepting.join(), cancelled);
    };
    // First without a shortage: it is watched then, and UBSan needs descriptors when it meets a type for the first
    // time.
    cut_off([] { this_fiber::sleep_for(1ms); });
    tcp_stream connected = spawn([at = l.local()] { return tcp_stream::connect(at); }).join();
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{3, before.rlim_max};  // 0, 1 and 2 are taken, whatever the monitor opens and closes
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    cut_off([&] {
      while (l.pauses() == 0) this_fiber::sleep_for(1ms);
    });
    ::setrlimit(RLIMIT_NOFILE, &before);
    with_timeout(60s, [&] { static_cast<void>(l.accept()); });
  });
}

}  // namespace
}  // namespace ramie::net
