#include <ramie/poll/descriptor.hpp>

#include <ramie/poll/io_error.hpp>
#include <ramie/poll/poller.hpp>
#include <ramie/worker/worker.hpp>

#include <unistd.h>

#include <mutex>
#include <utility>

namespace ramie::net::detail {

namespace {

using ramie::detail::claimed_waits;
using ramie::detail::os_mutex;

/// N5: records that are free. They keep their generation.
class free_records {
 public:
  descriptor* take() {
    {
      const std::lock_guard guard{lock_};
      if (descriptor* d = first_; d != nullptr) {
        first_ = std::exchange(d->next, nullptr);
        return d;
      }
    }
    return new descriptor;
  }
  void give(descriptor* d) noexcept {
    const std::lock_guard guard{lock_};
    d->next = first_;
    first_ = d;
  }

 private:
  os_mutex lock_;
  descriptor* first_ = nullptr;
};
constinit free_records all_free;

void set(wait_queue& q, std::uint64_t number) noexcept {
  static_cast<void>(q.lock());
  q.unlock(number);
}

void end_all(wait_queue& q) noexcept {
  claimed_waits woken;
  static_cast<void>(q.lock());
  q.claim_all(woken);
  q.unlock(descriptor::closed);
}

/// N4, for any thread that sees it closed with no call under way; one of them does it.
void finish(descriptor& d) noexcept {
  if ((d.users.fetch_or(descriptor::finishing, std::memory_order_acq_rel) & descriptor::finishing) != 0) return;
  if (poller* p = d.registered.load(std::memory_order_acquire); p != nullptr) p->remove(d);
  if (const int fd = std::exchange(d.fd, -1); fd >= 0) ::close(fd);  // also after EINTR: the number is free even then
  if ((d.users.fetch_or(descriptor::finished, std::memory_order_acq_rel) & descriptor::orphaned) != 0)
    all_free.give(&d);
}

void end_use(descriptor& d) noexcept {
  const std::uint32_t before = d.users.fetch_sub(descriptor::user_unit, std::memory_order_acq_rel);
  if ((before & descriptor::closing) != 0 && before < 2 * descriptor::user_unit) finish(d);
}

[[nodiscard]] bool begin_use(descriptor& d) noexcept {
  if ((d.users.fetch_add(descriptor::user_unit, std::memory_order_acquire) & descriptor::closing) == 0) return true;
  end_use(d);
  return false;
}

[[noreturn]] void refuse_closed(const char* what) { throw io_error{what, io_errc::closed}; }

/// Takes `ready`. False: the caller has to wait, and the lock is held.
bool takes(wait_queue& q, const char* what) {
  const std::uint64_t seen = q.lock();
  if (seen == descriptor::not_ready) return false;
  q.unlock(seen == descriptor::ready ? descriptor::not_ready : seen);
  if (seen == descriptor::closed) refuse_closed(what);
  return true;
}

}  // namespace

descriptor* open_descriptor(int fd, endings how) {
  descriptor* d = all_free.take();
  d->fd = fd;
  d->how_it_ends.store(how, std::memory_order_relaxed);
  d->always_ready = false;
  d->generation.store(d->generation.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  set(d->in, descriptor::ready);
  set(d->out, descriptor::ready);
  d->users.store(0, std::memory_order_release);
  return d;
}

void close_descriptor(descriptor& d) noexcept {
  const std::uint32_t before = d.users.fetch_add(descriptor::user_unit, std::memory_order_acq_rel);
  if ((before & descriptor::closing) == 0 &&
      (d.users.fetch_or(descriptor::closing, std::memory_order_acq_rel) & descriptor::closing) == 0) {
    end_all(d.in);
    end_all(d.out);
  }
  end_use(d);
}

void give_back(descriptor& d) noexcept {
  close_descriptor(d);
  if ((d.users.fetch_or(descriptor::orphaned, std::memory_order_acq_rel) & descriptor::finished) != 0)
    all_free.give(&d);
}

int release_fd(descriptor& d) noexcept {
  if (poller* p = d.registered.load(std::memory_order_acquire); p != nullptr) p->remove(d);
  const int fd = std::exchange(d.fd, -1);
  close_descriptor(d);
  return fd;
}

bool await_ready_until(descriptor& d, direction way, const char* what, const std::source_location& where,
                       steady_time deadline) {
  if (d.always_ready) return true;
  wait_queue& q = d.at(way);
  if (takes(q, what)) return true;
  if (d.registered.load(std::memory_order_acquire) == nullptr) {
    q.unlock(descriptor::not_ready);
    poller_here().add(d);
    if (d.always_ready || takes(q, what)) return true;
  }
  const ramie::detail::wait_site site{what, where};
  if (ramie::detail::worker* const w = ramie::detail::worker::current(); w != nullptr) w->io_waits.add();
  if (deadline == steady_time::max()) q.unlock_and_wait(descriptor::not_ready, site);
  else if (!q.unlock_and_wait_until(descriptor::not_ready, site, deadline)) return false;
  if (q.is(descriptor::closed)) refuse_closed(what);
  return true;
}

void await_ready(descriptor& d, direction way, const char* what, const std::source_location& where) {
  await_ready_until(d, way, what, where, steady_time::max());
}

void signal(descriptor& d, direction way, std::uint64_t to, const std::uint32_t* generation) noexcept {
  claimed_waits woken;
  wait_queue& q = d.at(way);
  std::uint64_t number = q.lock();
  if (number < to && (generation == nullptr ||
                      *generation == (d.generation.load(std::memory_order_relaxed) & descriptor::generation_mask))) {
    if (to == descriptor::hung_up) {
      q.claim_all(woken);
      number = to;
    } else if (!q.claim_first(woken)) {
      number = to;
    }
  }
  q.unlock(number);
}

bool take_ready(descriptor& d, direction way) noexcept {
  if (d.always_ready) return true;
  wait_queue& q = d.at(way);
  const std::uint64_t seen = q.lock();
  q.unlock(seen == descriptor::ready ? descriptor::not_ready : seen);
  return seen != descriptor::not_ready;
}

use::use(descriptor* d, const char* what) : d_{d} {
  if (d == nullptr || !begin_use(*d)) refuse_closed(what);
}

possible_use::possible_use(descriptor& d) noexcept : d_{begin_use(d) ? &d : nullptr} {}
possible_use::~possible_use() {
  if (d_ != nullptr) end_use(*d_);
}

use::~use() { end_use(*d_); }

handle handle::owning(int fd, endings how) {
  try {
    return {fd, how};
  } catch (...) {
    ::close(fd);
    throw;
  }
}

int handle::release() noexcept {
  if (d_ == nullptr) return -1;
  const int fd = release_fd(*d_);
  give_back(*std::exchange(d_, nullptr));
  return fd;
}

}  // namespace ramie::net::detail
