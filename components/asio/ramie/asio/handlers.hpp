// The fibers of a context's handlers, so that its end can wait for them. Internal.
#pragma once

#include <ramie/ramie.hpp>

#include <list>
#include <memory>
#include <optional>
#include <utility>

namespace ramie::asio {

///  H1 A handler gets an entry, or is refused since the end has begun.
///  H2 Its fiber is spawned outside the lock: what is destroyed there may use the context. So the fiber may be over
///  before
///     its handle is in the entry. Whichever comes second, the handle or the end of the fiber, takes the entry out.
///  H3 The end asks all fibers to stop whose handles are there, and `settle` those that come later; then it waits until
///     there are no entries. A fiber that is asked to stop leaves its waits by `cancelled`, for which the context's
///     thread must still run: an operation that is cancelled ends there.
class handler_set {
 public:
  struct entry {
    join_handle<void> fiber{};
    bool settled = false, over = false;
  };
  using place = std::list<entry>::iterator;

  /// nullopt: refused. These do not suspend.
  [[nodiscard]] std::optional<place> enter();
  void settle(place at, join_handle<void> fiber);
  void leave(place at) noexcept;
  /// Suspends. To be called once.
  void end();

 private:
  mutex lock_;
  condition_variable left_;
  bool ending_ = false;
  std::list<entry> all_;
};

/// Goes with the fiber, and leaves at its end.
class inside_handlers {
 public:
  inside_handlers(std::shared_ptr<handler_set> of, handler_set::place at) noexcept : of_{std::move(of)}, at_{at} {}
  inside_handlers(inside_handlers&& other) noexcept : of_{std::move(other.of_)}, at_{other.at_} {}
  inside_handlers& operator=(inside_handlers&&) = delete;
  ~inside_handlers() {
    if (of_) of_->leave(at_);
  }

 private:
  std::shared_ptr<handler_set> of_;
  handler_set::place at_;
};

}  // namespace ramie::asio
