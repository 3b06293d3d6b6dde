// Streams that tell their actor what arrives (patterns/active.cpp, Y1 to Y6; descriptor.hpp, N7): the kernel is a count
// of bytes, and edges come from a simulated thread.
#include "programs.hpp"

#include <ramie/actor/actor.hpp>
#include <ramie/patterns/active.hpp>
#include <ramie/poll/descriptor.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ramie::interleave {
namespace {

using net::detail::direction;

/// One connection at a time: its bytes, and whether the peer has closed.
struct simulated_peer {
  detail::atomic<std::uint32_t> bytes{0};
  detail::atomic<bool> closed{false};
  net::detail::descriptor* record = nullptr;

  void arrive(std::uint32_t n) {
    bytes.fetch_add(n, std::memory_order_acq_rel);
    signal(*record, direction::in, net::detail::descriptor::ready);
  }
  void end() {
    closed.store(true, std::memory_order_release);
    signal(*record, direction::in, net::detail::descriptor::hung_up);
  }
};
simulated_peer* peer = nullptr;

/// As read(2) that does not wait.
net::detail::system::result read_simulated(int, void*, std::size_t size) noexcept {
  const bool closed = peer->closed.load(std::memory_order_acquire);
  std::uint32_t n = peer->bytes.load(std::memory_order_acquire);
  while (n != 0) {
    const std::uint32_t taken = n < size ? n : static_cast<std::uint32_t>(size);
    if (peer->bytes.compare_exchange_weak(n, n - taken, std::memory_order_acq_rel, std::memory_order_acquire))
      return taken;
  }
  return closed ? 0 : -EAGAIN;
}

/// An open record in a set that nobody looks at.
class simulated_record {
 public:
  simulated_record() {
    record_.registered.store(reinterpret_cast<net::detail::poller*>(alignof(std::max_align_t)),
                             std::memory_order_relaxed);
  }
  simulated_record(const simulated_record&) = delete;
  simulated_record& operator=(const simulated_record&) = delete;
  ~simulated_record() {
    record_.registered.store(nullptr, std::memory_order_relaxed);
    give_back(record_);
  }
  net::detail::descriptor& operator*() noexcept { return record_; }

 private:
  net::detail::descriptor& record_ = *net::detail::open_descriptor(-1, net::detail::endings::last);
};

template <class A>
class simulated_stream : public net::detail::active_base {
 public:
  simulated_stream(net::detail::descriptor& d, const actor_ref<A>& owner, std::uint32_t piece) {
    begin(*owner.cell(), net::detail::active_type_for<A, &read_simulated>, &d, piece);
  }
  ~simulated_stream() { end(); }
};

struct more {
  std::uint32_t pieces;
};
struct pause {};
struct change_often {};

class counter : public actor<counter> {
 public:
  counter(net::detail::descriptor& d, std::uint32_t at_first) : stream_{d, self(), 2} { stream_.activate(at_first); }
  void on(const net::received& m) {
    got_ += m.bytes().size();
    ++pieces_;
  }
  void on(net::ended) {
    ended_ = true;
    stop();
  }
  void on(more m) { stream_.activate(m.pieces); }
  void on(pause) { stream_.deactivate(); }
  void on(change_often) {
    for (int i = 0; i < 6; ++i) {
      stream_.deactivate();
      stream_.activate(1);
    }
  }
  ~counter() { got += got_; }
  static std::size_t got;

 private:
  simulated_stream<counter> stream_;
  std::size_t got_ = 0;
  int pieces_ = 0;
  bool ended_ = false;
};
std::size_t counter::got = 0;

/// All that is sent is told, in whatever pieces, though the actor is made passive and active meanwhile; then the end.
void all_that_arrives() {
  simulated_peer p;
  simulated_record record;
  p.record = &*record;
  peer = &p;
  counter::got = 0;
  runtime rt{workers(2)};
  rt.run([&] {
    auto c = spawn_actor<counter>(*record, 1u);
    {
      simulated_thread kernel{[&] {
        for (int i = 0; i < 3; ++i) {
          wait_a_little();
          p.arrive(1 + pick(3));
        }
        p.end();
      }};
      wait_a_little();
      c.tell(pause{});
      wait_a_little();
      c.tell(more{net::detail::active_base::always});
    }
    check(c.join().kind() == exit_kind::stopped, "the actor was not told of the end");
  });
  check(p.bytes.load(std::memory_order_relaxed) == 0, "bytes are left that were not told");
}
TEST(active, tells_all_that_arrives) {
  expect_sound("an active stream", {.seeds = 3000, .steps_most = 60'000}, all_that_arrives);
}
TEST(active, whose_sink_is_set_without_a_look_is_found) {
  expect_found(plant::sink_without_look, "N7 without a look", {.seeds = 20'000, .steps_most = 60'000},
               all_that_arrives);
}

/// It ends, in each way, while edges come; a second one follows in the same record.
void ends_meanwhile() {
  simulated_peer p;
  simulated_record record;
  p.record = &*record;
  peer = &p;
  runtime rt{workers(2)};
  rt.run([&] {
    for (int round = 0; round < 2; ++round) {
      auto c = spawn_actor<counter>(*record, net::detail::active_base::always);
      {
        simulated_thread kernel{[&] {
          for (int i = 0; i < 2; ++i) {
            p.arrive(1);
            wait_a_little();
          }
        }};
        wait_a_little();
        if (pick(2) == 0) c.stop();
        else c.kill();
        c.join();  // its worker is free for it, while edges come
      }
    }
  });
}

/// A message that lies where a note was, and writes all of it.
struct wide {
  wide() = default;
  wide(const wide& from) noexcept : a{from.a}, b{from.b}, c{from.c}, d{from.d}, e{from.e}, f{from.f} {}
  std::uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
};
static_assert(sizeof(detail::body_node<wide>) <= detail::task_cache::block_sizes[0]);
class taker : public actor<taker> {
 public:
  void on(const wide&) {}
};

/// An edge may come between the end of the actor and that of its stream. The one of the two that frees the note uses
/// its memory again at once.
class lingering : public actor<lingering> {
 public:
  lingering(net::detail::descriptor& d, const actor_ref<taker>& to) : after_{to}, stream_{d, self(), 2} {
    stream_.activate(net::detail::active_base::always);
  }
  void on(const net::received&) {}
  void on(net::ended) { stop(); }

 private:
  struct last_word {
    actor_ref<taker> to;
    ~last_word() { to.tell(wide{}); }
  };
  struct pause {
    ~pause() { detail::os_sleep(1000 * pick(40)); }
  };
  last_word after_;
  simulated_stream<lingering> stream_;
  pause before_;
};

void end_late() {
  simulated_peer p;
  simulated_record record;
  p.record = &*record;
  peer = &p;
  runtime rt{workers(2)};
  rt.run([&] {
    auto t = spawn_actor<taker>();
    for (int round = 0; round < 2; ++round) {
      auto c = spawn_actor<lingering>(*record, t);
      simulated_thread kernel{[&] {
        for (int i = 0; i < 2; ++i) {
          p.arrive(1);
          t.tell(wide{});
          wait_a_little();
        }
      }};
      wait_a_little();
      if (pick(2) == 0) c.stop();
      else c.kill();
      c.join();
    }
    t.stop();
    t.join();
  });
}
TEST(active, ends_while_edges_come) {
  expect_sound("the end of an active stream", {.seeds = 2000, .steps_most = 60'000}, ends_meanwhile);
  expect_sound("a late end of an active stream", {.seeds = 3000, .steps_most = 60'000}, end_late);
}
TEST(active, whose_refused_note_is_freed_by_two_is_found) {
  expect_found(plant::active_refusal_freed, "Y6 left out", {.seeds = 20'000, .steps_most = 60'000}, end_late);
}

struct link_to {
  any_actor whom;
};
class linking : public actor<linking> {
 public:
  void on(const link_to& l) { link(l.whom); }
};

/// Notes say for which incarnation they are, which is in what a first link makes, on another worker.
void link_to_one_that_changes() {
  simulated_peer p;
  simulated_record record;
  p.record = &*record;
  peer = &p;
  runtime rt{workers(2)};
  rt.run([&] {
    auto b = spawn_actor<linking>();
    for (int i = 0; i < 3; ++i) {
      auto c = spawn_actor<counter>(*record, 1u);
      auto linker = spawn([b, c] { b.tell(link_to{c}); });
      c.tell(change_often{});
      detail::os_sleep(200 * pick(50));  // the linker is stolen
      linker.join();
      c.tell(change_often{});
      c.stop();
      c.join();
    }
    b.stop();
    b.join();
  });
}
TEST(active, uses_what_a_first_link_makes) {
  expect_sound("a first link to an active stream's owner", {.seeds = 3000, .steps_most = 60'000},
               link_to_one_that_changes);
}

}  // namespace
}  // namespace ramie::interleave
