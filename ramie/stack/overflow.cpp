// A fiber that overflows its stack faults in the guard. The handler here reports it, and passes the signal on to
// whatever handled it before. It runs on the thread's alternate signal stack, since the fiber's stack is full, and
// calls nothing that allocates, locks or formats by stdio: the program may have been interrupted anywhere.
//
// One handler for each signal and process. What was installed before is called afterwards as if it were still
// installed:
//   default           restore it and return; the instruction faults again and the core dump shows the right place
//   ignored           a fault cannot be ignored, so as above; a signal that was sent is ignored
//   a function        call it with its signal mask; it may do anything, such as leave by siglongjmp
#include <ramie/stack/overflow.hpp>

#include <ramie/base/error.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/stack/refusal.hpp>
#include <ramie/stack/system.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace ramie::detail {

namespace {

constexpr std::size_t name_size_max = 128;  // of a fiber, in the report; longer ones are cut

constinit std::atomic<occupant_namer> namer_in_use{nullptr};
constinit std::atomic<overflow_tracer> tracer_in_use{nullptr};

struct handled_signal {
  int number;
  struct sigaction previous;
  std::atomic<bool> previous_spent;  // it asked for SA_RESETHAND, and was called
};
handled_signal handled[] = {{SIGSEGV, {}, false}, {SIGBUS, {}, false}};

/// One line of text for write(2), so that lines of several threads do not mix.
class report_line {
 public:
  report_line& operator<<(const char* text) noexcept {
    const std::size_t size = std::min(std::strlen(text), sizeof text_ - 1 - size_);
    std::memcpy(text_ + size_, text, size);
    size_ += size;
    return *this;
  }
  report_line& operator<<(std::size_t number) noexcept { return put(number, 10); }
  report_line& operator<<(const void* address) noexcept {
    *this << "0x";
    return put(reinterpret_cast<std::uintptr_t>(address), 16);
  }
  void write() noexcept {
    text_[size_++] = '\n';
    for (std::size_t at = 0; at < size_;) {
      const ssize_t written = ::write(STDERR_FILENO, text_ + at, size_ - at);
      if (written < 0 && errno != EINTR) return;
      if (written > 0) at += static_cast<std::size_t>(written);
    }
  }

 private:
  report_line& put(std::uint64_t number, unsigned base) noexcept {
    char digits[24];
    char* first = digits + sizeof digits - 1;
    *first = '\0';
    do *--first = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    return *this << first;
  }

  char text_[640];
  std::size_t size_ = 0;
};

/// `fiber "name"`, or what is said if nothing is known.
void add_occupant(report_line& line, const stack& s) noexcept {
  char name[name_size_max] = "";
  if (const occupant_namer namer = namer_in_use.load(std::memory_order_acquire); namer != nullptr)
    namer(s, name, sizeof name);
  name[sizeof name - 1] = '\0';
  for (char* c = name; *c != '\0'; ++c)
    if (static_cast<unsigned char>(*c) < ' ') *c = '?';
  line << (name[0] == '\0' ? "a fiber without a name" : name);
}

void report_overflow(const stack& s, const void* machine_context) noexcept {
  constexpr std::size_t kib = 1024;
  const std::size_t slot = slot_size(*s.owner);
  const auto guard = static_cast<std::size_t>(lowest_usable(s) - slot_base(s));
  report_line line;
  line << "ramie: stack overflow in ";
  add_occupant(line, s);
  line << ": it used up its " << (slot - guard) / kib << " KiB stack (slot " << slot / kib << " KiB at "
       << static_cast<const void*>(slot_base(s))
       << "). Raise fiber_options::stack_size, runtime_options::stack_size or RAMIE_STACK_SIZE.";
  line.write();
  if (const overflow_tracer trace = tracer_in_use.load(std::memory_order_acquire); trace != nullptr)
    trace(s, machine_context);
}

void report_stray_access(const stack& s, const void* address, const void* stack_pointer) noexcept {
  report_line line;
  line << "ramie: access to " << address << ", in the guard of the stack of ";
  add_occupant(line, s);
  line << ", by code that runs elsewhere (stack pointer " << stack_pointer
       << "): a stray pointer, a write past the base of the stack below, or a frame larger than the guard.";
  line.write();
}

const void* stack_pointer_of(const void* machine_context) noexcept {
  const auto* c = static_cast<const ucontext_t*>(machine_context);
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(c->uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(c->uc_mcontext.sp);
#endif
}

/// A fault of the interrupted instruction, which would happen again; not a signal that was sent.
bool is_fault(const siginfo_t& info) noexcept {
  if (info.si_signo == SIGBUS && info.si_code == BUS_MCEERR_AO)
    return false;  // memory gone bad that has not been used yet
#if defined(SEGV_MTEAERR)
  if (info.si_signo == SIGSEGV && info.si_code == SEGV_MTEAERR) return false;  // a memory tag mismatch, reported late
#endif
  return info.si_code > 0;
}

void report_if_ours(const siginfo_t& info, const void* machine_context) noexcept {
  if (!is_fault(info)) return;
  const void* stack_pointer = stack_pointer_of(machine_context);
  const stack* running = find_stack(stack_pointer);
  // SI_KERNEL comes without an address: for example, the kernel had no room for a signal frame.
  const void* address = info.si_code == SI_KERNEL ? stack_pointer : info.si_addr;
  const stack* hit = find_stack(address);
  if (hit != nullptr && !in_guard(*hit, address)) hit = nullptr;

  if (hit != nullptr && hit == running) {
    report_overflow(*hit, machine_context);
  } else if (running != nullptr && in_guard(*running, stack_pointer)) {
    report_overflow(*running, machine_context);
  } else if (hit != nullptr) {
    report_stray_access(*hit, address, stack_pointer);
  }
}

void restore_default(int number) noexcept {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  ::sigaction(number, &action, nullptr);
}

void call_previous(const struct sigaction& previous, int number, siginfo_t* info, void* machine_context) noexcept {
  // The mask it asked for; the return from our handler restores the old one. The signal itself is blocked already, by
  // our own action.
  ::pthread_sigmask(SIG_BLOCK, &previous.sa_mask, nullptr);
  if ((previous.sa_flags & SA_NODEFER) != 0 && ::sigismember(&previous.sa_mask, number) == 0) {
    sigset_t own;
    ::sigemptyset(&own);
    ::sigaddset(&own, number);
    ::pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
  }
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, machine_context);
  } else {
    previous.sa_handler(number);
  }
}

void chain(handled_signal& signal, siginfo_t* info, void* machine_context) noexcept {
  const struct sigaction& previous = signal.previous;
  const bool function =
      (previous.sa_flags & SA_SIGINFO) != 0 || (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN);
  // Relaxed: a flag that orders nothing.
  const bool spent = function && (previous.sa_flags & static_cast<int>(SA_RESETHAND)) != 0 &&
                     signal.previous_spent.exchange(true, std::memory_order_relaxed);
  if (function && !spent) {
    call_previous(previous, signal.number, info, machine_context);
    return;
  }
  if (!function && previous.sa_handler == SIG_IGN && !is_fault(*info)) return;
  restore_default(signal.number);
  // A fault happens again by itself. A signal that was sent is sent again; it is blocked until we return.
  if (!is_fault(*info)) ::raise(signal.number);
}

void on_signal(int number, siginfo_t* info, void* machine_context) {
  const int saved_errno = errno;
  report_if_ours(*info, machine_context);
  chain(number == SIGSEGV ? handled[0] : handled[1], info, machine_context);
  errno = saved_errno;
}

void install(handled_signal& signal) {
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  // Looked up first: the handler may run as soon as it is installed.
  const bool known = ::sigaction(signal.number, nullptr, &signal.previous) == 0;
  if (!known || ::sigaction(signal.number, &action, nullptr) != 0)
    throw resource_error{"ramie: sigaction failed: " + std::generic_category().message(errno), errno};
}

/// Without its guard. A whole number of pages.
std::size_t signal_stack_size() noexcept {
  constexpr std::size_t enough = 64 * 1024;
  const long suggested = ::sysconf(_SC_SIGSTKSZ);  // grows with the vector registers of the processor
  const std::size_t size = std::max(enough, suggested > 0 ? static_cast<std::size_t>(suggested) : 0);
  return (size + page_size() - 1) / page_size() * page_size();
}

}  // namespace

void set_occupant_namer(occupant_namer namer) noexcept { namer_in_use.store(namer, std::memory_order_release); }
void set_overflow_tracer(overflow_tracer tracer) noexcept { tracer_in_use.store(tracer, std::memory_order_release); }

void install_overflow_handler() {
  static const bool once = [] {
    for (handled_signal& signal : handled) install(signal);
    return true;
  }();
  static_cast<void>(once);
}

alternate_signal_stack::alternate_signal_stack() {
  stack_t present{};
  if (::sigaltstack(nullptr, &present) == 0 && (present.ss_flags & SS_DISABLE) == 0) return;

  const std::size_t guard = page_size();
  const std::size_t size = signal_stack_size();
  void* memory = calls().map(guard + size);
  if (memory == nullptr) throw_refusal({refusal::call::map_signal_stack, errno, guard + size});
  stack_t ours{};
  ours.ss_sp = static_cast<char*>(memory) + guard;
  ours.ss_size = size;
  if (calls().protect(memory, guard, PROT_NONE) != 0 || ::sigaltstack(&ours, nullptr) != 0) {
    const int code = errno;
    calls().unmap(memory, guard + size);
    throw_refusal({refusal::call::map_signal_stack, code, guard + size});
  }
  memory_ = memory;
}

alternate_signal_stack::~alternate_signal_stack() {
  if (memory_ == nullptr) return;
  stack_t present{};
  // Other code may have installed another one.
  if (::sigaltstack(nullptr, &present) == 0 && present.ss_sp == static_cast<char*>(memory_) + page_size()) {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
  }
  calls().unmap(memory_, page_size() + signal_stack_size());
}

}  // namespace ramie::detail
