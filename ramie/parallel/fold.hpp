// What all parallel algorithms are made of: the elements 0 to n are cut into chunks, each gives a value, and
// neighbouring values are joined, in order. A loop is a fold whose values are empty.
//
//  1. Where nobody could help (a plain thread, a runtime of one worker) the chunks run one after the other in the
//     caller. Once a body has waited there, the rest goes the way of 2, so that the loop goes on while bodies wait.
//  2. Otherwise lazy binary splitting (A. Tzannes, G. Caragea, R. Barua, U. Vishkin, PPoPP 2010): a range is halved by
//     fork_join only while the worker's fork deque holds nothing to steal; else the next chunk is done in place.
//  3. The half that is offered is done from its end backwards, chunk by chunk. So a loop begins at both of its ends,
//     and what takes longest is often there: a triangle, a power law, one long element.
//  4. A chunk takes some microseconds, as far as the one before it tells (chunk_sizer); what is left of a range is not
//     halved any more if it takes less than one.
//  5. Chunks do not throw through fork_join: the first failure is kept in the loop_state and rethrown at the end.
#pragma once

#include <ramie/base/error.hpp>
#include <ramie/fiber/parallel.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/parallel/loop_state.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace ramie::detail {

template <class T, class Map, class Join>
class fold {
 public:
  fold(loop_state& loop, Map& map, Join& join) noexcept : loop_{loop}, map_{map}, join_{join} {}
  fold(const fold&) = delete;
  fold& operator=(const fold&) = delete;

  /// Nothing if there are no elements.
  RAMIE_ALWAYS_INLINE std::optional<T> operator()() {
    std::optional<T> total;
    worker_base* w = current_worker();
    std::size_t done = 0;
    if (w == nullptr) {
      if (loop_.wanted() != 0) total.emplace(map_(0, loop_.wanted()));
      return total;
    }
    if (w->alone) done = one_by_one(*w, total);
    if (done < loop_.wanted()) {
      loop_.begin();
      std::optional<T> rest = run(done, loop_.wanted(), false);
      loop_.end();
      append(total, std::move(rest), false);
    }
    return total;
  }

 private:
  /// Until a body waits. Returns the number of elements done. Here the clock need not be asked how long a chunk takes:
  /// it is known well enough when a millisecond has passed. Only then it is time to look for stop requests, too.
  RAMIE_ALWAYS_INLINE std::size_t one_by_one(worker_base& w, std::optional<T>& total) {
    const std::uint64_t session = w.session;
    std::int64_t clock = w.clock_ns.load(std::memory_order_relaxed);
    std::size_t at = 0;
    for (std::size_t size = 1; at < loop_.wanted();) {
      const std::size_t end = size < loop_.wanted() - at ? at + size : loop_.wanted();
      append(total, std::optional<T>{map_(at, end)}, false);
      at = end;
      if (current_worker() != &w || w.session != session) break;
      const std::int64_t now = w.clock_ns.load(std::memory_order_relaxed);
      if (now == clock) {
        size *= size < (std::size_t{1} << 40) ? 64 : 1;
      } else {
        clock = now;
        size = size > 64 ? size / 64 : 1;
        this_fiber::throw_if_stopped();
      }
    }
    return at;
  }

  /// A frame of its own: the forks in it lie below the loop_state on the stack (region.hpp).
  RAMIE_NOINLINE std::optional<T> run(std::size_t begin, std::size_t end, bool backwards) noexcept {
    std::optional<T> total;
    try {
      chunk_sizer sizes;
      for (bool first = true;; first = false) {
        if (end > loop_.wanted()) end = begin < loop_.wanted() ? loop_.wanted() : begin;
        if (begin == end) break;
        if (end - begin > 1 && end - begin > loop_.quick() && thieves_are_hungry()) {
          split(total, begin, end, backwards);
          break;
        }
        if (!first && this_fiber::stop_requested()) [[unlikely]]
          throw cancelled{};
        const std::size_t size = sizes.next(end - begin, loop_);
        if (backwards) {
          append(total, std::optional<T>{map_(end - size, end)}, true);
          end -= size;
        } else {
          append(total, std::optional<T>{map_(begin, begin + size)}, false);
          begin += size;
        }
      }
    } catch (...) {
      loop_.fail(std::current_exception());
      total.reset();
    }
    return total;
  }

  RAMIE_ALWAYS_INLINE void split(std::optional<T>& total, std::size_t begin, std::size_t end, bool backwards) {
    const std::size_t middle = begin + (end - begin) / 2;
    const std::size_t near_begin = backwards ? middle : begin;
    const std::size_t near_end = backwards ? end : middle;
    const std::size_t far_begin = backwards ? begin : middle;
    const std::size_t far_end = backwards ? middle : end;
    auto [near, far] = fork_join([=, this]() noexcept { return run(near_begin, near_end, backwards); },
                                 [=, this]() noexcept { return run(far_begin, far_end, !backwards); });
    append(total, std::move(near), backwards);
    append(total, std::move(far), backwards);
  }

  /// `more` follows `total`, or comes before it. Either is nothing if it was cut off.
  RAMIE_ALWAYS_INLINE void append(std::optional<T>& total, std::optional<T>&& more, bool before) {
    if (!more.has_value()) return;
    if (!total.has_value()) total.emplace(*std::move(more));
    // NOLINTNEXTLINE(bugprone-use-after-move): both are moved from before emplace begins
    else if (before) total.emplace(join_(*std::move(more), *std::move(total)));
    // NOLINTNEXTLINE(bugprone-use-after-move)
    else total.emplace(join_(*std::move(total), *std::move(more)));
  }

  loop_state& loop_;
  Map& map_;
  Join& join_;
};

/// join(... join(map(0, a), map(a, b)) ..., map(y, size)), with any grouping and chunks of any size; nothing if size is
/// 0, or the loop was cut at 0. map and join may throw and suspend, and are called by several workers at once.
template <class T, class Map, class Join>
RAMIE_ALWAYS_INLINE std::optional<T> fold_chunks(loop_state& loop, Map&& map, Join&& join) {
  return fold<T, std::remove_reference_t<Map>, std::remove_reference_t<Join>>{loop, map, join}();
}

struct nothing {};

/// f(begin, end) for chunks that together are 0 to size, or to where `loop` is cut.
template <class F>
RAMIE_ALWAYS_INLINE void for_chunks(loop_state& loop, F&& f) {
  auto map = [&f](std::size_t begin, std::size_t end) RAMIE_LAMBDA_INLINE {
    f(begin, end);
    return nothing{};
  };
  auto join = [](nothing, nothing) noexcept { return nothing{}; };
  static_cast<void>(fold_chunks<nothing>(loop, map, join));
}
template <class F>
RAMIE_ALWAYS_INLINE void for_chunks(std::size_t size, F&& f) {
  loop_state loop{size};
  for_chunks(loop, f);
}

/// f(i) for each of a few: the same for pieces that take long.
template <class F>
void for_pieces(std::size_t count, F&& f) {
  for_chunks(count, [&f](std::size_t begin, std::size_t end) {
    for (; begin != end; ++begin) f(begin);
  });
}

}  // namespace ramie::detail
