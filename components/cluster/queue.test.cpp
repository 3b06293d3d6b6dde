// Durable queues on a real server: what is put is handled, though workers and the server are killed.
// Mostly waits.
#include "test_nodes.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace cluster_tests;

template <class Condition>
void until(Condition holds) {
  while (!holds()) this_fiber::sleep_for(2ms);
}

TEST(queues, keep_jobs_until_they_are_handled) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    cluster b{options_for(server().url(), "b")};
    auto jobs = a.queue<number>("plain");
    for (std::uint64_t i = 0; i < 100; ++i) jobs.put(number{i});
    EXPECT_EQ(jobs.size(), 100u);
    // They survive the server.
    server().kill();
    blocking([] { server().start_again(); });
    jobs.put(number{100});
    auto there = b.queue<number>("plain");
    std::mutex lock;
    std::multiset<std::uint64_t> handled;
    auto worker = there.serve([&](number n) {
      const std::lock_guard guard{lock};
      handled.insert(n.value);
    });
    until([&] { return there.size() == 0; });
    worker.stop();
    EXPECT_FALSE(worker.serves());
    EXPECT_EQ(handled.size(), 101u);
    EXPECT_EQ(std::set<std::uint64_t>(handled.begin(), handled.end()).size(), 101u);
  });
}

TEST(queues, store_an_id_once) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    auto jobs = a.queue<number>("ids");
    jobs.put(number{1}, "one");
    jobs.put(number{1}, "one");
    jobs.put(number{2}, "two");
    EXPECT_EQ(jobs.size(), 2u);
    EXPECT_THROW(jobs.put(number{3}, "a b"), invalid_argument);
    int calls = 0;
    EXPECT_TRUE(jobs.once("effect", [&] { ++calls; }));
    EXPECT_FALSE(jobs.once("effect", [&] { ++calls; }));
    EXPECT_THROW(jobs.once("fails", [] { throw std::runtime_error{"x"}; }), std::runtime_error);
    EXPECT_TRUE(jobs.once("fails", [&] { ++calls; }));
    EXPECT_EQ(calls, 2);
    EXPECT_THROW(static_cast<void>(a.queue<number>("bad", {.attempts = 0})), invalid_argument);
    EXPECT_THROW(static_cast<void>(jobs.serve([](number) {}, {.in_flight = 0})), invalid_argument);
  });
}

TEST(queues, try_again_and_give_up) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    auto jobs = a.queue<number>("poison", {.attempts = 3, .retry_after = 20ms});
    std::mutex lock;
    std::map<std::uint64_t, int> tries;
    const auto worker = jobs.serve([&](number n) {
      const std::lock_guard guard{lock};
      const int now = ++tries[n.value];
      if (n.value == 1 && now == 1) throw std::runtime_error{"not yet"};
      if (n.value == 2) throw std::runtime_error{"never\nat all"};
    });
    for (std::uint64_t i = 0; i < 4; ++i) jobs.put(number{i}, "job-" + std::to_string(i));
    until([&] { return jobs.size() == 0; });
    EXPECT_EQ(tries, (std::map<std::uint64_t, int>{{0, 1}, {1, 2}, {2, 3}, {3, 1}}));
    const auto dead = jobs.dead();
    ASSERT_EQ(dead.size(), 1u);
    EXPECT_EQ(dead[0].job.value, 2u);
    EXPECT_EQ(dead[0].id, "job-2");
    EXPECT_EQ(dead[0].reason, "never at all");
  });
}

TEST(queues, are_served_by_actors_of_any_node) {
  run([] {
    two_nodes n;
    auto jobs = n.a.queue<number>("actors", {.worker_lost_after = 5000ms});
    const auto here = n.a.queue<number>("actors", {.worker_lost_after = 5000ms});
    // One at a time, so that they stay in order; its handler has returned before the next one comes.
    const auto worker = jobs.serve(n.there, {.in_flight = 1});
    for (std::uint64_t i = 0; i < 50; ++i) jobs.put(number{i});
    until([&] { return jobs.size() == 0; });
    EXPECT_EQ(n.local.ask(order_kept{}), 50);
    n.local.stop();
    n.local.join();
    until([&] { return !worker.serves(); });
  });
}

TEST(queues, leave_a_long_job_to_its_worker) {
  run([] {
    cluster a{options_for(server().url(), "a")};
    cluster b{options_for(server().url(), "b")};
    const queue_options o{.worker_lost_after = 1000ms};
    auto jobs = a.queue<number>("long", o);
    auto there = b.queue<number>("long", o);
    std::atomic<int> calls{0};
    const auto slow = [&](number) {
      ++calls;
      this_fiber::sleep_for(3000ms);  // thrice as long as a worker may be silent
    };
    const auto one = jobs.serve(slow), two = there.serve(slow);
    jobs.put(number{1});
    until([&] { return jobs.size() == 0; });
    EXPECT_EQ(calls, 1);
  });
}

TEST(queues, lose_and_double_nothing_when_workers_and_the_server_are_killed) {
  const std::string file = "/tmp/ramie_cluster_words." + std::to_string(::getpid());
  {
    std::ofstream out{file};
    for (std::int64_t i = 0; i < 60'000; ++i) out << "word" << i * i % 1009 << (i % 10 == 9 ? '\n' : ' ');
  }
  const std::string words = program("example_cluster_words");
  const auto count = [&](const std::string& name) {
    process p{{words, server().url(), "count", name}, "-"};
    EXPECT_EQ(p.line(), "ready\n");
    return p;
  };
  process one = count("one"), two = count("two"), three = count("three");
  process owner{{words, server().url(), "put", file, "1000"}, "-"};
  EXPECT_NE(owner.line().find("chunks are stored"), std::string::npos);
  one.end(SIGKILL);
  two.signal(SIGSTOP);
  server().kill();
  server().start_again();
  process four = count("four");
  four.end(SIGKILL);
  two.signal(SIGCONT);
  EXPECT_EQ(owner.line(), "505 words, as counted here\n");
  ::unlink(file.c_str());
}

}  // namespace
}  // namespace ramie
