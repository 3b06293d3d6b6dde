// A graph of tasks, each of which runs when those before it have ended.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/fiber/scope.hpp>

#include <concepts>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ramie::parallel {

/// Tasks and their order. Built once, run any number of times; neither may happen while it runs, which throws
/// usage_error. Neither copied nor moved.
class task_graph {
  struct task {
    std::string name;
    std::function<void()> work;
    std::vector<task*> after;             // those that wait for this one
    std::size_t before = 0;               // the number of those that it waits for
    detail::atomic<std::size_t> left{0};  // of them, in this run
  };

 public:
  /// A task of the graph, valid as long as that. Copyable.
  class node {
   public:
    /// The given tasks begin after this one has ended.
    template <class... Nodes>
      requires(std::same_as<Nodes, node> && ...)
    const node& precede(Nodes... later) const {
      (graph_->connect(*task_, *later.task_, *later.graph_), ...);
      return *this;
    }
    /// This one begins after the given tasks have ended.
    template <class... Nodes>
      requires(std::same_as<Nodes, node> && ...)
    const node& succeed(Nodes... earlier) const {
      (earlier.precede(*this), ...);
      return *this;
    }
    [[nodiscard]] const std::string& name() const noexcept { return task_->name; }

   private:
    friend task_graph;
    node(task_graph& graph, task& t) noexcept : graph_{&graph}, task_{&t} {}
    task_graph* graph_;
    task* task_;
  };

  task_graph() = default;
  task_graph(const task_graph&) = delete;
  task_graph& operator=(const task_graph&) = delete;

  /// Adds a task. The name is for messages.
  node add(std::string name, std::function<void()> work);

  [[nodiscard]] std::size_t size() const noexcept { return tasks_.size(); }

  /// Runs all tasks, several at the same time, and returns when they have ended. Tasks may suspend. If one throws,
  /// those not begun are left out, waits of the others throw `cancelled`, and the first exception is rethrown,
  /// `cancelled` only if there is no other; a stop request ends it likewise. The graph may be run again then. Throws
  /// usage_error, and names the tasks, if some wait for each other in a circle: then none is run. On a plain thread:
  /// one after the other.
  void run();

 private:
  void connect(task& earlier, task& later, const task_graph& of_later);
  void check_idle(const char* what) const;
  void check_circles();
  void run_from(task& first, scope& all);
  void run_in_turn();

  std::deque<task> tasks_;
  bool has_no_circle_ = true;  // since it was looked for last
  detail::atomic<bool> running_{false};
};

}  // namespace ramie::parallel
