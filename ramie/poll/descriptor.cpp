// The orders of N4. `users` orders at the end of each call, which releases what it did and acquires what others did
// before; a call that is refused ends, too. So its beginning orders nothing: that it is one step is enough. The caller
// has the record from its maker. `registered` is followed only to take the descriptor out. Others ask whether there is
// one: a waiter with the direction's lock, under which N6 comes, too; add() claims it in one step.
#include <ramie/poll/descriptor.hpp>

#include <ramie/poll/io_error.hpp>
#include <ramie/poll/poller.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/stack/system.hpp>
#include <ramie/task/io_wait.hpp>
#include <ramie/worker/worker.hpp>

#include <unistd.h>

#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

namespace ramie::net::detail {

namespace {

using ramie::detail::claimed_waits;
using ramie::detail::os_mutex;

/// N5: records that are free. They keep their generation. They are not from malloc: an event has no place for the tag
/// in an address's high bits by which some allocators tell their blocks apart (aarch64).
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
    const std::size_t size = ramie::detail::page_size();
    auto* const page = static_cast<std::byte*>(ramie::detail::calls().map(size));
    if (page == nullptr) throw std::bad_alloc{};
    for (std::size_t at = sizeof(descriptor); at + sizeof(descriptor) <= size; at += sizeof(descriptor))
      give(::new (page + at) descriptor{});
    return ::new (page) descriptor{};
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

/// N7, under the direction's lock.
edge_sink* take_sink(descriptor& d, direction way) noexcept {
  return way == direction::in ? std::exchange(d.sink, nullptr) : nullptr;
}

void end_all(descriptor& d, direction way) noexcept {
  wait_queue& q = d.at(way);
  claimed_waits woken;
  static_cast<void>(q.lock());
  q.claim_all(woken);
  edge_sink* const told = take_sink(d, way);
  q.unlock(descriptor::closed);
  if (told != nullptr) told->edge(*told);
}

/// N5: is this the last of the three conditions?
[[nodiscard]] constexpr bool is_free(std::uint32_t users) noexcept {
  return users == (descriptor::closing | descriptor::finishing | descriptor::finished | descriptor::orphaned);
}

/// N4, for the call that has set `finishing`.
void finish(descriptor& d) noexcept {
  if (poller* p = d.registered.load(std::memory_order_acquire); p != nullptr) p->remove(d);
  if (const int fd = std::exchange(d.fd, -1); fd >= 0) system::close(fd);
  if (is_free(d.users.fetch_or(descriptor::finished, std::memory_order_acq_rel) | descriptor::finished))
    all_free.give(&d);
}

/// N4. In one step: once the count is 0, the record may be another file's.
void end_use(descriptor& d) noexcept {
  if (RAMIE_PLANT(record_freed_amid_call)) {
    const std::uint32_t last = d.users.fetch_sub(descriptor::user_unit, std::memory_order_acq_rel);
    for (int i = 0; i < 30; ++i)
      static_cast<void>(d.users.load(std::memory_order_relaxed));  // room for what goes wrong
    if ((last & descriptor::closing) != 0 && last < 2 * descriptor::user_unit &&
        (d.users.fetch_or(descriptor::finishing, std::memory_order_relaxed) & descriptor::finishing) == 0)
      finish(d);
    return;
  }
  std::uint32_t before = d.users.load(std::memory_order_relaxed);
  std::uint32_t after = 0;
  bool finishes = false;
  do {
    after = before - descriptor::user_unit;
    finishes =
        after < descriptor::user_unit && (after & (descriptor::closing | descriptor::finishing)) == descriptor::closing;
    if (finishes) after |= descriptor::finishing;
  } while (!d.users.compare_exchange_weak(before, after, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (finishes) finish(d);
  else if (is_free(after)) all_free.give(&d);
}

[[nodiscard]] bool begin_use(descriptor& d) noexcept {
  if ((d.users.fetch_add(descriptor::user_unit, std::memory_order_relaxed) & descriptor::closing) == 0) return true;
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

/// With the direction's lock: will an edge come?
bool is_watched(const descriptor& d) noexcept { return d.registered.load(std::memory_order_relaxed) != nullptr; }

}  // namespace

descriptor* open_descriptor(int fd, endings how) {
  descriptor* d = all_free.take();
  d->fd = fd;
  d->how_it_ends.store(how, std::memory_order_relaxed);
  d->short_reads.store(true, std::memory_order_relaxed);
  d->always_ready.store(false, std::memory_order_relaxed);
  d->generation.store(d->generation.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  set(d->in, descriptor::ready);
  set(d->out, descriptor::ready);
  d->users.store(0, std::memory_order_relaxed);
  return d;
}

void close_descriptor(descriptor& d) noexcept {
  const std::uint32_t before = d.users.fetch_add(descriptor::user_unit, std::memory_order_relaxed);
  if ((before & descriptor::closing) == 0 &&
      (d.users.fetch_or(descriptor::closing, std::memory_order_acq_rel) & descriptor::closing) == 0) {
    end_all(d, direction::in);
    end_all(d, direction::out);
  }
  end_use(d);
}

void give_back(descriptor& d) noexcept {
  close_descriptor(d);
  if (is_free(d.users.fetch_or(descriptor::orphaned, std::memory_order_acq_rel) | descriptor::orphaned))
    all_free.give(&d);
}

int release_fd(descriptor& d) noexcept {
  if (poller* p = d.registered.load(std::memory_order_acquire); p != nullptr) p->remove(d);
  const int fd = std::exchange(d.fd, -1);
  close_descriptor(d);
  return fd;
}

bool await_ready(descriptor& d, direction way, const char* what, const std::source_location& where) {
  wait_queue& q = d.at(way);
  for (;;) {
    if (d.always_ready.load(std::memory_order_relaxed) || takes(q, what)) return false;
    if (is_watched(d)) break;
    q.unlock(descriptor::not_ready);
    poller_here().add(d);
  }
  const ramie::detail::io_wait_site site{{what, where}, d.fd, way == direction::out};
  if (ramie::detail::worker* const w = ramie::detail::worker::current(); w != nullptr) {
    w->io_waits.add();
    w->leaves_for_events();
  }
  std::optional<bool> watched;
  q.unlock_and_wait(descriptor::not_ready, site, [&] { watched = await_ready(d, way, what, where); });
  if (watched) return *watched;
  if (ramie::detail::worker* const w = ramie::detail::worker::current(); w != nullptr) {
    w->goes_on_after_events();
    // What it waited for came with a batch, most likely, and the next of it runs after this one's system calls.
    w->ready.prefetch_next();
  }
  if (q.is(descriptor::closed)) refuse_closed(what);
  return is_watched(d);  // otherwise it was woken by N6
}

void set_all_ready(descriptor& d) noexcept {
  for (const direction way : {direction::in, direction::out}) {
    wait_queue& q = d.at(way);
    claimed_waits woken;
    const std::uint64_t number = q.lock();
    q.claim_all(woken);
    edge_sink* const told = take_sink(d, way);
    q.unlock(number < descriptor::ready ? descriptor::ready : number);
    if (told != nullptr) told->edge(*told);
  }
}

void signal(descriptor& d, direction way, std::uint64_t to, const std::uint32_t* generation) noexcept {
  claimed_waits woken;
  edge_sink* told = nullptr;
  wait_queue& q = d.at(way);
  std::uint64_t number = q.lock();
  if (number < to && (generation == nullptr || RAMIE_PLANT(generation_ignored) ||
                      *generation == (d.generation.load(std::memory_order_relaxed) & descriptor::generation_mask))) {
    if (to == descriptor::hung_up) {
      q.claim_all(woken);
      told = take_sink(d, way);
      number = to;
    } else if (!q.claim_first(woken)) {
      told = take_sink(d, way);
      if (told == nullptr) number = to;
    }
  }
  q.unlock(number);
  if (told != nullptr) told->edge(*told);
}

void found_nothing(descriptor& d, direction way) noexcept {
  wait_queue& q = d.at(way);
  bool unlocked = false;
  if (q.peek(unlocked) != descriptor::hung_up || RAMIE_PLANT(hang_up_kept)) return;
  const std::uint64_t number = q.lock();
  if (number == descriptor::hung_up && !RAMIE_PLANT(hang_up_drained))
    d.short_reads.store(true, std::memory_order_relaxed);
  q.unlock(number == descriptor::hung_up ? descriptor::ready : number);
}

bool set_sink(descriptor& d, edge_sink& s) {
  for (;;) {
    if (d.always_ready.load(std::memory_order_relaxed)) return false;
    const std::uint64_t number = d.in.lock();
    const bool waits = number == descriptor::not_ready || RAMIE_PLANT(sink_without_look);
    const bool watched = is_watched(d);
    if (waits && watched) d.sink = &s;
    d.in.unlock(number == descriptor::ready && !waits ? descriptor::not_ready : number);
    if (!waits) return false;
    if (watched) return true;
    poller_here().add(d);
  }
}

bool take_sink_back(descriptor& d, edge_sink& s) noexcept {
  const std::uint64_t number = d.in.lock();
  const bool there = d.sink == &s;
  if (there) d.sink = nullptr;
  d.in.unlock(number);
  return there;
}

bool take_ready(descriptor& d, direction way) noexcept {
  if (d.always_ready.load(std::memory_order_relaxed)) return true;
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
    system::close(fd);
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
