#include <ramie/net/select.hpp>

#include <ramie/poll/poller.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/worker/worker.hpp>

#include <poll.h>

namespace ramie::net::detail {

using ramie::detail::select_case;
using ramie::detail::worker;

bool io_waitable::may_be_ready() const noexcept {
  if (d_ == nullptr) return true;
  bool unlocked = false;
  return d_->always_ready.load(std::memory_order_relaxed) || d_->at(way_).peek(unlocked) != descriptor::not_ready ||
         (d_->registered.load(std::memory_order_relaxed) == nullptr &&
          !RAMIE_PLANT(io_select_unwatched));  // R1: it has to be tried, to get into a set
}

bool io_waitable::attempt() {
  if (d_ == nullptr) return true;
  const possible_use during{*d_};
  if (!during) return true;  // R4
  if (!d_->always_ready.load(std::memory_order_relaxed) && d_->registered.load(std::memory_order_relaxed) == nullptr)
    poller_here().add(*d_);
  return take_ready(*d_, way_) && look_at_it();
}

/// During a use, by the one that has taken `ready`, or that an edge has served.
bool io_waitable::look_at_it() {
  taken_edge edge{*d_, way_};
  const bool there = look(d_->fd);
  edge.set(there);
  if (!there) found_nothing(*d_, way_);
  return there;
}

bool io_waitable::look(int fd) { return system::is_ready(fd, way_ == direction::in ? POLLIN | POLLRDHUP : POLLOUT); }

select_case::step io_waitable::add(ramie::detail::wait& pause) {
  if (in_line_) return select_case::step::added;  // the same object is twice among the cases
  if (d_ == nullptr) return pause.withdraw() ? select_case::step::again : select_case::step::claimed;
  wait_queue& queue = d_->at(way_);
  const std::uint64_t number = queue.lock();
  const bool is_watched =
      d_->registered.load(std::memory_order_relaxed) != nullptr || RAMIE_PLANT(io_select_unwatched);  // N6
  if (!is_watched || (number != descriptor::not_ready && !RAMIE_PLANT(io_select_without_second_look))) {
    // As in queue_waitable::add, the lock is given back only after the wait has been withdrawn.
    const bool mine = pause.withdraw();
    queue.unlock(number);
    return mine ? select_case::step::again : select_case::step::claimed;
  }
  node_.waiter = pause.ref();
  node_.in_a_select = true;
  node_.claimed = {};
  queue.push_back(node_);
  in_line_ = true;
  queue.unlock(number);
  if (worker* const w = worker::current(); w != nullptr) w->leaves_for_events();
  return select_case::step::added;
}

bool io_waitable::take_out() noexcept {
  if (!in_line_) return false;
  in_line_ = false;
  if (node_.claimed) {
    if (worker* const w = worker::current(); w != nullptr) w->goes_on_after_events();
    if (!RAMIE_PLANT(io_select_passes_edge)) return true;
    set_ready(*d_, way_);
    return false;
  }
  wait_queue& queue = d_->at(way_);
  const std::uint64_t number = queue.lock();
  queue.remove(node_);
  queue.unlock(number);
  return false;
}

bool io_waitable::must_retry() {
  if (RAMIE_PLANT(io_select_drops_edge)) return true;
  const possible_use during{*d_};
  return during && !look_at_it();  // R4
}

}  // namespace ramie::net::detail
