// A token bucket: as many requests as there are tokens pass at once, then one each tick.
#include <ramie/ramie.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>

using namespace std::chrono_literals;

class rate_limiter {
 public:
  /// `burst` requests at once, and then one every `period`.
  rate_limiter(std::size_t burst, std::chrono::nanoseconds period) : tokens_{burst}, clock_{period} {
    for (std::size_t i = 0; i < burst; ++i) static_cast<void>(tokens_.try_send({}));
    refill_ = ramie::spawn([this] {
      while (clock_.channel().recv()) static_cast<void>(tokens_.try_send({}));  // a full bucket stays full
    });
  }
  ~rate_limiter() {
    clock_.stop();
    refill_.join();
  }

  /// Waits for a token.
  void wait() { tokens_.recv(); }
  /// Takes a token if there is one; does not wait.
  bool try_pass() { return tokens_.try_recv().has_value(); }

 private:
  struct token {};
  ramie::channel<token> tokens_;
  ramie::ticker clock_;
  ramie::join_handle<void> refill_;
};

int main() {
  return ramie::run([] {
    constexpr auto period = 2ms;
    constexpr int requests = 10;
    constexpr int burst = 3;
    const auto begun = std::chrono::steady_clock::now();
    rate_limiter limit{burst, period};
    std::atomic<int> served{0};
    ramie::scope clients;
    for (int i = 0; i < requests; ++i)
      clients.spawn([&] {
        limit.wait();
        ++served;
      });
    clients.join();
    const auto took = std::chrono::steady_clock::now() - begun;
    std::printf("%d requests were served\n", served.load());
    std::printf("the last ones had to wait for their tokens: %s\n", took >= (requests - burst) * period ? "yes" : "no");

    rate_limiter strict{1, 1h};
    const bool first = strict.try_pass();
    const bool second = strict.try_pass();
    std::printf("one an hour: %s, then %s\n", first ? "passed" : "refused", second ? "passed" : "refused");
  });
}
