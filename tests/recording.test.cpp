// Statistics and traces: what is counted, measured and written down.
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace ramie {
namespace {

using namespace std::chrono_literals;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}
bool has(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

void talk(int messages) {
  channel<int> numbers;
  auto reader = spawn(fiber_options{.name = "reader"}, [&] {
    while (numbers.recv()) {
    }
  });
  auto writer = spawn(fiber_options{.name = "writer"}, [&] {
    for (int i = 0; i < messages; ++i) static_cast<void>(numbers.send(i));
    numbers.close();
  });
  writer.join();
  reader.join();
}

TEST(statistics, are_those_of_the_workers_together) {
  runtime rt{{.workers = 2, .name = "counted", .spare_workers = 0}};
  rt.run([] { talk(100); });
  const runtime_statistics s = rt.statistics();
  EXPECT_EQ(s.name, "counted");
  EXPECT_EQ(s.workers.size(), 2u);
  EXPECT_EQ(s.counted.spawned, 3u);
  std::uint64_t dispatches = 0;
  for (const worker_statistics& w : s.workers) dispatches += w.counted.dispatches;
  EXPECT_GT(dispatches, 50u);
  EXPECT_GE(rt.counters().dispatches, dispatches);
  EXPECT_EQ(s.run.count(), 0u);  // not asked for
}

class counting_actor : public actor<counting_actor> {
 public:
  void on(int) { ++handled_; }
  int on(std::string) { return handled_; }

 private:
  int handled_ = 0;
};

TEST(statistics, count_turns_that_actors_end_to_let_others_run) {
  runtime rt{{.workers = 1, .spare_workers = 0}};
  rt.run([&] {
    auto few = spawn_actor<counting_actor>();
    for (int i = 0; i < 40; ++i) few.tell(i);
    EXPECT_EQ(few.ask(std::string{}), 40);
    EXPECT_EQ(rt.counters().time_slices, 0u);
    auto many = spawn_actor<counting_actor>();
    for (int i = 0; i < 1000; ++i) many.tell(i);
    EXPECT_EQ(many.ask(std::string{}), 1000);
    // The request was in the mailbox, too.
    EXPECT_EQ(rt.counters().time_slices, 1001u / 64);
  });
  EXPECT_EQ(rt.statistics().workers.at(0).counted.time_slices, 1001u / 64);
}

TEST(statistics, count_what_came_from_other_threads) {
  runtime rt{{.workers = 1, .spare_workers = 0}};
  constexpr std::uint64_t fibers = 20;
  for (std::uint64_t i = 0; i < fibers; ++i) rt.spawn([] {}).join();
  EXPECT_EQ(rt.counters().injected, fibers);  // this thread is not a worker
  rt.run([] {
    for (std::uint64_t i = 0; i < fibers; ++i) spawn([] {}).join();
  });
  EXPECT_EQ(rt.counters().injected, fibers + 1);  // but a worker puts its own spawns into its own queue
  EXPECT_EQ(rt.statistics().workers.at(0).counted.injected, fibers + 1);
}

TEST(statistics, count_wakes_here_and_elsewhere) {
  runtime rt{{.workers = 2, .placement = placement::dedicated, .spare_workers = 0}};
  constexpr std::uint64_t questions = 100;
  const auto ask_from = [&](int worker) {
    const runtime_counters before = rt.counters();
    rt.spawn(fiber_options{.worker = worker}, [&] {
        auto asked = spawn_actor<counting_actor>(actor_options{.worker = 0});
        for (std::uint64_t i = 0; i < questions; ++i) asked.ask(std::string{});
        asked.stop();
        asked.join();
      }).join();
    runtime_counters counted = rt.counters();
    counted.wakes -= before.wakes;
    counted.wakes_elsewhere -= before.wakes_elsewhere;
    return counted;
  };
  const runtime_counters together = ask_from(0);
  EXPECT_GE(together.wakes, 2 * questions);  // the actor by the request, and the caller by the reply
  EXPECT_EQ(together.wakes_elsewhere, 0u);
  const runtime_counters apart = ask_from(1);
  EXPECT_GE(apart.wakes_elsewhere, 1u);  // by the first request; later ones may find the actor still running
  EXPECT_EQ(apart.migrations, 0u);       // pinned fibers stay
  EXPECT_EQ(apart.steals_tried, 0u);
  while (rt.counters().sleeps == 0) std::this_thread::yield();  // there is nothing more to do
}

TEST(statistics, count_thefts) {
  // Two fibers that can only end together: the second has to be stolen, as no worker counts as stalled so soon.
  runtime rt{{.workers = 2, .spare_workers = 0, .stall_after = 60s}};
  rt.run([] {
    std::atomic<int> running{0};
    const auto meet = [&] {
      running.fetch_add(1);
      while (running.load() != 2) std::this_thread::yield();
    };
    auto other = spawn(meet);
    meet();
    other.join();
  });
  const runtime_counters counted = rt.counters();
  EXPECT_GE(counted.steals, 1u);
  EXPECT_GE(counted.steals_tried, counted.steals);
}

TEST(statistics, show_what_waits_where) {
  runtime rt{{.workers = 1, .name = "queues", .spare_workers = 0}};
  rt.run([&] {
    for (int i = 0; i < 10; ++i) spawn([] {}).detach();
    const runtime_statistics s = rt.statistics();
    EXPECT_EQ(s.workers.at(0).fresh, 10u);
    EXPECT_EQ(s.live, 11u);
    EXPECT_FALSE(s.workers.at(0).sleeps);
  });
}

TEST(statistics, measure_turns_and_waits_if_asked_to) {
  runtime rt{{.workers = 1, .name = "measured", .spare_workers = 0}};
  EXPECT_TRUE(rt.record({.trace = false, .histograms = true}));
  EXPECT_FALSE(rt.record());
  rt.run([] {
    talk(1000);
    auto hog = spawn([] {
      const auto until = std::chrono::steady_clock::now() + 5ms;  // all in its turn
      while (std::chrono::steady_clock::now() < until) {
      }
    });
    auto behind = spawn([] {});
    hog.join();
    behind.join();
  });
  rt.stop_recording();
  const runtime_statistics s = rt.statistics();
  EXPECT_GT(s.run.count(), 500u);
  EXPECT_GT(s.wait.count(), 500u);
  EXPECT_GE(s.run.quantile_ns(1), 4'000'000u);  // the hog's turn
  EXPECT_LE(s.run.quantile_ns(0.25), s.run.quantile_ns(0.75));
  EXPECT_GE(s.run.sum_ns, 4'000'000u);
  const std::string text = to_prometheus(s);
  EXPECT_TRUE(has(text, "# TYPE ramie_run_seconds histogram\nramie_run_seconds_bucket{runtime=\"measured\",le=\""))
      << text;
  EXPECT_TRUE(has(text, "ramie_run_seconds_count{runtime=\"measured\"} " + std::to_string(s.run.count()) + "\n"))
      << text;
  for (const char* counter : {"dispatches", "steals", "steals_tried", "wakes", "wakes_elsewhere", "migrations",
                              "sleeps", "injections", "time_slices"})
    EXPECT_TRUE(has(text, "\nramie_" + std::string{counter} + "_total{runtime=\"measured\",worker=\"0\"} "))
        << counter << ": " << text;
}

TEST(statistics, escape_names) {
  runtime_statistics s;
  s.name = "a\"b\\c\nd";
  EXPECT_TRUE(has(to_prometheus(s), "ramie_live{runtime=\"a\\\"b\\\\c\\nd\"} 0\n")) << to_prometheus(s);
}

TEST(trace, has_a_track_for_each_worker_and_arrows_between_turns) {
  runtime rt{{.workers = 2, .name = "traced"}};
  EXPECT_TRUE(rt.record());
  rt.run([] { talk(100); });
  rt.stop_recording();
  const std::string text = rt.trace();
  for (const char* part : {"\"traced/0\"", "\"traced/1\"", "\"other threads\"", "\"name\":\"reader\"",
                           "\"name\":\"writer\"", "waits for channel receive", "recording.test.cpp:"})
    EXPECT_TRUE(has(text, part)) << part;
  EXPECT_GT(count(text, "\"ph\":\"s\""), 50u);
  EXPECT_EQ(count(text, "\"ph\":\"s\""), count(text, "\"ph\":\"f\""));
}

TEST(trace, shows_every_fiber_if_asked_to) {
  runtime rt{{.workers = 1, .name = "every", .spare_workers = 0}};
  rt.record({.every_fiber = true});
  rt.run([] {
    for (int i = 0; i < 10; ++i) spawn(fiber_options{.name = "short"}, [] {}).join();
  });
  rt.stop_recording();
  EXPECT_EQ(count(rt.trace(), "\"name\":\"short\""), 10u);
}

TEST(trace, keeps_the_newest) {
  runtime rt{{.workers = 1, .name = "bounded", .spare_workers = 0}};
  rt.record({.events = 100});
  rt.run([] { talk(10'000); });
  rt.stop_recording();
  const std::string text = rt.trace();
  EXPECT_LT(text.size(), 60'000u);
  EXPECT_TRUE(has(text, "\"name\":\"writer\""));
}

TEST(trace, may_begin_and_end_while_all_run) {
  runtime rt{{.workers = 4, .name = "again"}};
  std::atomic<bool> over{false};
  auto work = rt.spawn([&] {
    while (!over) {
      scope all;
      for (int i = 0; i < 4; ++i) all.spawn([] { talk(20); });
      all.join();
    }
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(rt.record({.events = 1000, .every_fiber = i % 2 == 0, .histograms = i % 3 == 0}));
    std::this_thread::sleep_for(2ms);
    static_cast<void>(rt.statistics());
    rt.stop_recording();
    EXPECT_TRUE(has(rt.trace(), "]}\n"));
  }
  over = true;
  work.join();
}

/// Sets RAMIE_TRACE in the environment while it lives.
class traced_by_environment {
 public:
  explicit traced_by_environment(const std::string& file) { ::setenv("RAMIE_TRACE", file.c_str(), 1); }
  ~traced_by_environment() { ::unsetenv("RAMIE_TRACE"); }
  traced_by_environment(const traced_by_environment&) = delete;
  traced_by_environment& operator=(const traced_by_environment&) = delete;
};

std::string text_of(const std::string& file) {
  std::ifstream in{file};
  return {std::istreambuf_iterator<char>{in}, {}};
}

TEST(trace, is_written_where_the_environment_says) {
  const std::string file = ::testing::TempDir() + "ramie_trace_" + std::to_string(::getpid()) + ".json";
  {
    const traced_by_environment here{file};
    runtime first{{.workers = 1, .name = "first"}};
    first.run([] { spawn(fiber_options{.name = "short"}, [] {}).join(); });
    first.shutdown();
    EXPECT_EQ(count(text_of(file), "\"name\":\"short\""), 1u);  // every fiber, by default
    const runtime second{{.workers = 1, .name = "second"}};
  }
  EXPECT_TRUE(has(text_of(file), "\"first/0\""));
  EXPECT_TRUE(has(text_of(file + ".2"), "\"second/0\""));
  std::remove(file.c_str());
  std::remove((file + ".2").c_str());
}

TEST(trace, that_cannot_be_written_is_complained_of) {
  ::testing::internal::CaptureStderr();
  {
    const traced_by_environment nowhere{"/no/such/folder/trace.json"};
    runtime rt{{.workers = 1, .spare_workers = 0}};
    EXPECT_EQ(rt.run([] { return 3; }), 3);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(has(said, "RAMIE_TRACE: cannot write /no/such/folder/trace.json")) << said;
}

}  // namespace
}  // namespace ramie
