// Supervisors: actors that start others, and start them anew when they fail.
#pragma once

#include <ramie/actor/actor.hpp>
#include <ramie/actor/extras.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie {

/// Who is restarted when one child has to be.
enum class restart {
  one_for_one,   // that child alone
  one_for_all,   // all of them: the others are ended first, youngest first
  rest_for_one,  // that child and those that were started after it
};

/// When a child that has ended is restarted.
enum class child_lifetime {
  permanent,  // always
  transient,  // if it ended abnormally (see exit_reason::normal)
  temporary,  // never
};

struct supervisor_options {
  restart strategy = restart::one_for_one;
  /// More restarts than this `within` that time: the supervisor ends its children and itself, with exit_kind::gave_up.
  /// At least 0.
  int max_restarts = 3;
  std::chrono::nanoseconds within = std::chrono::seconds{5};
  std::string name{};
};

struct child_options {
  child_lifetime lifetime = child_lifetime::permanent;
  actor_options actor{};
};

namespace detail {

using child_maker = std::function<any_actor(actor_cell& supervisor)>;

any_actor start_supervisor(const supervisor_options& options);
/// Asks the supervisor to call `make`. Throws what that throws.
any_actor start_child(actor_cell& supervisor, child_lifetime lifetime, child_maker make);
any_actor start_child_supervisor(actor_cell& supervisor, child_lifetime lifetime, const supervisor_options& options);
void supervise(actor_cell& child, actor_cell& supervisor, std::function<void(actor_cell&)> construct);

template <class A, class State, class... Args>
child_maker make_child_maker(actor_options options, Args&&... args) {
  return [options = std::move(options),
          kept = std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)](actor_cell& supervisor) -> any_actor {
    return make_actor<A, State>(&options, [&](actor_cell& c) {
      std::function<void(actor_cell&)> construct = [kept](actor_cell& cell) {
        std::apply(
            [&](const auto&... parts) {
              if constexpr (is_mailbox<A>) ::new (cell.state()) State(cell, parts...);
              else ::new (cell.state()) State(parts...);
            },
            kept);
      };
      supervise(c, supervisor, construct);
      construct(c);
    });
  };
}

}  // namespace detail

/// A supervisor, known by reference. A supervisor is an actor: it can be stopped, killed, joined, monitored and linked
/// like others, and ends its children, youngest first, before it ends. All calls suspend until the supervisor has done
/// what is asked; from any fiber or thread. They throw actor_down if it has ended.
class supervisor_ref : public any_actor {
 public:
  using any_actor::any_actor;
  explicit supervisor_ref(any_actor who) noexcept : any_actor{std::move(who)} {}

  /// Starts a child of class A, permanent unless told otherwise. The reference stays good over restarts: a child that
  /// failed is constructed anew, from copies of `args`, in its old place; its mailbox stays, but for the message that
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
    any_actor made = detail::start_child(*cell(), options.lifetime,
                                         detail::make_child_maker<A, A>(options.actor, std::forward<Args>(args)...));
    return actor_ref<A>{*made.cell()};
  }
  /// The same for a fiber actor: f(mailbox), called anew at each restart.
  template <class... Ms, class F>
    requires(sizeof...(Ms) > 0 && std::invocable<std::decay_t<F>&, mailbox<Ms...>&>)
  actor_ref<mailbox<Ms...>> spawn_actor(const child_options& options, F&& f) const {
    using box = mailbox<Ms...>;
    using state = detail::fiber_actor_state<box, std::decay_t<F>>;
    any_actor made = detail::start_child(*cell(), options.lifetime,
                                         detail::make_child_maker<box, state>(options.actor, std::forward<F>(f)));
    return actor_ref<box>{*made.cell()};
  }
  /// A supervisor below this one. When it is restarted, so are its children.
  supervisor_ref spawn_supervisor(const supervisor_options& options = {},
                                  child_lifetime lifetime = child_lifetime::permanent) const {
    return supervisor_ref{detail::start_child_supervisor(*cell(), lifetime, options)};
  }

  /// Ends a child for good, without a restart of it or others. False if it is none of this supervisor's.
  bool stop_child(const any_actor& child) const;
  /// The children, oldest first.
  [[nodiscard]] std::vector<any_actor> children() const;
  /// Restarts of children that it has decided on since it was started.
  [[nodiscard]] std::uint64_t restarts() const;
};

/// A supervisor with an owner: its end is the supervisor's, and that of all below it. Move-only.
class supervisor : public supervisor_ref {
 public:
  /// Starts it; only within a runtime. Throws invalid_argument, usage_error, std::bad_alloc.
  explicit supervisor(const supervisor_options& options = {}) : supervisor_ref{detail::start_supervisor(options)} {}
  supervisor(supervisor&&) noexcept = default;
  supervisor& operator=(supervisor&&) = delete;
  /// Shuts it down and waits until it has ended, its children first.
  ~supervisor();
};

}  // namespace ramie
