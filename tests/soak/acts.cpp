// Acts with fibers, fork and join, channels, select and sync.
#include "soak.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace soak {

namespace {

using namespace ramie;

/// Something that suspends, or not.
void dawdle(dice& d) {
  switch (d.between(0, 7)) {
    case 0: this_fiber::sleep_for(d.us(1, 300)); break;
    case 1:
    case 2: this_fiber::yield(); break;
    default: break;
  }
}

// ---- trees ---------------------------------------------------------------------------------------------------------

long spawn_tree(std::uint64_t seed, int depth) {
  dice d{seed};
  dawdle(d);
  if (depth == 0) return 1;
  const tracked kept{depth};
  std::vector<join_handle<long>> children;
  const int n = d.between(1, 3);
  for (int i = 0; i < n; ++i)
    children.push_back(spawn([seed = d.next(), depth, kept] { return spawn_tree(seed, depth - kept.value / depth); }));
  long sum = 1;
  for (auto& child : children) sum += child.join();
  return sum;
}
long count_tree(std::uint64_t seed, int depth) {
  dice d{seed};
  switch (d.between(0, 7)) {  // as dawdle does
    case 0: d.us(1, 300); break;
    default: break;
  }
  if (depth == 0) return 1;
  long sum = 1;
  const int n = d.between(1, 3);
  for (int i = 0; i < n; ++i) sum += count_tree(d.next(), depth - 1);
  return sum;
}
void spawn_trees(dice& d) {
  const std::uint64_t seed = d.next();
  const int depth = d.between(1, 5);
  require(spawn_tree(seed, depth) == count_tree(seed, depth), "spawn tree: fibers were lost or doubled");
}

long fork_tree(std::uint64_t seed, int depth) {
  dice d{seed};
  if (d.one_in(8)) dawdle(d);
  if (depth == 0) return 1;
  const std::uint64_t left = d.next(), right = d.next();
  if (d.one_in(3)) {
    long sums[2] = {};
    scope s;
    s.spawn([&] { sums[0] = fork_tree(left, depth - 1); });
    s.spawn([&] { sums[1] = fork_tree(right, depth - 1); });
    s.join();
    return sums[0] + sums[1];
  }
  auto [a, b] = fork_join([=] { return fork_tree(left, depth - 1); }, [=] { return fork_tree(right, depth - 1); });
  return a + b;
}
void fork_trees(dice& d) {
  const int depth = d.between(1, 9);
  require(fork_tree(d.next(), depth) == 1L << depth, "fork tree: jobs were lost or doubled");
  std::vector<int> marks(static_cast<std::size_t>(d.between(1, 2000)));
  parallel_for(std::size_t{0}, marks.size(), [&](std::size_t i) { ++marks[i]; });
  for (const int m : marks) require(m == 1, "parallel_for: an index was left out or came twice");
}

// ---- channels ------------------------------------------------------------------------------------------------------

/// Senders and receivers of random kinds around a few channels; each number arrives once.
void channel_web(dice& d) {
  const int senders = d.between(1, 4), receivers = d.between(1, 4), each = d.between(1, 20 * scale);
  struct web {
    explicit web(std::size_t capacity) : a{capacity}, b{capacity / 2} {}
    channel<std::unique_ptr<tracked>> a, b;
    std::atomic<long> sum{0}, count{0};
  } w{static_cast<std::size_t>(d.between(0, 8))};
  auto take = [&](std::optional<std::unique_ptr<tracked>> got) {
    if (!got) return false;
    w.sum += (*got)->value;
    ++w.count;
    return true;
  };
  scope to_end;
  std::vector<join_handle<void>> sending, receiving;
  for (int r = 0; r < receivers; ++r)
    receiving.push_back(spawn([&, seed = d.next()] {
      dice mine{seed};
      bool a_open = true, b_open = true;
      while (a_open || b_open) {
        switch (mine.between(0, 3)) {
          case 0:  // never long at one channel alone: all receivers could be there, and the senders at the other
            if (auto got = w.a.recv_for(mine.us(0, 200))) take(std::move(got));
            else if (w.a.is_closed() && w.a.size() == 0) a_open = false;
            break;
          case 1:
            if (auto got = w.b.recv_for(mine.us(0, 200))) take(std::move(got));
            else if (w.b.is_closed() && w.b.size() == 0) b_open = false;
            break;
          default:
            if (a_open && b_open)
              select(on_recv(w.a, [&](auto v) { a_open = take(std::move(v)); }),
                     on_recv(w.b, [&](auto v) { b_open = take(std::move(v)); }), on_timeout(mine.us(1, 500), [] {}));
            else if (a_open) a_open = take(w.a.recv());  // the other is closed, so the senders are done
            else b_open = take(w.b.recv());
        }
      }
    }));
  for (int s = 0; s < senders; ++s)
    sending.push_back(spawn([&, seed = d.next()] {
      dice mine{seed};
      for (int i = 1; i <= each; ++i) {
        auto one = std::make_unique<tracked>(i);
        channel<std::unique_ptr<tracked>>& c = mine.one_in(2) ? w.a : w.b;
        switch (mine.between(0, 2)) {
          case 0: require(c.send(std::move(one)) == channel_status::ok, "channel: send failed"); break;
          case 1:
            while (c.send_for(std::move(one), mine.us(1, 100)) == channel_status::timeout) {
            }
            break;
          default: {
            // An element that a select did not send is still in its case, so it is made inside.
            select(on_send(c, std::move(one),
                           [](channel_status st) { require(st == channel_status::ok, "select: send failed"); }));
          }
        }
        if (mine.one_in(8)) dawdle(mine);
      }
    }));
  for (auto& h : sending) h.join();
  w.a.close();
  w.b.close();
  for (auto& h : receiving) h.join();
  const long expected = static_cast<long>(senders) * each;
  require(w.count == expected, "channels: elements were lost or doubled");
  require(w.sum == static_cast<long>(senders) * each * (each + 1) / 2, "channels: elements changed");
}

/// A pipeline of filters, each a fiber.
void sieve(dice& d) {
  constexpr int filters = 12;
  const int last = d.between(10, 60);
  std::vector<std::unique_ptr<channel<int>>> pipes;
  std::vector<join_handle<void>> stages;
  pipes.push_back(std::make_unique<channel<int>>(static_cast<std::size_t>(d.between(0, 2))));
  channel<int>* in = pipes.back().get();
  stages.push_back(spawn([in, last] {
    for (int i = 2; i <= last; ++i) static_cast<void>(in->send(i));
    in->close();
  }));
  int found = 0;
  while (found < filters) {
    const auto prime = in->recv();
    if (!prime) break;
    ++found;
    pipes.push_back(std::make_unique<channel<int>>(static_cast<std::size_t>(d.between(0, 2))));
    channel<int>* out = pipes.back().get();
    stages.push_back(spawn([in, out, p = *prime] {
      while (const auto v = in->recv())
        if (*v % p != 0) static_cast<void>(out->send(*v));
      out->close();
    }));
    in = out;
  }
  while (in->recv()) {
  }
  for (auto& s : stages) s.join();
  int primes = 0;
  for (int i = 2; i <= last; ++i) {
    bool prime = true;
    for (int k = 2; k * k <= i; ++k) prime = prime && i % k != 0;
    primes += prime ? 1 : 0;
  }
  require(found == std::min(primes, filters), "sieve: wrong number of primes");
}

// ---- sync ----------------------------------------------------------------------------------------------------------

void shared_counters(dice& d) {
  const int fibers = d.between(2, 6), each = d.between(1, 20 * scale);
  mutex m;
  timed_mutex timed;
  shared_mutex shared;
  condition_variable changed;
  counting_semaphore<> tokens{2};
  wait_group all;
  latch started{fibers};
  long a = 0, b = 0, c = 0;
  all.add(fibers);
  std::vector<join_handle<void>> handles;
  for (int f = 0; f < fibers; ++f)
    handles.push_back(spawn([&, seed = d.next()] {
      dice mine{seed};
      started.arrive_and_wait();
      for (int i = 0; i < each; ++i) {
        {
          std::lock_guard guard{m};
          ++a;
          if (mine.one_in(10)) dawdle(mine);
        }
        changed.notify_one();
        while (!timed.try_lock_for(mine.us(1, 500))) {
        }
        ++b;
        timed.unlock();
        if (mine.one_in(2)) {
          std::lock_guard guard{shared};
          ++c;
        } else {
          std::shared_lock guard{shared};
          const long before = c;
          if (mine.one_in(10)) dawdle(mine);
          require(c == before, "shared_mutex: written while read");
        }
        tokens.acquire();
        if (mine.one_in(10)) dawdle(mine);
        tokens.release();
      }
      all.done();
    }));
  {
    std::unique_lock guard{m};
    changed.wait_for(guard, d.us(1, 2000), [&] { return a >= long{fibers} * each; });
  }
  all.wait();
  for (auto& h : handles) h.join();
  require(a == long{fibers} * each && b == a, "mutex: increments were lost");
}

// ---- plain threads -------------------------------------------------------------------------------------------------

void with_threads(dice& d) {
  const int each = d.between(1, 10 * scale);
  channel<int> there{static_cast<std::size_t>(d.between(0, 3))};
  channel<int> back{static_cast<std::size_t>(d.between(0, 3))};
  std::thread outside{[&] {
    while (const auto v = there.recv()) static_cast<void>(back.send(*v + 1));
    back.close();
  }};
  auto sender = spawn([&] {
    for (int i = 0; i < each; ++i) static_cast<void>(there.send(i));
    there.close();
  });
  long sum = 0;
  while (const auto v = back.recv()) sum += *v;
  sender.join();
  blocking([&] { outside.join(); });
  require(sum == long{each} * (each + 1) / 2, "threads: elements were lost or doubled");
}

}  // namespace

const std::array<named_act, 6> plain_acts{{{"spawn trees", &spawn_trees},
                                           {"fork trees", &fork_trees},
                                           {"channels", &channel_web},
                                           {"sieve", &sieve},
                                           {"sync", &shared_counters},
                                           {"threads", &with_threads}}};

}  // namespace soak
