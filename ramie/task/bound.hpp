// What the calling code sees of bound values, and what it binds itself: bindings.hpp has the protocol.
#pragma once

#include <ramie/task/bindings.hpp>

#include <cstdint>

namespace ramie::detail {

/// What the calling code sees, or null. It stays as long as that code is inside the binding, or its fiber lives.
[[nodiscard]] const bound_set* bound_here() noexcept;
/// That of this key that the calling code sees, or null.
[[nodiscard]] const bound_value* find_bound(std::uint64_t key) noexcept;

/// B2: lets `t`, which was not submitted yet, see what the caller sees. Throws std::bad_alloc.
void inherit_bound(task& t);
/// B2: `t` has returned, and lets go of what it inherited. Still as a fiber.
void end_bound(task& t) noexcept;

/// Of a request: what its sender sees, with a reference that goes with the payload.
struct asked_by {
  const bound_set* bound = nullptr;
  RAMIE_ALWAYS_INLINE void set() noexcept {
    if (binds()) [[unlikely]]
      bound = keep(bound_here());
  }
  RAMIE_ALWAYS_INLINE void let_go() noexcept {
    if (bound != nullptr) [[unlikely]]
      forget();
  }

 private:
  void forget() noexcept;
};

/// While it is there, the calling plain thread sees `set`, which stays: for a call on behalf of a fiber.
class called_within {
 public:
  explicit called_within(const bound_set* set) noexcept;
  called_within(const called_within&) = delete;
  called_within& operator=(const called_within&) = delete;
  ~called_within();

 private:
  bool changed_;
};

/// While it is there, the calling code sees another set. What it stands around has a frame of its own: call_inside.
class bound_scope {
 public:
  struct nothing {};
  struct as_at {
    const void* place;  // of a scope
  };
  /// The same and `made`, which it takes, whatever comes. Throws std::bad_alloc.
  explicit bound_scope(const bound_value* made);
  /// Nothing. Throws std::bad_alloc.
  explicit bound_scope(nothing /*unused*/);
  /// B3: what children of the scope at that place see. Without memory for it, what the caller sees.
  explicit bound_scope(as_at where) noexcept;
  bound_scope(const bound_scope&) = delete;
  bound_scope& operator=(const bound_scope&) = delete;
  ~bound_scope();

 private:
  void open(binding_chain& chain, task* t, const bound_set* sees) noexcept;
  binding here_;
  bool is_open_ = false;
};

[[noreturn]] void throw_not_bound(const char* name);

}  // namespace ramie::detail
