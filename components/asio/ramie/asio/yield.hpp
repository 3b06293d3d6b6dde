// The completion token that suspends the calling fiber.
//
//  Y1 The operation's state is on the fiber's stack. The handler, which can only be moved, points to it; it is called
//     once, or destroyed uncalled (the context has ended). Either sets the event, its last access to the state.
//  Y2 A stop or deadline ends the fiber's wait, but the operation still has the state. So the fiber asks Asio to cancel
//     it, and waits, shielded, for the handler. Asio's cancellation signals are for one thread: it is emitted on the
//     thread of the operation's context, and the fiber waits until that has been done.
//  Y3 An operation that belongs to no ramie::asio::context, or cannot be cancelled, is waited for to its end. If it
//     completes by itself meanwhile, its result is dropped, and `cancelled` is thrown.
#pragma once

#include <ramie/asio/context.hpp>
#include <ramie/ramie.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ramie::asio {

/// Waits for the operation: suspends a fiber, blocks a plain thread. Returns what the handler would get, without a
/// leading error_code or exception_ptr, which are thrown (boost::system::system_error): nothing, a value, or a tuple.
/// Asio's adaptors work: redirect_error(yield, ec), as_tuple(yield). Throws `cancelled`.
struct yield_t {};
inline constexpr yield_t yield{};

/// Internal from here on.
struct operation_base {
  event done;
  bool abandoned = false;
  boost::asio::cancellation_signal signal;
  boost::asio::execution_context* in = nullptr;

  void wait() {
    if (done.is_set()) return;  // the result is there
    try {
      done.wait();
    } catch (const cancelled&) {
      shield([&] { give_up(); });
      throw;
    }
  }

 private:
  void give_up() {
    event emitted;
    const bool asked = in != nullptr && context::call_in(*in, [&] {
                         if (!done.is_set()) signal.emit(boost::asio::cancellation_type::all);
                         emitted.set();
                       });
    if (asked) emitted.wait();
    done.wait();
  }
};

template <class... Args>
struct operation : operation_base {
  std::optional<std::tuple<std::decay_t<Args>...>> result;
};

template <class... Args>
class yield_handler {
 public:
  using cancellation_slot_type = boost::asio::cancellation_slot;

  explicit yield_handler(operation<Args...>& of) noexcept : of_{&of} {}
  yield_handler(yield_handler&& other) noexcept : of_{std::exchange(other.of_, nullptr)} {}
  yield_handler& operator=(yield_handler&&) = delete;
  ~yield_handler() {
    if (of_ == nullptr) return;
    of_->abandoned = true;
    of_->done.set();
  }
  template <class... Values>
  void operator()(Values&&... values) {
    operation<Args...>* const of = std::exchange(of_, nullptr);
    of->result.emplace(std::forward<Values>(values)...);
    of->done.set();
  }
  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return of_->signal.slot(); }

 private:
  operation<Args...>* of_;  // null once it was called
};

inline void throw_failure(const boost::system::error_code& code) {
  if (code) throw boost::system::system_error{code};
}
inline void throw_failure(const std::exception_ptr& failure) {
  if (failure) std::rethrow_exception(failure);
}

/// What is left of the handler's arguments.
template <class First, class... Rest>
auto without_failure(std::tuple<First, Rest...>&& all) {
  if constexpr (std::is_same_v<First, boost::system::error_code> || std::is_same_v<First, std::exception_ptr>) {
    throw_failure(std::get<0>(all));
    return std::apply([](auto&, auto&... rest) { return std::tuple<Rest...>{std::move(rest)...}; }, all);
  } else {
    return std::move(all);
  }
}
inline std::tuple<> without_failure(std::tuple<>&&) { return {}; }

template <class Rest>
struct returned_for : std::type_identity<Rest> {};
template <>
struct returned_for<std::tuple<>> : std::type_identity<void> {};
template <class One>
struct returned_for<std::tuple<One>> : std::type_identity<One> {};
/// What `yield` returns for a handler of these arguments.
template <class... Args>
using returned = typename returned_for<decltype(without_failure(std::declval<std::tuple<Args...>>()))>::type;

template <class... Args, class Initiation, class... InitArgs>
auto run_operation(Initiation&& initiation, InitArgs&&... args) {
  operation<Args...> o;
  if constexpr (requires { boost::asio::query(initiation.get_executor(), boost::asio::execution::context); })
    o.in = &boost::asio::query(initiation.get_executor(), boost::asio::execution::context);
  std::forward<Initiation>(initiation)(yield_handler<Args...>{o}, std::forward<InitArgs>(args)...);
  o.wait();
  if (o.abandoned) throw boost::system::system_error{boost::asio::error::operation_aborted};
  auto rest = without_failure(std::move(*o.result));
  if constexpr (std::tuple_size_v<decltype(rest)> == 0) return;
  else if constexpr (std::tuple_size_v<decltype(rest)> == 1) return std::get<0>(std::move(rest));
  else return rest;
}

}  // namespace ramie::asio

template <class R, class... Args>
struct boost::asio::async_result<ramie::asio::yield_t, R(Args...)> {
  using return_type = ramie::asio::returned<std::decay_t<Args>...>;
  template <class Initiation, class... InitArgs>
  static return_type initiate(Initiation&& initiation, ramie::asio::yield_t, InitArgs&&... args) {
    return ramie::asio::run_operation<Args...>(std::forward<Initiation>(initiation), std::forward<InitArgs>(args)...);
  }
};
