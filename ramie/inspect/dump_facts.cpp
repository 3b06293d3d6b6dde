#include <ramie/inspect/dump_facts.hpp>

#include <ramie/context/frames.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/task/io_wait.hpp>
#include <ramie/task/task.hpp>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace ramie::detail {

namespace {

constinit std::atomic<resident_describer> describer{nullptr};
constexpr int attempts = 8;  // a guess
constexpr std::size_t cell_size_most = 1024;

std::size_t backtrace_of(const stack& s, std::size_t most, std::uintptr_t* pcs) noexcept {
  const context saved{peek(s.saved.sp), peek(s.saved.fp), peek(s.saved.pc)};
  return unwind(registers_of(saved), {lowest_usable(s), s.top}, pcs, most);
}

void look_at_name(const void* extras, task_facts& found) noexcept {
  const copied<task_extras> copy(extras);
  if (!copy) return;
  found.spawned_by = copy->spawned_by;
  found.measures_stack = is_set(copy->measures_stack);
  // Of a string that is never destroyed, and that may point into its original.
  const std::size_t size = std::min(copy->name.size(), found.name.size() - 1);
  if (!copy_from(copy->name.c_str(), found.name.data(), size)) found.name[0] = '\0';
}

void look_at_wait(const wait* waiting, fiber_facts& found) noexcept {
  const wait_facts facts = wait::facts(*waiting);
  found.reason = facts.site->reason;
  found.line = facts.site->where.line();
  if (found.line != 0) {
    found.file = facts.site->where.file_name();
    found.function = facts.site->where.function_name();
  }
  found.since_ns = facts.since_ns;
  if (found.reason == mutex_reason)
    copy_from(static_cast<const owned_wait_site*>(facts.site)->owner, &found.holder, sizeof found.holder);
  if (is_io_reason(found.reason)) {
    const auto& site = *static_cast<const io_wait_site*>(facts.site);
    found.fd = site.fd;
    found.writes = site.writes;
  }
}

/// For sandboxes and emulators. The kernel reads what it is to write, and fails without a fault.
bool copy_by_pipe(const void* address, void* to, std::size_t size) noexcept {
  int ends[2];
  if (size > 4096 || ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const auto wanted = static_cast<ssize_t>(size);
  const bool copied = ::syscall(SYS_write, ends[1], address, size) == wanted && ::read(ends[0], to, size) == wanted;
  ::close(ends[0]);
  ::close(ends[1]);
  return copied;
}

}  // namespace

void set_resident_describer(resident_describer known) noexcept { describer.store(known, std::memory_order_release); }

bool copy_from(const void* address, void* to, std::size_t size) noexcept {
  if (address == nullptr) return false;
  if (size == 0) return true;
  iovec into{to, size};
  iovec from{const_cast<void*>(address), size};
  // Not by the library's function, which sanitizers intercept.
  if (::syscall(SYS_process_vm_readv, ::getpid(), &into, 1L, &from, 1L, 0L) == static_cast<long>(size)) return true;
  return (errno == ENOSYS || errno == EPERM) && copy_by_pipe(address, to, size);
}

void look_at_task(const void* address, task_facts& found) noexcept {
  found = {};
  found.id = address;
  const copied<task> copy(address);
  task_type type;
  if (!copy) return;
  if (!copy_from(copy->type, &type, sizeof type) && copy->type != nullptr) return;
  found.known = true;
  found.type = copy->type;
  found.home = copy->home.load(std::memory_order_relaxed);
  const std::uint32_t flags = copy->flags.load(std::memory_order_relaxed);
  const copied<stack> where(copy->where.load(std::memory_order_relaxed));
  found.on_stack = where && where->occupant.load(std::memory_order_relaxed) == address;
  found.strand = (flags & task::strand_flag) != 0;
  found.stopping = (flags & task::stop_flag) != 0;
  if (found.strand) {
    found.parent = copy->parent;
    if (const task_extras* extras = copy->extras.load(std::memory_order_relaxed);
        extras != nullptr && (flags & task::child_flag) != 0)
      look_at_name(extras, found);
    return;  // most have no type
  }
  if (copy->type == nullptr) {
    found.known = false;
    return;
  }
  found.kind = type.kind;
  const std::uint64_t joined = copy->completion.load(std::memory_order_relaxed);
  found.detached = joined == task::detached;
  if ((joined & ~std::uint64_t{task::detached | task::done}) != 0)
    found.joined_by = waiter_ref::from_bits(joined).who();
  if (const task_extras* extras = copy->extras.load(std::memory_order_relaxed); extras != nullptr)
    look_at_name(extras, found);
  if (found.kind != task_kind::resident) return;
  found.joined_by = nullptr;
  resident_type as_resident;
  alignas(64) std::array<char, cell_size_most> cell;
  if (!copy_from(found.type, &as_resident, sizeof as_resident) || as_resident.describe == nullptr ||
      as_resident.describe != describer.load(std::memory_order_acquire) || as_resident.size > cell.size() ||
      !copy_from(address, cell.data(), as_resident.size))
    return;
  as_resident.describe(cell.data(), found.type, found.resident);
}

bool look_at_stack(const inspection& during, stack& s, bool running, std::size_t frames_most,
                   fiber_facts& found) noexcept {
  const void* occupant = s.occupant.load(std::memory_order_acquire);
  if (occupant == nullptr) return false;
  frames_most = std::min(frames_most, found.pcs.size());
  for (int i = 0; i < attempts && is_parked(s); ++i) {
    const std::uint32_t as_it_was = try_hold_parked(during, s);
    if (as_it_was == 0) continue;
    occupant = s.occupant.load(std::memory_order_acquire);
    if (occupant != nullptr) {
      found.state = fiber_facts::doing::waits;
      look_at_wait(s.waiting, found);
      look_at_task(occupant, found.who);
      found.frames = backtrace_of(s, frames_most, found.pcs.data());
    }
    let_stand(s, as_it_was);
    return occupant != nullptr;
  }
  const std::uint32_t word = s.wait_word.load(std::memory_order_acquire);
  found.state = running                                                ? fiber_facts::doing::runs
                : (word & wait_word::state_mask) == wait_word::running ? fiber_facts::doing::is_ready
                                                                       : fiber_facts::doing::is_woken;
  look_at_task(occupant, found.who);
  if (running) return true;
  // It may resume at any moment. Then the frames are nonsense, and not shown.
  const void* const sp = peek(s.saved.sp);
  found.frames = backtrace_of(s, frames_most, found.pcs.data());
  if (s.wait_word.load(std::memory_order_acquire) != word || peek(s.saved.sp) != sp ||
      s.occupant.load(std::memory_order_acquire) != occupant)
    found.frames = 0;
  return true;
}

}  // namespace ramie::detail
