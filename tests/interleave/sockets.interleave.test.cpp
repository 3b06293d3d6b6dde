// Sockets and FIFOs (poll/descriptor.hpp, N2 and N3), and selects on them (net/select.hpp, R1 to R3): the kernel is a
// count of bytes, and edges come from a simulated thread.
#include "programs.hpp"

#include <ramie/channel/select.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/net/select.hpp>
#include <ramie/poll/descriptor.hpp>
#include <ramie/poll/retry.hpp>
#include <ramie/sync/event.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <source_location>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;
using net::detail::direction;

/// A record in a set that nobody looks at.
struct watched_record {
  explicit watched_record(net::detail::endings how) : record{*net::detail::open_descriptor(-1, how)} {
    record.registered.store(reinterpret_cast<net::detail::poller*>(alignof(std::max_align_t)),
                            std::memory_order_relaxed);
  }
  watched_record(const watched_record&) = delete;
  watched_record& operator=(const watched_record&) = delete;
  ~watched_record() {
    record.registered.store(nullptr, std::memory_order_relaxed);
    give_back(record);
  }
  net::detail::descriptor& record;
};

class simulated_socket : public watched_record {
 public:
  simulated_socket() : watched_record{net::detail::endings::pass} {}
  void arrive() {
    bytes_.fetch_add(1, std::memory_order_acq_rel);
    signal(record, direction::in, net::detail::descriptor::ready);
  }
  [[nodiscard]] bool has_some() const noexcept { return bytes_.load(std::memory_order_acquire) != 0; }
  /// As a call of read(2) that does not wait.
  bool read() noexcept {
    std::uint32_t n = bytes_.load(std::memory_order_acquire);
    while (n != 0)
      if (bytes_.compare_exchange_weak(n, n - 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
        set_ready(record, direction::in);  // there may be more
        return true;
      }
    return false;
  }
  void wait_and_read() {
    do await_ready(record, direction::in, "read", std::source_location::current());
    while (!read());
  }

 private:
  detail::atomic<std::uint32_t> bytes_{0};
};

class simulated_waitable : public net::detail::io_waitable {
 public:
  explicit simulated_waitable(simulated_socket& s) : io_waitable{&s.record, direction::in}, socket_{&s} {}

 protected:
  ~simulated_waitable() = default;

 private:
  bool look(int) override { return socket_->has_some(); }
  simulated_socket* socket_;
};

template <class F>
auto on_bytes(simulated_socket& s, F f) {
  return ready_case<simulated_waitable, F>{std::move(f), s};
}

/// Two bytes and an element for a select and a reader. Each gets its byte, unless an edge is lost.
void bytes_and_an_element() {
  simulated_socket s;
  channel<int> c{pick(2)};
  bool read = false, received = false;
  {
    simulated_thread selector{[&] {
      while (!read || !received)
        select(when(!read, on_bytes(s, [&] { read = take_ready(s.record, direction::in) && s.read(); })),
               when(!received, on_recv(c, [&](std::optional<int>) { received = true; })));
    }};
    simulated_thread reader{[&] { s.wait_and_read(); }};
    simulated_thread sender{[&] {
      wait_a_little();
      c.send(1);
    }};
    wait_a_little();
    s.arrive();
    wait_a_little();
    s.arrive();
  }
  check(!s.has_some(), "a byte is left");
}
TEST(sockets, in_a_select_and_a_read_lose_no_edge) {
  expect_sound("bytes and an element", {.seeds = 20'000, .steps_most = 40'000}, bytes_and_an_element);
}
TEST(sockets, whose_edge_is_dropped_are_found) {
  expect_found(plant::io_select_drops_edge, "an edge that is dropped", {.seeds = 20'000, .steps_most = 40'000},
               bytes_and_an_element);
}
TEST(sockets, waited_for_without_a_second_look_are_found) {
  expect_found(plant::io_select_without_second_look, "no second look", {.seeds = 20'000, .steps_most = 40'000},
               bytes_and_an_element);
}

/// Two selects on the same two sockets, in different orders; one of them may run out of time.
void two_selects_on_two_sockets() {
  simulated_socket a, b;
  std::array<int, 2> read{};
  {
    const auto take = [&](simulated_socket& s, std::size_t who) {
      return [&, who] {
        if (take_ready(s.record, direction::in) && s.read()) ++read[who];
      };
    };
    simulated_thread one{[&] {
      while (read[0] == 0) select(on_bytes(a, take(a, 0)), on_bytes(b, take(b, 0)));
    }};
    simulated_thread two{[&] { select(on_bytes(b, take(b, 1)), on_bytes(a, take(a, 1)), on_timeout(5us)); }};
    simulated_thread arrival{[&] {
      wait_a_little();
      a.arrive();
    }};
    wait_a_little();
    b.arrive();
  }
  for (simulated_socket* s : {&a, &b})
    while (s->read()) ++read[1];
  check(read[0] == 1 && read[1] == 1, "a byte is lost, or was read twice");
}
TEST(sockets, in_two_selects_at_once) {
  expect_sound("two selects on sockets", {.seeds = 10'000, .steps_most = 100'000}, two_selects_on_two_sockets);
}

/// A byte for one of two selects on one worker. They wait for nothing else but the end, so nothing ends a circle in
/// which each hands the edge on to the other.
void two_selects_on_one_socket() {
  simulated_socket s;
  event got, over;
  detail::atomic<int> read{0};
  const auto take_one = [&] {
    for (bool open = true; open && read.load(std::memory_order_acquire) == 0;)
      select(on_bytes(s,
                      [&] {
                        if (!s.read()) return;
                        read.fetch_add(1, std::memory_order_acq_rel);
                        got.set();
                      }),
             on_ready(over, [&] { open = false; }));
  };
  auto one = spawn(take_one);
  auto two = spawn(take_one);
  for (std::uint64_t i = pick(4); i != 0; --i) this_fiber::yield();
  s.arrive();
  got.wait();
  over.set();
  one.join();
  two.join();
  check(read.load(std::memory_order_relaxed) == 1 && !s.has_some(), "a byte was read twice");
}
TEST(sockets, in_two_selects_on_one_worker) {
  expect_sound("two selects on a socket, one worker", {.seeds = 2000, .steps_most = 100'000},
               in_runtime(two_selects_on_one_socket, 1));
  expect_sound("two selects on a socket", {.seeds = 3000, .steps_most = 200'000},
               in_runtime(two_selects_on_one_socket, 2));
}
TEST(sockets, whose_edge_is_handed_on_without_a_look_are_found) {
  expect_found(plant::io_select_passes_edge, "an edge that is handed on", {.seeds = 5000, .steps_most = 100'000},
               in_runtime(two_selects_on_one_socket, 1));
}

/// A FIFO: reads are at the end while nobody has it open to write. The last one that closes it makes an edge, the first
/// one that opens it again none.
class simulated_fifo : public watched_record {
 public:
  simulated_fifo() : watched_record{net::detail::endings::last} {}
  void open() { writers_.store(1, std::memory_order_release); }
  void close() {
    writers_.store(0, std::memory_order_release);
    signal(record, direction::in, net::detail::descriptor::hung_up);
  }
  void write() {
    bytes_.fetch_add(1, std::memory_order_acq_rel);
    signal(record, direction::in, net::detail::descriptor::ready);
  }
  /// As read(2) of one byte.
  net::detail::system::result read() {
    const bool at_end = writers_.load(std::memory_order_acquire) == 0;
    if (bytes_.load(std::memory_order_acquire) != 0) {
      bytes_.fetch_sub(1, std::memory_order_acq_rel);  // there is one reader
      return 1;
    }
    if (!at_end) ++futile;
    return at_end ? 0 : -EAGAIN;
  }
  [[nodiscard]] bool look() {
    const bool there = writers_.load(std::memory_order_acquire) == 0 || bytes_.load(std::memory_order_acquire) != 0;
    if (!there) ++futile;
    return there;
  }

  int futile = 0;  // the reader's calls that found nothing

 private:
  detail::atomic<std::uint32_t> writers_{1}, bytes_{0};
};

class fifo_waitable : public net::detail::io_waitable {
 public:
  explicit fifo_waitable(simulated_fifo& f) : io_waitable{&f.record, direction::in}, fifo_{&f} {}

 protected:
  ~fifo_waitable() = default;

 private:
  bool look(int) override { return fifo_->look(); }
  simulated_fifo* fifo_;
};

/// A hang-up that has passed costs a call or two, not a loop until the next byte. The end itself is never missed.
void fifo_that_is_opened_again() {
  simulated_fifo f;
  {
    simulated_thread reader{[&] {
      const bool selects = pick(2) == 1;
      for (bool read = false; !read;) {
        if (selects) select(ready_case<fifo_waitable, detail::do_nothing>{detail::do_nothing{}, f});
        const auto n = net::detail::retry_reading(
            f.record, "read", std::source_location::current(), [&](int) { return f.read(); },
            [](net::detail::system::result) { return false; });
        read = n == 1;
        if (!read) wait_a_little();
      }
    }};
    wait_a_little();
    f.close();
    if (pick(2) == 1) wait_a_little();
    f.open();
    for (int i = 0; i < 3; ++i) wait_a_little();
    f.write();
  }
  // At the beginning, at the hang-up, and at the flag that it leaves: a look and a call each.
  check(f.futile <= 6, "a hang-up that has passed is taken for one that lasts");
}
TEST(sockets, whose_hang_up_passes_are_waited_for) {
  expect_sound("a FIFO that is opened again", {.seeds = 10'000, .steps_most = 40'000}, fifo_that_is_opened_again);
}
TEST(sockets, whose_hang_up_is_kept_are_found) {
  expect_found(plant::hang_up_kept, "a hang-up that is kept", {.seeds = 10'000, .steps_most = 40'000},
               fifo_that_is_opened_again);
}

/// TCP: a read that takes less than it may has taken all. The last data and the end come with one edge, and so may an
/// error that passes, before them.
void data_and_end_with_one_edge() {
  watched_record s{net::detail::endings::last};
  s.record.short_reads.store(false, std::memory_order_relaxed);
  detail::atomic<std::uint32_t> bytes{0};
  detail::atomic<bool> over{false};
  constexpr std::size_t most = 2;
  {
    simulated_thread reader{[&] {
      for (bool ended = false; !ended;)
        ended = net::detail::retry_reading(
                    s.record, "read", std::source_location::current(),
                    [&](int) -> net::detail::system::result {
                      const bool last = over.load(std::memory_order_acquire);
                      if (const std::uint32_t n = bytes.exchange(0, std::memory_order_acq_rel); n != 0) return n;
                      return last ? 0 : -EAGAIN;
                    },
                    [&](net::detail::system::result n) { return is_drained_by(s.record, n, most); }) == 0;
    }};
    if (pick(2) == 1) {
      wait_a_little();
      signal(s.record, direction::in, net::detail::descriptor::hung_up);
    }
    wait_a_little();
    bytes.store(1, std::memory_order_release);
    over.store(true, std::memory_order_release);
    signal(s.record, direction::in, net::detail::descriptor::hung_up);
  }
}
TEST(sockets, whose_end_comes_with_data_are_read_to_it) {
  expect_sound("data and end with one edge", {.seeds = 20'000, .steps_most = 40'000}, data_and_end_with_one_edge);
}
TEST(sockets, whose_end_is_lost_with_the_hang_up_are_found) {
  expect_found(plant::hang_up_drained, "an end that is lost", {.seeds = 20'000, .steps_most = 40'000},
               data_and_end_with_one_edge);
}

/// An owner closes a record and gives it back while calls that began before end, refused or not; the record is reused
/// at once, by the owner or another thread. Those that still leave must do nothing to the next file. A call uses the
/// number, which nobody else may write meanwhile, and a call that is refused sees what was done before the close.
void give_back_amid_calls() {
  using namespace net::detail;
  descriptor* const d = open_descriptor(-1, endings::pass);
  descriptor* next = nullptr;
  detail::atomic<int> begun{0};
  int before_the_close = 0;
  {
    const auto call = [&] {
      wait_a_little();
      const possible_use during{*d};
      begun.fetch_add(1, std::memory_order_relaxed);
      if (during) check(d->fd == -1, "a strange number");
      else check(before_the_close == 1, "refused, and what was done before the close is not seen");
    };
    simulated_thread one{call};
    simulated_thread two{call};
    simulated_thread other{[] {
      wait_a_little();
      give_back(*open_descriptor(-1, endings::pass));
    }};
    simulated_thread owner{[&] {
      before_the_close = 1;
      close_descriptor(*d);
      while (begun.load(std::memory_order_relaxed) != 2) wait_a_little();
      give_back(*d);
      next = open_descriptor(-1, endings::pass);
    }};
  }
  check(static_cast<bool>(possible_use{*next}), "the next file was closed by a call of the one before");
  check(next->users.load(std::memory_order_relaxed) == 0, "a call of the file before was counted for the next");
  give_back(*next);
  descriptor* const a = open_descriptor(-1, endings::pass);
  descriptor* const b = open_descriptor(-1, endings::pass);
  check(a != b, "a record is free twice");
  give_back(*a);
  give_back(*b);
}
TEST(sockets, given_back_amid_calls) {
  expect_sound("given back amid calls", {.seeds = 30'000, .steps_most = 20'000}, give_back_amid_calls);
}
TEST(sockets, freed_amid_a_call_are_found) {
  expect_found(plant::record_freed_amid_call, "a record that is freed early", {.seeds = 30'000, .steps_most = 20'000},
               give_back_amid_calls);
}

/// N5: an event that was fetched before its record was given back comes late, and says that the peer has hung up.
void event_of_a_recycled_record() {
  using namespace net::detail;
  descriptor* const d = open_descriptor(-1, endings::last);
  const std::uint32_t fetched = d->generation.load(std::memory_order_relaxed) & descriptor::generation_mask;
  descriptor* next = nullptr;
  {
    simulated_thread poller{[&] {
      wait_a_little();
      signal(*d, direction::in, descriptor::hung_up, &fetched);
    }};
    wait_a_little();
    give_back(*d);
    next = open_descriptor(-1, endings::last);
  }
  check(next == d, "the record was not reused");
  check(next->in.is(descriptor::ready), "a new file counts as hung up");
  give_back(*next);
}
TEST(sockets, of_a_recycled_record_hear_of_no_event_before) {
  expect_sound("an event of a recycled record", {.seeds = 5000, .steps_most = 20'000}, event_of_a_recycled_record);
}
TEST(sockets, told_of_an_event_before_are_found) {
  expect_found(plant::generation_ignored, "an event whose generation is ignored", {.seeds = 5000, .steps_most = 20'000},
               event_of_a_recycled_record);
}

}  // namespace
}  // namespace ramie::interleave
