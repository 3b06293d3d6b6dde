// Supervisors: actors that start others, and start them anew when they fail.
#pragma once

#include <ramie/actor/actor.hpp>
#include <ramie/actor/extras.hpp>
#include <ramie/supervise/pool.hpp>
#include <ramie/supervise/supervisor_options.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie {

namespace detail {

using child_maker = std::function<any_actor(actor_cell& supervisor)>;

any_actor start_supervisor(const supervisor_options& options);
/// Asks the supervisor to call `make`. Throws what that throws.
any_actor start_child(actor_cell& supervisor, const child_options& spec, child_maker make, bool is_supervisor = false);
any_actor start_child_supervisor(actor_cell& supervisor, const child_options& spec, const supervisor_options& options);
any_actor start_child_pool(actor_cell& supervisor, const child_options& spec, const pool_options& options,
                           std::shared_ptr<pool_core> pool);
void supervise(actor_cell& child, actor_cell& supervisor, std::function<void(actor_cell&)> construct);

/// `construct(cell)` makes the state, the first time and at each restart.
template <class A, class State, class Construct>
child_maker make_child_maker_by(actor_options options, Construct construct) {
  return [options = std::move(options), construct = std::move(construct)](actor_cell& supervisor) -> any_actor {
    return make_actor<A, State>(&options, [&](actor_cell& c) {
      supervise(c, supervisor, construct);
      construct(c);
    });
  };
}

template <class A, class State, class... Args>
child_maker make_child_maker(actor_options options, Args&&... args) {
  return make_child_maker_by<A, State>(
      std::move(options), [kept = std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)](actor_cell& cell) {
        std::apply(
            [&](const auto&... parts) {
              if constexpr (is_mailbox<A>) ::new (cell.state()) State(cell, parts...);
              else ::new (cell.state()) State(parts...);
            },
            kept);
      });
}

}  // namespace detail

/// A supervisor, known by reference. A supervisor is an actor: it can be stopped, killed, joined, monitored and linked
/// like others, and ends its children, youngest first, before it ends. Thread-safe. All calls suspend (a plain thread:
/// block) until the supervisor has done what is asked. They throw actor_down if it has ended, `cancelled`,
/// std::bad_alloc.
class supervisor_ref : public any_actor {
 public:
  using any_actor::any_actor;
  explicit supervisor_ref(any_actor who) noexcept : any_actor{std::move(who)} {}

  /// Starts a child of class A, permanent unless told otherwise. The reference stays valid over restarts: a child that
  /// failed is constructed again, from copies of `args`, in its old place; its mailbox stays, but for the message that
  /// it failed on, and for requests (see actor_options::asks_wait_for_restart). Throws what A's constructor throws.
  template <class A, class... Args>
    requires(sizeof...(Args) == 0 ||
             !std::same_as<std::tuple_element_t<0, std::tuple<std::decay_t<Args>..., int>>, child_options>)
  actor_ref<A> spawn_actor(Args&&... args) const {
    return spawn_actor<A>(child_options{}, std::forward<Args>(args)...);
  }
  template <class A, class... Args>
    requires(std::is_constructible_v<A, const std::decay_t<Args>&...>)
  actor_ref<A> spawn_actor(const child_options& options, Args&&... args) const {
    any_actor made = detail::start_child(*cell(), options,
                                         detail::make_child_maker<A, A>(options.actor, std::forward<Args>(args)...));
    return actor_ref<A>{*made.cell()};
  }
  template <class A, class... Args>
    requires(std::derived_from<A, actor<A>> && !std::is_constructible_v<A, const std::decay_t<Args>&...>)
  actor_ref<A> spawn_actor(const child_options&, Args&&...) const {
    static_assert(std::is_constructible_v<A, const std::decay_t<Args>&...>,
                  "ramie::supervisor_ref::spawn_actor: the actor must be constructible from copies of these arguments, "
                  "because a restart constructs it again; spawn_actor_by takes a function that makes one");
    return {};
  }
  /// The same for a fiber actor: f(mailbox), called anew at each restart.
  template <class... Ms, class F>
    requires(sizeof...(Ms) > 0 && std::invocable<std::decay_t<F>&, mailbox<Ms...>&>)
  actor_ref<mailbox<Ms...>> spawn_actor(const child_options& options, F&& f) const {
    using box = mailbox<Ms...>;
    using state = detail::fiber_actor_state<box, std::decay_t<F>>;
    any_actor made =
        detail::start_child(*cell(), options, detail::make_child_maker<box, state>(options.actor, std::forward<F>(f)));
    return actor_ref<box>{*made.cell()};
  }
  /// The same for what cannot be constructed from copies: `make()` returns an A, and runs in the supervisor at the
  /// start and at each restart. It must be copyable itself.
  template <class A, class Make>
    requires(std::same_as<std::invoke_result_t<const Make&>, A>)
  actor_ref<A> spawn_actor_by(const child_options& options, Make make) const {
    any_actor made = detail::start_child(
        *cell(), options,
        detail::make_child_maker_by<A, A>(
            options.actor, [make = std::move(make)](detail::actor_cell& c) { ::new (c.state()) A(make()); }));
    return actor_ref<A>{*made.cell()};
  }
  /// A supervisor below this one. When it is restarted, so are its children, but for temporary ones.
  supervisor_ref spawn_supervisor(const supervisor_options& options = {},
                                  child_lifetime lifetime = child_lifetime::permanent) const {
    return spawn_supervisor(options, child_options{.lifetime = lifetime});
  }
  /// Settings in `options` take precedence over `child.actor`.
  supervisor_ref spawn_supervisor(const supervisor_options& options, const child_options& child) const {
    return supervisor_ref{detail::start_child_supervisor(*cell(), child, options)};
  }

  /// A pool below this one, see pool_ref. When it is restarted, its children are gone.
  template <class A>
  pool_ref<A> spawn_pool(const pool_options& options = {}, const child_options& of_pool = {}) const {
    auto pool = detail::make_pool<A>(options);
    any_actor made = detail::start_child_pool(*cell(), of_pool, options, pool);
    return pool_ref<A>{std::move(made), std::move(pool)};
  }

  /// Ends a child for good, without a restart of it or others. False if it is none of this supervisor's.
  bool stop_child(const any_actor& child) const;
  /// Ends the child with this id, and keeps it: it rests until restart_child. Its mailbox takes tells meanwhile. One
  /// that is temporary ends for good. False if there is none.
  bool stop_child(std::string_view id) const;
  /// Starts a child that stop_child(id) ended, or that waits for its restart. False if there is none, or it runs.
  /// Throws what its constructor throws; then it rests as before.
  bool restart_child(std::string_view id) const;
  /// Ends the child with this id for good. False if there is none.
  bool delete_child(std::string_view id) const;
  /// The child with this id; an empty reference if there is none.
  [[nodiscard]] any_actor find_child(std::string_view id) const;
  /// The children, oldest first.
  [[nodiscard]] std::vector<any_actor> children() const;
  /// The same, with what the supervisor knows of each.
  [[nodiscard]] std::vector<child_info> child_infos() const;
  [[nodiscard]] child_counts count_children() const;
  /// Restarts of children that it has decided on since it was started.
  [[nodiscard]] std::uint64_t restarts() const;
  /// This supervisor and all below it, a line each, for people.
  [[nodiscard]] std::string tree() const;
};

/// Owns a supervisor: destroying it ends the supervisor and everything below it. Move-only.
class supervisor : public supervisor_ref {
 public:
  /// Starts it; only within a runtime. Throws invalid_argument, usage_error, std::bad_alloc.
  explicit supervisor(const supervisor_options& options = {}) : supervisor_ref{detail::start_supervisor(options)} {}
  supervisor(supervisor&&) noexcept = default;
  supervisor& operator=(supervisor&&) = delete;
  /// Shuts it down and waits until it has ended, and all below it before.
  ~supervisor();
};

}  // namespace ramie
