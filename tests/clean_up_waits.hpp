// Every kind of wait that can be cancelled, each of which has to wait, and ends by itself.
#pragma once

#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace ramie::all_waits {

using namespace std::chrono_literals;

/// Does something when it is destroyed, unless it was moved from.
template <class F>
struct at_end {
  std::optional<F> f;
  explicit at_end(F call) : f{std::move(call)} {}
  at_end(at_end&& other) noexcept : f{std::move(other.f)} { other.f.reset(); }
  at_end& operator=(at_end&&) = delete;
  ~at_end() {
    if (f) (*f)();
  }
};

struct slow : actor<slow> {
  void on(int) { this_fiber::sleep_for(300us); }
};

/// What the waits wait for, from a thread that no runtime stops.
class supplier {
 public:
  runtime elsewhere{{.workers = 1}};
  channel<int> values{1};
  channel<int> places{0};
  counting_semaphore<> turns{0};
  event signal{event_reset::automatic};
  mutex lock;
  condition_variable changed;
  int changes = 0;
  actor_ref<slow> busy = spawn_actor_in<slow>(elsewhere, actor_options{.mailbox_capacity = 1});

  /// What comes from now on is still to come.
  void take_what_is_there() {
    static_cast<void>(values.try_recv());
    while (turns.try_acquire()) {
    }
    signal.reset();
  }

  ~supplier() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_{[this] {
    while (!over_) {
      std::this_thread::sleep_for(100us);
      static_cast<void>(values.try_send(1));
      static_cast<void>(places.try_recv());
      turns.release();
      signal.set();
      {
        const std::lock_guard guard{lock};
        ++changes;
      }
      changed.notify_all();
    }
  }};
};

struct wait_kind {
  const char* name;
  void (*wait)(supplier&);
};
inline const std::array wait_kinds{
    wait_kind{"sleep", [](supplier&) { this_fiber::sleep_for(500us); }},
    wait_kind{"send", [](supplier& s) { static_cast<void>(s.places.send(1)); }},
    wait_kind{"recv",
              [](supplier& s) {
                s.take_what_is_there();
                s.values.recv();
              }},
    wait_kind{"recv_for",
              [](supplier& s) {
                s.take_what_is_there();
                s.values.recv_for(1h);
              }},
    wait_kind{"select",
              [](supplier& s) {
                s.take_what_is_there();
                select(on_recv(s.values, [](std::optional<int>) {}));
              }},
    wait_kind{"acquire",
              [](supplier& s) {
                s.take_what_is_there();
                s.turns.acquire();
              }},
    wait_kind{"try_acquire_for",
              [](supplier& s) {
                s.take_what_is_there();
                EXPECT_TRUE(s.turns.try_acquire_for(1h));
              }},
    wait_kind{"event",
              [](supplier& s) {
                s.take_what_is_there();
                s.signal.wait();
              }},
    wait_kind{"event_for",
              [](supplier& s) {
                s.take_what_is_there();
                EXPECT_TRUE(s.signal.wait_for(1h));
              }},
    wait_kind{"condition_variable",
              [](supplier& s) {
                std::unique_lock guard{s.lock};
                const int before = s.changes;
                s.changed.wait(guard, [&] { return s.changes != before; });
              }},
    wait_kind{"condition_variable_until",
              [](supplier& s) {
                std::unique_lock guard{s.lock};
                const int before = s.changes;
                EXPECT_TRUE(s.changed.wait_for(guard, 1h, [&] { return s.changes != before; }));
              }},
    wait_kind{"join", [](supplier& s) { s.elsewhere.spawn([] { this_fiber::sleep_for(500us); }).join(); }},
    wait_kind{"future",
              [](supplier&) {
                promise<void> p;
                std::thread other{[&] {
                  std::this_thread::sleep_for(500us);
                  p.set_value();
                }};
                p.get_future().get();
                other.join();
              }},
    wait_kind{"future_for",
              [](supplier&) {
                promise<void> p;
                const future<void> f = p.get_future();
                std::thread other{[&] {
                  std::this_thread::sleep_for(500us);
                  p.set_value();
                }};
                EXPECT_EQ(f.wait_for(1h), std::future_status::ready);
                other.join();
              }},
    wait_kind{"latch",
              [](supplier&) {
                latch l{1};
                std::thread other{[&] {
                  std::this_thread::sleep_for(500us);
                  l.count_down();
                }};
                l.wait();
                other.join();
              }},
    wait_kind{"barrier",
              [](supplier&) {
                barrier b{2};
                std::thread other{[&] {
                  std::this_thread::sleep_for(500us);
                  b.arrive_and_wait();
                }};
                b.arrive_and_wait();
                other.join();
              }},
    wait_kind{"tell",
              [](supplier& s) {
                for (int i = 0; i < 3; ++i) EXPECT_EQ(s.busy.tell(i), tell_status::ok);
              }},
    wait_kind{"blocking", [](supplier&) { blocking([] { std::this_thread::sleep_for(500us); }); }},
};

}  // namespace ramie::all_waits
