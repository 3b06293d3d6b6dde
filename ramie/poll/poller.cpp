#include <ramie/poll/poller.hpp>

#include <ramie/machine/futex.hpp>
#include <ramie/poll/io_error.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/worker/worker.hpp>

#include <cerrno>
#include <mutex>
#include <string>
#include <thread>

namespace ramie::net::detail {

namespace {

// In the 64 bits that the kernel keeps for an event: the record's address, which leaves 7 low bits by its alignment and
// 16 high ones by the 48-bit address space, and as much of its generation as fits in there.
std::uint64_t tag_of(const descriptor& d) noexcept {
  const std::uint32_t g = d.generation.load(std::memory_order_relaxed) & descriptor::generation_mask;
  return reinterpret_cast<std::uintptr_t>(&d) | (g & 0x7f) | std::uint64_t{g >> 7} << 48;
}
descriptor* record_of(std::uint64_t tag) noexcept {
  return reinterpret_cast<descriptor*>(tag & 0x0000'ffff'ffff'ff80u);
}
constexpr std::uint64_t ring_tag = 1;  // no record: an address of 0

constexpr std::int32_t not_tried = -1;

std::uint32_t generation_of(std::uint64_t tag) noexcept {
  return static_cast<std::uint32_t>((tag & 0x7f) | (tag >> 48 << 7));
}

system::result checked(const char* call, system::result code) {
  if (code < 0)
    system::fail(std::string{"cannot wait for input or output: "} + call +
                     " (limits: RLIMIT_NOFILE, fs.file-max, fs.epoll.max_user_watches)",
                 code);
  return code;
}

constinit ramie::detail::os_mutex free_lock;
constinit poller* first_free = nullptr;  // free_lock

}  // namespace

poller* poller::make() {
  poller* p = nullptr;
  {
    const std::lock_guard guard{free_lock};
    if (first_free != nullptr) {
      p = first_free;
      first_free = p->next_free_;
    }
  }
  if (p == nullptr) p = new poller;
  try {
    p->open();
  } catch (...) {
    p->put_back();
    throw;
  }
  return p;
}

void poller::put_back() noexcept {
  const std::lock_guard guard{free_lock};
  next_free_ = first_free;
  first_free = this;
}

void poller::open() {
  raw_fd set{static_cast<int>(checked("epoll_create1", system::new_set()))};
  raw_fd event{static_cast<int>(checked("eventfd", system::new_event()))};
  checked("epoll_ctl", system::set_add(set.get(), event.get(), EPOLLIN | EPOLLET, 0));
  const std::lock_guard guard{lock_};
  epoll_ = set.release();
  interrupt_ = event.release();
  ring_refused_.store(not_tried, std::memory_order_relaxed);
}

void poller::end() noexcept {
  {
    const std::lock_guard guard{lock_};
    while (descriptor* d = first_) {
      unlink(*d);
      set_all_ready(*d);  // N6
    }
    ring_.store(nullptr, std::memory_order_relaxed);
    owned_ring_.reset();  // U6
    system::close(interrupt_);
    system::close(epoll_);
    interrupt_ = epoll_ = -1;
    found_ = 0;
  }
  put_back();
}

int poller::look(std::int64_t timeout_ns) noexcept {
  looks_.store(looks_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  found_ = static_cast<int>(system::set_wait(epoll_, events_.data(), events_most, timeout_ns));
  if (found_ < 0) found_ = 0;  // EINTR
  seen_.store(seen_.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(found_), std::memory_order_relaxed);
  return found_;
}

void poller::dispatch() noexcept {
  for (int i = 0; i < found_; ++i) {
    const epoll_event& e = events_[static_cast<std::size_t>(i)];
    descriptor* d = record_of(e.data.u64);
    if (i + 4 < found_) __builtin_prefetch(record_of(events_[static_cast<std::size_t>(i) + 4].data.u64), 1);  // a guess
    if (e.data.u64 == ring_tag) ring_.load(std::memory_order_relaxed)->reap();
    if (d == nullptr) continue;  // the interruption
    const std::uint32_t generation = generation_of(e.data.u64);
    if ((e.events & EPOLLPRI) != 0) d->short_reads.store(true, std::memory_order_relaxed);  // before it is told below
    const bool lasts = d->how_it_ends.load(std::memory_order_relaxed) == endings::last;
    if ((e.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI)) != 0)
      signal(*d, direction::in,
             lasts && (e.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 ? descriptor::hung_up : descriptor::ready,
             &generation);
    if ((e.events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0)
      signal(*d, direction::out,
             lasts && (e.events & (EPOLLHUP | EPOLLERR)) != 0 ? descriptor::hung_up : descriptor::ready, &generation);
  }
  found_ = 0;
}

void poller::interrupt() noexcept { system::raise(interrupt_); }

void poller::flush() noexcept {
  if (ring* const r = ring_.load(std::memory_order_acquire); r != nullptr) r->flush();
}

bool poller::is_waited_for() noexcept {
  if (const ring* r = ring_.load(std::memory_order_acquire); r != nullptr && r->is_waited_for()) return true;
  const std::lock_guard guard{lock_};
  for (descriptor* d = first_; d != nullptr; d = d->next)
    for (const direction way : {direction::in, direction::out}) {
      wait_queue& q = d->at(way);
      const std::uint64_t number = q.lock();
      const bool waits = !q.empty() || (way == direction::in && d->sink != nullptr);
      q.unlock(number);
      if (waits) return true;
    }
  return false;
}

void poller::add(descriptor& d) {
  const std::lock_guard guard{lock_};
  poller* nobody = nullptr;
  if (!d.registered.compare_exchange_strong(nobody, this, std::memory_order_acq_rel, std::memory_order_relaxed)) return;
  const system::result code =
      system::set_add(epoll_, d.fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET, tag_of(d));
  if (code < 0) {
    if (code == -EPERM) d.always_ready.store(true, std::memory_order_relaxed);
    d.registered.store(nullptr, std::memory_order_release);
    set_all_ready(d);  // N1
    if (code == -EPERM) return;
    system::fail(
        "cannot wait for descriptor " + std::to_string(d.fd) + ": epoll_ctl (limit: fs.epoll.max_user_watches)", code);
  }
  d.previous = nullptr;
  d.next = first_;
  if (first_ != nullptr) first_->previous = &d;
  first_ = &d;
  ++descriptors_;
}

void poller::unlink(descriptor& d) noexcept {
  (d.previous == nullptr ? first_ : d.previous->next) = d.next;
  if (d.next != nullptr) d.next->previous = d.previous;
  d.next = d.previous = nullptr;
  --descriptors_;
  d.registered.store(nullptr, std::memory_order_release);
}

void poller::remove(descriptor& d) noexcept {
  const std::lock_guard guard{lock_};
  if (d.registered.load(std::memory_order_relaxed) != this) return;  // it has ended meanwhile
  system::set_remove(epoll_, d.fd);
  unlink(d);
}

ring* poller::ring_for_files() noexcept {
  if (ring* r = ring_.load(std::memory_order_acquire); r != nullptr) return r;
  if (ring_refused_.load(std::memory_order_relaxed) != not_tried) return nullptr;
  const std::lock_guard guard{lock_};
  if (ring_refused_.load(std::memory_order_relaxed) != not_tried) return ring_.load(std::memory_order_relaxed);
  system::result code = -ENOMEM;
  try {
    code = ring::make(owned_ring_);
  } catch (...) {
    // std::bad_alloc
  }
  if (code == 0) {
    code = system::set_add(epoll_, owned_ring_->fd(), EPOLLIN, ring_tag);
    if (code == 0) ring_.store(owned_ring_.get(), std::memory_order_release);
    else owned_ring_.reset();
  }
  ring_refused_.store(static_cast<std::int32_t>(-code), std::memory_order_relaxed);
  return ring_.load(std::memory_order_relaxed);
}

ramie::detail::file_facts poller::files() noexcept {
  const std::int32_t refused = ring_refused_.load(std::memory_order_relaxed);
  if (refused == not_tried) return {};
  return {refused == 0 ? ramie::detail::file_facts::by::ring : ramie::detail::file_facts::by::helpers, refused};
}

ramie::detail::event_counts poller::counts() noexcept {
  const std::lock_guard guard{lock_};
  return {looks_.load(std::memory_order_relaxed), seen_.load(std::memory_order_relaxed), descriptors_};
}

namespace {

/// For plain threads: a dedicated thread polls, from the first wait until the process ends.
poller& poller_of_threads() {
  static poller& all = [&]() -> poller& {
    poller* p = poller::make();
    std::thread{[p] {
      for (;;)
        if (p->look(-1) != 0) p->dispatch();
    }}.detach();
    return *p;
  }();
  return all;
}

}  // namespace

poller& poller_here() {
  ramie::detail::worker* w = ramie::detail::worker::current();
  if (w == nullptr) return poller_of_threads();
  ramie::detail::event_desk& desk = w->owner->events;
  if (ramie::detail::event_source* there = desk.source(); there != nullptr) return static_cast<poller&>(*there);
  return static_cast<poller&>(desk.install(*poller::make()));
}

}  // namespace ramie::net::detail
