#include <ramie/parallel/task_graph.hpp>

#include <ramie/base/error.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/parallel/testing.hpp>

#include <atomic>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace parallel_tests;
using parallel::task_graph;

class task_graphs : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, task_graphs, few_and_many());

TEST_P(task_graphs, run_each_task_once_after_those_before_it) {
  in_runtime([] {
    std::mt19937 random{7};
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{30}, std::size_t{1000}}) {
      task_graph graph;
      std::vector<task_graph::node> nodes;
      nodes.reserve(n);
      std::vector<std::vector<std::size_t>> before(n);
      std::vector<std::atomic<int>> runs(n);
      for (std::size_t i = 0; i < n; ++i)
        nodes.push_back(graph.add("task " + std::to_string(i), [&, i] {
          for (const std::size_t b : before[i]) EXPECT_EQ(runs[b], runs[i] + 1);  // each time
          if (i % 10 == 0) this_fiber::yield();
          ++runs[i];
        }));
      for (std::size_t i = 1; i < n; ++i) {
        for (int k = 0; k < 3; ++k) {
          const std::size_t from = random() % i;
          before[i].push_back(from);
          if (k % 2 == 0) nodes[from].precede(nodes[i]);
          else nodes[i].succeed(nodes[from]);
        }
      }
      EXPECT_EQ(graph.size(), n);
      for (int run = 1; run <= 5; ++run) {
        graph.run();
        for (auto& r : runs) ASSERT_EQ(r, run);
      }
    }
  });
}

TEST_P(task_graphs, may_be_long_and_wide) {
  in_runtime([] {
    const int rows = scaled(300) + 10;
    task_graph graph;
    std::vector<task_graph::node> above;
    std::vector<long> cells(static_cast<std::size_t>(rows) * static_cast<std::size_t>(rows), 0);
    const auto at = [&](int r, int c) -> long& {
      return cells[static_cast<std::size_t>(r) * static_cast<std::size_t>(rows) + static_cast<std::size_t>(c)];
    };
    for (int r = 0; r < rows; ++r) {
      std::vector<task_graph::node> row;
      for (int c = 0; c < rows; ++c) {
        row.push_back(graph.add(
            "cell", [&at, r, c] { at(r, c) = r == 0 || c == 0 ? 1 : (at(r - 1, c) + at(r, c - 1)) % 1'000'003; }));
        if (c > 0) row.back().succeed(row[static_cast<std::size_t>(c) - 1]);
        if (r > 0) row.back().succeed(above[static_cast<std::size_t>(c)]);
      }
      above = std::move(row);
    }
    graph.run();
    std::vector<long> expected(static_cast<std::size_t>(rows), 1);
    for (int r = 1; r < rows; ++r)
      for (std::size_t c = 1; c < expected.size(); ++c) expected[c] = (expected[c] + expected[c - 1]) % 1'000'003;
    EXPECT_EQ(cells.back(), expected.back());
  });
}

TEST_P(task_graphs, are_refused_if_tasks_wait_for_each_other) {
  in_runtime([] {
    task_graph graph;
    auto nothing = [] { ADD_FAILURE() << "was run"; };
    const auto start = graph.add("start", nothing);
    const auto a = graph.add("a", nothing);
    const auto b = graph.add("b", nothing);
    const auto c = graph.add("c", nothing);
    const auto end = graph.add("end", nothing);
    start.precede(a);
    a.precede(b);
    b.precede(c, end);
    c.precede(a);
    const std::string why = message_of<usage_error>([&] { graph.run(); });
    EXPECT_TRUE(contains(why, "ramie: parallel::task_graph: these wait for each other, each for the one before it: '"))
        << why;
    EXPECT_TRUE(contains(why, "'a', 'b', 'c'") || contains(why, "'b', 'c', 'a'") || contains(why, "'c', 'a', 'b'"))
        << why;
    EXPECT_FALSE(contains(why, "end")) << why;

    task_graph alone;
    const auto self = alone.add("self", nothing);
    self.precede(self);
    EXPECT_EQ(message_of<usage_error>([&] { alone.run(); }),
              "ramie: parallel::task_graph: these wait for each other, each for the one before it: 'self', 'self'");
  });
}

TEST_P(task_graphs, leave_out_the_rest_after_a_failure_and_can_run_again) {
  in_runtime([] {
    task_graph graph;
    bool fails = true;
    std::atomic<int> later{0};
    event never;
    auto bad = graph.add("bad", [&] {
      if (fails) throw std::runtime_error{"bad"};
    });
    auto waits = graph.add("waits", [&] {
      if (fails) never.wait();
    });
    bad.precede(graph.add("later", [&] { ++later; }));
    waits.precede(graph.add("later, too", [&] { ++later; }));
    EXPECT_EQ(message_of<std::runtime_error>([&] { graph.run(); }), "bad");
    EXPECT_EQ(later, 0);
    fails = false;
    graph.run();
    EXPECT_EQ(later, 2);
  });
}

TEST_P(task_graphs, end_at_a_deadline) {
  in_runtime([] {
    task_graph graph;
    event never;
    graph.add("waits", [&] { never.wait(); }).precede(graph.add("later", [] { ADD_FAILURE(); }));
    EXPECT_THROW(with_timeout(1ms, [&] { graph.run(); }), timeout_error);
  });
}

TEST(task_graph, says_what_is_wrong_with_calls) {
  task_graph graph;
  task_graph other;
  const auto a = graph.add("a", [] {});
  const auto b = other.add("b", [] {});
  EXPECT_EQ(message_of<invalid_argument>([&] { a.precede(b); }),
            "ramie: parallel::task_graph: tasks 'a' and 'b' are of different graphs");
  EXPECT_EQ(message_of<invalid_argument>([&] { graph.add("c", nullptr); }),
            "ramie: parallel::task_graph: the function of task 'c' is empty");
  graph.add("d", [&] { graph.add("e", [] {}); });
  EXPECT_EQ(message_of<usage_error>([&] { graph.run(); }), "ramie: parallel::task_graph: add while the graph runs");
  task_graph again;
  again.add("f", [&] { again.run(); });
  EXPECT_EQ(message_of<usage_error>([&] { again.run(); }), "ramie: parallel::task_graph: run while the graph runs");
}

TEST(task_graph, runs_on_a_plain_thread) {
  task_graph graph;
  std::string order;
  const auto a = graph.add("a", [&] { order += 'a'; });
  const auto b = graph.add("b", [&] { order += 'b'; });
  graph.add("c", [&] { order += 'c'; }).succeed(b, a);
  b.succeed(a);
  graph.run();
  graph.run();
  EXPECT_EQ(order, "abcabc");
}

}  // namespace
}  // namespace ramie
