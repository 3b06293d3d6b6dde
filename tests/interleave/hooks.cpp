// The operations of base/interleave.hpp, as steps of the simulated thread that calls them.
#include "engine.hpp"
#include "mutants.hpp"
#include "plain_memory.hpp"
#include "simulator.hpp"

#include <ramie/machine/fence.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

namespace ramie::interleave {

std::function<bool()> refuse_threads;
std::function<bool()> end_waits;
std::function<const char*()> at_rest;

namespace {

std::uint64_t read(const void* at, unsigned size) noexcept {
  std::uint64_t value = 0;
  __builtin_memcpy(&value, at, size);
  return value;
}
void write(void* at, unsigned size, std::uint64_t value) noexcept { __builtin_memcpy(at, &value, size); }

std::uint64_t truncated(std::uint64_t value, unsigned size) noexcept {
  return size == 8 ? value : value & ((std::uint64_t{1} << (8 * size)) - 1);
}

constexpr std::uint64_t dead_pattern = 0xdbdbdbdbdbdbdbdbu;  // written by destroy
bool is_dead(std::uint64_t value, unsigned size) noexcept {
  return size >= 4 && value == truncated(dead_pattern, size);
}

std::uint64_t alive(std::uint64_t value, unsigned size) noexcept {
  if (is_dead(value, size)) [[unlikely]]
    active->fail("use of an atomic that has ended its life");
  return value;
}

std::uint64_t apply(rmw op, std::uint64_t before, std::uint64_t operand) noexcept {
  switch (op) {
    case rmw::exchange: return operand;
    case rmw::add: return before + operand;
    case rmw::subtract: return before - operand;
    case rmw::bit_and: return before & operand;
    case rmw::bit_or: return before | operand;
  }
  return operand;
}

const char* name_of(rmw op) noexcept {
  switch (op) {
    case rmw::exchange: return "exchange";
    case rmw::add: return "fetch_add";
    case rmw::subtract: return "fetch_sub";
    case rmw::bit_and: return "fetch_and";
    case rmw::bit_or: return "fetch_or";
  }
  return "";
}

}  // namespace

std::uint64_t load(const void* at, unsigned size, std::memory_order o) noexcept {
  const unwatched here;
  if (active == nullptr) return read(at, size);
  o = as_mutated(o, "load", __builtin_return_address(0));
  active->point();
  if (weak_memory* const weak = active->weak(); weak != nullptr) {
    const weak_memory::seen seen = weak->load(*active, at, alive(read(at, size), size), o);
    active->note(seen.old ? "load, old" : "load", at, seen.value, __builtin_return_address(0));
    return seen.value;
  }
  std::uint64_t value = 0;
  store_buffer& mine = active->self().stores;
  bool own = false;
  for (unsigned i = mine.count; i > 0 && !own; --i) {
    if (mine[i - 1].at != at) continue;
    value = mine[i - 1].value;
    own = true;
  }
  if (!own) value = alive(read(at, size), size);
  active->note("load", at, value, __builtin_return_address(0));
  return value;
}

void store(void* at, unsigned size, std::uint64_t value, std::memory_order o) noexcept {
  const unwatched here;
  if (active == nullptr) return write(at, size, value);
  o = as_mutated(o, "store", __builtin_return_address(0));
  active->point();
  const bool sequential = o == std::memory_order_seq_cst;
  active->note(sequential ? "store, drained" : "store", at, value, __builtin_return_address(0));
  sim_thread& me = active->self();
  if (weak_memory* const weak = active->weak(); weak != nullptr) {
    weak->store(*active, at, read(at, size), value, o);
    write(at, size, value);
  } else if (!sequential && active->buffers_stores()) {
    active->buffer(me, at, size, value);
  } else {
    active->drain(me);
    write(at, size, value);
  }
  active->point();  // before non-atomic accesses that follow, such as to data a lock no longer guards
}

namespace {
std::uint64_t modify_at(void* at, unsigned size, rmw op, std::uint64_t operand, std::memory_order o,
                        const void* code) noexcept {
  if (active != nullptr) {
    active->point();
    active->drain(active->self());
  }
  const std::uint64_t before = active == nullptr ? read(at, size) : alive(read(at, size), size);
  const std::uint64_t after = truncated(apply(op, before, operand), size);
  if (active != nullptr && active->weak() != nullptr) active->weak()->modify(*active, at, before, after, o);
  write(at, size, after);
  if (active != nullptr) {
    active->note(name_of(op), at, before, code);
    active->point();
  }
  return before;
}
}  // namespace

std::uint64_t modify(void* at, unsigned size, rmw op, std::uint64_t operand, std::memory_order o) noexcept {
  const unwatched here;
  const void* const code = __builtin_return_address(0);
  return modify_at(at, size, op, operand, as_mutated(o, name_of(op), code), code);
}
std::uint64_t system_modify(void* at, unsigned size, rmw op, std::uint64_t operand) noexcept {
  const unwatched here;
  return modify_at(at, size, op, operand, std::memory_order_acq_rel, __builtin_return_address(0));
}

bool compare_exchange(void* at, unsigned size, std::uint64_t& expected, std::uint64_t desired, bool weak,
                      std::memory_order o, std::memory_order failed) noexcept {
  const unwatched here;
  if (active != nullptr) {
    const std::memory_order as_written = o;
    o = as_mutated(o, "compare_exchange", __builtin_return_address(0));
    if (o != as_written) failed = o;
    active->point();
    active->drain(active->self());
  }
  const std::uint64_t before = active == nullptr ? read(at, size) : alive(read(at, size), size);
  const bool done = before == expected && !(weak && active != nullptr && active->below(16) == 0);
  if (active != nullptr && active->weak() != nullptr) {
    if (done) active->weak()->modify(*active, at, before, desired, o);
    else active->weak()->read_newest(*active, at, before, failed);
  }
  if (done) write(at, size, desired);
  expected = before;
  if (active != nullptr) {
    active->note(done ? "swapped" : "swap refused", at, before, __builtin_return_address(0));
    if (done) active->point();
  }
  return done;
}

void construct(void* at, unsigned size) noexcept {
  const unwatched here;
  if (active == nullptr) return;
  active->destroyed(at, size);
  if (active->weak() != nullptr) active->weak()->construct(*active, at);
}

void destroy(void* at, unsigned size) noexcept {
  const unwatched here;
  if (active == nullptr) return;
  active->destroyed(at, size);
  if (active->weak() != nullptr) active->weak()->destroy(*active, at);
  write(at, size, dead_pattern);
}

void full_fence() noexcept {
  const unwatched here;
  if (active == nullptr) return;
  if (is_left_out("full", __builtin_return_address(0))) return;
  active->point();
  active->fence(active->self());
  active->note("full fence", nullptr, 0, __builtin_return_address(0));
}

void heavy_fence() noexcept {
  const unwatched here;
  if (active == nullptr) return;
  if (is_left_out("heavy", __builtin_return_address(0))) return;
  active->point();
  if (!detail::asymmetric_fences) {
    active->fence(active->self());
    active->note("heavy fence", nullptr, 0, __builtin_return_address(0));
    return;
  }
  active->fence_all();
  active->note("membarrier", nullptr, 0, __builtin_return_address(0));
}

void pause() noexcept {
  const unwatched here;
  if (active != nullptr) active->give_way(500);
}
void yield() noexcept {
  const unwatched here;
  if (active == nullptr) return;
  active->fence(active->self());  // a system call
  active->give_way(2000);
}
void sleep(std::int64_t duration_ns) noexcept {
  const unwatched here;
  if (active == nullptr) return;
  active->block(nullptr, active->now_ns() + duration_ns);
  // No store stays in a buffer for so long (as in machine/backoff.hpp). Else a lock that another thread takes and
  // releases in a loop might look taken for ever.
  if (duration_ns >= 100'000) active->drain_all();
}
std::int64_t now_ns() noexcept {
  const unwatched here;
  return active == nullptr ? 0 : active->now_ns();
}
std::uint64_t cycles() noexcept { return static_cast<std::uint64_t>(now_ns()) * 5 / 2; }

void wait_on(const void* at, unsigned size, std::uint64_t expected, std::int64_t timeout_ns) noexcept {
  const unwatched here;
  if (active == nullptr) {
    std::fputs("interleave: a wait outside of a run\n", stderr);
    std::abort();
  }
  active->point();
  active->fence(active->self());
  const std::uint64_t seen = read(at, size);
  active->note(seen == expected ? "waits" : "need not wait", at, seen, __builtin_return_address(0));
  if (seen != expected) return;
  if (active->wakes_spuriously() || (end_waits && end_waits())) return;  // a signal came
  active->block(at, timeout_ns < 0 ? never_ns : active->now_ns() + timeout_ns);
  active->note("goes on", at, 0, nullptr);
}

void wake(const void* at, int how_many) noexcept {
  const unwatched here;
  if (active == nullptr) return;
  active->point();
  active->fence(active->self());
  active->note("wakes", at, static_cast<std::uint64_t>(how_many), __builtin_return_address(0));
  active->wake(at, how_many);
}

void fail(const char* what, const char* file, int line) noexcept {
  const unwatched here;
  if (active == nullptr) return;
  active->fail(std::string{what} + ", " + file + ":" + std::to_string(line));
}

sim_thread* start_thread(std::function<void()> body) {
  const unwatched here;
  if (active == nullptr) {
    std::fputs("interleave: a thread outside of a run\n", stderr);
    std::abort();
  }
  active->point();
  active->drain(active->self());
  if (refuse_threads && refuse_threads())
    throw std::system_error{EAGAIN, std::generic_category(), "refused by the test"};
  sim_thread* t = active->start(std::move(body));
  active->note("starts a thread", nullptr, t->number, __builtin_return_address(0));
  return t;
}
void join_thread(sim_thread* t) noexcept {
  const unwatched here;
  active->join(t);
}
pthread_t handle_of(sim_thread* t) noexcept { return t->real; }

void check(bool holds, const char* what) noexcept {
  const unwatched here;
  if (!holds && active != nullptr) active->fail(what);
}

void step() noexcept {
  const unwatched here;
  if (active != nullptr) active->point();
}

std::uint32_t pick(std::uint32_t bound) noexcept {
  const unwatched here;
  return active->below(bound);
}

}  // namespace ramie::interleave
