// Selects on more than channels.
#include <ramie/channel/on_ready.hpp>

#include <ramie/channel/case_list.hpp>
#include <ramie/channel/select.hpp>
#include <ramie/channel/testing.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/future/async.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace channel_tests;
using ramie::event;

constexpr auto wrong = [](auto&&...) { ADD_FAILURE() << "the wrong case was taken"; };

class waiting_for : public in_worlds {};
INSTANTIATE_TEST_SUITE_P(in, waiting_for, all_worlds(), name_of);

TEST_P(waiting_for, what_is_ready_does_not_wait) {
  run([](crew&) {
    channel<int> never;
    event set{event_reset::manual, true}, unset;
    event once{event_reset::automatic, true};
    latch open{0}, shut{1};
    wait_group none, some{1};
    counting_semaphore<> two{2};
    promise<int> kept, pending;
    kept.set_value(3);
    future<int> there = kept.get_future(), later = pending.get_future();
    const auto no = [&](auto fires) {
      return select(on_recv(never, wrong), on_ready(unset, wrong), on_ready(shut, wrong), on_ready(some, wrong),
                    on_ready(later, wrong), std::move(fires));
    };
    int fired = 0;
    const auto hit = [&] { ++fired; };
    EXPECT_EQ(no(on_ready(set, hit)), 5u);
    EXPECT_TRUE(set.is_set());
    EXPECT_EQ(no(on_ready(once, hit)), 5u);
    EXPECT_FALSE(once.is_set()) << "an automatic event is reset by the select";
    EXPECT_EQ(no(on_ready(open, hit)), 5u);
    EXPECT_EQ(no(on_ready(none, hit)), 5u);
    EXPECT_EQ(no(on_acquire(two, hit)), 5u);
    EXPECT_EQ(no(on_acquire(two, hit)), 5u);
    EXPECT_FALSE(two.try_acquire()) << "both permits were taken by selects";
    EXPECT_EQ(no(on_ready(there, hit)), 5u);
    EXPECT_EQ(there.get(), 3);
    EXPECT_EQ(fired, 7);
    EXPECT_EQ(no(otherwise(hit)), 5u);
    EXPECT_EQ(no(on_timeout(1us, hit)), 5u);
  });
}

TEST_P(waiting_for, what_comes_later_wakes) {
  run([](crew& all) {
    channel<int> never;
    for (int kind = 0; kind < 7; ++kind) {
      event set, automatic{event_reset::automatic};
      latch open{1};
      wait_group done{1};
      counting_semaphore<> permits{0};
      promise<int> to;
      future<int> from = to.get_future();
      channel<int> c;
      std::atomic<bool> selecting{false};
      all.start([&] {
        await([&] { return selecting.load(); });
        if (kind == 0) set.set();
        if (kind == 1) automatic.set();
        if (kind == 2) open.count_down();
        if (kind == 3) done.done();
        if (kind == 4) permits.release();
        if (kind == 5) to.set_value(1);
        if (kind == 6) static_cast<void>(c.send(2));
      });
      selecting = true;
      int fired = 0;
      const auto hit = [&](auto&&...) { ++fired; };
      EXPECT_EQ(select(on_ready(set, hit), on_ready(automatic, hit), on_ready(open, hit), on_ready(done, hit),
                       on_acquire(permits, hit), on_ready(from, hit), on_recv(c, hit), on_timeout(1h, wrong)),
                static_cast<std::size_t>(kind));
      EXPECT_EQ(fired, 1);
      EXPECT_FALSE(automatic.is_set());
      EXPECT_FALSE(permits.try_acquire());
      all.join();
    }
  });
}

TEST_P(waiting_for, permits_loses_none_and_makes_none) {
  run([](crew& all) {
    constexpr int waiters = 8;
    const int rounds = scaled(300);
    counting_semaphore<> permits{2};
    event stop;
    channel<int> elements{1};
    std::atomic<int> inside{0}, most{0}, taken{0}, received{0};
    for (int i = 0; i < waiters; ++i)
      all.start([&] {
        for (bool going = true; going;)
          select(on_acquire(permits,
                            [&] {
                              const int now = ++inside;
                              for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                              }
                              ++taken;
                              --inside;
                              permits.release();
                              this_fiber::yield();  // there is always a permit, so the select never waits
                            }),
                 on_recv(elements, [&](std::optional<int>) { ++received; }), on_ready(stop, [&] { going = false; }));
      });
    for (int i = 0; i < rounds; ++i) static_cast<void>(elements.send(i));
    await([&] { return received == rounds; });
    stop.set();
    all.join();
    EXPECT_LE(most, 2);
    EXPECT_TRUE(permits.try_acquire() && permits.try_acquire());
    EXPECT_FALSE(permits.try_acquire()) << "a permit came from nowhere";
  });
}

/// Selects on two events, in either order, which are set at once by two parties.
TEST_P(waiting_for, two_events_set_at_once_ends_all) {
  run([](crew& all) {
    for (int round = 0; round < scaled(100); ++round) {
      event work, quit;
      std::atomic<int> ended{0};
      for (int i = 0; i < 10; ++i)
        all.start([&, i] {
          if (i % 3 == 0) select(on_ready(work), on_ready(quit));
          else if (i % 3 == 1) select(on_ready(quit), on_ready(work));
          else work.wait();
          ++ended;
        });
      all.start([&] { quit.set(); });
      work.set();
      all.join();
      EXPECT_EQ(ended, 10);
    }
  });
}

TEST_P(waiting_for, one_thing_by_many_selects) {
  run([](crew& all) {
    channel<int> never;
    latch open{1};
    std::atomic<int> through{0};
    for (int i = 0; i < 20; ++i)
      all.start([&] {
        select(on_recv(never, wrong), on_ready(open, [&] { ++through; }), on_ready(open, [&] { ++through; }));
      });
    open.count_down();
    all.join();
    EXPECT_EQ(through, 20);
  });
}

TEST_P(waiting_for, the_first_of_several_results) {
  if (on_threads()) GTEST_SKIP() << "async needs a runtime";
  run([](crew&) {
    channel<int> gate;
    auto slow = async([&] { return gate.recv().value_or(0); });
    auto fast = async([] { return std::string{"fast"}; });
    EXPECT_EQ(select(on_ready(slow, wrong), on_ready(fast, [&] { EXPECT_EQ(fast.get(), "fast"); })), 1u);
    static_cast<void>(gate.send(4));
    shared_future<int> shared = slow.share();
    select(on_ready(shared));
    EXPECT_EQ(shared.get(), 4);
    auto deferred = async(std::launch::deferred, [] { return 5; });
    EXPECT_EQ(select(on_recv(gate, wrong), on_ready(deferred)), 1u);
    EXPECT_EQ(deferred.get(), 5);
    future<int> empty;
    EXPECT_THROW(select(on_ready(empty), otherwise()), future_error);
  });
}

TEST_P(waiting_for, the_end_of_fibers) {
  if (on_threads()) GTEST_SKIP() << "it needs a runtime";
  run([](crew&) {
    channel<int> first, second, never;
    std::vector<join_handle<int>> both;
    both.push_back(spawn([&] { return first.recv().value_or(-1); }));
    both.push_back(spawn([&] { return second.recv().value_or(-1); }));
    EXPECT_EQ(select(on_ready(both[0], wrong), on_recv(never, wrong), on_ready(both[1], wrong), on_timeout(100us)), 3u);
    static_cast<void>(second.send(2));
    EXPECT_EQ(select(on_ready(both[0], wrong), on_recv(never, wrong),
                     on_ready(both[1], [&] { EXPECT_EQ(both[1].join(), 2); })),
              2u);
    // A select that was on it before does not keep another from joining it.
    static_cast<void>(first.send(1));
    EXPECT_EQ(both[0].join(), 1);
    join_handle<void> nothing;
    EXPECT_THROW(select(on_ready(nothing), otherwise()), usage_error);
    auto failing = spawn([] { throw std::runtime_error{"no"}; });
    select(on_ready(failing));
    EXPECT_TRUE(failing.has_ended());
    EXPECT_THROW(failing.join(), std::runtime_error);
  });
}

TEST_P(waiting_for, all_fibers_of_a_list_as_they_end) {
  if (on_threads()) GTEST_SKIP() << "it needs a runtime";
  run([](crew&) {
    constexpr int n = 20;
    std::vector<join_handle<int>> running;
    for (int i = 0; i < n; ++i)
      running.push_back(spawn([i] {
        if (i % 2 == 0) this_fiber::sleep_for(std::chrono::microseconds{i * 10});
        return i;
      }));
    int sum = 0;
    while (!running.empty()) {
      std::vector<decltype(on_ready(running[0]))> cases;
      for (const auto& h : running) cases.push_back(on_ready(h));
      const std::size_t at = select(cases);
      sum += running[at].join();
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
    }
    EXPECT_EQ(sum, n * (n - 1) / 2);
  });
}

TEST_P(waiting_for, a_fiber_that_another_joins_is_refused) {
  if (on_threads()) GTEST_SKIP() << "it needs a runtime";
  run([](crew& all) {
    channel<int> gate, other;
    auto h = spawn([&] { gate.recv(); });
    all.start([&] { select_in_order(on_ready(h), on_recv(other, wrong)); });
    await_receivers(other, 1);
    EXPECT_THROW(select(on_recv(other, wrong), on_ready(h)), usage_error);
    EXPECT_EQ(other.statistics().waiting_receivers, 1u) << "the case before it is still in line";
    static_cast<void>(gate.send(1));
    all.join();
    h.join();
  });
}

TEST_P(waiting_for, the_results_of_children) {
  if (on_threads()) GTEST_SKIP() << "it needs a runtime";
  run([](crew&) {
    channel<int> first, second, never;
    scope s;
    const auto a = s.spawn([&] { return first.recv().value_or(-1); });
    const auto b = s.spawn(fiber_options{}, [&] { return second.recv().value_or(-1); });
    EXPECT_EQ(
        select(on_ready(a, wrong), on_recv(never, wrong), on_ready(b, wrong), on_ready(a, wrong), on_timeout(1ms)), 4u);
    EXPECT_EQ(second.send(2), channel_status::ok);
    EXPECT_EQ(select(on_ready(a, wrong), on_recv(never, wrong), on_ready(b, [&] { EXPECT_EQ(b.get(), 2); })), 2u);
    EXPECT_EQ(first.send(1), channel_status::ok);
    EXPECT_EQ(a.get(), 1) << "a select that was on it before does not keep another from it";
    EXPECT_EQ(select(on_ready(a)), 0u);
    scope failing;
    const auto bad = failing.spawn([]() -> int { throw std::runtime_error{"no"}; });
    select(on_ready(bad));
    EXPECT_TRUE(bad.is_ready());
    EXPECT_THROW(bad.get(), std::runtime_error);
    EXPECT_THROW(failing.join(), std::runtime_error);
  });
}

TEST_P(waiting_for, a_child_that_another_waits_for_is_refused) {
  if (on_threads()) GTEST_SKIP() << "it needs a runtime";
  run([](crew& all) {
    channel<int> gate, other;
    scope s;
    const auto r = s.spawn(fiber_options{}, [&] { return gate.recv().value_or(-1); });
    all.start([&] { select_in_order(on_ready(r), on_recv(other, wrong)); });
    await_receivers(other, 1);
    EXPECT_THROW(select(on_recv(other, wrong), on_ready(r)), usage_error);
    EXPECT_THROW(r.get(), usage_error);
    EXPECT_EQ(gate.send(1), channel_status::ok);
    all.join();
    EXPECT_EQ(r.get(), 1);
  });
}

TEST_P(waiting_for, results_of_a_join_set) {
  if (on_threads()) GTEST_SKIP() << "it needs a runtime";
  run([](crew&) {
    channel<int> gate;
    join_set<int> set;
    EXPECT_EQ(select(on_ready(set, wrong), otherwise()), 1u);
    for (int i = 0; i < 3; ++i) set.spawn(fiber_options{}, [&] { return gate.recv().value_or(-1); });
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(select(on_ready(set, wrong), on_timeout(100us)), 1u);
      EXPECT_EQ(gate.send(i), channel_status::ok);
      EXPECT_EQ(select(on_ready(set), on_recv(gate, wrong)), 0u);
      EXPECT_EQ(set.next(), i);
    }
    EXPECT_EQ(select(on_ready(set, wrong), otherwise()), 1u);
  });
}

TEST_P(waiting_for, ends_by_cancellation_and_leaves_nothing_behind) {
  if (on_threads()) GTEST_SKIP() << "it needs a runtime";
  run([](crew&) {
    counting_semaphore<> permits{0};
    event e{event_reset::automatic};
    channel<int> c;
    auto h = spawn([&] { select(on_acquire(permits, wrong), on_ready(e, wrong), on_recv(c, wrong)); });
    await_receivers(c, 1);
    h.request_stop();
    EXPECT_THROW(h.join(), child_cancelled);
    EXPECT_THROW(with_timeout(100us, [&] { select(on_acquire(permits, wrong), on_ready(e, wrong)); }), timeout_error);
    permits.release();
    e.set();
    EXPECT_TRUE(permits.try_acquire()) << "a permit went to a select that had ended";
    EXPECT_TRUE(e.is_set());
  });
}

TEST_P(waiting_for, cases_of_a_list_that_can_be_switched_off) {
  run([](crew&) {
    event e;
    counting_semaphore<> permits{1};
    channel<int> c{1};
    static_cast<void>(c.send(7));
    case_list cases;
    int got = 0, acquired = 0;
    const std::size_t receives = cases.add(on_recv(c, [&](std::optional<int> v) { got = v.value_or(0); }));
    const std::size_t waits = cases.add(on_ready(e));
    const std::size_t acquires = cases.add(on_acquire(permits, [&] { ++acquired; }));
    cases.enable(acquires, false);
    EXPECT_EQ(select(cases), receives);
    EXPECT_EQ(got, 7);
    EXPECT_EQ(select(cases, otherwise()), 3u);
    cases.enable(acquires);
    EXPECT_EQ(select(cases), acquires);
    EXPECT_EQ(acquired, 1);
    e.set();
    EXPECT_EQ(select(cases), waits);
    EXPECT_EQ(select(cases), waits);
    cases.enable(waits, false);
    static_cast<void>(c.send(8));
    EXPECT_EQ(select(cases), receives);
  });
}

TEST_P(waiting_for, the_first_ready_case_in_order) {
  run([](crew& all) {
    channel<int> urgent{100}, usual{100};
    for (int i = 0; i < 100; ++i) static_cast<void>(urgent.send(i)), static_cast<void>(usual.send(i));
    std::string order;
    for (int i = 0; i < 200; ++i)
      select_in_order(on_recv(urgent, [&](std::optional<int>) { order += 'u'; }),
                      on_recv(usual, [&](std::optional<int>) { order += '-'; }));
    EXPECT_EQ(order, std::string(100, 'u') + std::string(100, '-'));
    EXPECT_EQ(select_in_order(on_recv(urgent, wrong), on_recv(usual, wrong), otherwise()), 2u);
    all.start([&] { static_cast<void>(usual.send(1)); });
    EXPECT_EQ(select_in_order(on_recv(urgent, wrong), on_recv(usual, [](auto) {})), 1u);
    all.join();
    channel<int> c;
    std::array<int, 2> served{};
    for (int i = 0; i < 50; ++i) {
      all.start([&] { static_cast<void>(c.send(1)); });
      await_senders(c, 1);
      ++served[select_in_order(on_recv(c, [](auto) {}), on_recv(c, [](auto) {}))];
      all.join();
    }
    EXPECT_EQ(served[0], 50);
  });
}

TEST_P(waiting_for, an_outcome_as_a_value) {
  run([](crew&) {
    channel<int> numbers{1};
    channel<std::string> words{1};
    event e;
    static_cast<void>(numbers.send(4));
    auto got = select_value(on_recv(numbers), on_recv(words), on_ready(e), on_timeout(1h));
    static_assert(
        std::is_same_v<decltype(got),
                       std::variant<std::optional<int>, std::optional<std::string>, std::monostate, std::monostate>>);
    ASSERT_EQ(got.index(), 0u);
    EXPECT_EQ(std::get<0>(got), 4);
    auto sent = select_value(on_recv(numbers), on_send(words, "word"));
    EXPECT_EQ(std::get<1>(sent), channel_status::ok);
    EXPECT_EQ(std::get<1>(select_value(on_recv(numbers), on_recv(words), otherwise())), "word");
    EXPECT_EQ(select_value(on_recv(numbers), otherwise()).index(), 1u);
    EXPECT_EQ(select_value(when(false, on_recv(numbers)), on_timeout(1us)).index(), 1u);
    words.close();
    EXPECT_EQ(std::get<1>(select_value(on_recv(numbers), on_recv(words))), std::nullopt);
    channel<std::unique_ptr<int>> boxes{1};
    auto box = std::make_unique<int>(9);
    EXPECT_EQ(std::get<0>(select_value(on_send(boxes, std::move(box)))), channel_status::ok);
    EXPECT_EQ(**std::get<0>(select_value(on_recv(boxes), on_recv(numbers))), 9);
  });
}

TEST_P(waiting_for, one_case_object_again_and_twice) {
  run([](crew& all) {
    channel<int> c, never;
    int sum = 0;
    auto one = on_recv(c, [&](std::optional<int> v) { sum += v.value_or(0); });
    auto other = on_recv(never, wrong);
    int word = 1;
    channel<int> out{4};
    auto sends = on_send(out, std::ref(word), [](channel_status) {});
    for (word = 1; word <= 3; ++word) select(sends, other);
    EXPECT_EQ(out.recv(), 1);
    EXPECT_EQ(out.recv(), 2);
    EXPECT_EQ(out.recv(), 3);
    for (int i = 1; i <= 3; ++i) {
      all.start([&, i] { static_cast<void>(c.send(i)); });
      select(one, other, one);
      all.join();
    }
    EXPECT_EQ(sum, 6);
    EXPECT_EQ(c.statistics().waiting_receivers, 0u);
    event e;
    int times = 0;
    auto waits = on_ready(e, [&] { ++times; });
    all.start([&] { e.set(); });
    select(waits, waits);
    select(waits, other);
    all.join();
    EXPECT_EQ(times, 2);
  });
}

}  // namespace
}  // namespace ramie
