// A placement of one's own: what is urgent runs first. All else about the scheduler stays as it is.
#include <ramie/ramie.hpp>

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

class urgent_first : public ramie::scheduling_policy {
 public:
  void put(ramie::runnable r, int) noexcept override {
    std::lock_guard guard{lock_};
    (r.priority() > 0 ? urgent_ : others_).push(r);
  }
  ramie::runnable take(int) noexcept override {
    std::lock_guard guard{lock_};
    const ramie::runnable r = urgent_.pop();
    return r ? r : others_.pop();
  }
  bool has_work(int) const noexcept override {
    std::lock_guard guard{lock_};
    return !urgent_.empty() || !others_.empty();
  }

 private:
  mutable std::mutex lock_;  // several workers come at once
  ramie::runnable_queue urgent_, others_;
};

int main() {
  // With one worker the order can be told.
  return ramie::run({.workers = 1, .policy = std::make_shared<urgent_first>()}, [] {
    std::vector<ramie::join_handle<void>> jobs;
    for (const auto& [name, priority] :
         {std::pair{"tidy up", 0}, {"report", 0}, {"answer a call", 1}, {"put out a fire", 1}})
      jobs.push_back(ramie::spawn(ramie::fiber_options{.name = name, .priority = priority},
                                  [name] { std::printf("%s\n", name); }));
    for (auto& j : jobs) j.join();
  });
}
