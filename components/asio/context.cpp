#include <ramie/asio/context.hpp>

#include <boost/asio/post.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

namespace ramie::asio {

namespace {

/// Those that live: an operation knows only which execution_context it belongs to.
struct registry {
  std::mutex lock;
  std::vector<boost::asio::io_context*> all;
};
registry& contexts() {
  static registry one;
  return one;
}

}  // namespace

context::context(runtime& rt)
    : machine_{&rt}, io_{std::make_unique<boost::asio::io_context>(1)}, work_{io_->get_executor()} {
  {
    const std::lock_guard guard{contexts().lock};
    contexts().all.push_back(io_.get());
  }
  thread_ = std::thread{[io = io_.get()] { io->run(); }};
}

context::~context() {
  handlers_->end();
  {
    const std::lock_guard guard{contexts().lock};
    std::erase(contexts().all, io_.get());
  }
  io_->stop();
  thread_.join();
  work_.reset();
  io_.reset();  // what was under way is destroyed
}

bool context::call_in(boost::asio::execution_context& c, std::function<void()> f) {
  const std::lock_guard guard{contexts().lock};
  const auto found = std::ranges::find_if(contexts().all, [&](boost::asio::io_context* io) { return io == &c; });
  if (found == contexts().all.end()) return false;
  boost::asio::post(**found, std::move(f));
  return true;
}

std::optional<handler_set::place> handler_set::enter() {
  const std::lock_guard guard{lock_};
  if (ending_) return std::nullopt;
  return all_.emplace(all_.end());
}

void handler_set::settle(place at, join_handle<void> fiber) {
  {
    const std::lock_guard guard{lock_};
    at->settled = true;
    if (at->over) {
      all_.erase(at);
    } else {
      at->fiber = std::move(fiber);
      if (ending_ && at->fiber.joinable()) at->fiber.request_stop();
    }
  }
  if (fiber.joinable()) fiber.detach();  // NOLINT(bugprone-use-after-move): a handle that was moved is not joinable
  left_.notify_all();
}

void handler_set::leave(place at) noexcept {
  join_handle<void> own;
  {
    const std::lock_guard guard{lock_};
    at->over = true;
    if (at->settled) {
      own = std::move(at->fiber);
      all_.erase(at);
    }
  }
  if (own.joinable()) own.detach();
  left_.notify_all();
}

void handler_set::end() {
  shield([&] {
    std::unique_lock guard{lock_};
    ending_ = true;
    for (entry& e : all_)
      if (e.fiber.joinable()) e.fiber.request_stop();
    left_.wait(guard, [this] { return all_.empty(); });
  });
}

}  // namespace ramie::asio
