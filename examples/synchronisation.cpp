// The standard library's synchronisation, for fibers and threads.
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// A queue that holds a few jobs: the classic use of mutex and condition variable.
class job_queue {
 public:
  void put(int job) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return jobs_.size() < 4; });
    jobs_.push_back(job);
    changed_.notify_all();
  }
  int take() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return !jobs_.empty(); });
    const int job = jobs_.back();
    jobs_.pop_back();
    changed_.notify_all();
    return job;
  }

 private:
  ramie::mutex mutex_;
  ramie::condition_variable changed_;
  std::vector<int> jobs_;
};

ramie::fiber_local<int> jobs_done;  // each fiber, and each thread, has its own

}  // namespace

int main() {
  return ramie::run([] {
    job_queue queue;
    ramie::wait_group done;
    ramie::mutex sum_mutex;
    long sum = 0;
    const auto work = [&] {
      for (int i = 0; i < 25; ++i) {
        const int job = queue.take();
        const std::lock_guard guard{sum_mutex};
        sum += job;
        ++*jobs_done;
      }
      if (*jobs_done != 25) std::puts("somebody else's count");
      done.done();
    };
    done.add(4);
    for (int i = 0; i < 3; ++i) ramie::spawn(work).detach();
    std::thread outsider{work};  // a plain thread takes part
    for (int job = 1; job <= 100; ++job) queue.put(job);
    done.wait();
    outsider.join();
    std::printf("100 jobs: %ld\n", sum);

    ramie::future<std::string> later = ramie::async([] {
      ramie::this_fiber::sleep_for(1ms);
      return std::string{"a result, later"};
    });
    std::puts(later.get().c_str());

    ramie::counting_semaphore<> places{2};
    ramie::latch start{1};
    std::vector<ramie::join_handle<bool>> visitors;
    for (int i = 0; i < 4; ++i)
      visitors.push_back(ramie::spawn([&] {
        start.wait();
        if (!places.try_acquire_for(1h)) return false;
        ramie::this_fiber::yield();
        places.release();
        return true;
      }));
    start.count_down();
    int came = 0;
    for (auto& v : visitors) came += v.join() ? 1 : 0;
    std::printf("%d visitors, two at a time\n", came);

    ramie::shared_mutex book_mutex;
    std::string book = "draft";
    auto writer = ramie::spawn([&] {
      const std::lock_guard alone{book_mutex};
      book = "final";
    });
    writer.join();
    const std::shared_lock together{book_mutex};
    std::puts(book.c_str());
  });
}
