// The handler must not allocate, lock, or meet a descriptor that was closed and reused since. So there is
// a fixed number of slots; each has an eventfd that is made once and never closed.
//  G1 The handler sets the signal's bit in `pending` of each slot that wants it (release), and writes to its eventfd.
//  G2 A waiter takes the lowest bit of `pending` if there is one, else waits for an edge of the eventfd (a duplicate of it).
//     A write after the look at `pending` is an edge after it, so none is missed.
//  G3 Two signals may come in one edge, which wakes one waiter. It sets `ready` for those that it leaves.
//  G4 A signal that is blocked where the object is made may be blocked in all threads: supervisors start programs so.
//     While it is wanted, a thread takes it that has nothing else to do, and lives as long as the process.
#include <ramie/net/signals.hpp>

#include <ramie/base/error.hpp>
#include <ramie/machine/lasting_thread.hpp>
#include <ramie/poll/io_error.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/task/io_wait.hpp>
#include <ramie/task/ready_point.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <exception>
#include <mutex>
#include <string>

namespace ramie::net {

namespace {

using namespace detail;

constexpr std::size_t slots_most = 64;
constexpr int signals_most = 64;

struct slot {
  std::atomic<std::uint64_t> wanted{0};  // bit n - 1: signal n
  std::atomic<std::uint64_t> pending{0};
  std::atomic<int> event{-1};
  bool taken = false;  // table_lock
};

constinit std::array<slot, slots_most> slots{};
constinit std::mutex table_lock;
constinit std::array<std::uint32_t, signals_most + 1> users{};  // table_lock
struct sigaction previous[signals_most + 1];                    // table_lock
constinit std::uint64_t unblocked = 0;                          // table_lock: on the lasting thread (G4)

std::uint64_t bit_of(int signal) noexcept { return std::uint64_t{1} << (signal - 1); }

void on_signal(int signal) noexcept {
  const int saved = errno;
  for (slot& s : slots) {
    if ((s.wanted.load(std::memory_order_acquire) & bit_of(signal)) == 0) continue;
    s.pending.fetch_or(bit_of(signal), std::memory_order_release);
    const std::uint64_t one = 1;
    static_cast<void>(::write(s.event.load(std::memory_order_relaxed), &one, sizeof one));
  }
  errno = saved;
}

void check(std::initializer_list<int> which) {
  for (const int signal : which) {
    const bool is_error = signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL;
    if (signal < 1 || signal > signals_most || signal == SIGKILL || signal == SIGSTOP || is_error)
      throw invalid_argument{"ramie: signals: signal " + std::to_string(signal) +
                             " cannot be waited for; it must be from 1 to 64, and not SIGKILL, SIGSTOP, SIGSEGV, "
                             "SIGBUS, SIGFPE or SIGILL"};
  }
}

std::uint32_t take_slot() {
  for (std::uint32_t i = 0; i < slots_most; ++i) {
    slot& s = slots[i];
    if (s.taken) continue;
    if (s.event.load(std::memory_order_relaxed) < 0) {
      const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
      if (event < 0) system::fail("signals: eventfd", -errno);
      s.event.store(event, std::memory_order_relaxed);
    }
    s.taken = true;
    return i;
  }
  throw usage_error{"ramie: signals: at most " + std::to_string(slots_most) + " such objects can exist"};
}

void block_on_lasting_thread(int how, int signal) {
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal);
  auto change = [&] { ::pthread_sigmask(how, &one, nullptr); };
  ramie::detail::on_lasting_thread(ramie::detail::duty::takes_signals, change);
}

/// With table_lock held. From then on it stays pending if it comes, as it would without this object.
void block_again(int signal) noexcept {
  if ((unblocked & bit_of(signal)) == 0) return;
  unblocked &= ~bit_of(signal);
  try {
    block_on_lasting_thread(SIG_BLOCK, signal);
  } catch (const std::exception&) {
    // In a child of fork the thread is not there, and there is none for it.
  }
}

/// With table_lock held.
void give_up(slot& s) noexcept {
  for (std::uint64_t left = s.wanted.load(std::memory_order_relaxed); left != 0; left &= left - 1) {
    const int signal = std::countr_zero(left) + 1;
    if (--users[static_cast<std::size_t>(signal)] != 0) continue;
    block_again(signal);
    ::sigaction(signal, &previous[signal], nullptr);
  }
  s.wanted.store(0, std::memory_order_release);
  s.taken = false;
}

}  // namespace

signals::signals(std::initializer_list<int> which) {
  check(which);
  const std::lock_guard guard{table_lock};
  slot_ = take_slot();
  slot& s = slots[slot_];
  s.pending.store(0, std::memory_order_relaxed);
  try {
    const int copy = ::fcntl(s.event.load(std::memory_order_relaxed), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) system::fail("signals: dup", -errno);
    handle_ = handle::owning(copy, endings::pass);
    sigset_t blocked_here;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked_here);
    for (const int signal : which) {
      if ((s.wanted.load(std::memory_order_relaxed) & bit_of(signal)) != 0) continue;
      std::uint32_t& n = users[static_cast<std::size_t>(signal)];
      struct sigaction action{};
      action.sa_handler = &on_signal;
      action.sa_flags = SA_RESTART | SA_ONSTACK;
      ::sigfillset(&action.sa_mask);
      if (n == 0 && ::sigaction(signal, &action, &previous[signal]) != 0) system::fail("signals: sigaction", -errno);
      ++n;
      s.wanted.fetch_or(bit_of(signal), std::memory_order_release);
      if (::sigismember(&blocked_here, signal) != 1) continue;
      block_on_lasting_thread(SIG_UNBLOCK, signal);  // G4
      unblocked |= bit_of(signal);
    }
  } catch (...) {
    give_up(s);
    throw;
  }
}

signals::~signals() {
  const std::lock_guard guard{table_lock};
  give_up(slots[slot_]);
}

/// G2, G3.
std::optional<int> signals::take() noexcept {
  std::atomic<std::uint64_t>& pending = slots[slot_].pending;
  for (std::uint64_t seen = pending.load(std::memory_order_acquire); seen != 0;) {
    const std::uint64_t lowest = seen & (~seen + 1);
    const std::uint64_t before = pending.fetch_and(~lowest, std::memory_order_acq_rel);
    if ((before & lowest) == 0) {
      seen = pending.load(std::memory_order_acquire);  // another waiter took it
      continue;
    }
    if (before != lowest) set_ready(*handle_, direction::in);
    return std::countr_zero(lowest) + 1;
  }
  return std::nullopt;
}

std::optional<int> signals::try_wait() {
  const use during{handle_.get(), ramie::detail::io_reason.signal};
  return take();
}

int signals::wait(std::source_location where) {
  const char* const what = ramie::detail::io_reason.signal;
  const use during{handle_.get(), what};
  ramie::detail::ready_point();
  for (;;) {
    if (const std::optional<int> signal = take()) return *signal;
    await_ready(*handle_, direction::in, what, where);
  }
}

}  // namespace ramie::net
