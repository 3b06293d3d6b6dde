#include "plain_memory.hpp"

#include "engine.hpp"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ramie::interleave {

bool watching = false;
bool watched_run = false;

namespace {

struct access {
  const void* code;
  std::uint32_t event;
  std::uint8_t thread;
  std::uint8_t bytes;  // of the word, a bit each
  plain_access how;
};

struct cell {
  static constexpr unsigned most = 6;
  std::uintptr_t word;
  std::uint64_t run;  // of another run: empty
  std::uint32_t count;
  std::uint32_t next;  // is overwritten when all are in use
  access kept[most];
};

constexpr std::size_t cells_most = 1 << 18;  // 30 MB, of which a program touches a small part
cell* cells = nullptr;
std::size_t used = 0;
std::uint64_t run = 0;

// Words that are neighbours are neighbours here, too.
std::size_t place_of(std::uintptr_t word) noexcept { return (word ^ (word >> 17) * 0x9e3779b1u) % cells_most; }

cell* find(std::uintptr_t word) noexcept {
  for (std::size_t k = place_of(word);; k = (k + 1) % cells_most) {
    if (cells[k].run != run) return nullptr;
    if (cells[k].word == word) return &cells[k];
  }
}

cell& find_or_make(std::uintptr_t word) noexcept {
  std::size_t k = place_of(word);
  while (cells[k].run == run) {
    if (cells[k].word == word) return cells[k];
    k = (k + 1) % cells_most;
  }
  if (++used > cells_most / 4 * 3) {
    std::fputs("interleave: too many words of plain data\n", stderr);
    std::abort();
  }
  cells[k].word = word;
  cells[k].run = run;
  cells[k].count = cells[k].next = 0;
  return cells[k];
}

const char* name_of(plain_access how) noexcept {
  if (how.atomic) return how.write ? "atomic write" : "atomic read";
  return how.write ? "write" : "read";
}

bool conflict(plain_access a, plain_access b) noexcept { return (a.write || b.write) && !(a.atomic && b.atomic); }

/// What races with `old` also races with `now`, which is later (D2).
bool covers(const access& now, const access& old) noexcept {
  return (old.bytes & ~now.bytes) == 0 && now.how.write >= old.how.write && now.how.atomic <= old.how.atomic;
}

void race(const access& before, const access& now, const void* at, const char* what) noexcept {
  active->blame(before.code, now.code);
  active->note(name_of(before.how), at, before.thread, before.code);
  active->note(name_of(now.how), at, now.thread, now.code);
  active->fail(std::string{what} + ": " + name_of(before.how) + " by thread " + std::to_string(before.thread) + ", " +
               name_of(now.how) + " by thread " + std::to_string(now.thread));
}

/// The accesses of other threads that are not ordered before `now`.
void check_order(const cell& c, const access& now, const char* what) noexcept {
  for (std::uint32_t i = 0; i < c.count; ++i) {
    const access& old = c.kept[i];
    if ((old.bytes & now.bytes) == 0 || old.thread == now.thread || !conflict(old.how, now.how)) continue;
    if (!active->weak()->happened_before(now.thread, old.thread, old.event))
      race(old, now, reinterpret_cast<const void*>(c.word * 8), what);
  }
}

void add(cell& c, const access& now) noexcept {
  for (std::uint32_t i = 0; i < c.count;) {
    const access& old = c.kept[i];
    const bool earlier = old.thread == now.thread || active->weak()->happened_before(now.thread, old.thread, old.event);
    if (earlier && covers(now, old)) c.kept[i] = c.kept[--c.count];
    else ++i;
  }
  if (c.count != cell::most) {
    c.kept[c.count++] = now;
  } else {
    c.kept[c.next] = now;
    c.next = (c.next + 1) % cell::most;
  }
}

access made_now(plain_access how, const void* code) noexcept {
  const std::uint32_t me = active->self().number;
  return {code, active->weak()->next_event(me), static_cast<std::uint8_t>(me), 0, how};
}

/// The words of a range, each with the bytes that belong to it.
template <class F>
void each_word(std::uintptr_t at, std::size_t size, F f) noexcept {
  for (const std::uintptr_t end = at + size; at < end;) {
    const unsigned first = at % 8;
    const unsigned n = static_cast<unsigned>(end - at < 8 - first ? end - at : 8 - first);
    f(at / 8, static_cast<std::uint8_t>(((1u << n) - 1) << first));
    at += n;
  }
}

/// Memory that is allocated, or given back (D4).
void forget(void* at, bool given_back, const void* code) noexcept {
  if (!watching || at == nullptr) return;
  const unwatched here;
  access now = made_now({true, false}, code);
  each_word(reinterpret_cast<std::uintptr_t>(at), ::malloc_usable_size(at),
            [&](std::uintptr_t word, std::uint8_t bytes) {
              cell* const c = find(word);
              if (c == nullptr) return;
              now.bytes = bytes;
              if (given_back) check_order(*c, now, "memory is given back while an access to it is not ordered before");
              c->count = c->next = 0;
            });
}

}  // namespace

void begin_plain_memory(bool watch) noexcept {
  if (cells == nullptr) {
    cells = static_cast<cell*>(std::calloc(cells_most, sizeof *cells));
    if (cells == nullptr) std::abort();
  }
  ++run;
  used = 0;
  watched_run = watch;
}

void end_plain_memory() noexcept { watched_run = watching = false; }

void note_access(std::uintptr_t at, std::size_t size, plain_access how, const void* code) noexcept {
  access now = made_now(how, code);
  each_word(at, size, [&](std::uintptr_t word, std::uint8_t bytes) {
    now.bytes = bytes;
    cell& c = find_or_make(word);
    if (c.count == 1) {  // most often: again by the same thread
      access& last = c.kept[0];
      if (last.thread == now.thread && covers(now, last)) {
        last = now;
        return;
      }
    }
    check_order(c, now, "race on plain data");
    add(c, now);
  });
}

namespace {

/// Called by the instrumented code.
void plain(const void* at, std::size_t size, bool write, const void* code) noexcept {
  if (!watching) return;
  const unwatched here;
  note_access(reinterpret_cast<std::uintptr_t>(at), size, {write, false}, code);
}

/// An atomic operation that is not one of ramie's hooks: no step, but it orders.
template <class T, class F>
T operate(volatile T* at, std::memory_order o, const void* code, F change) noexcept {
  T* const place = const_cast<T*>(at);
  const T before = *place;
  T after = before;
  const bool writes = change(after);
  if (watching) {
    const unwatched here;
    note_access(reinterpret_cast<std::uintptr_t>(place), sizeof(T), {writes, true}, code);
    weak_memory& weak = *active->weak();
    if (writes) weak.modify(*active, place, static_cast<std::uint64_t>(before), static_cast<std::uint64_t>(after), o);
    else weak.read_newest(*active, place, static_cast<std::uint64_t>(before), o);
  }
  if (writes) *place = after;
  return before;
}

/// The function that the one of the same name below stands in front of.
template <class F>
F the_systems(const char* name, F& found) noexcept {
  if (found == nullptr) found = reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
  return found;
}

/// The system's mutexes, of tests: held across no step, so nobody waits for one.
void order_by(const void* mutex, std::memory_order o) noexcept {
  if (!watching) return;
  const unwatched here;
  active->weak()->modify(*active, mutex, 0, 0, o);
}

std::memory_order order(int o) noexcept { return static_cast<std::memory_order>(o); }

}  // namespace

}  // namespace ramie::interleave

// ---- what the compiler calls
// -----------------------------------------------------------------------------------------

// NOLINTBEGIN(bugprone-reserved-identifier, bugprone-macro-parentheses): the compiler chose the names; types have none
#define RAMIE_HERE __builtin_return_address(0)
#define RAMIE_PLAIN(size)                                                                               \
  void __tsan_read##size(void* at) { ramie::interleave::plain(at, size, false, RAMIE_HERE); }           \
  void __tsan_write##size(void* at) { ramie::interleave::plain(at, size, true, RAMIE_HERE); }           \
  void __tsan_unaligned_read##size(void* at) { ramie::interleave::plain(at, size, false, RAMIE_HERE); } \
  void __tsan_unaligned_write##size(void* at) { ramie::interleave::plain(at, size, true, RAMIE_HERE); }
#define RAMIE_MODIFY(bits, T, name, operation)                                                           \
  T __tsan_atomic##bits##_##name(volatile T* at, T operand, int o) {                                     \
    return ramie::interleave::operate(at, ramie::interleave::order(o), RAMIE_HERE, [operand](T& value) { \
      value = static_cast<T>(operation);                                                                 \
      return true;                                                                                       \
    });                                                                                                  \
  }
#define RAMIE_ATOMIC(bits, T)                                                                                  \
  T __tsan_atomic##bits##_load(const volatile T* at, int o) {                                                  \
    return ramie::interleave::operate(const_cast<volatile T*>(at), ramie::interleave::order(o), RAMIE_HERE,    \
                                      [](T&) { return false; });                                               \
  }                                                                                                            \
  void __tsan_atomic##bits##_store(volatile T* at, T operand, int o) {                                         \
    ramie::interleave::operate(at, ramie::interleave::order(o), RAMIE_HERE, [operand](T& value) {              \
      value = operand;                                                                                         \
      return true;                                                                                             \
    });                                                                                                        \
  }                                                                                                            \
  RAMIE_MODIFY(bits, T, exchange, operand)                                                                     \
  RAMIE_MODIFY(bits, T, fetch_add, value + operand)                                                            \
  RAMIE_MODIFY(bits, T, fetch_sub, value - operand)                                                            \
  RAMIE_MODIFY(bits, T, fetch_and, value& operand)                                                             \
  RAMIE_MODIFY(bits, T, fetch_or, value | operand)                                                             \
  RAMIE_MODIFY(bits, T, fetch_xor, value ^ operand)                                                            \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* at, T* expected, T desired, int o, int) {      \
    const T seen = ramie::interleave::operate(at, ramie::interleave::order(o), RAMIE_HERE, [=](T& value) {     \
      if (value != *expected) return false;                                                                    \
      value = desired;                                                                                         \
      return true;                                                                                             \
    });                                                                                                        \
    const bool done = seen == *expected;                                                                       \
    *expected = seen;                                                                                          \
    return done;                                                                                               \
  }                                                                                                            \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* at, T* expected, T desired, int o, int failed) { \
    return __tsan_atomic##bits##_compare_exchange_strong(at, expected, desired, o, failed);                    \
  }

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** at, void*) { ramie::interleave::plain(at, sizeof *at, true, RAMIE_HERE); }
void __tsan_vptr_read(void** at) { ramie::interleave::plain(at, sizeof *at, false, RAMIE_HERE); }
void __tsan_read_range(void* at, std::size_t size) { ramie::interleave::plain(at, size, false, RAMIE_HERE); }
void __tsan_write_range(void* at, std::size_t size) { ramie::interleave::plain(at, size, true, RAMIE_HERE); }
RAMIE_PLAIN(1)
RAMIE_PLAIN(2)
RAMIE_PLAIN(4)
RAMIE_PLAIN(8)
RAMIE_PLAIN(16)

RAMIE_ATOMIC(8, std::uint8_t)
RAMIE_ATOMIC(16, std::uint16_t)
RAMIE_ATOMIC(32, std::uint32_t)
RAMIE_ATOMIC(64, std::uint64_t)
void __tsan_atomic_thread_fence(int) {
  if (ramie::interleave::watching) ramie::interleave::full_fence();
}
void __tsan_atomic_signal_fence(int) {}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static int (*of_the_system)(pthread_mutex_t*) = nullptr;
  const int error = ramie::interleave::the_systems("pthread_mutex_lock", of_the_system)(mutex);
  ramie::interleave::order_by(mutex, std::memory_order_acquire);
  return error;
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static int (*of_the_system)(pthread_mutex_t*) = nullptr;
  ramie::interleave::order_by(mutex, std::memory_order_release);
  return ramie::interleave::the_systems("pthread_mutex_unlock", of_the_system)(mutex);
}

// clang's names of three functions that gcc calls as they are.
void* __tsan_memcpy(void* to, const void* from, std::size_t size) {
  ramie::interleave::plain(from, size, false, RAMIE_HERE);
  ramie::interleave::plain(to, size, true, RAMIE_HERE);
  return std::memcpy(to, from, size);
}
void* __tsan_memmove(void* to, const void* from, std::size_t size) {
  ramie::interleave::plain(from, size, false, RAMIE_HERE);
  ramie::interleave::plain(to, size, true, RAMIE_HERE);
  return std::memmove(to, from, size);
}
void* __tsan_memset(void* to, int byte, std::size_t size) {
  ramie::interleave::plain(to, size, true, RAMIE_HERE);
  return std::memset(to, byte, size);
}

// The allocator of the system, which forgets (D4).
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* at, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* at);

void* malloc(std::size_t size) noexcept {
  void* const at = __libc_malloc(size);
  ramie::interleave::forget(at, false, RAMIE_HERE);
  return at;
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  void* const at = __libc_calloc(count, size);
  ramie::interleave::forget(at, false, RAMIE_HERE);
  return at;
}
void* realloc(void* at, std::size_t size) noexcept {
  ramie::interleave::forget(at, true, RAMIE_HERE);
  void* const now = __libc_realloc(at, size);
  ramie::interleave::forget(now, false, RAMIE_HERE);
  return now;
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  void* const at = __libc_memalign(alignment, size);
  ramie::interleave::forget(at, false, RAMIE_HERE);
  return at;
}
void* memalign(std::size_t alignment, std::size_t size) noexcept { return aligned_alloc(alignment, size); }
int posix_memalign(void** to, std::size_t alignment, std::size_t size) noexcept {
  *to = aligned_alloc(alignment, size);
  return *to == nullptr ? ENOMEM : 0;
}
void free(void* at) noexcept {
  ramie::interleave::forget(at, true, RAMIE_HERE);
  __libc_free(at);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier, bugprone-macro-parentheses)
