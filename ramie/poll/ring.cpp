#include <ramie/poll/ring.hpp>

#include <ramie/base/error.hpp>
#include <ramie/task/clean_up.hpp>
#include <ramie/task/wait.hpp>
#include <ramie/worker/worker.hpp>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#if __has_include(<linux/io_uring.h>) && defined(SYS_io_uring_setup)
#include <linux/io_uring.h>
#define RAMIE_HAS_RING 1
#else
#define RAMIE_HAS_RING 0
#endif

namespace ramie::net::detail {

using ramie::detail::wait;
using ramie::detail::waiter_ref;

struct ring::operation {
  atomic<std::uint64_t> waiter{0};  // released before the kernel has it, for the one that reaps
  std::int32_t result = 0;
};

#if RAMIE_HAS_RING

namespace {

/// The kernel's side of both queues is in shared memory, and is no object of this program.
std::uint32_t seen(const std::uint32_t* at) noexcept { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
void publish(std::uint32_t* at, std::uint32_t value) noexcept { __atomic_store_n(at, value, __ATOMIC_RELEASE); }

template <class T>
T* at_offset(void* map, std::uint32_t offset) noexcept {
  return reinterpret_cast<T*>(static_cast<char*>(map) + offset);
}

void* shared(int fd, std::size_t size, off_t what) noexcept {
  void* const map = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, what);
  if (map == MAP_FAILED) return nullptr;
  ::madvise(map, size, MADV_DONTFORK);  // a child must not submit for its parent
  return map;
}

}  // namespace

system::result ring::open() noexcept {
  io_uring_params p;
  std::memset(&p, 0, sizeof p);
  const long fd = ::syscall(SYS_io_uring_setup, entries, &p);
  if (fd < 0) return -errno;
  fd_ = static_cast<int>(fd);                                       // is close-on-exec
  if ((p.features & IORING_FEAT_SINGLE_MMAP) == 0) return -ENOSYS;  // Linux 5.4
  const std::size_t submissions = p.sq_off.array + p.sq_entries * sizeof(std::uint32_t);
  const std::size_t results = p.cq_off.cqes + p.cq_entries * sizeof(io_uring_cqe);
  map_size_ = submissions > results ? submissions : results;
  map_ = shared(fd_, map_size_, IORING_OFF_SQ_RING);
  if (map_ == nullptr) return -errno;
  places_size_ = p.sq_entries * sizeof(io_uring_sqe);
  places_ = static_cast<io_uring_sqe*>(shared(fd_, places_size_, IORING_OFF_SQES));
  if (places_ == nullptr) return -errno;
  submitted_head_ = at_offset<std::uint32_t>(map_, p.sq_off.head);
  submitted_tail_ = at_offset<std::uint32_t>(map_, p.sq_off.tail);
  submitted_mask_ = *at_offset<std::uint32_t>(map_, p.sq_off.ring_mask);
  order_ = at_offset<std::uint32_t>(map_, p.sq_off.array);
  completed_head_ = at_offset<std::uint32_t>(map_, p.cq_off.head);
  completed_tail_ = at_offset<std::uint32_t>(map_, p.cq_off.tail);
  completed_mask_ = *at_offset<std::uint32_t>(map_, p.cq_off.ring_mask);
  completions_ = at_offset<io_uring_cqe>(map_, p.cq_off.cqes);
  most_ = p.cq_entries;
  return 0;
}

ring::~ring() {
  if (places_ != nullptr) ::munmap(places_, places_size_);
  if (map_ != nullptr) ::munmap(map_, map_size_);
  if (fd_ >= 0) ::close(fd_);
}

void ring::put(ring_call what, int fd, const iovec& part, off_t at, operation& o) noexcept {
  const std::lock_guard guard{lock_};
  if (left_.load(std::memory_order_relaxed) == entries) enter_locked();
  const std::uint32_t tail = *submitted_tail_;
  io_uring_sqe& place = places_[tail & submitted_mask_];
  std::memset(&place, 0, sizeof place);
  const bool syncs = what == ring_call::sync || what == ring_call::sync_data;
  place.opcode = syncs ? IORING_OP_FSYNC : what == ring_call::read ? IORING_OP_READV : IORING_OP_WRITEV;
  place.fd = fd;
  place.user_data = reinterpret_cast<std::uintptr_t>(&o);
  if (syncs) {
    place.fsync_flags = what == ring_call::sync_data ? IORING_FSYNC_DATASYNC : 0;
  } else {
    place.addr = reinterpret_cast<std::uintptr_t>(&part);
    place.len = 1;
    place.off = static_cast<std::uint64_t>(at);
  }
  order_[tail & submitted_mask_] = tail & submitted_mask_;
  publish(submitted_tail_, tail + 1);
  left_.store(left_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void ring::enter() noexcept {
  const std::lock_guard guard{lock_};
  enter_locked();
}

void ring::enter_locked() noexcept {
  const std::uint32_t tail = *submitted_tail_;
  std::uint32_t head = 0;
  while ((head = seen(submitted_head_)) != tail) {
    const long n = ::syscall(SYS_io_uring_enter, fd_, tail - head, 0, 0, nullptr, std::size_t{0});
    if ((n == 0 || (n < 0 && errno != EINTR)) && seen(submitted_head_) == head) break;
  }
  left_.store(0, std::memory_order_relaxed);
  publish(submitted_tail_, head);
  for (; head != tail; ++head) {  // EAGAIN, EBUSY: the kernel has no memory for it
    auto& o = *reinterpret_cast<operation*>(places_[head & submitted_mask_].user_data);
    const std::uint64_t waiter = o.waiter.load(std::memory_order_acquire);
    o.result = refused;
    under_way_.fetch_sub(1, std::memory_order_release);
    wake(waiter_ref::from_bits(waiter));
  }
}

void ring::reap() noexcept {
  std::uint32_t head = *completed_head_;
  while (head != seen(completed_tail_)) {
    const io_uring_cqe& c = completions_[head & completed_mask_];
    auto& o = *reinterpret_cast<operation*>(c.user_data);
    // Acquired before `result` is written: what the kernel orders, C++ does not know.
    const std::uint64_t waiter = o.waiter.load(std::memory_order_acquire);
    o.result = c.res;
    publish(completed_head_, ++head);
    under_way_.fetch_sub(1, std::memory_order_release);
    wake(waiter_ref::from_bits(waiter));
  }
}

#else

system::result ring::open() noexcept { return -ENOSYS; }
ring::~ring() = default;
void ring::put(ring_call, int, const iovec&, off_t, operation&) noexcept {}
void ring::enter() noexcept {}
void ring::reap() noexcept {}

#endif

system::result ring::make(std::unique_ptr<ring>& into) {
  std::unique_ptr<ring> fresh{new ring};
  const system::result code = fresh->open();
  if (code == 0) into = std::move(fresh);
  return code;
}

namespace {
/// Will the worker turn to something else when the calling fiber waits?
bool is_busy(const ramie::detail::worker& w) noexcept {
  return w.ready.size() != 0 || w.spawned.size() != 0 || !w.sent.empty();
}
}  // namespace

bool ring::call(ring_call what, int fd, const iovec& part, off_t at, system::result& result, bool cancels,
                const std::source_location& where) {
  const ramie::detail::wait_site site{what == ring_call::read    ? "file read"
                                      : what == ring_call::write ? "file write"
                                                                 : "file sync",
                                      where};
  if (cancels) {
    wait before{wait::kind::cancellable, site};
    if (!before.withdraw() && before.suspend() == ramie::detail::wake_reason::cancelled)
      ramie::detail::begin_again([] {});
  }
  if (under_way_.fetch_add(1, std::memory_order_acquire) >= most_) {  // U3
    under_way_.fetch_sub(1, std::memory_order_release);
    return false;
  }
  operation o;
  wait pause{wait::kind::uninterruptible, site};
  o.waiter.store(pause.ref().bits(), std::memory_order_release);
  put(what, fd, part, at, o);
  if (!is_busy(*ramie::detail::worker::current())) flush();
  pause.suspend();
  result = o.result;
  return o.result != refused;
}

}  // namespace ramie::net::detail
