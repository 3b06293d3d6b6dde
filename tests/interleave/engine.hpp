// The simulator's internals: threads, and the choice of the next. One process simulates one run at a time, on one OS
// thread, so nothing here is locked.
#pragma once

#include "weak_memory.hpp"

#include <ramie/base/interleave.hpp>
#include <ramie/context/context.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ramie::interleave {

struct exploration;

/// The stores of one thread that others do not see yet, oldest first (x86-TSO).
struct store_buffer {
  struct entry {
    void* at;
    std::uint64_t value;
    unsigned size;
  };
  static constexpr unsigned most = 16;
  std::array<entry, most> entries;
  unsigned first = 0;
  unsigned count = 0;
  [[nodiscard]] entry& operator[](unsigned i) noexcept { return entries[(first + i) % most]; }
};

/// A simulated thread runs on the stack, and with the thread-local variables, of a real thread that sleeps for ever.
struct sim_thread {
  enum class state : std::uint8_t { unused, runnable, waiting, finished };
  pthread_t real{};
  void* locals = nullptr;  // its thread pointer
  char* stack_top = nullptr;
  detail::context saved;
  std::function<void()> body;
  state now = state::unused;
  const void* waits_on = nullptr;  // null: a time only
  std::int64_t deadline_ns = 0;    // while waiting; never_ns: none
  std::uint32_t priority = 0;
  std::uint32_t number = 0;
  store_buffer stores;
};
inline constexpr std::int64_t never_ns = INT64_MAX;

/// One step, for the trace.
struct event {
  std::uint64_t step;
  const char* what;
  const void* at;
  const void* code;
  std::uint64_t value;
  std::uint32_t thread;
};

class engine {
 public:
  /// Creates the real threads. Once in a process.
  engine();

  /// One run. True if it failed; then the engine cannot be used again.
  bool run(std::uint64_t seed, const exploration& how, const std::function<void()>& body);

  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] std::string trace() const;
  void keep_trace() noexcept { tracing_ = true; }

  // What the hooks need.
  static constexpr std::uint32_t threads_most = engine_threads_most;
  sim_thread* start(std::function<void()> body);
  void join(sim_thread* t) noexcept;
  [[noreturn]] void fail(std::string what) noexcept;
  /// The code whose places belong to the failure that follows.
  void blame(const void* first, const void* second) noexcept { blamed_ = {first, second}; }
  [[nodiscard]] const std::array<const void*, 2>& blamed() const noexcept { return blamed_; }
  [[nodiscard]] sim_thread& self() noexcept { return *current_; }
  [[nodiscard]] std::uint64_t random() noexcept;
  [[nodiscard]] std::uint32_t below(std::uint32_t bound) noexcept {
    return static_cast<std::uint32_t>((random() >> 32) * bound >> 32);
  }
  [[nodiscard]] std::int64_t now_ns() const noexcept { return now_ns_; }
  [[nodiscard]] bool wakes_spuriously() noexcept { return spurious_ && below(6) == 0; }
  [[nodiscard]] bool buffers_stores() const noexcept { return buffers_stores_; }
  /// The memory of this run if it is weaker than x86-TSO, or null.
  [[nodiscard]] weak_memory* weak() noexcept { return is_weak_ ? &weak_ : nullptr; }
  /// What the run's seed has chosen, for the reader.
  [[nodiscard]] const char* model() const noexcept;

  /// Before each step: other threads may run first, stores may become visible.
  void point() noexcept;
  /// The caller spins: another thread should run.
  void give_way(std::int64_t took_ns) noexcept;
  /// Waits until woken or `deadline_ns`.
  void block(const void* on, std::int64_t deadline_ns) noexcept;
  void wake(const void* on, int how_many) noexcept;
  void buffer(sim_thread& t, void* at, unsigned size, std::uint64_t value) noexcept {
    if (t.stores.count == store_buffer::most) flush_one(t);
    t.stores[t.stores.count] = {at, value, size};
    ++t.stores.count;
    ++buffered_;
  }
  void drain(sim_thread& t) noexcept;
  void drain_all() noexcept;
  /// A full fence of `t`: of either memory.
  void fence(sim_thread& t) noexcept;
  /// membarrier(2): a fence of each thread, at some moment during the call.
  void fence_all() noexcept;
  void note(const char* what, const void* at, std::uint64_t value, const void* code) noexcept;
  void destroyed(void* at, unsigned size) noexcept;
  void take_host_locals() const noexcept;

 private:
  static void thread_entry(std::uintptr_t, void*) noexcept;
  void choose_policy() noexcept;
  void flush_some() noexcept;
  void flush_one(sim_thread& t) noexcept;
  [[nodiscard]] sim_thread* pick_next() noexcept;
  void let_time_pass() noexcept;
  void look_at_rest() noexcept;
  void reschedule() noexcept;
  void go_to(sim_thread& next) noexcept;
  void leave_run() noexcept;
  [[nodiscard]] std::string who_waits() const;
  void set_next_switch() noexcept;

  std::array<sim_thread, threads_most> threads_;
  std::uint32_t used_ = 0;  // threads of this run
  sim_thread* current_ = nullptr;
  detail::context host_;
  void* host_locals_ = nullptr;
  std::uint64_t random_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t steps_most_ = 0;
  std::uint64_t hash_ = 0;
  std::int64_t now_ns_ = 0;
  std::int64_t next_deadline_ns_ = never_ns;
  std::uint64_t switch_at_ = 0;    // step of the next change of threads
  std::uint32_t switch_mean_ = 1;  // random schedules: steps between two, on average
  bool priorities_ = false;        // PCT: the runnable thread of the highest priority runs
  std::uint32_t least_priority_ = 0;
  std::uint64_t expected_steps_ = 1000;
  std::uint32_t changes_left_ = 0;
  bool buffers_stores_ = false;
  bool is_weak_ = false;
  weak_memory weak_;
  std::uint32_t buffered_ = 0;      // entries in all buffers
  std::uint32_t flush_one_in_ = 1;  // steps
  bool time_flies_ = false;
  bool spurious_ = false;  // futex waits end spuriously, as by a signal
  bool failed_ = false;
  bool tracing_ = false;
  std::string failure_;
  std::array<const void*, 2> blamed_{};
  std::vector<event> events_;
};

/// The engine of the run that is under way, or null.
extern engine* active;

/// Gives the caller the thread-local variables of the process's own thread. For a process that is about to die.
void set_host_locals() noexcept;

}  // namespace ramie::interleave
