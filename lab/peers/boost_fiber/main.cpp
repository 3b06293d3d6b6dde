// Boost.Fiber: skynet in the three forms of the library's own examples, under its three schedulers, and small
// workloads.
#include <common/peer.hpp>
#include <common/skynet.hpp>

#include <boost/fiber/all.hpp>
#include <boost/fiber/pooled_fixedsize_stack.hpp>
#include <boost/fiber/protected_fixedsize_stack.hpp>
#include <boost/version.hpp>

#include <array>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

namespace {

namespace fibers = boost::fibers;
using channel = fibers::buffered_channel<std::int64_t>;
using measure = std::function<void(const peer::run_once&)>;

std::size_t stack_size() { return 2 * fibers::fixedsize_stack::traits_type::page_size(); }

// Where stacks come from: malloc, mmap with a guard page each time, or the library's pool, which is for one thread.
struct from_malloc {
  static fibers::fixedsize_stack make() { return fibers::fixedsize_stack{stack_size()}; }
};
struct mapped {
  static fibers::protected_fixedsize_stack make() { return fibers::protected_fixedsize_stack{stack_size()}; }
};
struct pooled {
  static fibers::pooled_fixedsize_stack& make() {
    static fibers::pooled_fixedsize_stack all{stack_size()};
    return all;
  }
};

/// A pool for several threads, which the library lacks: each keeps the stacks of fibers that ended on it.
class recycled {
 public:
  using traits_type = fibers::fixedsize_stack::traits_type;
  static recycled make() { return {}; }
  boost::context::stack_context allocate() {
    std::vector<void*>& own = kept();
    boost::context::stack_context context;
    void* block = nullptr;
    if (own.empty()) {
      block = std::malloc(stack_size());
      if (block == nullptr) throw std::bad_alloc{};
    } else {
      block = own.back();
      own.pop_back();
    }
    context.size = stack_size();
    context.sp = static_cast<char*>(block) + context.size;
    return context;
  }
  void deallocate(boost::context::stack_context& context) {
    kept().push_back(static_cast<char*>(context.sp) - context.size);
  }

 private:
  /// Not given back before the program's end.
  static std::vector<void*>& kept() {
    thread_local std::vector<void*> stacks;
    return stacks;
  }
};
constexpr std::size_t capacity = 16;  // a power of two is asked for

template <class Stacks, fibers::launch how>
void by_detach(channel& parent, std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) {
    parent.push(first);
    return;
  }
  channel children{capacity};
  const std::int64_t part = leaves / peer::fan_out;
  for (std::int64_t i = 0; i < peer::fan_out; ++i) {
    fibers::fiber{how, std::allocator_arg, Stacks::make(), by_detach<Stacks, how>, std::ref(children), first + i * part,
                  part}
        .detach();
  }
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < peer::fan_out; ++i) sum += children.value_pop();
  parent.push(sum);
}

template <class Stacks, fibers::launch how>
void by_join(channel& parent, std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) {
    parent.push(first);
    return;
  }
  channel children{capacity};
  std::array<fibers::fiber, peer::fan_out> running;
  const std::int64_t part = leaves / peer::fan_out;
  for (std::size_t i = 0; i < running.size(); ++i) {
    running[i] = fibers::fiber{how,
                               std::allocator_arg,
                               Stacks::make(),
                               by_join<Stacks, how>,
                               std::ref(children),
                               first + static_cast<std::int64_t>(i) * part,
                               part};
  }
  for (fibers::fiber& child : running) child.join();
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < peer::fan_out; ++i) sum += children.value_pop();
  parent.push(sum);
}

template <class Stacks, fibers::launch how>
std::int64_t by_async(std::int64_t first, std::int64_t leaves) {
  if (leaves == 1) return first;
  std::array<fibers::future<std::int64_t>, peer::fan_out> running;
  const std::int64_t part = leaves / peer::fan_out;
  for (std::size_t i = 0; i < running.size(); ++i) {
    running[i] = fibers::async(how, std::allocator_arg, Stacks::make(), by_async<Stacks, how>,
                               first + static_cast<std::int64_t>(i) * part, part);
  }
  std::int64_t sum = 0;
  for (auto& child : running) sum += child.get();
  return sum;
}

template <void (*node)(channel&, std::int64_t, std::int64_t), class Stacks>
std::int64_t by_channel(std::int64_t leaves) {
  channel root{capacity};
  fibers::fiber{fibers::launch::post, std::allocator_arg, Stacks::make(), node, std::ref(root), 0, leaves}.detach();
  return root.value_pop();
}

template <class Stacks, fibers::launch how>
std::int64_t by_future(std::int64_t leaves) {
  return by_async<Stacks, how>(0, leaves);
}

/// Threads beside this one that run fibers until told to stop. `install` makes the calling thread one of the
/// scheduler's.
template <class Install>
void with_threads(int workers, Install install, const std::function<void()>& body) {
  fibers::mutex mutex;
  fibers::condition_variable stopped;
  bool stop = false;
  std::vector<std::thread> threads;
  for (int i = 1; i < workers; ++i) {
    threads.emplace_back([&] {
      install();
      std::unique_lock lock{mutex};
      stopped.wait(lock, [&] { return stop; });
    });
  }
  install();
  body();
  {
    const std::lock_guard lock{mutex};
    stop = true;
  }
  stopped.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void under(const std::string& scheduler, int workers, const std::function<void()>& body) {
  const auto threads = static_cast<std::uint32_t>(workers);
  // The library's default is to spin when idle; with more threads than cores that would only be in the others' way.
  const bool suspend = threads > std::thread::hardware_concurrency();
  // work_stealing's constructor waits for all of its threads, so it takes as many as it is told.
  if (scheduler == "work_stealing" && workers > 1) {
    with_threads(
        workers, [=] { fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(threads, suspend); }, body);
  } else if (scheduler == "shared_work") {
    with_threads(workers, [=] { fibers::use_scheduling_algorithm<fibers::algo::shared_work>(suspend); }, body);
  } else if (scheduler == "work_stealing") {
    fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(threads);
    body();
  } else {
    if (workers != 1) peer::fail("round_robin uses one thread");
    body();
  }
}

template <std::int64_t (*root)(std::int64_t)>
void skynet(const peer::options& o, const measure& m) {
  const std::int64_t leaves = o.number("leaves", 1'000'000);
  under(o.style.substr(0, o.style.find('-')), o.workers, [&] {
    m([&] {
      std::int64_t sum = 0;
      const double seconds = peer::seconds_of([&] { sum = root(leaves); });
      return peer::outcome{seconds, peer::skynet_nodes(leaves), sum == peer::skynet_sum(leaves)};
    });
  });
}

template <class Make>
peer::outcome pingpong_once(std::int64_t messages, Make make) {
  const std::int64_t rounds = messages / 2;
  std::int64_t last = 0;
  const double seconds = peer::seconds_of([&] {
    auto ping = make();
    auto pong = make();
    fibers::fiber other{[&] {
      for (std::int64_t i = 0; i < rounds; ++i) pong->push(ping->value_pop() + 1);
    }};
    for (std::int64_t i = 0; i < rounds; ++i) {
      ping->push(last);
      last = pong->value_pop();
    }
    other.join();
  });
  return {seconds, 2 * rounds, last == rounds};
}

void pingpong(const peer::options& o, const measure& m) {
  const std::int64_t messages = o.number("messages", 2'000'000);
  if (o.style == "unbuffered") {
    m([&] {
      return pingpong_once(messages, [] { return std::make_unique<fibers::unbuffered_channel<std::int64_t>>(); });
    });
  } else {
    m([&] { return pingpong_once(messages, [] { return std::make_unique<channel>(2); }); });
  }
}

void stream(const peer::options& o, const measure& m) {
  const std::int64_t messages = o.number("messages", 5'000'000);
  m([&] {
    std::int64_t sum = 0;
    const double seconds = peer::seconds_of([&] {
      channel c{128};
      fibers::fiber producer{[&] {
        for (std::int64_t i = 1; i <= messages; ++i) c.push(i);
        c.close();
      }};
      for (const std::int64_t value : c) sum += value;
      producer.join();
    });
    return peer::outcome{seconds, messages, sum == messages * (messages + 1) / 2};
  });
}

template <class F>
double seconds_of_fibers(std::int64_t number, F each) {
  return peer::seconds_of([&] {
    std::vector<fibers::fiber> running;
    for (std::int64_t i = 0; i < number; ++i) running.emplace_back(each);
    for (fibers::fiber& f : running) f.join();
  });
}

void yield(const peer::options& o, const measure& m) {
  const std::int64_t number = o.number("fibers", 2);
  const std::int64_t count = o.number("count", 2'000'000);
  m([&] {
    const double seconds = seconds_of_fibers(number, [&] {
      for (std::int64_t i = 0; i < count; ++i) boost::this_fiber::yield();
    });
    return peer::outcome{seconds, number * count, true};
  });
}

void mutex(const peer::options& o, const measure& m) {
  const std::int64_t number = o.number("fibers", 4);
  const std::int64_t count = o.number("count", 1'000'000);
  m([&] {
    fibers::mutex lock;
    std::int64_t counter = 0;
    const double seconds = seconds_of_fibers(number, [&] {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::lock_guard guard{lock};
        ++counter;
      }
    });
    return peer::outcome{seconds, number * count, counter == number * count};
  });
}

/// Fibers that wait for a condition, all at once. To wait for one they overrun 8 KiB.
void memory(const peer::options& o, const measure& m) {
  const std::int64_t count = o.number("count", 1'000'000);
  m([&] {
    fibers::mutex lock;
    fibers::condition_variable gate;
    bool open = false;
    std::int64_t parked = 0;
    std::vector<fibers::fiber> all;
    all.reserve(static_cast<std::size_t>(count));
    const std::int64_t before = peer::status_bytes("VmRSS:");
    const double seconds = peer::seconds_of([&] {
      for (std::int64_t i = 0; i < count; ++i) {
        all.emplace_back(fibers::launch::dispatch, std::allocator_arg, fibers::fixedsize_stack{2 * stack_size()}, [&] {
          std::unique_lock guard{lock};
          ++parked;
          gate.wait(guard, [&] { return open; });
        });
      }
    });
    const std::int64_t grown = peer::status_bytes("VmRSS:") - before;
    const double ending = peer::seconds_of([&] {
      {
        const std::lock_guard guard{lock};
        open = true;
      }
      gate.notify_all();
      for (fibers::fiber& f : all) f.join();
    });
    return peer::outcome{seconds,
                         count,
                         parked == count,
                         {{"resident_bytes_per_fiber", static_cast<double>(grown) / static_cast<double>(count)},
                          {"wake_and_end_ns_per_fiber", ending * 1e9 / static_cast<double>(count)}}};
  });
}

/// The three forms of skynet with one kind of stacks. `suffix` names what differs from the library's own programs.
template <class Stacks, fibers::launch how>
void add_skynet(std::vector<peer::entry>& to, const std::string& scheduler, const std::string& suffix) {
  to.push_back({"skynet", scheduler + "-detach" + suffix, "fiber", skynet<by_channel<by_detach<Stacks, how>, Stacks>>});
  to.push_back({"skynet", scheduler + "-join" + suffix, "fiber", skynet<by_channel<by_join<Stacks, how>, Stacks>>});
  // With dispatch a future's wait overruns a stack of this size.
  if constexpr (how == fibers::launch::post)
    to.push_back({"skynet", scheduler + "-async" + suffix, "fiber", skynet<by_future<Stacks, how>>});
}

}  // namespace

int main(int argc, char** argv) {
  using fibers::launch;
  std::vector<peer::entry> entries{
      {"pingpong", "unbuffered", "message", pingpong}, {"pingpong", "buffered", "message", pingpong},
      {"stream", "buffered", "message", stream},       {"yield", "round_robin", "switch", yield},
      {"mutex", "round_robin", "lock", mutex},         {"memory", "round_robin", "fiber", memory}};
  for (const char* scheduler : {"work_stealing", "shared_work", "round_robin"}) {
    add_skynet<from_malloc, launch::post>(entries, scheduler, "");
    add_skynet<mapped, launch::post>(entries, scheduler, "-mapped");
    add_skynet<recycled, launch::post>(entries, scheduler, "-recycled");
    add_skynet<recycled, launch::dispatch>(entries, scheduler, "-dispatch-recycled");
  }
  add_skynet<pooled, launch::post>(entries, "round_robin", "-pooled");
  add_skynet<pooled, launch::dispatch>(entries, "round_robin", "-dispatch-pooled");
  return peer::run("boost_fiber", BOOST_LIB_VERSION, entries, argc, argv);
}
