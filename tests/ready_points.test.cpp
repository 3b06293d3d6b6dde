// Calls that may wait, and need not, in a loop: what ends waits ends the loop. Not in clean-up, nor in `shield`. And
// calls that are no waits: these go on. Two tables, of all such calls.
#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "clean_up_waits.hpp"
#include "on_workers.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace std::chrono_literals;
using all_waits::at_end;
using step = std::function<void()>;

struct kind {
  const char* name;
  step (*make)();
};

template <class T, class... Args>
std::shared_ptr<T> shared(Args&&... args) {
  return std::make_shared<T>(std::forward<Args>(args)...);
}

std::shared_ptr<channel<int>> room() { return shared<channel<int>>(1u); }
std::shared_ptr<event> set_event() {
  auto e = shared<event>();
  e->set();
  return e;
}
std::shared_ptr<future<int>> made_future() {
  promise<int> p;
  p.set_value(1);
  return shared<future<int>>(p.get_future());
}

const std::array ready_calls{
    kind{"send",
         [] {
           return step{[c = room()] {
             static_cast<void>(c->send(1));
             static_cast<void>(c->try_recv());
           }};
         }},
    kind{"send_for",
         [] {
           return step{[c = room()] {
             static_cast<void>(c->send_for(1, 1h));
             static_cast<void>(c->try_recv());
           }};
         }},
    kind{"recv",
         [] {
           return step{[c = room()] {
             static_cast<void>(c->try_send(1));
             c->recv();
           }};
         }},
    kind{"recv_for",
         [] {
           return step{[c = room()] {
             static_cast<void>(c->try_send(1));
             c->recv_for(1h);
           }};
         }},
    kind{"recv_of_a_closed_one",
         [] {
           auto c = room();
           c->close();
           return step{[c] { c->recv(); }};
         }},
    kind{"select",
         [] {
           return step{[c = room()] {
             static_cast<void>(c->try_send(1));
             select(on_recv(*c, [](std::optional<int>) {}));
           }};
         }},
    kind{"select_among_two_with_a_timeout",
         [] {
           return step{[c = room(), none = room()] {
             static_cast<void>(c->try_send(1));
             const auto nothing = [](std::optional<int>) {};
             select(on_recv(*none, nothing), on_recv(*c, nothing), on_timeout(1h));
           }};
         }},
    kind{"select_of_a_list",
         [] {
           return step{[c = room()] {
             static_cast<void>(c->try_send(1));
             std::vector cases{on_recv(*c, [](std::optional<int>) {})};
             select(cases);
           }};
         }},
    kind{"acquire",
         [] {
           return step{[s = shared<counting_semaphore<>>(1)] {
             s->acquire();
             s->release();
           }};
         }},
    kind{"try_acquire_for",
         [] {
           return step{[s = shared<counting_semaphore<>>(1)] {
             if (s->try_acquire_for(1h)) s->release();
           }};
         }},
    kind{"event", [] { return step{[e = set_event()] { e->wait(); }}; }},
    kind{"event_wait_for", [] { return step{[e = set_event()] { static_cast<void>(e->wait_for(1h)); }}; }},
    kind{"latch", [] { return step{[l = shared<latch>(0)] { l->wait(); }}; }},
    kind{"wait_group", [] { return step{[g = shared<wait_group>(0)] { g->wait(); }}; }},
    kind{"barrier", [] { return step{[b = shared<barrier<>>(1)] { b->arrive_and_wait(); }}; }},
    kind{"condition_variable",
         [] {
           return step{[c = shared<condition_variable>(), m = shared<mutex>()] {
             std::unique_lock guard{*m};
             c->wait(guard, [] { return true; });
           }};
         }},
    kind{"condition_variable_wait_for",
         [] {
           return step{[c = shared<condition_variable>(), m = shared<mutex>()] {
             std::unique_lock guard{*m};
             static_cast<void>(c->wait_for(guard, 1h, [] { return true; }));
           }};
         }},
    kind{"future", [] { return step{[f = made_future()] { f->wait(); }}; }},
    kind{"future_wait_for", [] { return step{[f = made_future()] { f->wait_for(1h); }}; }},
    kind{
        "shared_future",
        [] { return step{[f = shared<shared_future<int>>(made_future()->share())] { static_cast<void>(f->get()); }}; }},
    kind{"sleep", [] { return step{[] { this_fiber::sleep_for(0ns); }}; }},
    kind{"read",
         [] {
           return step{
               [f = shared<net::pipe_reader>(net::pipe_reader::adopt(::open("/dev/zero", O_RDONLY | O_CLOEXEC)))] {
                 std::array<std::byte, 16> bytes;
                 static_cast<void>(f->read_some(bytes));
               }};
         }},
    kind{"write",
         [] {
           return step{
               [f = shared<net::pipe_writer>(net::pipe_writer::adopt(::open("/dev/null", O_WRONLY | O_CLOEXEC)))] {
                 f->write_all(std::as_bytes(std::span{"to nowhere"}));
               }};
         }},
    kind{"wait_writable",
         [] {
           auto both = net::unix_stream::pair();
           return step{[one = shared<net::unix_stream>(std::move(both.first)),
                        other = shared<net::unix_stream>(std::move(both.second))] { one->wait_writable(); }};
         }},
    kind{"file",
         [] {
           net::file_options o;
           o.read = true;
           return step{[f = shared<net::file>(net::file::open("/proc/self/exe", o))] {
             std::array<std::byte, 16> bytes;
             static_cast<void>(f->read_at(0, bytes));
           }};
         }},
};

using ready_points = on_workers;
INSTANTIATE_TEST_SUITE_P(workers, ready_points, on_workers::all(), &on_workers::name);

/// More than any loop that hears of its end should make.
constexpr int steps_most = 20'000'000;

void go_on_with(const step& s) {
  for (int i = 0; i < steps_most; ++i) s();
  ADD_FAILURE() << "nothing ended it";
}

TEST_P(ready_points, hear_of_deadlines) {
  run([] {
    for (const kind& k : ready_calls) {
      const step s = k.make();
      EXPECT_THROW(with_timeout(1ms, [&] { go_on_with(s); }), timeout_error) << k.name;
    }
  });
}

TEST_P(ready_points, are_in_a_mailbox_that_is_never_empty) {
  run([] {
    bool late = false;
    event over;
    auto a = spawn_actor<int>([&](mailbox<int>& box) {
      try {
        with_timeout(1ms, [&] {
          go_on_with([&] {
            static_cast<void>(box.self().tell(1));
            static_cast<void>(box.receive());
          });
        });
      } catch (const timeout_error&) {
        late = true;
      }
      over.set();
    });
    over.wait();
    EXPECT_TRUE(late);
  });
}

TEST_P(ready_points, let_a_killed_actor_end_though_it_always_has_messages) {
  run([] {
    event begun;
    auto a = spawn_actor<int>([&](mailbox<int>& box) {
      do {
        static_cast<void>(box.self().tell(1));
        begun.set();
      } while (box.receive());
    });
    begun.wait();
    a.kill();
    EXPECT_EQ(a.join().kind(), exit_kind::killed);
  });
}

TEST_P(ready_points, hear_of_requests) {
  runtime rt{options()};
  for (const kind& k : ready_calls) {
    SCOPED_TRACE(k.name);
    std::atomic<bool> begun{false};
    auto h = rt.spawn([&] {
      const step s = k.make();
      begun = true;
      go_on_with(s);
    });
    while (!begun) std::this_thread::yield();
    h.request_stop();
    EXPECT_THROW(h.join(), child_cancelled);
  }
}

TEST_P(ready_points, hear_of_a_failed_scope) {
  runtime rt{options()};
  for (const kind& k : ready_calls) {
    SCOPED_TRACE(k.name);
    std::atomic<bool> begun{false};
    auto h = rt.spawn([&] {
      in_scope([&](body_scope& s) {
        s.spawn(fiber_options{}, [&] {
          blocking([&] {
            while (!begun) std::this_thread::yield();
          });
          throw std::runtime_error{"fails"};
        });
        const step next = k.make();
        begun = true;
        go_on_with([&] {
          next();
          this_fiber::yield();  // to the child, if there is one worker
        });
      });
    });
    EXPECT_THROW(h.join(), std::runtime_error);
  }
}

TEST_P(ready_points, hear_of_the_end_of_the_runtime) {
  for (const kind& k : ready_calls) {
    SCOPED_TRACE(k.name);
    runtime rt{options()};
    std::atomic<bool> begun{false};
    rt.spawn([&] {
        const step s = k.make();
        begun = true;
        go_on_with(s);
      }).detach();
    while (!begun) std::this_thread::yield();
    rt.shutdown();
  }
}

// On a plain thread only deadlines count.
TEST(ready_points_of_a_thread, hear_of_deadlines) {
  for (const kind& k : ready_calls) {
    SCOPED_TRACE(k.name);
    const step s = k.make();
    EXPECT_THROW(with_timeout(1ms, [&] { go_on_with(s); }), timeout_error);
    for (int i = 0; i < 200; ++i) s();
  }
}

constexpr int many = 300;  // a look is sure to be among them

/// Calls f in a fiber that was asked to stop, and has heard of it.
template <class F>
void in_a_stopped_fiber(F f) {
  event waits;
  auto h = spawn([&] {
    waits.set();
    EXPECT_THROW(this_fiber::sleep_for(1h), cancelled);
    f();
  });
  waits.wait();
  h.request_stop();
  h.join();
}

/// A function of its own: see context/no_throw.hpp.
RAMIE_NOINLINE void repeat(const step& s, std::atomic<int>& done) {
  for (int i = 0; i < many; ++i) {
    s();
    ++done;
  }
}

TEST_P(ready_points, are_none_in_clean_up) {
  run([] {
    for (const kind& k : ready_calls) {
      std::atomic<int> done{0};
      const step s = k.make();
      in_a_stopped_fiber([&] { shield([&] { repeat(s, done); }); });
      EXPECT_EQ(done, many) << k.name;
      in_a_stopped_fiber([&] {
        const at_end end{[&] { repeat(s, done); }};
        done = 0;
      });
      EXPECT_EQ(done, many) << k.name;
      in_a_stopped_fiber([&] {
        try {
          const at_end end{[&] { repeat(s, done); }};
          done = 0;
          throw std::runtime_error{"passes"};
        } catch (const std::runtime_error&) {
        }
      });
      EXPECT_EQ(done, many) << k.name;
    }
  });
}

struct takes_numbers : actor<takes_numbers> {
  void on(int) {}
};

const std::array calls_that_do_not_wait{
    kind{"try_send",
         [] {
           return step{[c = room()] {
             static_cast<void>(c->try_send(1));
             static_cast<void>(c->try_recv());
           }};
         }},
    kind{"select_with_otherwise",
         [] {
           return step{[c = room()] {
             static_cast<void>(c->try_send(1));
             select(on_recv(*c, [](std::optional<int>) {}), otherwise([] {}));
           }};
         }},
    kind{"try_acquire",
         [] {
           return step{[s = shared<counting_semaphore<>>(1)] {
             if (s->try_acquire()) s->release();
           }};
         }},
    kind{"lock", [] { return step{[m = shared<mutex>()] { const std::lock_guard guard{*m}; }}; }},
    kind{"shared_lock", [] { return step{[m = shared<shared_mutex>()] { const std::shared_lock guard{*m}; }}; }},
    kind{"try_lock_for",
         [] {
           return step{[m = shared<timed_mutex>()] {
             if (m->try_lock_for(1h)) m->unlock();
           }};
         }},
    kind{"set",
         [] {
           return step{[e = shared<event>()] {
             e->set();
             static_cast<void>(e->try_wait());
             e->reset();
           }};
         }},
    kind{"notify", [] { return step{[c = shared<condition_variable>()] { c->notify_all(); }}; }},
    kind{"arrive", [] { return step{[b = shared<barrier<>>(1)] { static_cast<void>(b->arrive()); }}; }},
    kind{"count_down",
         [] {
           return step{[] {
             latch l{1};
             l.count_down();
           }};
         }},
    kind{"close", [] { return step{[] { channel<int>{1}.close(); }}; }},
    kind{"tell", [] { return step{[a = spawn_actor<takes_numbers>()] { a.tell(1); }}; }},
    kind{"yield", [] { return step{[] { this_fiber::yield(); }}; }},
    kind{"join_of_what_has_ended",
         [] {
           return step{[] {
             auto h = spawn([] {});
             while (!h.has_ended()) this_fiber::yield();
             h.join();
           }};
         }},
    kind{"set_value",
         [] {
           return step{[] {
             promise<int> p;
             p.set_value(1);
           }};
         }},
    kind{"call_once", [] { return step{[f = shared<once_flag>()] { call_once(*f, [] {}); }}; }},
    kind{"try_read",
         [] {
           auto both = net::unix_stream::pair();
           return step{[one = shared<net::unix_stream>(std::move(both.first)),
                        other = shared<net::unix_stream>(std::move(both.second))] {
             std::array<std::byte, 16> bytes;
             static_cast<void>(one->try_read(bytes));
           }};
         }},
};

TEST_P(ready_points, are_none_where_nothing_waits) {
  run([] {
    for (const kind& k : calls_that_do_not_wait) {
      const step s = k.make();
      std::atomic<int> done{0};
      in_a_stopped_fiber([&] {
        for (int i = 0; i < many; ++i) {
          s();
          ++done;
        }
      });
      EXPECT_EQ(done, many) << k.name;
    }
  });
}

}  // namespace
}  // namespace ramie
