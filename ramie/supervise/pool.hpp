// Pools: supervisors of any number of actors of one class, each of which costs hardly more than one without supervisor.
#pragma once

#include <ramie/supervise/pool_core.hpp>
#include <ramie/supervise/supervisor_options.hpp>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie {

namespace detail {

template <class A>
std::shared_ptr<pool_core> make_pool(const pool_options& options) {
  static_assert(std::is_class_v<A> && !is_mailbox<A>, "ramie: a pool is of class actors");
  return std::make_shared<pool_core>(options, type_of<A>(), pooled_class<A>::hook_offset);
}
any_actor start_pool(const pool_options& options, std::shared_ptr<pool_core> pool);
bool stop_child_of(actor_cell& supervisor, const any_actor& child);
std::vector<any_actor> children_of(actor_cell& supervisor);
child_counts count_children_of(actor_cell& supervisor);
std::uint64_t restarts_of(actor_cell& supervisor);
void end_supervisor(actor_cell& c) noexcept;

}  // namespace detail

/// A pool, known by reference: an actor that ends its children, all at once, before it ends. The spawner of a child
/// constructs it, without a message to the pool; the pool hears only of those that fail, and of permanent ones.
/// Thread-safe. All but `spawn` suspends (a plain thread: blocks) until the pool has done what is asked, and throws
/// actor_down if it has ended, `cancelled`, std::bad_alloc.
template <class A>
class pool_ref : public any_actor {
 public:
  pool_ref() noexcept = default;
  /// Internal.
  pool_ref(any_actor who, std::shared_ptr<detail::pool_core> pool) noexcept
      : any_actor{std::move(who)}, pool_{std::move(pool)} {}

  /// Starts a child, constructed here from `args`; from copies of them, which are kept, if it may be restarted. Takes
  /// the same time however many there are, and does not suspend. Only within a runtime. Throws actor_down if the pool
  /// has ended or is being restarted; too_many_children; invalid_argument, if the child may be restarted and the
  /// arguments cannot be copied; what spawn_actor throws.
  template <class... Args>
  actor_ref<A> spawn(Args&&... args) const {
    static_assert(std::is_constructible_v<A, std::decay_t<Args>...>,
                  "ramie::pool_ref::spawn: the actor has no public constructor for these arguments");
    return detail::spawn_in_pool<A>(*pool_, std::forward<Args>(args)...);
  }

  /// Ends a child for good. False if it is none of this pool's.
  bool stop_child(const any_actor& child) const { return detail::stop_child_of(*cell(), child); }
  /// The children, oldest first.
  [[nodiscard]] std::vector<any_actor> children() const { return detail::children_of(*cell()); }
  /// Takes as long as there are children that have ever been restarted.
  [[nodiscard]] child_counts count_children() const { return detail::count_children_of(*cell()); }
  /// Restarts of children that it has decided on since it was started.
  [[nodiscard]] std::uint64_t restarts() const { return detail::restarts_of(*cell()); }

 private:
  std::shared_ptr<detail::pool_core> pool_;
};

/// Owns a pool: destroying it ends the pool and its children. Move-only.
template <class A>
class actor_pool : public pool_ref<A> {
 public:
  /// Starts it; only within a runtime. Throws invalid_argument, usage_error, std::bad_alloc.
  explicit actor_pool(const pool_options& options = {}) : actor_pool{options, detail::make_pool<A>(options)} {}
  actor_pool(actor_pool&&) noexcept = default;
  actor_pool& operator=(actor_pool&&) = delete;
  /// Shuts it down and waits until it has ended, and all its children before.
  ~actor_pool() {
    if (*this) detail::end_supervisor(*this->cell());
  }

 private:
  actor_pool(const pool_options& options, const std::shared_ptr<detail::pool_core>& pool)
      : pool_ref<A>{detail::start_pool(options, pool), pool} {}
};

}  // namespace ramie
