// What a snapshot says of programs that are known.
#include <ramie/runtime/snapshot.hpp>

#include <ramie/channel.hpp>
#include <ramie/fiber.hpp>
#include <ramie/runtime.hpp>
#include <ramie/sync.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

namespace ramie {
namespace {

using namespace std::chrono_literals;

/// Looks until `enough` of it: fibers need time to begin.
template <class F>
runtime_snapshot until(runtime& of, const snapshot_options& options, F enough) {
  for (;;)
    if (runtime_snapshot s = snapshot(of, options); enough(s)) return s;
}

const fiber_view* find(const runtime_snapshot& s, const std::string& name) {
  const auto at = std::find_if(s.fibers.begin(), s.fibers.end(), [&](const fiber_view& f) { return f.name == name; });
  return at == s.fibers.end() ? nullptr : &*at;
}

TEST(snapshots, count_waits_by_place) {
  runtime rt{{.workers = 2}};
  rt.run([&] {
    channel<int> numbers;
    event open;
    scope all;
    for (int i = 0; i < 30; ++i) all.spawn([&] { (void)numbers.recv(); });
    for (int i = 0; i < 20; ++i) all.spawn([&] { open.wait(); });
    const runtime_snapshot s = until(rt, {}, [](const runtime_snapshot& now) { return now.waiting == 50; });
    ASSERT_GE(s.places.size(), 2U);
    EXPECT_EQ(s.places[0].count, 30U);
    EXPECT_EQ(s.places[0].where.reason, "channel receive");
    EXPECT_TRUE(s.places[0].where.file.ends_with("snapshot.test.cpp")) << s.places[0].where.file;
    EXPECT_EQ(s.places[1].count, 20U);
    EXPECT_EQ(s.begun, s.waiting + s.running + s.ready);
    EXPECT_EQ(s.running, 1U);  // this one
    open.set();
    numbers.close();
    all.join();
  });
}

TEST(snapshots, list_those_that_wait_longest) {
  runtime rt{{.workers = 2}};
  rt.run([&] {
    event open;
    scope all;
    for (const char* name : {"first", "second", "third"}) {
      const std::uint64_t before = snapshot(rt).waiting;
      all.spawn(fiber_options{.name = name}, [&] { open.wait(); });
      until(rt, {}, [&](const runtime_snapshot& s) { return s.waiting > before; });
    }
    const runtime_snapshot s = snapshot(rt, {.fibers = 3});
    ASSERT_EQ(s.fibers.size(), 3U);
    EXPECT_EQ(s.fibers[0].state, fiber_view::doing::runs);  // who runs comes first
    EXPECT_EQ(s.fibers[1].name, "first");
    EXPECT_EQ(s.fibers[2].name, "second");
    EXPECT_GE(s.fibers[1].waits_ns, s.fibers[2].waits_ns);
    EXPECT_EQ(snapshot(rt, {.fibers = 0}).fibers.size(), 0U);
    open.set();
    all.join();
  });
}

TEST(snapshots, name_the_holder_of_a_mutex_and_the_calls) {
  runtime rt{{.workers = 2}};
  rt.run([&] {
    mutex till;
    event open;
    auto holder = spawn(fiber_options{.name = "holder"}, [&] {
      const std::lock_guard locked{till};
      open.wait();
    });
    const auto holds = until(rt, {}, [](const runtime_snapshot& s) {
      const fiber_view* f = find(s, "holder");
      return f != nullptr && f->state == fiber_view::doing::waits;
    });
    auto other = spawn(fiber_options{.name = "other"}, [&] { const std::lock_guard locked{till}; });
    runtime_snapshot s = until(rt, {}, [](const runtime_snapshot& now) {
      const fiber_view* f = find(now, "other");
      return f != nullptr && f->state == fiber_view::doing::waits;
    });
    const fiber_view* waits = find(s, "other");
    EXPECT_EQ(waits->where.reason, "mutex");
    EXPECT_EQ(waits->held_by, find(holds, "holder")->id);
    EXPECT_TRUE(waits->calls.empty());
    s = snapshot(rt, {.fibers = 1, .follow = waits->id});
    ASSERT_EQ(s.fibers.size(), 1U);
    EXPECT_EQ(s.fibers[0].name, "other");
    EXPECT_TRUE(std::any_of(s.fibers[0].calls.begin(), s.fibers[0].calls.end(),
                            [](const std::string& c) { return c.find("ramie::mutex::lock") != std::string::npos; }));
    open.set();
    holder.join();
    other.join();
  });
}

TEST(snapshots, show_what_workers_run_and_their_timers) {
  runtime rt{{.workers = 2}};
  std::atomic<bool> runs{true};
  auto hog = rt.spawn(fiber_options{.name = "hog"}, [&] {
    while (runs.load(std::memory_order_relaxed)) {
    }
  });
  auto sleeper = rt.spawn([] { this_fiber::sleep_for(1h); });
  const runtime_snapshot s = until(rt, {}, [](const runtime_snapshot& now) {
    std::size_t timers = 0, hogs = 0;
    for (const worker_view& w : now.workers) timers += w.timers, hogs += w.title == "hog" ? 1 : 0;
    return timers == 1 && hogs == 1;
  });
  for (const worker_view& w : s.workers) {
    if (w.timers == 1) {
      EXPECT_GT(w.next_timer_ns, 0);
    }
    if (w.title == "hog") {
      EXPECT_EQ(w.state, worker_view::doing::runs);
      EXPECT_NE(w.runs, 0U);
    }
  }
  const auto used = [&] {
    std::int64_t all = 0;
    for (const worker_view& w : snapshot(rt).workers) all += w.processor_ns;
    return all;
  };
  for (const std::int64_t before = used(); used() <= before;) {
  }
  runs.store(false);
  hog.join();
  sleeper.request_stop();
}

TEST(snapshots, are_of_one_runtime) {
  runtime one{{.workers = 1}}, other{{.workers = 1}};
  event open;
  auto here = one.spawn(fiber_options{.name = "here"}, [&] { open.wait(); });
  auto there = other.spawn(fiber_options{.name = "there"}, [&] { open.wait(); });
  const auto waits = [](const runtime_snapshot& s) { return s.waiting == 1; };
  EXPECT_EQ(until(one, {}, waits).fibers.at(0).name, "here");
  EXPECT_EQ(until(other, {}, waits).fibers.at(0).name, "there");
  open.set();
  here.join();
  there.join();
}

TEST(snapshots, of_fibers_that_come_and_go_are_sound) {
  runtime rt{{.workers = 2}};
  std::atomic<bool> ends{false};
  auto busy = rt.spawn([&] {
    while (!ends.load(std::memory_order_relaxed)) {
      channel<int> numbers{1};
      scope all;
      for (int i = 0; i < 20; ++i) all.spawn(fiber_options{.name = "short"}, [&] { (void)numbers.recv(); });
      for (int i = 0; i < 20; ++i) (void)numbers.send(i);
      all.join();
    }
  });
  for (int i = 0; i < 300; ++i) {
    const runtime_snapshot s = snapshot(rt, {.fibers = 10});
    EXPECT_LE(s.fibers.size(), 10U);
    EXPECT_EQ(s.begun, s.waiting + s.running + s.ready);
    for (const place_count& p : s.places) EXPECT_FALSE(p.where.reason.empty());
  }
  ends.store(true);
  busy.join();
}

TEST(prometheus, has_several_runtimes_under_one_heading) {
  std::array<runtime_statistics, 2> all;
  all[0].name = "a";
  all[0].live = 1;
  all[1].name = "b";
  all[1].live = 2;
  const std::string text = to_prometheus(all);
  EXPECT_NE(text.find("# TYPE ramie_live gauge\nramie_live{runtime=\"a\"} 1\nramie_live{runtime=\"b\"} 2\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("# TYPE ramie_live"), text.rfind("# TYPE ramie_live"));
}

}  // namespace
}  // namespace ramie
