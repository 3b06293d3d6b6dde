// A pipeline: items of a source go through stages, a bounded number at a time.
//
//  1. There are as many carriers as items may be under way: children of a scope. Each takes an item from the source,
//     one carrier at a time, with its number, and carries it through all stages before it takes the next.
//  2. A serial stage is a mutex. An ordered one has a turn for each carrier, numbered round: item n waits for turn n
//     modulo their number, and passes the next one on. Two items never wait for the same turn: item n + limit is taken
//     only after one of the `limit` items before it has left the last stage, so item n has had its turn by then.
//  3. A carrier that waits leaves its worker to others, so that no more are ever started than are needed.
#pragma once

#include <ramie/base/error.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/sync/mutex.hpp>
#include <ramie/sync/semaphore.hpp>

#include <concepts>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ramie::parallel {

/// A stage that has one item at a time, in any order.
template <class F>
struct serial {
  explicit serial(F f) : function{std::move(f)} {}
  F function;
};
/// A stage that has one item at a time, in the order of the source.
template <class F>
struct ordered {
  explicit ordered(F f) : function{std::move(f)} {}
  F function;
};

}  // namespace ramie::parallel

namespace ramie::detail {

/// Throws invalid_argument if it is 0.
void check_pipeline_limit(std::size_t limit);

/// A stage while the pipeline runs. Any function: as many items at a time as there are.
template <class F>
struct stage {
  explicit(false) stage(F&& f) : function{std::move(f)} {}
  void open(std::size_t /*limit*/) {}
  template <class Item>
  auto operator()(std::size_t /*number*/, Item&& item) {
    return std::invoke(function, std::forward<Item>(item));
  }
  F function;
};

template <class F>
struct stage<parallel::serial<F>> {
  explicit(false) stage(parallel::serial<F>&& s) : function{std::move(s.function)} {}
  void open(std::size_t /*limit*/) {}
  template <class Item>
  auto operator()(std::size_t /*number*/, Item&& item) {
    std::lock_guard guard{lock};
    return std::invoke(function, std::forward<Item>(item));
  }
  F function;
  mutex lock;
};

template <class F>
struct stage<parallel::ordered<F>> {
  explicit(false) stage(parallel::ordered<F>&& s) : function{std::move(s.function)} {}
  void open(std::size_t limit) {
    for (std::size_t i = 0; i < limit; ++i) turns.emplace_back(i == 0 ? 1 : 0);
  }
  template <class Item>
  auto operator()(std::size_t number, Item&& item) {
    turns[number % turns.size()].acquire();
    // Not passed on if the function throws: the others are stopped then.
    auto pass_on = [&] { turns[(number + 1) % turns.size()].release(); };
    if constexpr (std::is_void_v<std::invoke_result_t<F&, Item>>) {
      std::invoke(function, std::forward<Item>(item));
      pass_on();
    } else {
      auto result = std::invoke(function, std::forward<Item>(item));
      pass_on();
      return result;
    }
  }
  F function;
  std::deque<counting_semaphore<>> turns;
};

/// The item goes through the stages from the I-th on.
template <std::size_t I, class Stages, class Item>
void pass(Stages& stages, std::size_t number, Item&& item) {
  using result = decltype(std::get<I>(stages)(number, std::forward<Item>(item)));
  if constexpr (I + 1 == std::tuple_size_v<Stages>) {
    static_cast<void>(std::get<I>(stages)(number, std::forward<Item>(item)));
  } else {
    static_assert(!std::is_void_v<result>, "only the last stage of a pipeline may return nothing");
    pass<I + 1>(stages, number, std::get<I>(stages)(number, std::forward<Item>(item)));
  }
}

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

}  // namespace ramie::detail

namespace ramie::parallel {

/// Calls source() until it returns an empty std::optional, and passes each value through the stages: functions that
/// take what the one before returned. A plain function works on several items at a time, `serial{f}` on one,
/// `ordered{f}` on one in the order of the source, which itself is called by one at a time. At most `limit` items are
/// under way, from the source to the end of the last stage. Source and stages may suspend. Returns when all items have
/// passed. If one throws, the source is not called any more, waits of the others throw `cancelled`, and the first
/// exception is rethrown; so does a stop request. Throws invalid_argument if limit is 0. On a plain thread: a loop.
template <class Source, class... Stages>
  requires(detail::is_optional<std::invoke_result_t<Source&>> && sizeof...(Stages) > 0)
void pipeline(std::size_t limit, Source source, Stages... stages) {
  detail::check_pipeline_limit(limit);
  std::tuple<detail::stage<Stages>...> line{std::move(stages)...};
  std::apply([limit](auto&... s) { (s.open(limit), ...); }, line);
  mutex intake;
  std::size_t taken = 0;   // inside intake
  bool is_at_end = false;  // inside intake
  auto carry = [&] {
    for (;;) {
      std::invoke_result_t<Source&> item;
      std::size_t number = 0;
      {
        std::lock_guard guard{intake};
        if (is_at_end) return;
        is_at_end = true;  // also if it throws
        this_fiber::throw_if_stopped();
        item = source();
        if (!item.has_value()) return;
        is_at_end = false;
        number = taken++;
      }
      detail::pass<0>(line, number, *std::move(item));
    }
  };
  scope carriers;
  for (std::size_t i = 0; i < limit; ++i) carriers.spawn([&carry] { carry(); });
  carriers.join();
}

}  // namespace ramie::parallel
