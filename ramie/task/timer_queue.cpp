#include <ramie/task/timer_queue.hpp>

#include <algorithm>
#include <array>
#include <mutex>

namespace ramie::detail {

void timer_queue::place(std::size_t at, entry e) noexcept {
  heap_[at] = e;
  e.node->place = at;
}

void timer_queue::up(std::size_t at, entry e) noexcept {
  while (at > 0) {
    const std::size_t parent = (at - 1) / 4;
    if (heap_[parent].deadline_ns <= e.deadline_ns) break;
    place(at, heap_[parent]);
    at = parent;
  }
  place(at, e);
}

void timer_queue::down(std::size_t at, entry e) noexcept {
  const std::size_t size = heap_.size();
  for (;;) {
    const std::size_t first = at * 4 + 1;
    if (first >= size) break;
    std::size_t least = first;
    const std::size_t children = RAMIE_PLANT(timer_heap_narrow) ? 3 : 4;
    for (std::size_t child = first + 1; child < std::min(first + children, size); ++child)
      if (heap_[child].deadline_ns < heap_[least].deadline_ns) least = child;
    if (heap_[least].deadline_ns >= e.deadline_ns) break;
    place(at, heap_[least]);
    at = least;
  }
  place(at, e);
}

void timer_queue::take_out(std::size_t at) noexcept {
  heap_[at].node->place = timer_node::absent;
  const entry last = heap_.back();
  heap_.pop_back();
  if (at < heap_.size()) {
    if (at > 0 && heap_[(at - 1) / 4].deadline_ns > last.deadline_ns) up(at, last);
    else down(at, last);
  }
  next_ns_.store(heap_.empty() ? never : heap_.front().deadline_ns, std::memory_order_relaxed);
}

namespace {
constexpr std::size_t first_places = RAMIE_INTERLEAVE ? 1 : 64;  // a guess
constexpr std::size_t due_most = RAMIE_INTERLEAVE ? 2 : 32;      // under the lock at once; a guess
}  // namespace

void timer_queue::add(timer_node& node, std::int64_t deadline_ns) {
  std::lock_guard guard{lock_};
  node.queue = this;
  // May throw; nothing has changed then. Reserves room for more timers than most workers ever have, so that programs
  // whose few timers overlap only by chance do not allocate at some late moment.
  if (heap_.capacity() == 0) [[unlikely]]
    heap_.reserve(first_places);
  heap_.push_back({});
  up(heap_.size() - 1, {deadline_ns, &node});
  next_ns_.store(heap_.front().deadline_ns, std::memory_order_relaxed);
}

bool timer_queue::remove(timer_node& node) noexcept {
  std::unique_lock guard{lock_};
  if (RAMIE_PLANT(timer_removed_unlocked)) guard.unlock();
  if (node.place == timer_node::absent) return false;
  take_out(node.place);
  return true;
}

std::size_t timer_queue::size() noexcept {
  const std::lock_guard guard{lock_};
  return heap_.size();
}

std::size_t timer_queue::fire(std::int64_t now) noexcept {
  std::size_t fired = 0;
  while (next_ns() <= now) {
    struct fired_timer {
      waiter_ref waiter;
      timer_node* to_call;
    };
    std::array<fired_timer, due_most> due;
    std::size_t n = 0;
    {
      std::lock_guard guard{lock_};
      while (n < due.size() && !heap_.empty() && heap_.front().deadline_ns <= now) {
        timer_node* node = heap_.front().node;
        due[n++] = {node->waiter, node->call == nullptr ? nullptr : node};
        take_out(0);
      }
    }
    if (n == 0) break;
    for (std::size_t i = 0; i < n; ++i) {
      if (timer_node* node = due[i].to_call; node != nullptr) node->call(*node);
      else wake(due[i].waiter, wake_reason::timeout);
    }
    fired += n;
  }
  return fired;
}

}  // namespace ramie::detail
