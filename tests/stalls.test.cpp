// A runtime whose workers are all blocked in a lock of the C++ library says which one it is.
// Mostly waits.
#include <ramie/base/testing.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace std::chrono_literals;

/// Standard error goes into a pipe while it lives.
class piped_stderr {
 public:
  piped_stderr() : saved_{::dup(STDERR_FILENO)} {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) std::abort();
    ::dup2(ends_[1], STDERR_FILENO);
  }
  piped_stderr(const piped_stderr&) = delete;
  piped_stderr& operator=(const piped_stderr&) = delete;
  ~piped_stderr() {
    ::dup2(saved_, STDERR_FILENO);
    for (const int fd : {saved_, ends_[0], ends_[1]}) ::close(fd);
  }
  /// Waits for a line that has `part` in it.
  std::string line_with(const std::string& part) {
    std::string line;
    for (char c = 0; ::read(ends_[0], &c, 1) == 1;) {
      if (c != '\n') {
        line += c;
        continue;
      }
      if (line.find(part) != std::string::npos) return line;
      line.clear();
    }
    return "no more lines";
  }

 private:
  int saved_;
  std::array<int, 2> ends_{};
};

struct stall {
  std::promise<void> over;
  std::shared_future<void> is_over = over.get_future().share();
  std::atomic<bool> begun{false};
  int hold() {
    begun = true;
    is_over.wait();
    return 1;
  }
};

stall* current = nullptr;
template <int workers>
int& slowly_made_setting() {
  static int value = current->hold();
  return value;
}
template <int workers>
std::once_flag slowly_called_flag;
template <int workers>
std::mutex long_held_mutex;

/// A plain thread is in `block` until the report has come; all fibers want to.
template <class Block>
std::string report_of(int workers, Block block) {
  stall now;
  current = &now;
  piped_stderr err;
  std::thread holder{[&] { block(); }};
  while (!now.begun) std::this_thread::yield();
  runtime_options o;
  o.workers = workers;
  o.name = "blocked";
  o.spare_workers = 1;
  runtime rt{o};
  std::vector<join_handle<void>> fibers;
  for (int i = 0; i < workers + 3; ++i) fibers.push_back(rt.spawn([&] { block(); }));
  std::string line = err.line_with("ramie: runtime \"blocked\": work waits");
  now.over.set_value();
  for (auto& f : fibers) f.join();
  holder.join();
  return line;
}

template <int workers>
void name_each_lock() {
  if (RAMIE_TSAN || detail::testing::emulated()) GTEST_SKIP() << "locks that are not the C library's";
  const std::string all = "all " + std::to_string(workers + 1) + " workers";
  std::string line = report_of(workers, [] { EXPECT_EQ(slowly_made_setting<workers>(), 1); });
  EXPECT_NE(line.find(all), std::string::npos) << line;
  EXPECT_NE(line.find("the initialisation of the static "), std::string::npos) << line;
  EXPECT_NE(line.find("slowly_made_setting<" + std::to_string(workers) + ">()::value"), std::string::npos) << line;
  line = report_of(workers, [] { std::call_once(slowly_called_flag<workers>, [] { current->hold(); }); });
  EXPECT_NE(line.find("slowly_called_flag"), std::string::npos) << line;
  std::atomic<bool> first{true};
  line = report_of(workers, [&] {
    const std::lock_guard guard{long_held_mutex<workers>};
    if (first.exchange(false)) current->hold();
  });
  EXPECT_NE(line.find("long_held_mutex"), std::string::npos) << line;
}

TEST(stalled_runtimes, name_what_blocks_one_worker_and_its_spare) { name_each_lock<1>(); }
TEST(stalled_runtimes, name_what_blocks_two_workers_and_their_spare) { name_each_lock<2>(); }
TEST(stalled_runtimes, name_what_blocks_eight_workers_and_their_spare) { name_each_lock<8>(); }

}  // namespace
}  // namespace ramie
