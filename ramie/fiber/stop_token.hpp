// The running fiber's stop requests as a std::stop_token, for code that knows nothing of ramie.
//
// Deadlines, shields, scopes and the end of the runtime have no common moment at which a callback could be called: they
// end waits. So a child waits on behalf of the token, and whatever ends its wait stops the token. A child inherits all
// that would end a wait of its owner (docs/guides/structured.md), and is there whatever its owner does.
#pragma once

#include <ramie/fiber/scope.hpp>

#include <atomic>
#include <concepts>
#include <memory>
#include <stop_token>
#include <type_traits>

namespace ramie {

namespace detail {

class token_watch {
 public:
  /// Throws std::bad_alloc; `cancelled` as scope::spawn does.
  token_watch();
  token_watch(const token_watch&) = delete;
  token_watch& operator=(const token_watch&) = delete;
  ~token_watch();
  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::atomic<bool> over_{false};
  scope children_;
};

}  // namespace detail

/// Calls f(token) and returns its result, or rethrows its exception. The std::stop_token is stopped as soon as the
/// caller's waits would throw `cancelled` (request_stop, a deadline or a failed scope around this call, the end of the
/// runtime), unless shielded; after f has returned it does not change. Callbacks of the token run in another fiber of
/// the runtime. For std::condition_variable_any and other code that takes a token; where that blocks the thread, call
/// it in ramie::blocking. Uses one fiber; suspends briefly at the end. On a plain thread the token is never stopped.
/// Throws std::bad_alloc; `cancelled` while the runtime shuts down.
template <class F>
  requires std::invocable<F&, std::stop_token>
std::invoke_result_t<F&, std::stop_token> with_stop_token(F&& f) {
  if (detail::current_worker() == nullptr) return f(std::stop_token{});
  const detail::token_watch watch;
  return f(watch.token());
}

}  // namespace ramie
