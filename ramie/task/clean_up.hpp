// Where a wait that was cancelled is in clean-up: what it is called by lets no exception out, so `cancelled` cannot
// travel to whoever asked for the end. Such a wait begins again, and lasts (docs/rules.md). While an exception unwinds
// the stack region.hpp knows that by itself. This is for destructors at the ordinary end of a block, and for other
// noexcept functions, and needs a look at the exception tables, which is too dear for each wait: so it comes when the
// wait is over, before `cancelled` is thrown.
#pragma once

#include <ramie/base/config.hpp>
#include <ramie/base/error.hpp>
#include <ramie/task/region.hpp>

namespace ramie::detail {

/// On the stack of a function that may throw, of a frame of its own: the functions above that are looked at.
class clean_up {
 public:
  clean_up() noexcept = default;
  clean_up(const clean_up&) = delete;
  clean_up& operator=(const clean_up&) = delete;
  ~clean_up() { end(); }

  /// After a wait that was cancelled. True: it is to begin again; as long as this lives, waits are ended only by what
  /// was opened within the clean-up. False: `cancelled` is to be thrown. Throws std::bad_alloc at a fiber's first
  /// region. Does not suspend.
  [[nodiscard]] RAMIE_NOINLINE bool begin();

 private:
  void end() noexcept;
  region rest_;
  bool open_ = false;
};

/// After a wait that was cancelled: throws `cancelled`, or calls f(), which waits again. (By reference: arguments on
/// the stack would cost its caller the frame pointer's register.)
template <class F>
RAMIE_COLD decltype(auto) begin_again(const F& f) {
  clean_up rest;
  if (!rest.begin()) throw cancelled{};
  return f();
}

}  // namespace ramie::detail
