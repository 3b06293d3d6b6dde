//  L1 A permit of `free` is a right to a connection; its holder takes one that is idle, the one that was used last, or
//     makes one. So at most `most` are open, and waiters are served in their order.
//  L2 A connection goes back before its permit, so the next holder of the permit finds it.
#include <ramie/postgres/pool.hpp>

#include <algorithm>
#include <mutex>
#include <vector>

namespace ramie::postgres {

namespace {

using clock = std::chrono::steady_clock;

/// A connection that goes from one fiber to the next is not looked at: the look is a system call. A guess: what ends in
/// so short a time would as well have ended in the query.
constexpr std::chrono::milliseconds look_after{1};

struct idle_connection {
  connection what;
  clock::time_point since;
};

}  // namespace

struct pool::state {
  explicit state(const pool_options& o) : options{o}, free{static_cast<std::ptrdiff_t>(o.most)} {
    idle.reserve(o.most);
  }

  const pool_options options;
  counting_semaphore<> free;  // L1
  mutable std::mutex lock;    // all that follows; nobody suspends under it
  std::vector<idle_connection> idle;
  pool_statistics counts;

  [[nodiscard]] std::optional<idle_connection> pop() {
    const std::lock_guard guard{lock};
    if (idle.empty()) return std::nullopt;
    std::optional<idle_connection> last{std::move(idle.back())};
    idle.pop_back();
    return last;
  }
  void note_end(bool replaced) {
    const std::lock_guard guard{lock};
    --counts.open;
    if (replaced) ++counts.replaced;
  }
  [[nodiscard]] bool is_well(idle_connection& c) {
    const auto rested = clock::now() - c.since;
    if (rested < look_after || (rested < options.check_after && !c.what.has_news())) return true;
    try {
      with_timeout(options.cancel_time, [&] { static_cast<void>(c.what.script("")); });
      return true;
    } catch (const error&) {
      return false;
    }
  }
  [[nodiscard]] connection find() {
    while (std::optional<idle_connection> c = pop()) {
      bool well = false;
      try {
        well = is_well(*c);
      } catch (...) {
        c->what.close();
        note_end(false);
        throw;
      }
      if (well) return std::move(c->what);
      c->what.close();
      note_end(true);
    }
    connection made{{options.where, options.connect_time, options.cancel_time}};
    const std::lock_guard guard{lock};
    ++counts.open;
    ++counts.connected;
    return made;
  }
};

pool::pool(const pool_options& options) {
  if (options.most == 0) throw invalid_argument{"ramie: postgres: pool_options::most is 0; it is at least 1"};
  state_ = std::make_unique<state>(options);
}
pool::~pool() = default;

pool::lease pool::take() {
  state& s = *state_;
  if (!s.free.try_acquire()) {
    struct waiting {
      state& of;
      explicit waiting(state& s) : of{s} { count(1); }
      ~waiting() { count(-1); }
      void count(int n) const {
        const std::lock_guard guard{of.lock};
        of.counts.waiting = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(of.counts.waiting) + n);
      }
    } one{s};
    s.free.acquire();
  }
  try {
    return {*this, s.find()};
  } catch (...) {
    s.free.release();
    throw;
  }
}

void pool::take_back(connection c) noexcept {
  state& s = *state_;
  if (c.is_open() && !c.in_transaction()) {
    const std::lock_guard guard{s.lock};
    s.idle.push_back({std::move(c), clock::now()});  // there is room: L1
  } else {
    c.close();
    s.note_end(true);
  }
  s.free.release();
}

pool_statistics pool::statistics() const {
  const std::lock_guard guard{state_->lock};
  pool_statistics now = state_->counts;
  now.idle = state_->idle.size();
  return now;
}

}  // namespace ramie::postgres
