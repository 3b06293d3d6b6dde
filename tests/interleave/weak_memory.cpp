#include "weak_memory.hpp"

#include "engine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ramie::interleave {

namespace {

bool acquires(std::memory_order o) noexcept { return o != std::memory_order_relaxed && o != std::memory_order_release; }
bool releases(std::memory_order o) noexcept {
  return o == std::memory_order_release || o == std::memory_order_acq_rel || o == std::memory_order_seq_cst;
}

std::size_t hash_of(const void* at) noexcept {
  return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(at) * 0x9e3779b97f4a7c15u) >> 20);
}

}  // namespace

void weak_memory::begin(std::uint32_t one_in, std::uint64_t lasts) noexcept {
  ++run_;
  threads_ = 1;
  one_in_ = one_in;
  lasts_ = lasts;
  for (auto* clocks : {&knows_, &will_know_, &fenced_})
    for (knowledge& c : *clocks) c = {};
  full_fences_.fill(0);
  if (table_ == nullptr) {
    table_ = static_cast<location**>(std::calloc(places_most, sizeof *table_));
    all_ = static_cast<location**>(std::calloc(places_most, sizeof *all_));
    if (table_ == nullptr || all_ == nullptr) std::abort();
  }
  if (used_ > places_most / 8) {  // most of them lie in memory that was given back by earlier runs
    std::memset(table_, 0, places_most * sizeof *table_);
    used_ = 0;
  }
}

void weak_memory::join(event_clock& to, const event_clock& from) const noexcept {
  for (std::uint32_t i = 0; i < threads_; ++i) to[i] = std::max(to[i], from[i]);
}

void weak_memory::join(knowledge& to, const knowledge& from) const noexcept {
  join(to.seen, from.seen);
  join(to.before, from.before);
}

/// The number of the event that begins.
std::uint32_t weak_memory::begin_event(std::uint32_t thread) noexcept {
  ++knows_[thread].seen[thread];
  return ++knows_[thread].before[thread];
}

void weak_memory::reset(location& l, const void* at) noexcept {
  l.at = at;
  l.run = run_;
  l.made_by = nobody;
  l.count = l.first = 0;
  l.used.fill(0);
}

weak_memory::location& weak_memory::find(const void* at) noexcept {
  std::size_t k = hash_of(at) % places_most;
  for (; table_[k] != nullptr; k = (k + 1) % places_most) {
    location& l = *table_[k];
    if (l.at != at) continue;
    if (l.run != run_) reset(l, at);
    return l;
  }
  if (used_ == places_most / 2) {
    std::fputs("interleave: too many places in memory\n", stderr);
    std::abort();
  }
  location*& fresh = all_[used_++];
  if (fresh == nullptr) {
    void* const place = std::malloc(sizeof(location));
    if (place == nullptr) std::abort();
    fresh = new (place) location;
  }
  table_[k] = fresh;
  reset(*table_[k], at);
  return *table_[k];
}

weak_memory::written& weak_memory::append(location& l, std::uint64_t value, std::uint32_t by, std::uint32_t event,
                                          std::uint64_t step) noexcept {
  if (l.count == kept_most) l.first = (l.first + 1) % kept_most;
  else ++l.count;
  written& w = l[l.count - 1];
  w.value = value;
  w.step = step;
  w.by = by;
  w.event = event;
  w.carries = false;
  w.read.fill(0);
  return w;
}

/// The location for an access of the current thread, with what is in the memory if nothing else is known (K7).
weak_memory::location& weak_memory::use(engine& e, const void* at, std::uint64_t newest) noexcept {
  location& l = find(at);
  const std::uint32_t me = e.self().number;
  if (l.made_by != nobody && !happened_before(me, l.made_by, l.made))
    e.fail("an atomic is used by a thread to which its beginning was not handed over in order");
  // Written without a store: its beginning, by a thread that knows of it; or by the test itself.
  if (l.count == 0 || l[l.count - 1].value != newest) {
    l.count = 0;
    append(l, newest, nobody, 0, e.steps());
  }
  l.used[me] = begin_event(me);
  return l;
}

bool weak_memory::is_known(const written& w, std::uint32_t thread) const noexcept {
  const event_clock& mine = knows_[thread].seen;
  if (w.by == nobody || w.event <= mine[w.by]) return true;
  for (std::uint32_t i = 0; i < threads_; ++i)
    if (w.read[i] != 0 && w.read[i] <= mine[i]) return true;
  return false;
}

void weak_memory::acquire(std::uint32_t thread, const written& from, std::memory_order o) noexcept {
  if (from.carries) join(acquires(o) ? knows_[thread] : will_know_[thread], from.carried);
}

weak_memory::seen weak_memory::load(engine& e, const void* at, std::uint64_t newest, std::memory_order o) noexcept {
  const std::uint32_t me = e.self().number;
  if (o == std::memory_order_seq_cst) see_fences(me);
  location& l = use(e, at, newest);
  std::uint32_t which = l.count - 1;
  if (which != 0 && e.below(one_in_) == 0) {
    std::uint32_t oldest = which;
    while (oldest != 0 && !is_known(l[oldest], me) && l[oldest].step + lasts_ > e.steps()) --oldest;
    which -= e.below(which - oldest + 1);
  }
  written& w = l[which];
  if (w.read[me] == 0) w.read[me] = knows_[me].seen[me];
  acquire(me, w, o);
  return {w.value, which + 1 != l.count};
}

void weak_memory::read_newest(engine& e, const void* at, std::uint64_t newest, std::memory_order o) noexcept {
  const std::uint32_t me = e.self().number;
  if (o == std::memory_order_seq_cst) see_fences(me);
  location& l = use(e, at, newest);
  written& w = l[l.count - 1];
  if (w.read[me] == 0) w.read[me] = knows_[me].seen[me];
  acquire(me, w, o);
}

void weak_memory::store(engine& e, const void* at, std::uint64_t before, std::uint64_t after,
                        std::memory_order o) noexcept {
  const std::uint32_t me = e.self().number;
  if (o == std::memory_order_seq_cst) see_fences(me);
  location& l = use(e, at, before);
  written& w = append(l, after, me, knows_[me].seen[me], e.steps());
  w.carries = true;
  w.carried = releases(o) ? knows_[me] : fenced_[me];
  if (o == std::memory_order_seq_cst) see_fences(me);
}

void weak_memory::modify(engine& e, const void* at, std::uint64_t before, std::uint64_t after,
                         std::memory_order o) noexcept {
  const std::uint32_t me = e.self().number;
  if (o == std::memory_order_seq_cst) see_fences(me);
  location& l = use(e, at, before);
  const bool carried_on = l[l.count - 1].carries;
  const knowledge passed_on = carried_on ? l[l.count - 1].carried : knowledge{};
  acquire(me, l[l.count - 1], o);
  written& w = append(l, after, me, knows_[me].seen[me], e.steps());
  w.carries = true;
  w.carried = releases(o) ? knows_[me] : fenced_[me];
  if (carried_on) join(w.carried, passed_on);
  if (o == std::memory_order_seq_cst) see_fences(me);
}

void weak_memory::construct(engine& e, const void* at) noexcept {
  location& l = find(at);
  reset(l, at);
  const std::uint32_t me = e.self().number;
  l.made_by = me;
  l.made = begin_event(me);
}

void weak_memory::destroy(engine& e, const void* at) noexcept {
  location& l = find(at);
  const std::uint32_t me = e.self().number;
  for (std::uint32_t i = 0; i < threads_; ++i)
    if (!happened_before(me, i, l.used[i]))
      e.fail("an atomic ends its life, and another thread's use of it is not ordered before");
  reset(l, at);
}

void weak_memory::see_fences(std::uint32_t thread) noexcept {
  event_clock& mine = knows_[thread].seen;
  join(mine, will_know_[thread].seen);
  join(mine, full_fences_);
  full_fences_ = mine;
  fenced_[thread].seen = mine;
}

void weak_memory::fence(std::uint32_t thread) noexcept {
  begin_event(thread);
  join(knows_[thread].before, will_know_[thread].before);
  fenced_[thread].before = knows_[thread].before;
  see_fences(thread);
}

void weak_memory::interrupt(std::uint32_t by, std::uint32_t thread) noexcept {
  fence(thread);
  const event_clock earlier = knows_[thread].before;
  join(knows_[thread].before, knows_[by].before);
  fenced_[thread].before = knows_[thread].before;
  join(knows_[by].before, earlier);
}

void weak_memory::started(std::uint32_t by, std::uint32_t thread) noexcept {
  threads_ = std::max(threads_, thread + 1);
  begin_event(by);
  join(knows_[thread], knows_[by]);
}

void weak_memory::joined(std::uint32_t by, std::uint32_t thread) noexcept {
  begin_event(thread);
  join(knows_[by], knows_[thread]);
}

}  // namespace ramie::interleave
