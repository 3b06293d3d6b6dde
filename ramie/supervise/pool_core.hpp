// What the children of a pool and its supervisor share. pool_core.cpp has the protocol.
#pragma once

#include <ramie/actor/actor.hpp>
#include <ramie/actor/extras.hpp>
#include <ramie/queue/adaptive_lock.hpp>
#include <ramie/supervise/supervisor_options.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie::detail {

class pool_core;
struct pool_list;

/// What a pool adds to a child, behind its state.
struct pool_child {
  pool_core* of;
  pool_list* in = nullptr;  // lock of the pool, as the rest
  pool_child* older = nullptr;
  pool_child* newer = nullptr;
};

struct pool_list {
  pool_child* oldest = nullptr;
  pool_child* newest = nullptr;
  std::size_t size = 0;

  void add(pool_child& c) noexcept {
    c.in = this;
    c.older = newest;
    c.newer = nullptr;
    (newest == nullptr ? oldest : newest->newer) = &c;
    newest = &c;
    ++size;
  }
  void remove(pool_child& c) noexcept {
    (c.older == nullptr ? oldest : c.older->newer) = c.newer;
    (c.newer == nullptr ? newest : c.newer->older) = c.older;
    c.in = nullptr;
    --size;
  }
};

/// What is the same for all children of one class that are made from the same arguments.
struct pooled_type : keeper_type {
  std::size_t hook_offset;
  void (*construct)(actor_cell&);  // anew, from the arguments that were kept
  void (*drop_arguments)(actor_cell&) noexcept;
};

class pool_core : public std::enable_shared_from_this<pool_core> {
 public:
  const child_lifetime lifetime;
  const std::chrono::nanoseconds shutdown;
  const type_info& type;
  const actor_options of_children;
  const bool asks_decide;  // of each end
  [[nodiscard]] bool keeps_arguments() const noexcept { return lifetime != child_lifetime::temporary || asks_decide; }

  pool_core(const pool_options& options, const type_info& type, std::size_t hook_offset);
  pool_core(const pool_core&) = delete;
  pool_core& operator=(const pool_core&) = delete;
  ~pool_core() = default;

  // For those who start children.
  /// Reserves a place. Throws actor_down, too_many_children.
  void admit();
  void give_back() noexcept;
  /// The child takes its place: enlists it. Throws what that throws; actor_down, if the pool has ended meanwhile.
  void add(actor_cell& c, pool_child& hook);

  // For the supervisor.
  void open(actor_cell& supervisor) noexcept;
  /// Ends all children; from now on none can be added.
  void close(actor_cell& supervisor) noexcept;
  [[nodiscard]] std::size_t size() noexcept;
  [[nodiscard]] std::vector<any_actor> all();
  /// It is one of the children, and none that is to end for good.
  [[nodiscard]] bool keeps(actor_cell& c) noexcept;
  /// From now on its end is for good, whatever its reason. False if it is none of the children.
  bool let_leave(actor_cell& c) noexcept;
  /// It is none of the children any more, and has not ended yet.
  void leave_behind(actor_cell& c) noexcept;

  static bool ends(actor_cell& c, const exit_reason& why) noexcept;
  static void ended(actor_cell& c) noexcept;

 private:
  static pool_child* hook_of(actor_cell& c) noexcept;
  void take_out(pool_child& hook) noexcept;
  [[nodiscard]] actor_cell& cell_of(pool_child& hook) const noexcept {
    return *std::launder(reinterpret_cast<actor_cell*>(reinterpret_cast<char*>(&hook) - hook_offset_));
  }
  /// Moves all from one list to the other, and kills each.
  void kill_all(pool_list& from, pool_list& to, exit_kind why, bool cancels) noexcept;
  /// False: there are some still when `deadline` has come.
  bool await_all(pool_list& in, const steady::time_point* deadline) noexcept;
  any_actor first_of(const pool_list& in) noexcept;

  const std::size_t most_;
  const std::size_t hook_offset_;
  adaptive_lock lock_{resident::lock_patience};
  actor_cell* supervisor_ = nullptr;  // null: closed
  std::size_t places_ = 0;            // taken, by children and by those that are being made
  pool_list children_;
  pool_list leaving_;  // they end for good
  pool_list left_;     // they do not end, though killed
  std::shared_ptr<pool_core> kept_for_left_;
};

template <class... Args>
struct kept_arguments {
  std::optional<std::tuple<Args...>> parts;
};

/// A child's block: the cell, the state, the hook, the arguments.
template <class A, class... Args>
struct pooled_class {
  using plain = actor_class<A, A>;
  /// Can it be constructed again?
  static constexpr bool repeats =
      std::is_constructible_v<A, const Args&...> && (std::is_copy_constructible_v<Args> && ...);
  using kept = std::conditional_t<repeats, kept_arguments<Args...>, kept_arguments<>>;

  static constexpr std::size_t hook_offset =
      (plain::offset + sizeof(A) + alignof(pool_child) - 1) / alignof(pool_child) * alignof(pool_child);
  static constexpr std::size_t kept_offset =
      (hook_offset + sizeof(pool_child) + alignof(kept) - 1) / alignof(kept) * alignof(kept);
  static_assert(alignof(kept) <= task_alignment,
                "ramie: arguments of a pool's child may be aligned to 16 bytes at most");
  static constexpr std::size_t size = kept_offset + sizeof(kept);
  static constexpr std::uint8_t list =
      state_alignment<A> <= task_alignment ? task_cache::list_of(size) : task_cache::no_list;

  static kept& arguments(actor_cell& c) noexcept {
    return *std::launder(reinterpret_cast<kept*>(reinterpret_cast<char*>(&c) + kept_offset));
  }
  static void construct(actor_cell& c) {
    if constexpr (repeats)
      std::apply([&](const Args&... parts) { ::new (c.state()) A(parts...); }, *arguments(c).parts);
  }
  static void drop_arguments(actor_cell& c) noexcept { std::destroy_at(&arguments(c)); }

  static constexpr pooled_type keeper{{&pool_core::ends, &pool_core::ended}, hook_offset, &construct, &drop_arguments};
  static constexpr actor_type type = [] {
    actor_type t = plain::type;
    t.keeper = &keeper;
    return t;
  }();
};

template <class A, class... Args>
actor_ref<A> spawn_in_pool(pool_core& pool, Args&&... args) {
  using made = pooled_class<A, std::decay_t<Args>...>;
  if constexpr (!made::repeats)
    if (pool.keeps_arguments())
      throw invalid_argument{
          "ramie: pool_ref::spawn: a child that may be restarted is constructed again from copies of its arguments, "
          "which these cannot be; make the pool's children temporary"};
  pool.admit();
  actor_cell* c = nullptr;
  pool_child* hook = nullptr;
  bool constructed = false;
  try {
    c = allocate_cell(made::type, made::size, made::list);
    hook = ::new (reinterpret_cast<char*>(c) + made::hook_offset) pool_child{&pool};
    auto* kept = ::new (reinterpret_cast<char*>(c) + made::kept_offset) typename made::kept;
    prepare_cell(*c, &pool.of_children);
    if (pool.keeps_arguments()) {
      if constexpr (made::repeats) {
        kept->parts.emplace(std::forward<Args>(args)...);
        made::construct(*c);
      }
    } else {
      ::new (c->state()) A(std::forward<Args>(args)...);
    }
    constructed = true;
    pool.add(*c, *hook);
  } catch (...) {
    pool.give_back();
    if (constructed) made::plain::destroy(*c);
    if (c != nullptr) abandon_cell(*c);
    throw;
  }
  return actor_ref<A>{c, any_actor::adopt{}};
}

}  // namespace ramie::detail
