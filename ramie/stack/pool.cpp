// Stacks of one size and one kind of guard: a class with its depot, and the workers' caches in front of it.
//
// A slot goes through these states; its descriptor (stack.hpp) stays the same and is never used for anything else:
//  P1 reserved  address space in a slab (slab.hpp), no page behind it. The class carves slots in order.
//  P2 bare      it has a descriptor, but not yet a guard. This lasts for one call of `take`, or, if the guard is
//               refused, until a later one tries again: a refusal loses nothing.
//  P3 in use    handed out. Guards are made once and stay: nothing below gives advice on their pages.
//  P4 warm      back in the depot, with the pages that it touched. Last in, first out.
//  P5 cold      its pages were returned to the system. It needs no new guard and no new descriptor.
// Warm ones are handed out first, then cold, then bare, then reserved ones: that order uses the least memory.
//
// The lock of the class covers only lists, counts and the mapping of a slab: other threads that find the class empty
// could only wait for that slab anyway. Guards are made, and pages returned, outside the lock, on stacks that
// are in no list.
//
// The fields of the descriptor that the scheduler owns (saved, wait_word, parked, occupant) are never written here
// after the first hand-out. `wait_word` in particular keeps its epoch: a late waker of an earlier use must see that its
// wait is over.
#include <ramie/stack/pool.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/context/sanitizer.hpp>
#include <ramie/stack/guard.hpp>
#include <ramie/stack/slab.hpp>
#include <ramie/stack/system.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

#if RAMIE_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace ramie::detail {

namespace {

// A slab is as large as all before it: few mappings for a million stacks (250 slabs of 256 KiB slots), little address
// space for ten. The first and the largest size were picked out of thin air.
constexpr std::size_t slab_size_first = std::size_t{16} << 20;
constexpr std::size_t slab_size_max = std::size_t{1} << 30;
constexpr std::size_t slab_slots_largest = 16;  // for slots so large that a slab would hold fewer

// Fresh slots taken at once for a cache. One system call makes their guards: 0.3 us each instead of 0.4 us or more.
// More gains nothing, and each eight of 256 KiB cost a page of page table as soon as they are guarded.
constexpr std::size_t fresh_at_once = 16;

// How much the depot keeps warm: this many stacks, or fewer if their address space exceeds this much, for they might
// all be touched to the bottom. Both picked out of thin air. A page costs about 1.1 us to touch again.
constexpr std::size_t warm_stacks_max = 1024;
constexpr std::size_t warm_size_max = std::size_t{256} << 20;

// Stacks whose pages are returned in one system call. Measured with a second thread: 15 us a stack one by one,
// because every call interrupts the other cores, 0.4 us by 64.
constexpr std::size_t chilled_at_once = 64;

/// Stacks linked by `next`, the one to use first in front.
struct stack_list {
  stack* first = nullptr;
  std::size_t count = 0;

  void push(stack* s) noexcept {
    s->next = first;
    first = s;
    ++count;
  }
  stack* pop() noexcept {
    stack* s = first;
    first = s->next;
    --count;
    return s;
  }
  /// The first `most`, or all, in their order.
  stack_list pop(std::size_t most) noexcept {
    if (count <= most) return std::exchange(*this, {});
    if (most == 0) return {};
    stack* last = first;
    for (std::size_t i = 1; i < most; ++i) last = last->next;
    stack_list popped{first, most};
    first = std::exchange(last->next, nullptr);
    count -= most;
    return popped;
  }
  /// Puts `others` in front.
  void push(stack_list others) noexcept {
    if (others.count == 0) return;
    stack* last = others.first;
    for (std::size_t i = 1; i < others.count; ++i) last = last->next;
    last->next = first;
    first = others.first;
    count += others.count;
  }
};

}  // namespace

class stack_class {
 public:
  stack_class(std::size_t size, guard_kind kind) noexcept
      : slot_size{size},
        guard{kind},
        guard_size{detail::guard_size(size, kind)},
        slots_next_{static_cast<std::uint32_t>(std::max(slab_size_first / size, std::size_t{1}))} {}

  const std::size_t slot_size;
  const guard_kind guard;  // not `automatic`
  const std::size_t guard_size;

  /// At least one stack and at most `most`, without mapping more than one slab. None if the system refuses: see `why`.
  stack_list take(std::size_t most, refusal& why) noexcept;
  void give(stack_list given) noexcept;
  void trim() noexcept;
  stack_pool_stats stats() const noexcept;

 private:
  stack_list take_bare(std::size_t most, refusal& why) noexcept;
  bool grow(refusal& why) noexcept;
  void make_guards(stack_list& bare, refusal& why) noexcept;
  void chill(stack_list warm) noexcept;
  [[nodiscard]] std::size_t warm_count() const noexcept { return young_.count + old_.count; }
  stack_list pop_warm(std::size_t most) noexcept;
  [[nodiscard]] std::size_t warm_max() const noexcept {
    return std::clamp(warm_size_max / slot_size, std::size_t{1}, warm_stacks_max);
  }

  mutable os_mutex lock_;
  // All below under the lock. Warm stacks are in two generations, so that those just released are not the ones to cool.
  stack_list young_;
  stack_list old_;
  stack_list cold_;
  stack_list bare_;
  slab* carved_ = nullptr;  // the newest slab: fresh slots come from here
  std::uint32_t slots_next_;
  std::size_t slots_reserved_ = 0;
  std::size_t slots_in_use_ = 0;
};

stack_list stack_class::take(std::size_t most, refusal& why) noexcept {
  stack_list taken;
  bool bare = false;
  {
    const std::lock_guard guard_of_lists{lock_};
    taken = young_.pop(most);
    if (taken.count == 0) taken = old_.pop(most);
    if (taken.count == 0) taken = cold_.pop(most);
    bare = taken.count == 0;
    if (bare) taken = take_bare(std::min(most, fresh_at_once), why);
    slots_in_use_ += taken.count;
  }
  if (bare && taken.count != 0) make_guards(taken, why);
  return taken;
}

stack_list stack_class::take_bare(std::size_t most, refusal& why) noexcept {
  if (bare_.count != 0) return bare_.pop(most);
  if (carved_ == nullptr || slots_left(*carved_) == 0)
    if (!grow(why)) return {};
  stack_list carved;
  // From the last to the first, so that they are used in the order of their addresses.
  std::array<stack*, fresh_at_once> made;
  const std::size_t count = std::min<std::size_t>(most, slots_left(*carved_));
  for (std::size_t i = 0; i < count; ++i) {
    made[i] = hand_out(*carved_);
    valgrind_register_stack(lowest_usable(*made[i]), made[i]->top);
  }
  for (std::size_t i = count; i > 0; --i) carved.push(made[i - 1]);
  return carved;
}

bool stack_class::grow(refusal& why) noexcept {
  bool refused = false;
  for (std::uint32_t slots = slots_next_; slots != 0; slots = slots == 1 ? 0 : std::max(slots / 4, 1u)) {
    slab* s = map_slab(*this, slot_size, slots, static_cast<std::uint32_t>(slots_reserved_), why);
    if (s == nullptr) {
      refused = true;
      continue;
    }
    publish(*s);
    carved_ = s;
    slots_reserved_ += slots;
    // After a refusal the limit is near: map small slabs, to leave room for others.
    const std::size_t most = std::max(slab_size_max / slot_size, slab_slots_largest);
    slots_next_ = refused ? slots : static_cast<std::uint32_t>(std::min<std::size_t>(std::size_t{slots} * 2, most));
    return true;
  }
  return false;
}

/// Leaves in `bare` those that got a guard; the others go back to where they came from.
void stack_class::make_guards(stack_list& bare, refusal& why) noexcept {
  std::array<iovec, fresh_at_once> ranges;
  std::size_t count = 0;
  for (stack* s = bare.first; s != nullptr; s = s->next) ranges[count++] = {slot_base(*s), guard_size};
  const std::size_t done = install_guards(ranges.data(), count, guard, why);
  if (done == count) return;

  const stack_list guarded = bare.pop(done);
  const std::lock_guard guard_of_lists{lock_};
  slots_in_use_ -= bare.count;
  bare_.push(std::exchange(bare, guarded));
}

void stack_class::give(stack_list given) noexcept {
  stack_list excess;
  {
    const std::lock_guard guard_of_lists{lock_};
    slots_in_use_ -= given.count;
    young_.push(given);
    if (warm_count() <= warm_max()) return;
    excess = pop_warm(chilled_at_once);
  }
  chill(excess);
}

/// The older ones first. A generation ends when the one before it is used up.
stack_list stack_class::pop_warm(std::size_t most) noexcept {
  if (old_.count == 0) old_ = std::exchange(young_, {});
  return old_.pop(most);
}

/// Returns the pages to the system, and puts the stacks into the cold list. At most `chilled_at_once`. Without the
/// lock.
void stack_class::chill(stack_list warm) noexcept {
  std::array<stack*, chilled_at_once> stacks;
  std::size_t count = 0;
  for (stack* s = warm.first; s != nullptr; s = s->next) stacks[count++] = s;
  std::sort(stacks.begin(), stacks.begin() + count, [](const stack* a, const stack* b) { return a->top < b->top; });

  std::array<iovec, chilled_at_once> ranges;
  std::size_t used = 0;
  for (std::size_t i = 0; i < count; ++i) {
    char* const low = lowest_usable(*stacks[i]);
    char* const high = slot_base(*stacks[i]) + slot_size;
    // Neighbours in one range, for kernels that take only one range a call. Guards made by mprotect hold no pages;
    // those made by advice are left out.
    if (iovec* last = &ranges[used - (used != 0)];
        used != 0 && guard != guard_kind::madvise &&
        static_cast<char*>(last->iov_base) + last->iov_len == slot_base(*stacks[i])) {
      last->iov_len += slot_size;
    } else {
      ranges[used++] = {low, static_cast<std::size_t>(high - low)};
    }
  }
  // Refused where the pages are locked in memory. Then they stay; they are listed as cold all the same, or this would
  // be tried at every release.
  static_cast<void>(advise_all(ranges.data(), used, MADV_DONTNEED));

  const std::lock_guard guard_of_lists{lock_};
  cold_.push(warm);
}

void stack_class::trim() noexcept {
  std::size_t left = SIZE_MAX;  // those that were warm at the beginning: others may release more meanwhile
  while (left != 0) {
    stack_list some;
    {
      const std::lock_guard guard_of_lists{lock_};
      left = std::min(left, warm_count());
      some = pop_warm(std::min(left, chilled_at_once));
    }
    left -= some.count;
    if (some.count != 0) chill(some);
  }
}

stack_pool_stats stack_class::stats() const noexcept {
  const std::lock_guard guard_of_lists{lock_};
  return {slots_reserved_, slots_in_use_, warm_count()};
}

namespace {

constexpr int size_log2_min = std::countr_zero(stack_size_min);
constexpr std::size_t sizes = static_cast<std::size_t>(std::countr_zero(stack_size_max) - size_log2_min) + 1;
constexpr std::size_t guard_kinds = 4;

// All classes. Never destroyed, because threads that outlive main may still release stacks.
constinit std::array<std::array<atomic<stack_class*>, guard_kinds>, sizes> classes{};
constinit os_mutex classes_lock;

}  // namespace

stack_class& stack_class_of(std::size_t size, guard_kind guard) {
  if (size < stack_size_min || size > stack_size_max) {
    throw invalid_argument{"ramie: stack_size is " + std::to_string(size) + "; it must be from " +
                           std::to_string(stack_size_min) + " to " + std::to_string(stack_size_max) + " bytes"};
  }
  if (guard == guard_kind::automatic) guard = kernel_has_guard_advice() ? guard_kind::madvise : guard_kind::mprotect;
  if (guard == guard_kind::madvise && !kernel_has_guard_advice())
    throw invalid_argument{
        "ramie: stack guard is madvise, but this kernel has no MADV_GUARD_INSTALL (Linux 6.13 or newer has)"};

  // A slot has at least four pages, whatever their size here.
  const std::size_t slot_size = std::bit_ceil(std::max(size, 4 * page_size()));
  auto& entry =
      classes[static_cast<std::size_t>(std::countr_zero(slot_size) - size_log2_min)][static_cast<std::size_t>(guard)];
  // Acquire, pairs with the release below: the class is seen whole.
  if (stack_class* c = entry.load(std::memory_order_acquire); c != nullptr) return *c;
  const std::lock_guard one_creates{classes_lock};
  stack_class* c = entry.load(std::memory_order_relaxed);
  if (c == nullptr) {
    c = new stack_class{slot_size, guard};
    entry.store(c, std::memory_order_release);
  }
  return *c;
}

stack* acquire_stack(stack_class& from) {
  refusal why;
  const stack_list taken = from.take(1, why);
  if (taken.count == 0) throw_refusal(why);
  forget_frames(*taken.first);
  return taken.first;
}

stack* try_acquire_stack(stack_class& from) noexcept {
  refusal why;
  const stack_list taken = from.take(1, why);
  if (taken.count != 0) forget_frames(*taken.first);
  return taken.first;
}

void release_stack(stack* s) noexcept { s->owner->give({s, 1}); }

std::size_t slot_size(const stack_class& c) noexcept { return c.slot_size; }

char* slot_base(const stack& s) noexcept {
  const auto highest = reinterpret_cast<std::uintptr_t>(s.top - 1);
  return s.top - 1 - highest % s.owner->slot_size;
}

std::size_t usable_size(const stack_class& c) noexcept { return c.slot_size - c.guard_size - colour_size_max; }
std::size_t usable_size(const stack& s) noexcept { return static_cast<std::size_t>(s.top - lowest_usable(s)); }
char* lowest_usable(const stack& s) noexcept { return slot_base(s) + s.owner->guard_size; }

void give_back_below(const stack& s, const void* address) noexcept {
  // The guard is whole pages.
  const auto below = static_cast<std::size_t>(static_cast<const char*>(address) - lowest_usable(s));
  if (const std::size_t size = below / page_size() * page_size(); size != 0)
    static_cast<void>(calls().advise(lowest_usable(s), size, MADV_DONTNEED));
}

bool in_guard(const stack& s, const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(slot_base(s)) <
         s.owner->guard_size;
}

stack_pool_stats stats(const stack_class& c) { return c.stats(); }

void trim(stack_class& c) noexcept { c.trim(); }

void forget_frames([[maybe_unused]] stack& s) noexcept {
#if RAMIE_ASAN
  // Most of the shadow is untouched zeros. Reading it costs no memory, writing all of it would. So find where the
  // poison begins.
  constexpr std::size_t step = 4096;
  for (char* low = lowest_usable(s); low < s.top; low += step) {
    const auto size = std::min(step, static_cast<std::size_t>(s.top - low));
    if (__asan_region_is_poisoned(low, size) == nullptr) continue;
    __asan_unpoison_memory_region(low, static_cast<std::size_t>(s.top - low));
    return;
  }
#endif
}

stack* stack_cache::refill() noexcept {
  refusal why;
  stack_list taken = class_->take(capacity / 2, why);
  if (taken.count == 0) return nullptr;
  stack* s = taken.pop();
  first_ = taken.first;
  count_ = taken.count;
  forget_frames(*s);
  return s;
}

void stack_cache::spill() noexcept {
  stack_list all{first_, count_};
  const stack_list kept = all.pop(capacity / 2);
  first_ = kept.first;
  count_ = kept.count;
  class_->give(all);
}

void stack_cache::flush() noexcept {
  const stack_list all{std::exchange(first_, nullptr), std::exchange(count_, 0)};
  if (all.count != 0) class_->give(all);
}

}  // namespace ramie::detail
