// Streams: what goes in comes out, ends are told apart from failures, and waits end as other waits do.
#include <ramie/net/stream.hpp>

#include <ramie/net/testing.hpp>

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

/// Sends `n` bytes in pieces of random sizes, and checks each at the other end.
void send_through(stream& from, stream& to, std::uint64_t n) {
  auto writer = spawn([&] {
    std::vector<std::byte> piece;
    std::uint64_t state = n;
    for (std::uint64_t done = 0; done < n;) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      piece.resize(std::min<std::uint64_t>(n - done, 1 + (state >> 48)));
      for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = byte_at(done + i);
      from.write_all(piece);
      done += piece.size();
    }
  });
  std::vector<std::byte> piece(5000);
  std::uint64_t wrong = 0;
  for (std::uint64_t done = 0; done < n;) {
    const std::size_t got = to.read_some(std::span{piece}.first(std::min<std::uint64_t>(n - done, 1 + done % 5000)));
    ASSERT_NE(got, 0u) << "ended after " << done;
    for (std::size_t i = 0; i < got; ++i) wrong += piece[i] != byte_at(done + i) ? 1 : 0;
    done += got;
  }
  EXPECT_EQ(wrong, 0u);
  writer.join();
}

TEST(net_streams, carry_every_byte_once_and_in_order) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    send_through(a, b, 3'000'000);
    send_through(b, a, 1'000'000);
    auto [c, d] = unix_stream::pair();
    send_through(c, d, 3'000'000);
    auto [r, w] = make_pipe();
    send_through(w, r, 1'000'000);
  });
}

TEST(net_streams, carry_every_byte_through_the_least_of_buffers) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    const int least = 1;
    ASSERT_EQ(::setsockopt(a.native_handle(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
    send_through(a, b, 200'000);
  });
}

TEST(net_streams, read_and_write_at_the_same_time) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    scope s;
    s.spawn([&a, &b] { send_through(a, b, 500'000); });
    s.spawn([&a, &b] { send_through(b, a, 500'000); });
    s.join();
  });
}

TEST(net_streams, gather_pieces_in_order) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    std::string parts[40];
    std::vector<iovec> pieces;
    std::string all;
    for (int i = 0; i < 40; ++i) {
      parts[i] = std::string(static_cast<std::size_t>(i * 997 % 5000), static_cast<char>('a' + i % 26));
      pieces.push_back({parts[i].data(), parts[i].size()});
      all += parts[i];
    }
    auto reader = spawn([&b] { return read_all(b); });
    std::size_t written = 0;
    a.write_all(pieces, &written);
    a.shutdown_write();
    EXPECT_EQ(written, all.size());
    EXPECT_EQ(reader.join(), all);
  });
}

TEST(net_streams, fill_pieces_in_order) {
  const auto fill = [](auto& to, auto& from, std::size_t most) {
    std::array<std::byte, 3> one{}, two{};
    std::array<std::byte, 2> none{}, three{};
    const std::array pieces{iovec{none.data(), 0}, iovec{one.data(), 3}, iovec{two.data(), 3}, iovec{three.data(), 2}};
    to.write_all("abcdefg");
    EXPECT_EQ(from.read_pieces(std::span{pieces}.first(1)), 0u);
    EXPECT_EQ(from.read_pieces(pieces), most);
    EXPECT_EQ(text_of(one), "abc");
    if (most == 3) return;
    EXPECT_EQ(text_of(two), "def");
    EXPECT_EQ(text_of(std::span{three}.first(1)), "g");
    auto reader = spawn([&] { return from.read_pieces(pieces); });
    this_fiber::yield();
    to.write_all("x");
    EXPECT_EQ(reader.join(), 1u);
  };
  with_workers([&] {
    auto [a, b] = tcp_pair();
    fill(a, b, 7);
    auto [c, d] = unix_stream::pair();
    fill(c, d, 7);
    auto [r, w] = make_pipe();
    fill(w, r, 3);
  });
}

TEST(net_streams, end_each_direction_alone) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    a.write_all("request");
    a.shutdown_write();
    EXPECT_EQ(read_all(b), "request");
    b.write_all("answer");
    b.shutdown_write();
    EXPECT_EQ(read_all(a), "answer");
    std::array<std::byte, 1> one;
    EXPECT_EQ(a.read_some(one), 0u);  // and again
    EXPECT_EQ(a.read_some(one), 0u);
  });
}

TEST(net_streams, tell_whether_the_peer_is_there) {
  with_workers([] {
    for (const bool local : {true, false}) {
      const auto test = [](auto a, auto b) {
        EXPECT_EQ(b.peer_is(), peer_state::sends);
        a.write_all("unread");
        EXPECT_EQ(b.peer_is(), peer_state::sends);
        a.shutdown_write();
        while (b.peer_is() == peer_state::sends) this_fiber::yield();  // it comes over the loopback
        EXPECT_EQ(b.peer_is(), peer_state::ended);
        EXPECT_EQ(a.peer_is(), peer_state::sends);
        EXPECT_EQ(read_all(b), "unread");  // nothing was taken
        EXPECT_EQ(b.peer_is(), peer_state::ended);
        b.shutdown_write();
        EXPECT_EQ(b.peer_is(), peer_state::is_gone);
        b.close();
        EXPECT_EQ(b.peer_is(), peer_state::is_gone);
      };
      if (local) {
        auto [a, b] = unix_stream::pair();
        test(std::move(a), std::move(b));
      } else {
        auto [a, b] = tcp_pair();
        test(std::move(a), std::move(b));
      }
    }
    auto [a, b] = tcp_pair();
    a.reset();
    while (b.peer_is() == peer_state::sends) this_fiber::yield();  // it comes over the loopback
    EXPECT_EQ(b.peer_is(), peer_state::is_gone);
    EXPECT_EQ(tcp_stream{}.peer_is(), peer_state::is_gone);
  });
}

TEST(net_streams, give_data_and_end_that_come_together) {
  with_workers([] {
    for (int i = 0; i < 200; ++i) {
      auto [a, b] = unix_stream::pair();
      auto reader = spawn([&b] { return read_all(b); });
      if (i % 2 == 0) this_fiber::yield();
      a.write_all("last words");
      a.close();
      EXPECT_EQ(reader.join(), "last words");
    }
  });
}

/// The edge that ended a wait told of more room than was needed.
template <class Ends>
void wait_for_room_after_a_wait(Ends ends) {
  auto& [from, to] = ends;
  const std::string much(1'000'000, 'm');
  auto reader = spawn([&to] {
    std::array<std::byte, 64 * 1024> part;
    for (std::size_t n = 0; n < 1'000'000;) n += to.read_some(part);
  });
  from.write_all(much);
  reader.join();                                     // there is all the room that there can be
  with_timeout(60s, [&] { from.wait_writable(); });  // or it waits for ever
  EXPECT_EQ(select(on_writable(from), on_timeout(60s, [] {})), 0u);
}

TEST(net_streams, can_be_waited_for_after_a_write_that_waited) {
  with_workers([] {
    wait_for_room_after_a_wait(tcp_pair());
    wait_for_room_after_a_wait(unix_stream::pair());
    auto [r, w] = make_pipe();
    wait_for_room_after_a_wait(std::pair{std::move(w), std::move(r)});
    tcp_listener l{{"127.0.0.1", 0}};
    tcp_stream c = tcp_stream::connect(l.local());
    with_timeout(60s, [&] { c.wait_writable(); });
    EXPECT_EQ(select(on_writable(c), on_timeout(60s, [] {})), 0u);
  });
}

/// The kernel ends a read at the mark of urgent data, which is not in the stream itself.
TEST(net_streams, go_on_behind_urgent_data) {
  with_workers([] {
    for (int i = 0; i < 50; ++i) {
      auto [a, b] = tcp_pair();
      auto reader = spawn([&b] {
        std::array<std::byte, 6> six;
        EXPECT_TRUE(b.read_exactly(six));
        return text_of(six);
      });
      if (i % 2 == 0) this_fiber::yield();
      a.write_all("abc");
      ASSERT_EQ(::send(a.native_handle(), "!", 1, MSG_OOB), 1);
      a.write_all("def");
      EXPECT_EQ(reader.join(), "abcdef");  // without an end of the stream
    }
  });
}

TEST(net_streams, tell_how_much_was_read_when_they_are_cut_off) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    a.write_all("12345");
    std::array<std::byte, 10> ten;
    std::size_t read = 99;
    EXPECT_THROW(with_timeout(5ms, [&] { static_cast<void>(b.read_exactly(ten, &read)); }), timeout_error);
    a.write_all("67890");
    EXPECT_TRUE(b.read_exactly(std::span{ten}.subspan(read)));
    EXPECT_EQ(text_of(ten), "1234567890");
    EXPECT_TRUE(b.read_exactly({}, &read));
    EXPECT_EQ(read, 0u);
  });
}

TEST(net_streams, tell_an_early_end_from_one_between_records) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    a.write_all("12345678abc");
    a.shutdown_write();
    std::array<std::byte, 8> record;
    EXPECT_TRUE(b.read_exactly(record));
    EXPECT_EQ(code_of([&b, &record] { static_cast<void>(b.read_exactly(record)); }), io_errc::unexpected_end);
    EXPECT_FALSE(b.read_exactly(record));
  });
}

TEST(net_streams, throw_at_a_reset_while_reading_and_writing) {
  with_workers([] {
    for (const bool reads : {true, false}) {
      auto [a, b] = tcp_pair();
      auto victim = spawn([&b, reads] {
        return code_of([&] {
          std::array<std::byte, 100> some;
          if (reads) {
            while (b.read_some(some) != 0) {
            }
          } else {
            const std::string much(1'000'000, 'x');
            for (;;) b.write_all(much);
          }
        });
      });
      this_fiber::sleep_for(2ms);
      const linger at_once{1, 0};  // close sends a reset
      ASSERT_EQ(::setsockopt(a.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
      a.close();
      const std::error_code code = victim.join();
      EXPECT_TRUE(code.value() == ECONNRESET || code.value() == EPIPE) << code.message();
    }
  });
}

TEST(net_streams, never_raise_sigpipe) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    auto [r, w] = make_pipe();
    b.close();
    r.close();
    EXPECT_EQ(code_of([&a] { a.write_all("x"); }).value(), EPIPE);
    EXPECT_EQ(code_of([&w] { w.write_all("x"); }).value(), EPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    EXPECT_EQ(::sigismember(&pending, SIGPIPE), 0);
  });
}

TEST(net_streams, say_what_a_write_that_was_cut_short_has_sent) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    const std::string much(10'000'000, 'x');
    std::size_t written = 0;
    EXPECT_THROW(with_timeout(5ms, [&a, &much, &written] { a.write_all(much, &written); }), timeout_error);
    EXPECT_GT(written, 0u);
    EXPECT_LT(written, much.size());
    a.shutdown_write();
    EXPECT_EQ(read_all(b).size(), written);
  });
}

TEST(net_waits, end_with_their_region_and_lose_nothing) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    std::array<std::byte, 100> some;
    for (int i = 0; i < 20; ++i)
      EXPECT_THROW(with_timeout(100us, [&b, &some] { return b.read_some(some); }), timeout_error);
    EXPECT_THROW(with_timeout(0ns, [&b, &some] { return b.read_some(some); }), timeout_error);
    a.write_all("still there");
    EXPECT_TRUE(b.read_exactly(std::span{some}.first(11)));
    EXPECT_EQ(text_of(std::span{some}.first(11)), "still there");
  });
}

TEST(net_waits, end_when_their_fiber_is_asked_to_stop) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    auto reader = spawn([&b] {
      std::array<std::byte, 1> one;
      b.read_some(one);
    });
    auto writer = spawn([&b] {
      const std::string much(1'000'000, 'x');
      for (;;) b.write_all(much);
    });
    this_fiber::sleep_for(1ms);
    reader.request_stop();
    writer.request_stop();
    EXPECT_THROW(reader.join(), cancelled);
    EXPECT_THROW(writer.join(), cancelled);
    shield([] {});
  });
}

TEST(net_waits, are_not_cut_short_under_a_shield) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    auto reader = spawn([&b] {
      return shield([&] {
        std::array<std::byte, 2> two;
        return b.read_exactly(two);
      });
    });
    this_fiber::yield();
    reader.request_stop();
    this_fiber::sleep_for(1ms);
    a.write_all("ok");
    EXPECT_TRUE(reader.join());
  });
}

TEST(net_waits, of_a_runtime_end_with_it) {
  auto ends = [] {
    runtime rt{{.workers = 2}};
    return rt.run([] { return unix_stream::pair(); });
  }();
  {
    runtime rt{{.workers = 2}};
    auto reader = rt.spawn([&b = ends.second] {
      std::array<std::byte, 1> one;
      b.read_some(one);
    });
    std::this_thread::sleep_for(2ms);
    rt.shutdown();
    EXPECT_THROW(reader.join(), cancelled);
  }
  // The descriptor moves to the next runtime.
  runtime rt{{.workers = 2}};
  rt.run([&ends] { send_through(ends.first, ends.second, 300'000); });
}

TEST(net_waits, of_two_runtimes_meet_over_one_stream) {
  runtime one{{.workers = 2}}, two{{.workers = 2}};
  auto ends = one.run([] { return unix_stream::pair(); });
  auto writer = one.spawn([&a = ends.first] {
    for (int i = 0; i < 2000; ++i) {
      a.write_all("12345678");
      std::array<std::byte, 8> back;
      if (!a.read_exactly(back)) return i;
    }
    return 2000;
  });
  auto echo = two.spawn([&b = ends.second] {
    std::array<std::byte, 8> record;
    while (b.read_exactly(record)) b.write_all(record);
  });
  EXPECT_EQ(writer.join(), 2000);
  ends.first.close();
  echo.join();
}

/// Two runtimes wait first for one descriptor at once: one of them puts it into its epoll set.
TEST(net_waits, of_two_runtimes_begin_at_once_on_one_stream) {
  runtime one{{.workers = 1}}, two{{.workers = 1}};
  for (int i = 0; i < 200; ++i) {
    std::vector<std::pair<unix_stream, unix_stream>> pairs;
    for (int k = 0; k < 4; ++k) pairs.push_back(unix_stream::pair());
    std::atomic<int> ready{0};
    const auto read_one_of_each = [&] {
      ready.fetch_add(1);
      while (ready.load() != 2) {
      }
      std::size_t got = 0;
      std::array<std::byte, 1> byte;
      for (auto& p : pairs) got += p.second.read_some(byte);
      return got;
    };
    auto a = one.spawn(read_one_of_each), b = two.spawn(read_one_of_each);
    while (ready.load() != 2) std::this_thread::yield();
    for (auto& p : pairs) p.first.write_all("ab");
    EXPECT_EQ(a.join() + b.join(), 2 * pairs.size());
  }
  EXPECT_EQ(one.statistics().io_descriptors + two.statistics().io_descriptors, 0u);
}

/// They register with their own runtime when the one that watched for them has ended: all of them, and not only the
/// first of a line.
TEST(net_waits, go_on_when_the_runtime_that_watched_for_them_has_ended) {
  for (int i = 0; i < 20; ++i) {
    auto one = std::make_unique<runtime>(runtime_options{.workers = 1});
    auto ends = one->run([] {
      auto both = unix_stream::pair();
      std::array<std::byte, 1> byte;
      EXPECT_THROW(with_timeout(0ns, [&] { return both.second.read_some(byte); }), timeout_error);
      return both;
    });
    runtime two{{.workers = 2}};
    std::atomic<int> done{0};
    const auto read_a_line = [&done, &b = ends.second] {
      std::array<std::byte, 100> some;
      EXPECT_EQ(b.read_some(some), 4u);
      done.fetch_add(1);
    };
    std::vector<join_handle<void>> readers;
    for (int k = 0; k < 3; ++k) readers.push_back(two.spawn(read_a_line));
    while (two.counters().io_waits < 3) std::this_thread::yield();
    one.reset();
    // Each reads less than it has room for, so it leaves nothing for the next one but the next edge.
    for (int k = 0; k < 3; ++k) {
      ends.first.write_all("line");
      while (done.load() == k) std::this_thread::yield();
    }
    for (auto& r : readers) r.join();
  }
}

TEST(net_waits, of_plain_threads_end_by_data_close_and_timeout) {
  auto ends = unix_stream::pair();
  event timed_out;
  std::thread other{[&timed_out, &b = ends.second] {
    std::array<std::byte, 4> four;
    EXPECT_TRUE(b.read_exactly(four));
    EXPECT_THROW(with_timeout(2ms, [&] { return b.read_some(four); }), timeout_error);
    timed_out.set();
    EXPECT_EQ(code_of([&] { b.read_some(four); }), io_errc::closed);
  }};
  std::this_thread::sleep_for(1ms);
  ends.first.write_all("four");
  timed_out.wait();
  ends.second.close();
  other.join();
}

/// Data arrives and a wait is cancelled at about the same moment, many times.
TEST(net_waits, lose_no_byte_where_cancelling_races_with_arrival) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    constexpr int rounds = RAMIE_TSAN || RAMIE_ASAN ? 1000 : 10'000;
    auto writer = spawn([&a] {
      for (int i = 0; i < rounds; ++i) {
        const std::byte one = byte_at(static_cast<std::uint64_t>(i));
        a.write_all(std::span{&one, 1});
        if (i % 3 == 0) this_fiber::yield();
        if (i % 64 == 0) this_fiber::sleep_for(1us);
      }
      a.shutdown_write();
    });
    std::uint64_t got = 0, wrong = 0, cut = 0;
    for (bool ended = false; !ended;) {
      auto reader = spawn([&b, &got, &wrong, &ended] {
        std::array<std::byte, 7> some;
        const std::size_t n = b.read_some(some);
        for (std::size_t i = 0; i < n; ++i) wrong += some[i] != byte_at(got + i) ? 1 : 0;
        got += n;
        ended = n == 0;
      });
      if (cut % 2 == 0) this_fiber::yield();
      reader.request_stop();
      try {
        reader.join();
      } catch (const cancelled&) {
        ++cut;
      }
    }
    writer.join();
    EXPECT_EQ(got, static_cast<std::uint64_t>(rounds));
    EXPECT_EQ(wrong, 0u);
  });
}

TEST(net_sockets, name_both_ends) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    EXPECT_EQ(a.local(), b.peer());
    EXPECT_EQ(b.local(), a.peer());
    auto [c, d] = unix_stream::pair();
    EXPECT_EQ(d.peer_credentials().pid, ::getpid());
  });
}

TEST(net_sockets, connecting_fails_with_the_name_of_the_peer) {
  with_workers([] {
    // Bound, so that nobody else gets the port, but not listening.
    const endpoint any{"127.0.0.1", 0};
    const int kept = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::bind(kept, any.data(), any.size()), 0);
    sockaddr_storage at{};
    socklen_t size = sizeof at;
    ASSERT_EQ(::getsockname(kept, reinterpret_cast<sockaddr*>(&at), &size), 0);
    const endpoint nobody = endpoint::of(reinterpret_cast<const sockaddr*>(&at), size);
    try {
      static_cast<void>(tcp_stream::connect(nobody));
      ADD_FAILURE() << "connected with nobody";
    } catch (const io_error& e) {
      EXPECT_EQ(e.code().value(), ECONNREFUSED);
      EXPECT_NE(std::string{e.what()}.find(nobody.to_string()), std::string::npos) << e.what();
    }
    ::close(kept);
  });
}

TEST(net_sockets, pass_descriptors) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    auto [r, w] = make_pipe();
    auto sender = spawn([&a, &w] {
      const int fd = w.native_handle();
      a.send_descriptors(std::span{&fd, 1}, bytes_of("here it is"));
    });
    std::array<int, 4> fds{-1, -1, -1, -1};
    std::array<std::byte, 100> with;
    const auto [bytes, count] = b.receive_descriptors(fds, with);
    sender.join();
    ASSERT_EQ(count, 1u);
    EXPECT_GE(bytes, 1u);
    w.close();
    pipe_writer copy = pipe_writer::adopt(fds[0]);
    copy.write_all("through the copy");
    copy.close();
    EXPECT_EQ(read_all(r), "through the copy");
  });
}

}  // namespace
}  // namespace ramie::net
