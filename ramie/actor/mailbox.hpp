// Fiber actors: a function that runs as a fiber and takes its messages when it wants to.
#pragma once

#include <ramie/actor/ref.hpp>

#include <chrono>
#include <concepts>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie {

namespace detail {

/// The next message, or the first that `wanted(message)` accepts; null if there is none by the deadline, or the actor
/// is to end. Throws `cancelled`.
message* receive_message(actor_cell& c, bool (*wanted)(message&, void*), void* context,
                         const steady::time_point* deadline, std::source_location where);

template <class Box, class F>
class fiber_actor_state;

}  // namespace detail

/// The mailbox of a fiber actor that takes messages of types Ms. Only for the function that it was passed to.
template <class... Ms>
class mailbox {
 public:
  static_assert(sizeof...(Ms) > 0);
  using any_message = std::optional<std::variant<Ms...>>;

  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;

  /// The oldest message; suspends until there is one. Returns nothing when the actor has to end (stop, kill, shutdown).
  /// Throws `cancelled` if a deadline or a scope inside the function ends the wait.
  any_message receive(std::source_location where = std::source_location::current()) {
    return take(detail::receive_message(cell_, nullptr, nullptr, nullptr, where));
  }
  /// The same; nothing after `timeout` either. `stopped()` tells the two apart.
  any_message receive_for(std::chrono::nanoseconds timeout,
                          std::source_location where = std::source_location::current()) {
    const auto deadline = detail::deadline_after(timeout);
    return take(detail::receive_message(cell_, nullptr, nullptr, &deadline, where));
  }
  /// The oldest message of type M for which pred(const M&) is true; others stay in the mailbox, in their order.
  /// Suspends, ends and throws as `receive` does.
  template <class M, class Predicate>
    requires(std::same_as<M, Ms> || ...)
  std::optional<M> receive_if(Predicate pred, std::source_location where = std::source_location::current()) {
    return take_as<M>(detail::receive_message(cell_, &matches<M, Predicate>, &pred, nullptr, where));
  }
  /// The same; nothing after `timeout` either.
  template <class M, class Predicate>
    requires(std::same_as<M, Ms> || ...)
  std::optional<M> receive_if_for(std::chrono::nanoseconds timeout, Predicate pred,
                                  std::source_location where = std::source_location::current()) {
    const auto deadline = detail::deadline_after(timeout);
    return take_as<M>(detail::receive_message(cell_, &matches<M, Predicate>, &pred, &deadline, where));
  }

  /// True once receive returns nothing for good. Does not suspend.
  [[nodiscard]] bool stopped() const noexcept { return cell_.ending; }
  /// Messages that wait, about.
  [[nodiscard]] std::size_t size() const noexcept { return cell_.mail_count(); }
  [[nodiscard]] actor_ref<mailbox> self() const noexcept { return actor_ref<mailbox>{cell_}; }

  /// As actor::monitor, with `down` among Ms.
  monitor_ref monitor(const any_actor& other, monitoring of = monitoring::actor)
    requires(std::same_as<down, Ms> || ...)
  {
    return detail::monitor_actor(cell_, *other.cell(), &detail::act_on_tell<mailbox, down>,
                                 of == monitoring::incarnation);
  }
  void unmonitor(const any_actor& other) noexcept { detail::unmonitor_actor(cell_, *other.cell()); }
  void unmonitor(monitor_ref which) noexcept
    requires(std::same_as<down, Ms> || ...)
  {
    detail::unmonitor_actor(cell_, which, &detail::act_on_tell<mailbox, down>);
  }
  /// Same as actor::link; if Ms contains `exit_signal`, the actor gets that message instead of ending.
  void link(const any_actor& other) { detail::link_actors(cell_, *other.cell()); }
  void unlink(const any_actor& other) noexcept { detail::unlink_actors(cell_, *other.cell()); }

 private:
  template <class Box, class F>
  friend class detail::fiber_actor_state;
  explicit mailbox(detail::actor_cell& cell) noexcept : cell_{cell} {}

  template <class M, class Predicate>
  static bool matches(detail::message& m, void* pred) {
    if (m.act != &detail::act_on_tell<mailbox, M>) return false;
    return static_cast<bool>(
        (*static_cast<Predicate*>(pred))(std::as_const(static_cast<detail::tell_node<M>&>(m).body)));
  }
  static any_message take(detail::message* m) {
    any_message taken;
    if (m == nullptr) return taken;
    struct freeing {
      detail::message* m;
      ~freeing() { detail::free_message(m); }
    } afterwards{m};
    m->act(*m, detail::message_verb::take, &taken);
    return taken;
  }
  template <class M>
  static std::optional<M> take_as(detail::message* m) {
    if (m == nullptr) return std::nullopt;
    any_message taken = take(m);
    return std::get<M>(std::move(*taken));
  }

  detail::actor_cell& cell_;
};

namespace detail {

template <class Box, class F>
class fiber_actor_state {
 public:
  fiber_actor_state(actor_cell& c, const F& f) : box_{c}, function_{f} {}
  fiber_actor_state(actor_cell& c, F&& f) : box_{c}, function_{std::move(f)} {}
  void run() { static_cast<void>(function_(box_)); }

 private:
  Box box_;
  F function_;
};

}  // namespace detail
}  // namespace ramie
