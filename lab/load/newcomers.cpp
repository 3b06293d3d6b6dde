#include <lab/load/newcomers.hpp>

#include <chrono>
#include <utility>

namespace ramie::lab {

newcomers::newcomers(const load_options& how, std::int64_t rate) : thread_{&newcomers::come, this, how, rate} {}

newcomers::~newcomers() {
  stops_.store(true);
  if (thread_.joinable()) thread_.join();
}

histogram newcomers::stop() {
  stops_.store(true);
  thread_.join();
  if (failure_) std::rethrow_exception(failure_);
  return std::move(times_);
}

void newcomers::come(load_options how, std::int64_t rate) {
  using clock = std::chrono::steady_clock;
  how.connections = 1;
  const std::chrono::nanoseconds between{1'000'000'000 / rate};
  try {
    clock::time_point due = clock::now();
    do {
      std::this_thread::sleep_until(due);
      const load_driver one{how};  // which is there when its first message has come back
      times_.add(std::chrono::nanoseconds{clock::now() - due}.count());
      due += between;
    } while (!stops_.load());
  } catch (...) {
    failure_ = std::current_exception();
  }
}

}  // namespace ramie::lab
