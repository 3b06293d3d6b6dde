// The signal that makes the process dump, and that a dump sends to other workers.
//
// A running fiber's frames can be read only by its own thread. So the dump, on whichever thread it is, asks one worker
// after the other:
//  A1 It writes down the question and its target, sets `asked`, and queues the signal to that thread, with the
//     question's address as its value: this tells it from a signal that was sent from outside.
//  A2 The handler there changes `asked` to `answering`, writes the frames down, sets `answered`.
//  A3 The dump waits 100 ms for that, then takes the question back: `asked` to `none`. If it finds `answering`, it waits
//     as long again, and if that is in vain it asks no more questions until `answered` has come after all: a thread may
//     be stopped in A2.
// A signal that arrives when no question is open for its thread is ignored.
//
// Names can be demangled only where memory may be allocated, which a handler may not. So the handler asks the monitors:
//  B1 It sets `wanted`, rouses the monitor of every runtime, and waits 100 ms for one of them to take the request.
//  B2 The first that does sets `taken`, and writes the dump. The handler returns at once, so that A2 reaches its thread,
//     too. Monitors block this signal, or one might wait for itself.
//  B3 If none takes it (there is no runtime, or the monitor does not run), the handler takes it back and writes the dump
//     itself, with the linker's names.
#include <ramie/inspect/dump_internal.hpp>

#include <ramie/base/error.hpp>
#include <ramie/context/frames.hpp>
#include <ramie/sched/live_schedulers.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/stack/pool.hpp>

#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>
#include <system_error>

namespace ramie {

namespace detail {

namespace {

constexpr int answer_ms_most = 100;  // a guess

enum class answer_state : std::uint32_t { none, asked, answering, answered };
struct {
  std::atomic<answer_state> state{answer_state::none};
  const worker* target = nullptr;
  std::size_t frames_most = 0;
  sample* into = nullptr;
} question;

enum class request_state : std::uint32_t { none, wanted, taken };
std::atomic<request_state> request{request_state::none};

std::atomic<int> installed{0};  // the signal
std::atomic<bool> broken{false};
dump_options signal_options;  // written before the handler is installed, or while it reads: plain numbers

bool state_becomes(answer_state wanted) noexcept {
  for (int i = 0; i < answer_ms_most * 5; ++i) {
    if (question.state.load(std::memory_order_acquire) == wanted) return true;
    const timespec pause{0, 200'000};
    ::nanosleep(&pause, nullptr);
  }
  return false;
}

void answer(const void* machine_context) noexcept {
  answer_state expected = answer_state::asked;
  const worker* mine = worker::current();
  if (mine == nullptr || question.state.load(std::memory_order_acquire) != answer_state::asked ||
      question.target != mine ||
      !question.state.compare_exchange_strong(expected, answer_state::answering, std::memory_order_acq_rel))
    return;
  take_sample(*mine, registers_of_interrupted(machine_context), question.frames_most, *question.into);
  question.state.store(answer_state::answered, std::memory_order_release);
}

/// B1 and B3. False: the handler has to write the dump.
bool passed_on() noexcept {
  if (!signal_options.demangle) return false;
  request_state none = request_state::none;
  if (!request.compare_exchange_strong(none, request_state::wanted, std::memory_order_acq_rel)) return true;
  {
    const scheduler_visit visit;
    for (std::size_t i = 0; i < schedulers_listed_most; ++i)
      if (scheduler* s = visit.at(i); s != nullptr) s->rouse_monitor();
  }
  for (int i = 0; i < answer_ms_most * 5; ++i) {
    if (request.load(std::memory_order_acquire) != request_state::wanted) return true;
    const timespec pause{0, 200'000};
    ::nanosleep(&pause, nullptr);
  }
  request_state wanted = request_state::wanted;
  return !request.compare_exchange_strong(wanted, request_state::none, std::memory_order_acq_rel);
}

void on_signal(int, siginfo_t* info, void* machine_context) {
  const int saved_errno = errno;
  if (info->si_code == SI_QUEUE && info->si_value.sival_ptr == &question) answer(machine_context);
  else if (!passed_on()) dump_from(STDERR_FILENO, signal_options, registers_of_interrupted(machine_context));
  errno = saved_errno;
}

}  // namespace

void write_requested_dump() noexcept {
  if (request.load(std::memory_order_relaxed) != request_state::wanted) return;
  request_state wanted = request_state::wanted;
  if (!request.compare_exchange_strong(wanted, request_state::taken, std::memory_order_acq_rel)) return;
  dump(STDERR_FILENO, signal_options);
  request.store(request_state::none, std::memory_order_release);
}

bool take_sample(const worker& mine, const frame_registers& from, std::size_t frames_most, sample& into) noexcept {
  into = {};
  const stack* s = mine.running;
  if (s == nullptr) return false;
  const void* occupant = s->occupant.load(std::memory_order_acquire);
  const auto* sp = reinterpret_cast<const char*>(from.value[frame_registers::stack_pointer]);
  if (occupant == nullptr || sp < lowest_usable(*s) || sp > s->top) return false;
  into.on = s;
  into.occupant = occupant;
  into.frames = unwind(from, {lowest_usable(*s), s->top}, into.pcs.data(),
                       frames_most < into.pcs.size() ? frames_most : into.pcs.size());
  return true;
}

bool ask_for_sample(const worker& other, std::size_t frames_most, sample& into) noexcept {
  const int number = installed.load(std::memory_order_acquire);
  const int thread = other.thread_id.load(std::memory_order_relaxed);
  if (number == 0 || thread == 0) return false;
  if (broken.load(std::memory_order_relaxed)) {
    if (question.state.load(std::memory_order_acquire) != answer_state::answered) return false;
    broken.store(false, std::memory_order_relaxed);  // the late answer has come
  }
  into = {};
  question.target = &other;
  question.frames_most = frames_most;
  question.into = &into;
  question.state.store(answer_state::asked, std::memory_order_release);
  siginfo_t info;
  std::memset(&info, 0, sizeof info);
  info.si_signo = number;
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  info.si_value.sival_ptr = &question;
  const bool sent = ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), thread, number, &info) == 0;
  answer_state expected = answer_state::asked;
  if ((!sent || !state_becomes(answer_state::answered)) &&
      question.state.compare_exchange_strong(expected, answer_state::none, std::memory_order_acq_rel))
    return false;
  if (!state_becomes(answer_state::answered)) {
    broken.store(true, std::memory_order_relaxed);
    return false;
  }
  question.state.store(answer_state::none, std::memory_order_relaxed);
  return into.on != nullptr;
}

}  // namespace detail

bool dump(int fd, const dump_options& options) noexcept {
  const int saved_errno = errno;
  ucontext_t here{};
  ::getcontext(&here);
  const bool done = detail::dump_from(fd, options, detail::registers_of_interrupted(&here));
  errno = saved_errno;
  return done;
}

void dump_on_signal(int signal_number, const dump_options& options) {
  static std::mutex lock;
  const std::lock_guard guard{lock};
  detail::signal_options = options;
  struct sigaction action{};
  action.sa_sigaction = detail::on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  if (::sigaction(signal_number, &action, nullptr) != 0)
    throw invalid_argument{"ramie: dump_on_signal: signal " + std::to_string(signal_number) + ": " +
                           std::generic_category().message(errno)};
  detail::installed.store(signal_number, std::memory_order_release);
}

}  // namespace ramie
