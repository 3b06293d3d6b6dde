// A pool of workers whose backend fails: the supervisor restarts them after pauses that grow, and a circuit breaker,
// a state machine in front of them, spares the backend requests that would be in vain.
#include <ramie/ramie.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

struct job {
  int n;
};
struct try_again {};

class worker : public ramie::actor<worker> {
 public:
  explicit worker(std::atomic<bool>* backend_up) : up_{backend_up} {}
  int on(job j) {
    if (!*up_) throw std::runtime_error{"the backend is down"};
    return j.n * j.n;
  }

 private:
  std::atomic<bool>* up_;
};

struct unavailable : std::runtime_error {
  unavailable() : std::runtime_error{"unavailable"} {}
};

enum class circuit { closed, open, half_open };

/// Closed: requests pass. Open, after three failures in a row: they are refused at once, for a while. Half open: one is
/// tried, and decides.
class breaker : public ramie::state_machine<breaker, circuit> {
 public:
  explicit breaker(std::vector<ramie::actor_ref<worker>> pool)
      : state_machine{circuit::closed}, pool_{std::move(pool)} {}

  ramie::reply<int> on(job j) {
    ramie::reply<int> later;
    if (state() == circuit::open || (state() == circuit::half_open && trying_)) {
      later.set_exception(std::make_exception_ptr(unavailable{}));
      return later;
    }
    trying_ = true;
    ask_then(pool_[turn_++ % pool_.size()], j, [this, later](ramie::answer<int> a) {
      trying_ = false;
      if (a) {
        failures_ = 0;
        next_state(circuit::closed);
        later.set_value(a.value());
      } else {
        if (++failures_ >= 3 || state() == circuit::half_open) next_state(circuit::open);
        later.set_exception(a.failure());
      }
    });
    return later;
  }
  void on(try_again) { next_state(circuit::half_open); }

  void enter(circuit) {
    switch (state()) {
      case circuit::closed: std::puts("circuit closed"); break;
      case circuit::open:
        if (!told_) std::puts("circuit open");  // again and again, until the backend is back
        told_ = true;
        state_timeout(5ms, try_again{});
        break;
      case circuit::half_open: break;
    }
  }

 private:
  std::vector<ramie::actor_ref<worker>> pool_;
  std::size_t turn_ = 0;
  int failures_ = 0;
  bool trying_ = false;
  bool told_ = false;
};

int main() {
  return ramie::run([] {
    std::atomic<bool> backend_up{true};
    ramie::supervisor sup{{.max_restarts = 1000,
                           .within = 1min,
                           .backoff = {.first = 1ms, .most = 10ms},
                           .report = [](const ramie::child_report&) {}}};
    std::vector<ramie::actor_ref<worker>> pool;
    for (int i = 0; i < 4; ++i) pool.push_back(sup.spawn_actor<worker>(&backend_up));
    auto front = ramie::spawn_actor<breaker>(pool);

    std::printf("7 squared is %d\n", front.ask(job{7}));
    backend_up = false;
    for (int i = 0; i < 3; ++i) {
      try {
        front.ask(job{i});
      } catch (const ramie::actor_down& e) {
        std::puts(e.reason().what().c_str());
      }
    }
    try {
      front.ask(job{8});
    } catch (const std::exception&) {  // refused, or, if that took long, tried in vain
      std::puts("no luck");
    }
    backend_up = true;
    for (bool done = false; !done;) {
      try {
        std::printf("9 squared is %d\n", front.ask(job{9}));
        done = true;
      } catch (const std::exception&) {
        ramie::this_fiber::sleep_for(1ms);
      }
    }
    std::printf("%zu workers\n", sup.count_children().children);
    front.stop();
    front.join();
    return 0;
  });
}
