// Three executors for things that run: one queue for all threads, a queue a thread with stealing, a queue a thread
// without.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

/// Something that is run again and again, by one thread at a time.
struct runnable {
  virtual ~runnable() = default;
  virtual void run() = 0;
  std::size_t home = 0;  // the thread that is to run it, where threads are dedicated
};

struct executor {
  virtual ~executor() = default;
  virtual void submit(runnable& r) = 0;
};

inline thread_local std::size_t this_thread = 0;

/// What all threads take from: a mutex, a condition variable.
class locked_queue : public executor {
 public:
  explicit locked_queue(std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~locked_queue() override {
    {
      const std::lock_guard lock{mutex_};
      stop_ = true;
    }
    ready_.notify_all();
    for (auto& t : threads_) t.join();
  }
  void submit(runnable& r) override {
    {
      const std::lock_guard lock{mutex_};
      queue_.push_back(&r);
    }
    ready_.notify_one();
  }

 private:
  void work() {
    for (;;) {
      std::unique_lock lock{mutex_};
      ready_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      runnable* next = queue_.front();
      queue_.pop_front();
      lock.unlock();
      next->run();
    }
  }
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<runnable*> queue_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

/// A queue of its own for each thread; what is at home with it goes there.
class dedicated : public executor {
 public:
  explicit dedicated(std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i) each_.push_back(std::make_unique<locked_queue>(1));
  }
  void submit(runnable& r) override { each_[r.home % each_.size()]->submit(r); }

 private:
  std::vector<std::unique_ptr<locked_queue>> each_;
};

/// A queue of its own for each thread; who has none left takes the oldest of another's.
class stealing : public executor {
 public:
  explicit stealing(std::size_t threads) : queues_(threads) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
  }
  ~stealing() override {
    stop_.store(true);
    signal_.fetch_add(1);
    signal_.notify_all();
    for (auto& t : threads_) t.join();
  }
  void submit(runnable& r) override {
    queue& mine = queues_[this_thread % queues_.size()];
    {
      const std::lock_guard lock{mine.mutex};
      mine.items.push_back(&r);
    }
    signal_.fetch_add(1);
    if (sleepers_.load() > 0) signal_.notify_one();
  }

 private:
  struct alignas(64) queue {
    std::mutex mutex;
    std::deque<runnable*> items;
  };
  runnable* take(std::size_t from) {
    queue& q = queues_[from];
    const std::lock_guard lock{q.mutex};
    if (q.items.empty()) return nullptr;
    runnable* next = q.items.front();
    q.items.pop_front();
    return next;
  }
  runnable* find(std::size_t self) {
    for (std::size_t i = 0; i < queues_.size(); ++i) {
      if (runnable* next = take((self + i) % queues_.size())) return next;
    }
    return nullptr;
  }
  void work(std::size_t self) {
    this_thread = self;
    while (!stop_.load()) {
      const unsigned seen = signal_.load();
      if (runnable* next = find(self)) {
        next->run();
        continue;
      }
      sleepers_.fetch_add(1);
      signal_.wait(seen);  // a submitter after the look has changed it
      sleepers_.fetch_sub(1);
    }
  }
  std::vector<queue> queues_;
  alignas(64) std::atomic<unsigned> signal_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};
