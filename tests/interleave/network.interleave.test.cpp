// Streams, pipes, listeners and selects on them as users have them, on the simulated kernel (kernel/kernel.hpp): N1 to
// N6 of poll/descriptor.hpp, R1 to R4 of net/select.hpp.
#include "kernel/kernel.hpp"
#include "programs.hpp"

#include <ramie/channel.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/net.hpp>
#include <ramie/sync/event.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

/// A program for the main fiber of a runtime on a kernel in which nothing is open; nothing is in the end.
template <class F>
auto on_kernel(F program, kernel_settings s = {}, int n = 2) {
  return [program, s, n] {
    begin_kernel(s);
    in_runtime(program, n)();
    check(open_numbers() == 0, "a number is lost");
  };
}

void pass_some_time() {
  for (std::uint64_t i = pick(4); i != 0; --i) this_fiber::yield();
  if (pick(4) == 0) this_fiber::sleep_for(std::chrono::microseconds{pick(20)});
}

std::byte byte_of(int i) { return static_cast<std::byte>(i & 0xff); }
void write_byte(net::stream& s, int i = 1) {
  const std::byte b = byte_of(i);
  s.write_all(std::span{&b, 1});
}
/// True unless it has ended.
bool read_byte(net::stream& s) {
  std::byte b;
  return s.read_some(std::span{&b, 1}) == 1;
}

// ---- edges ---------------------------------------------------------------------------------------------------------

/// Two bytes and an element for a select and a reader, which may have read before without a wait. Each gets its byte.
void bytes_and_an_element() {
  auto [here, there] = net::unix_stream::pair();
  net::unix_stream& s = here;
  if (pick(2) == 0) {  // the first read finds its data at once
    write_byte(there);
    read_byte(s);
  }
  channel<int> c{pick(2)};
  scope all;
  all.spawn([&] {
    bool read = false, received = false;
    while (!read || !received)
      select(when(!read, net::on_readable(s, [&] { read = read_byte(s); })),
             when(!received, on_recv(c, [&](std::optional<int>) { received = true; })));
  });
  all.spawn([&] { read_byte(s); });
  all.spawn([&] {
    pass_some_time();
    static_cast<void>(c.send(1));
  });
  pass_some_time();
  write_byte(there);
  pass_some_time();
  write_byte(there);
  all.join();
}
TEST(streams, in_a_select_and_a_read_lose_no_edge) {
  expect_sound("a stream in a select and a read", {.seeds = 3000}, on_kernel(bytes_and_an_element));
}
TEST(streams, whose_edge_is_dropped_are_found) {
  expect_found(plant::io_select_drops_edge, "a stream's edge that is dropped", {.seeds = 20'000},
               on_kernel(bytes_and_an_element));
}

TEST(streams, waited_for_without_a_second_look_are_found) {
  expect_found(plant::io_select_without_second_look, "a stream without a second look", {.seeds = 20'000},
               on_kernel(bytes_and_an_element));
}

/// A byte for one of two selects. They wait for nothing else but the end, so nothing ends a circle in which each hands
/// the edge on to the other.
void two_selects_on_one_stream() {
  auto [here, there] = net::unix_stream::pair();
  net::unix_stream& s = here;
  event got, over;
  detail::atomic<bool> taken{false};
  const auto take_one = [&] {
    for (bool open = true; open;)
      select(net::on_readable(s,
                              [&] {
                                if (taken.exchange(true, std::memory_order_acq_rel)) return this_fiber::sleep_for(2us);
                                read_byte(s);
                                got.set();
                              }),
             on_ready(over, [&] { open = false; }));
  };
  scope all;
  all.spawn(take_one);
  all.spawn(take_one);
  pass_some_time();
  write_byte(there);
  got.wait();
  over.set();
  all.join();
}
TEST(streams, in_two_selects) {
  expect_sound("two selects on a stream, one worker", {.seeds = 1000}, on_kernel(two_selects_on_one_stream, {}, 1));
  expect_sound("two selects on a stream", {.seeds = 1500}, on_kernel(two_selects_on_one_stream));
}
TEST(streams, whose_edge_is_handed_on_without_a_look_are_found) {
  expect_found(plant::io_select_passes_edge, "a stream's edge that is handed on", {.seeds = 5000},
               on_kernel(two_selects_on_one_stream, {}, 1));
}

/// Two selects on the same two streams, in different orders; one of them may run out of time. Each byte is read.
void two_selects_on_two_streams() {
  auto a = net::unix_stream::pair(), b = net::unix_stream::pair();
  std::array<detail::atomic<bool>, 2> taken{};
  detail::atomic<int> read{0};
  const auto on_byte = [&](net::unix_stream& s, std::size_t which) {
    return net::on_readable(s, [&, which] {
      if (taken[which].exchange(true, std::memory_order_acq_rel)) return this_fiber::sleep_for(2us);
      read_byte(s);
      read.fetch_add(1, std::memory_order_acq_rel);
    });
  };
  scope all;
  all.spawn([&] {
    while (read.load(std::memory_order_acquire) != 2) select(on_byte(a.first, 0), on_byte(b.first, 1), on_timeout(5us));
  });
  all.spawn([&] { select(on_byte(b.first, 1), on_byte(a.first, 0), on_timeout(5us)); });
  pass_some_time();
  write_byte(b.second);
  pass_some_time();
  write_byte(a.second);
  all.join();
}
TEST(streams, in_two_selects_in_different_orders) {
  expect_sound("two selects on two streams", {.seeds = 1500}, on_kernel(two_selects_on_two_streams));
}

/// A FIFO is at its end until it is opened again. That costs a call or two, not a loop until the next byte.
void fifo_that_is_opened_again() {
  kernel_fifo fifo;
  net::pipe_reader r = net::pipe_reader::adopt(fifo.open_to_read());
  std::optional<net::pipe_writer> w{net::pipe_writer::adopt(fifo.open_to_write())};
  scope all;
  all.spawn([&] {
    const bool selects = pick(2) == 1;
    for (bool read = false; !read;) {
      if (selects) select(net::on_readable(r));
      read = read_byte(r);
      if (!read) pass_some_time();
    }
  });
  pass_some_time();
  w.reset();
  pass_some_time();
  w.emplace(net::pipe_writer::adopt(fifo.open_to_write()));
  for (int i = 0; i < 3; ++i) pass_some_time();
  write_byte(*w);
  all.join();
  // At the beginning, at the hang-up, at the flag that it leaves, and at the wake-up of a writer that opens it: a look
  // and a call each.
  check(futile_calls() <= 8, "a hang-up that has passed is taken for one that lasts");
}
TEST(pipes, whose_hang_up_passes_are_waited_for) {
  expect_sound("a FIFO that is opened again", {.seeds = 2000}, on_kernel(fifo_that_is_opened_again));
}
TEST(pipes, whose_hang_up_is_kept_are_found) {
  expect_found(plant::hang_up_kept, "a FIFO's hang-up that is kept", {.seeds = 10'000},
               on_kernel(fifo_that_is_opened_again));
}

/// Several writers share the room of a pipe: who finishes says that there is more.
void writers_of_one_pipe() {
  auto [from, to] = net::make_pipe();
  net::pipe_reader& r = from;
  net::pipe_writer& w = to;
  constexpr int bytes = 3;
  const std::array<std::byte, bytes> block{};
  scope all;
  for (int i = 0; i < 3; ++i)
    all.spawn([&] {
      if (pick(3) == 0) select(net::on_writable(w));
      w.write_all(block);
    });
  for (int i = 0; i < 3 * bytes; ++i) {
    pass_some_time();
    read_byte(r);
  }
  all.join();
}
TEST(pipes, with_several_writers_let_all_of_them_finish) {
  expect_sound("writers of a pipe", {.seeds = 1500}, on_kernel(writers_of_one_pipe, {.room = 2}));
}
TEST(pipes, whose_room_is_kept_are_found) {
  expect_found(plant::room_is_kept, "a pipe's room that is kept", {.seeds = 10'000},
               on_kernel(writers_of_one_pipe, {.room = 2}));
}

// ---- streams of bytes ----------------------------------------------------------------------------------------------

const net::endpoint anywhere{"127.0.0.1", 0};

std::pair<net::tcp_stream, net::tcp_stream> tcp_pair() {
  net::tcp_listener at{anywhere};
  net::tcp_stream a;
  scope connecting;
  connecting.spawn([&] { a = net::tcp_stream::connect(at.local()); });
  net::tcp_stream b = at.accept();
  connecting.join();
  return {std::move(a), std::move(b)};
}

/// f(), or its beginning.
template <class F>
void cut_off_now_and_then(F f) {
  if (pick(3) != 0) return static_cast<void>(f());
  try {
    with_timeout(std::chrono::microseconds{pick(20)}, f);
  } catch (const timeout_error&) {
  }
}

/// Bytes 0, 1, 2 ... in pieces, and an end. What is cut off is continued after what was written.
void send_numbers(net::socket_stream& s, int total) {
  for (int sent = 0; sent < total;) {
    std::array<std::byte, 5> piece{};
    const int n = std::min<int>(total - sent, 1 + static_cast<int>(pick(piece.size())));
    for (int i = 0; i < n; ++i) piece[static_cast<std::size_t>(i)] = byte_of(sent + i);
    if (pick(4) == 0) s.wait_writable();
    if (pick(4) == 0) select(net::on_writable(s));
    std::size_t done = 0;
    cut_off_now_and_then([&] { s.write_all(std::span{piece}.first(static_cast<std::size_t>(n)), &done); });
    sent += static_cast<int>(done);
  }
  s.shutdown_write();
}

void receive_numbers(net::socket_stream& s, int total) {
  int got = 0;
  for (bool ended = false; !ended;) {
    std::array<std::byte, 4> into{};
    const auto some = std::span{into}.first(1 + pick(into.size()));
    std::size_t n = 0;
    const auto read = [&] {
      n = s.read_some(some);
      ended = n == 0;
    };
    switch (pick(5)) {
      case 0: select(net::on_readable(s, read), on_timeout(std::chrono::microseconds{pick(20)})); break;
      case 1:
        s.wait_readable();
        read();
        break;
      case 2:
        if (got + static_cast<int>(some.size()) <= total) {
          cut_off_now_and_then([&] { static_cast<void>(s.read_exactly(some, &n)); });
          break;
        }
        [[fallthrough]];
      default: cut_off_now_and_then(read);
    }
    for (std::size_t i = 0; i < n; ++i) check(into[i] == byte_of(got + static_cast<int>(i)), "a wrong byte");
    got += static_cast<int>(n);
  }
  check(got == total, "bytes are missing");
}

template <class Pair>
void both_ways(Pair streams) {
  const int there = static_cast<int>(pick(12)), back = static_cast<int>(pick(12));
  scope all;
  all.spawn([&] { send_numbers(streams.first, there); });
  all.spawn([&] { receive_numbers(streams.second, there); });
  all.spawn([&] { send_numbers(streams.second, back); });
  receive_numbers(streams.first, back);
  all.join();
}
void local_both_ways() { both_ways(net::unix_stream::pair()); }
void tcp_both_ways() { both_ways(tcp_pair()); }

TEST(streams, bring_all_bytes_in_order) {
  expect_sound("local streams, both ways", {.seeds = 1500}, on_kernel(local_both_ways));
  expect_sound("TCP, both ways", {.seeds = 1500}, on_kernel(tcp_both_ways));
}
TEST(streams, whose_short_reads_count_as_the_last_are_found) {
  expect_found(plant::short_read_drains, "short reads of a local stream", {.seeds = 10'000},
               on_kernel(local_both_ways));
}
/// A stream whose reads have found their data at once, and so have never waited, is in no event set before a select.
void stream_that_never_waited() {
  auto [there, here] = tcp_pair();  // the accepted end
  for (std::uint64_t i = pick(3); i != 0; --i) {
    write_byte(there);
    std::array<std::byte, 2> more{};
    static_cast<void>(here.read_some(more));  // that is all: the next one waits for an edge
  }
  scope all;
  all.spawn([&] {
    pass_some_time();
    if (pick(2) == 0) write_byte(there);
    else there.close();
  });
  select(net::on_readable(here, [&] {
    const int before = futile_calls();
    static_cast<void>(read_byte(here));
    check(futile_calls() == before, "a select says that there is something, and there is nothing");
  }));
  all.join();
}
TEST(streams, that_never_waited_are_seen_by_a_select) {
  expect_sound("a stream that never waited", {.seeds = 1500}, on_kernel(stream_that_never_waited));
}
TEST(streams, that_are_in_no_set_are_found) {
  expect_found(plant::io_select_unwatched, "a stream in no set", {.seeds = 5000}, on_kernel(stream_that_never_waited));
}

/// Whoever waits for a stream that is closed is told so, and the number is given back.
void closed_amid_waits() {
  auto [here, there] = net::unix_stream::pair();
  net::unix_stream& s = here;
  write_byte(there);
  read_byte(s);
  scope all;
  const auto until_closed = [&](auto call) {
    try {
      for (;;) call();
    } catch (const net::io_error& e) {
      check(e.code() == net::io_errc::closed, "another error than closed");
    }
  };
  all.spawn([&] { until_closed([&] { read_byte(s); }); });
  all.spawn([&] { until_closed([&] { write_byte(s); }); });
  all.spawn([&] { until_closed([&] { select(net::on_readable(s, [&] { read_byte(s); })); }); });
  pass_some_time();
  s.close();
  auto [next, other] = net::unix_stream::pair();  // by the same number, if it is free by now
  write_byte(other);
  all.join();
  check(read_byte(next), "a byte was taken by those who waited for the stream before");
}
TEST(streams, tell_all_waiters_that_they_are_closed) {
  expect_sound("a stream closed amid waits", {.seeds = 2000}, on_kernel(closed_amid_waits));
}

/// Two runtimes wait on one stream. The one whose event set the stream is in ends; the other goes on.
void stream_of_two_runtimes() {
  begin_kernel();
  {
    auto pair = net::unix_stream::pair();
    net::unix_stream& s = pair.first;
    std::optional<runtime> a{std::in_place, workers(1)};
    runtime b{workers(1)};
    detail::atomic<int> read{0};
    const auto take = [&] {
      if (read_byte(s)) read.fetch_add(1, std::memory_order_acq_rel);
    };
    auto first = a->spawn(take);
    auto second = b.spawn(take);
    wait_a_little();
    write_byte(pair.second);
    wait_a_little();
    a.reset();
    try {
      first.join();
    } catch (const cancelled&) {
    }
    write_byte(pair.second);  // the other one may have had the first
    second.join();
    check(read.load(std::memory_order_relaxed) != 0, "nobody has read");
  }
  check(open_numbers() == 0, "a number is lost");
}
TEST(streams, go_on_when_the_runtime_that_watched_them_has_ended) {
  expect_sound("a stream of two runtimes", {.seeds = 1500}, stream_of_two_runtimes);
}

/// Connecting to a listener whose queue is full is cut off, or goes on when there is room.
void connect_cut_off() {
  std::optional<net::tcp_listener> at{std::in_place, anywhere, net::tcp_options{.backlog = 1}};
  const net::endpoint there = at->local();
  net::tcp_stream first = net::tcp_stream::connect(there);
  scope all;
  all.spawn([&] {
    try {
      cut_off_now_and_then([&] {
        net::tcp_stream s = net::tcp_stream::connect(there);
        write_byte(s);
      });
    } catch (const net::io_error& e) {
      check(e.code().value() == ECONNREFUSED || e.code().value() == ECONNRESET || e.code().value() == EPIPE,
            "another error than that nobody listens");
    }
  });
  pass_some_time();
  if (pick(2) == 0) static_cast<void>(at->accept());
  pass_some_time();
  at.reset();
  all.join();
}
TEST(streams, whose_connecting_is_cut_off_leave_nothing_behind) {
  expect_sound("connecting is cut off", {.seeds = 2000}, on_kernel(connect_cut_off));
}

/// The peer closes at any time, with bytes that it has not read, or without: both directions end, and nobody waits on.
template <class Pair>
void peer_that_closes(Pair streams) {
  net::socket_stream& s = streams.first;
  net::socket_stream& there = streams.second;
  scope all;
  const auto until_it_ends = [](auto call) {
    try {
      while (call()) {
      }
    } catch (const net::io_error& e) {
      check(e.code().value() == ECONNRESET || e.code().value() == EPIPE, "another error than that it is gone");
    }
  };
  all.spawn([&] { until_it_ends([&] { return read_byte(s); }); });
  all.spawn([&] {
    until_it_ends([&] {
      write_byte(s);
      return true;
    });
  });
  if (pick(2) == 0) read_byte(there);
  if (pick(2) == 0) write_byte(there);
  pass_some_time();
  there.close();
  all.join();
}
TEST(streams, end_when_their_peer_closes) {
  expect_sound("a local peer that closes", {.seeds = 1500},
               on_kernel([] { peer_that_closes(net::unix_stream::pair()); }));
  expect_sound("a peer that closes, TCP", {.seeds = 1500}, on_kernel([] { peer_that_closes(tcp_pair()); }));
}

// ---- listeners -----------------------------------------------------------------------------------------------------

/// Cut off while it waits for a free number, accept leaves the connection to the next call.
void accept_without_numbers() {
  constexpr int most = 16;
  net::tcp_listener at{anywhere};
  const auto accept_for = [&](std::chrono::microseconds limit) {
    try {
      with_timeout(limit, [&] { static_cast<void>(at.accept()); });
      check(false, "a connection, or a number, from nowhere");
    } catch (const timeout_error&) {
    }
  };
  if (pick(4) != 0) accept_for(1us);  // now edges come
  net::tcp_stream client = net::tcp_stream::connect(at.local());
  kernel_fifo fifo;
  std::vector<net::pipe_reader> held;
  while (open_numbers() < most) held.push_back(net::pipe_reader::adopt(fifo.open_to_read()));
  accept_for(std::chrono::microseconds{1 + pick(2000)});
  held.pop_back();
  net::tcp_stream s = at.accept();
  write_byte(client);
  check(read_byte(s), "an end from nowhere");
}
TEST(listeners, out_of_numbers_keep_what_waits) {
  expect_sound("accept without numbers", {.seeds = 1000}, on_kernel(accept_without_numbers, {.descriptors_most = 16}));
}
TEST(listeners, that_lose_it_in_their_pause_are_found) {
  expect_found(plant::accept_pause_drops_edge, "accept cut off in its pause", {.seeds = 5000},
               on_kernel(accept_without_numbers, {.descriptors_most = 16}));
}

/// Clients come to a listener with a short queue, at which two fibers accept, by call and by select, cut off or refused
/// now and then. Each client is served.
void clients_and_acceptors() {
  constexpr int clients = 3;
  net::tcp_listener at{anywhere, {.backlog = 1}};
  constexpr std::array codes{EMFILE, ECONNABORTED, ENOMEM, EPROTO, EINTR};
  if (pick(2) == 0) fail_call(kernel_call::accept, 1 + static_cast<int>(pick(4)), codes[pick(codes.size())]);
  detail::atomic<int> served{0};
  scope serving;
  const auto serve = [&](net::tcp_stream s) {
    check(read_byte(s), "no request");
    write_byte(s);
    if (served.fetch_add(1, std::memory_order_acq_rel) + 1 == clients) at.close();
  };
  for (int i = 0; i < 2; ++i)
    serving.spawn([&] {
      try {
        for (;;) {
          std::optional<net::tcp_stream> s;
          if (pick(2) == 0)
            select(net::on_accept(at, [&](net::tcp_stream taken) { s = std::move(taken); }),
                   on_timeout(std::chrono::microseconds{1 + pick(20)}));
          else cut_off_now_and_then([&] { s = at.accept(); });
          if (s) serve(std::move(*s));
        }
      } catch (const net::io_error& e) {
        check(e.code() == net::io_errc::closed, "another error than closed");
      }
    });
  const net::endpoint there = at.local();
  scope asking;
  for (int i = 0; i < clients; ++i)
    asking.spawn([&] {
      net::tcp_stream s = net::tcp_stream::connect(there);
      write_byte(s);
      check(read_byte(s), "no answer");
    });
  asking.join();
  serving.join();
}
TEST(listeners, serve_each_client) {
  expect_sound("clients and acceptors", {.seeds = 1500, .steps_most = 400'000}, on_kernel(clients_and_acceptors));
}

// ---- failures ------------------------------------------------------------------------------------------------------

/// A server and a client. Whatever fails is told as an io_error, or was overcome, and no number is lost.
void echo_with_a_failure() {
  struct one {
    kernel_call call;
    int code;
  };
  constexpr std::array failures{one{kernel_call::socket, EMFILE},     one{kernel_call::socket, ENOBUFS},
                                one{kernel_call::bind, EADDRINUSE},   one{kernel_call::listen, EADDRINUSE},
                                one{kernel_call::connect, ETIMEDOUT}, one{kernel_call::connect, EADDRNOTAVAIL},
                                one{kernel_call::accept, EMFILE},     one{kernel_call::accept, ECONNABORTED},
                                one{kernel_call::accept, EINVAL},     one{kernel_call::read, ECONNRESET},
                                one{kernel_call::read, EIO},          one{kernel_call::read, ETIMEDOUT},
                                one{kernel_call::write, EPIPE},       one{kernel_call::write, ENOBUFS},
                                one{kernel_call::write, ECONNRESET},  one{kernel_call::new_set, EMFILE},
                                one{kernel_call::new_event, EMFILE},  one{kernel_call::set_add, ENOSPC},
                                one{kernel_call::set_add, ENOMEM}};
  const one f = failures[pick(failures.size())];
  const bool is_called_often =
      f.call == kernel_call::accept || f.call == kernel_call::read || f.call == kernel_call::write;
  const int which = 1 + (is_called_often ? static_cast<int>(pick(4)) : 0);
  fail_call(f.call, which, f.code);
  detail::atomic<int> told{0};
  const auto note = [&](const net::io_error& e) {
    if (e.code().value() == f.code) told.fetch_add(1, std::memory_order_acq_rel);
  };
  try {
    net::tcp_listener at{anywhere};
    scope all;
    all.spawn([&] {
      try {
        net::tcp_stream s = at.accept();
        std::array<std::byte, 4> some{};
        while (const std::size_t n = s.read_some(some)) s.write_all(std::span{some}.first(n));
      } catch (const net::io_error& e) {
        note(e);
        at.close();
      }
    });
    net::tcp_stream s = net::tcp_stream::connect(at.local());
    std::array<std::byte, 6> sent{}, back{};
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = byte_of(static_cast<int>(i));
    s.write_all(sent);
    s.shutdown_write();
    if (s.read_exactly(back)) check(back == sent && !read_byte(s), "another echo");  // else the server has failed
    all.join();
  } catch (const net::io_error& e) {
    note(e);
  }
  const bool is_overcome = f.call == kernel_call::accept && f.code != EINVAL;
  check(is_overcome || calls_made(f.call) < which || told.load(std::memory_order_relaxed) != 0,
        "a failure that nobody is told of");
}
TEST(failures, are_told_and_lose_no_number) {
  expect_sound("echo with a failure", {.seeds = 6000, .steps_most = 400'000}, on_kernel(echo_with_a_failure));
}

}  // namespace
}  // namespace ramie::interleave
