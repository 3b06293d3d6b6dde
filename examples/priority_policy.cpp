// A scheduling policy of one's own: three levels of priority without starvation. Higher levels go first, but each time
// a lower level is passed over while it has something, it earns credit, and with enough of it, it goes next.
#include <ramie/ramie.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <vector>

class levels : public ramie::scheduling_policy {
 public:
  static constexpr int count = 3;
  static constexpr int patience = 8;  // turns that a level lets others go first

  void put(ramie::runnable r, int /*worker*/) noexcept override {
    const int level = r.priority() < 0 ? 0 : r.priority() >= count ? count - 1 : r.priority();
    std::lock_guard guard{lock_};
    queues_[static_cast<std::size_t>(level)].push(r);
    waiting_.fetch_add(1, std::memory_order_release);
  }

  ramie::runnable take(int /*worker*/) noexcept override {
    std::lock_guard guard{lock_};
    ramie::runnable_queue* chosen = nullptr;
    int* credit = nullptr;
    for (std::size_t level = count; level-- > 0;) {
      if (queues_[level].empty()) continue;
      if (chosen == nullptr || credits_[level] >= patience) {
        chosen = &queues_[level];
        credit = &credits_[level];
      }
      ++credits_[level];
    }
    if (chosen == nullptr) return {};
    *credit = 0;
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return chosen->pop();
  }

  bool has_work(int /*worker*/) const noexcept override { return waiting_.load(std::memory_order_acquire) != 0; }

 private:
  std::mutex lock_;  // held for a few instructions
  std::array<ramie::runnable_queue, count> queues_;
  std::array<int, count> credits_{};
  std::atomic<int> waiting_{0};
};

int main() {
  ramie::runtime_options options;
  options.workers = 1;  // so that the order is always the same
  options.policy = std::make_shared<levels>();
  return ramie::run(options, [] {
    std::array<int, levels::count> steps{};
    bool over = false;
    std::vector<ramie::join_handle<void>> all;
    for (int level = 0; level < levels::count; ++level) {
      for (int i = 0; i < 4; ++i) {
        all.push_back(ramie::spawn(ramie::fiber_options{.priority = level}, [&steps, &over, level] {
          while (!over) {
            ++steps[static_cast<std::size_t>(level)];
            ramie::this_fiber::yield();
          }
        }));
      }
    }
    // `main` has priority 0 and runs all the same.
    for (int i = 0; i < 1000; ++i) ramie::this_fiber::yield();
    std::printf("high before middle before low: %s\n", steps[2] > steps[1] && steps[1] > steps[0] ? "yes" : "no");
    std::printf("nobody starved: %s\n", steps[0] > 100 ? "yes" : "no");
    over = true;
    for (auto& fiber : all) fiber.join();
  });
}
