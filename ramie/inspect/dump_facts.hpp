// What a dump finds out about a fiber or an actor.
//
// A parked fiber is held (wait_word.hpp) while it is looked at, so its own data stands still. Everything else may
// change or go away at any time: it is read by copy_from, which fails instead of faulting, and may turn out to be
// nonsense. So texts are cut to a length, and no address is followed twice.
#pragma once

#include <ramie/machine/peek.hpp>
#include <ramie/stack/stack.hpp>
#include <ramie/task/wait.hpp>
#include <ramie/worker/resident.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// Copies memory of this process. False if it is not there. Async-signal-safe.
bool copy_from(const void* address, void* to, std::size_t size) noexcept;

/// The bytes of what was a T at that address, which may be misaligned, and something else by now. No `address->member`
/// for such an address: its alignment is assumed there.
template <class T>
class copied {
 public:
  explicit copied(const void* address) noexcept : known_(copy_from(address, bytes_.data(), sizeof(T))) {}
  explicit operator bool() const noexcept { return known_; }
  const T* operator->() const noexcept { return reinterpret_cast<const T*>(bytes_.data()); }

 private:
  alignas(T) std::array<char, sizeof(T)> bytes_;
  bool known_;
};
/// For members of such bytes: those of a bool may be others than 0 and 1.
inline bool is_set(const bool& flag) noexcept { return *reinterpret_cast<const unsigned char*>(&flag) != 0; }

struct task_facts {
  bool known = false;  // if false, only `id` is valid
  const void* id = nullptr;
  const void* parent = nullptr;      // strand: the task it runs for
  const void* spawned_by = nullptr;  // of one that has a name
  const void* type = nullptr;
  task_kind kind = task_kind::fiber;
  bool strand = false;
  bool stopping = false;  // asked to stop
  bool detached = false;
  bool measures_stack = false;        // its stack was painted
  bool on_stack = false;              // runs, or waits in the middle of something
  const worker_base* home = nullptr;  // to be compared, not dereferenced
  const stack* joined_by = nullptr;   // a descriptor: always readable
  resident_facts resident;            // of residents
  std::array<char, 64> name{};
};

/// Of the task at that address, which may no longer be one.
void look_at_task(const void* address, task_facts& found) noexcept;

struct fiber_facts {
  enum class doing : std::uint8_t { waits, is_ready, runs, is_woken };
  task_facts who;
  doing state = doing::waits;
  const char* reason = "";
  const char* file = "";  // "": not known
  std::uint32_t line = 0;
  const char* function = "";
  std::int64_t since_ns = 0;     // 0: not known
  const void* holder = nullptr;  // of the mutex, see sync/identity.hpp
  int fd = -1;                   // what it waits for, if that is a descriptor
  bool writes = false;           // for room in it
  std::size_t frames = 0;
  std::array<std::uintptr_t, 64> pcs{};
};

/// False if there is no fiber on that stack. `running`: a worker is on it.
bool look_at_stack(const inspection& during, stack& s, bool running, std::size_t frames_most,
                   fiber_facts& found) noexcept;

}  // namespace ramie::detail
