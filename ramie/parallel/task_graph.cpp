#include <ramie/parallel/task_graph.hpp>

#include <ramie/base/error.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/task/current.hpp>

#include <unordered_map>

namespace ramie::parallel {

void task_graph::check_idle(const char* what) const {
  if (running_.load(std::memory_order_relaxed))
    throw usage_error{std::string{"ramie: parallel::task_graph: "} + what + " while the graph runs"};
}

task_graph::node task_graph::add(std::string name, std::function<void()> work) {
  check_idle("add");
  if (work == nullptr)
    throw invalid_argument{"ramie: parallel::task_graph: the function of task '" + name + "' is empty"};
  task& t = tasks_.emplace_back();
  t.name = std::move(name);
  t.work = std::move(work);
  return {*this, t};
}

void task_graph::connect(task& earlier, task& later, const task_graph& of_later) {
  check_idle("precede or succeed");
  if (&of_later != this)
    throw invalid_argument{"ramie: parallel::task_graph: tasks '" + earlier.name + "' and '" + later.name +
                           "' are of different graphs"};
  earlier.after.push_back(&later);
  ++later.before;
  has_no_circle_ = false;
}

// Takes out what waits for nothing, again and again (A. Kahn, 1962). If anything is left, each of it waits for another
// that is left: going from one to the next ends up in a circle.
void task_graph::check_circles() {
  if (has_no_circle_) return;
  std::vector<task*> ready;
  for (task& t : tasks_) {
    t.left.store(t.before, std::memory_order_relaxed);
    if (t.before == 0) ready.push_back(&t);
  }
  std::size_t taken = 0;
  for (; !ready.empty(); ++taken) {
    task* t = ready.back();
    ready.pop_back();
    for (task* next : t->after)
      if (next->left.fetch_sub(1, std::memory_order_relaxed) == 1) ready.push_back(next);
  }
  if (taken == tasks_.size()) {
    has_no_circle_ = true;
    return;
  }
  const auto is_left = [](const task& t) { return t.left.load(std::memory_order_relaxed) != 0; };
  std::unordered_map<const task*, const task*> one_before;
  for (const task& t : tasks_) {
    if (!is_left(t)) continue;
    for (const task* next : t.after) one_before[next] = &t;
  }
  const task* at = one_before.begin()->second;
  for (std::size_t i = 0; i < tasks_.size(); ++i) at = one_before.at(at);
  std::string names = "'" + at->name + "'";
  const task* walk = at;
  do {
    walk = one_before.at(walk);
    names.insert(0, "'" + walk->name + "', ");
  } while (walk != at);
  throw usage_error{"ramie: parallel::task_graph: these wait for each other, each for the one before it: " + names};
}

void task_graph::run() {
  if (running_.exchange(true, std::memory_order_acquire))
    throw usage_error{"ramie: parallel::task_graph: run while the graph runs"};
  struct at_end {
    detail::atomic<bool>& running;
    ~at_end() { running.store(false, std::memory_order_release); }
  } const end{running_};
  check_circles();
  for (task& t : tasks_) t.left.store(t.before, std::memory_order_relaxed);
  if (detail::current_worker() == nullptr) return run_in_turn();
  scope all;
  for (task& t : tasks_)
    if (t.before == 0) all.spawn([this, &t, &all] { run_from(t, all); });
  all.join();
}

// One of the tasks that become ready is run here, the others are children, too. Not by a recursion: a long graph would
// need a long stack.
void task_graph::run_from(task& first, scope& all) {
  for (task* t = &first; t != nullptr;) {
    this_fiber::throw_if_stopped();
    t->work();
    task* mine = nullptr;
    for (task* next : t->after) {
      // The last of those that `next` waits for sees what all of them wrote.
      if (next->left.fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      if (mine == nullptr) mine = next;
      else all.spawn([this, next, &all] { run_from(*next, all); });
    }
    t = mine;
  }
}

void task_graph::run_in_turn() {
  std::deque<task*> ready;
  for (task& t : tasks_)
    if (t.before == 0) ready.push_back(&t);
  for (; !ready.empty(); ready.pop_front()) {
    this_fiber::throw_if_stopped();
    ready.front()->work();
    for (task* next : ready.front()->after)
      if (next->left.fetch_sub(1, std::memory_order_relaxed) == 1) ready.push_back(next);
  }
}

}  // namespace ramie::parallel
