// Acts about ends: cancellation, deadlines, failures, timers, blocking calls, runtimes that come and go.
#include "soak.hpp"

#include <stdexcept>
#include <thread>
#include <vector>

namespace soak {

namespace {

using namespace ramie;

/// Waits somewhere, for ever or nearly; only a cancellation ends it.
void wait_somewhere(dice& d) {
  const tracked on_my_stack{1};
  channel<int> nothing;
  switch (d.between(0, 6)) {
    case 0: nothing.recv(); break;
    case 1: static_cast<void>(nothing.send(1)); break;
    case 2: this_fiber::sleep_for(std::chrono::hours{1}); break;
    case 3: select(on_recv(nothing, [](auto) {}), on_timeout(std::chrono::hours{1}, [] {})); break;
    case 4: {
      counting_semaphore<> none{0};
      none.acquire();
      break;
    }
    case 5: {
      mutex m;
      condition_variable never;
      std::unique_lock guard{m};
      never.wait(guard, [] { return false; });
      break;
    }
    default: fork_join([&] { nothing.recv(); }, [&] { nothing.recv(); }); break;
  }
}

void cancelled_fibers(dice& d) {
  std::vector<join_handle<void>> all;
  const int n = d.between(1, 8);
  for (int i = 0; i < n; ++i)
    all.push_back(spawn([seed = d.next(), kept = tracked{2}] {
      dice mine{seed};
      if (mine.one_in(3)) this_fiber::yield();
      wait_somewhere(mine);
    }));
  if (d.one_in(2)) this_fiber::sleep_for(d.us(1, 500));
  for (auto& h : all) h.request_stop();
  int ended = 0;
  for (auto& h : all) {
    try {
      h.join();
    } catch (const cancelled&) {
      ++ended;
    }
  }
  require(ended == n, "cancellation: a fiber ended otherwise");
}

void deadlines(dice& d) {
  bool late = false;
  const auto begun = std::chrono::steady_clock::now();
  const auto most = d.us(1, 3000);
  try {
    with_timeout(most, [&] { wait_somewhere(d); });
  } catch (const timeout_error&) {
    late = true;
  }
  require(late, "with_timeout: no timeout_error");
  require(std::chrono::steady_clock::now() - begun >= most, "with_timeout: too early");
}

void failing_scopes(dice& d) {
  int seen = 0;
  const int which = d.between(0, 3);
  try {
    scope s;
    for (int i = 0; i < 4; ++i)
      s.spawn([&, i, seed = d.next()] {
        dice mine{seed};
        if (i == which) {
          if (mine.one_in(2)) this_fiber::yield();
          throw std::runtime_error{"planned"};
        }
        wait_somewhere(mine);
      });
    s.join();
  } catch (const std::runtime_error&) {
    seen = 1;
  }
  require(seen == 1, "scope: the failure was lost");
  // An exception in flight across suspensions.
  try {
    try {
      throw 7;
    } catch (int) {
      this_fiber::sleep_for(d.us(1, 200));
      try {
        throw 8;
      } catch (int inner) {
        this_fiber::yield();
        require(inner == 8, "exceptions: the inner one changed");
      }
      throw;
    }
  } catch (int outer) {
    require(outer == 7, "exceptions: the outer one changed");
  }
}

void timers(dice& d) {
  std::vector<join_handle<void>> all;
  const int n = d.between(1, 30);
  for (int i = 0; i < n; ++i)
    all.push_back(spawn([seed = d.next()] {
      dice mine{seed};
      const auto pause = mine.us(0, 4000);
      const auto begun = std::chrono::steady_clock::now();
      this_fiber::sleep_for(pause);
      require(std::chrono::steady_clock::now() - begun >= pause, "timers: too early");
    }));
  ticker t{d.us(100, 500)};
  const auto first = t.channel().recv();
  const auto second = t.channel().recv();
  require(first && second && *first < *second, "ticker: out of order");
  for (auto& h : all) h.join();
}

void blocking_calls(dice& d) {
  std::vector<join_handle<int>> all;
  const int n = d.between(1, 6);
  for (int i = 0; i < n; ++i)
    all.push_back(spawn([i, pause = d.us(0, 500)] {
      return blocking([=, kept = tracked{i}] {
        std::this_thread::sleep_for(pause);
        return kept.value;
      });
    }));
  // And one that blocks its worker, which others must replace.
  if (d.one_in(4)) std::this_thread::sleep_for(d.us(1, 15'000));
  for (int i = 0; i < n; ++i) require(all[static_cast<std::size_t>(i)].join() == i, "blocking: a wrong result");
}

/// A runtime within, started and ended by a plain thread, with work in flight.
void nested_runtimes(dice& d) {
  const std::uint64_t seed = d.next();
  blocking([seed] {
    dice mine{seed};
    std::vector<join_handle<void>> left;
    {
      runtime rt{{.workers = mine.between(1, 3), .name = "nested"}};
      require(rt.run([] { return fork_join([] { return 1; }, [] { return 2; }) == std::tuple{1, 2}; }), "nested: run");
      const int n = mine.between(0, 5);
      for (int i = 0; i < n; ++i)
        left.push_back(rt.spawn([own = mine.next(), kept = tracked{3}] {
          dice his{own};
          wait_somewhere(his);
        }));
      if (mine.one_in(2)) std::this_thread::sleep_for(mine.us(1, 500));
    }
    for (auto& h : left) {
      bool ended = false;
      try {
        h.join();
      } catch (const cancelled&) {
        ended = true;
      }
      require(ended, "shutdown: a fiber was not cancelled");
    }
  });
}

}  // namespace

const std::array<named_act, 6> end_acts{{{"cancellation", &cancelled_fibers},
                                         {"deadlines", &deadlines},
                                         {"failing scopes", &failing_scopes},
                                         {"timers", &timers},
                                         {"blocking calls", &blocking_calls},
                                         {"nested runtimes", &nested_runtimes}}};

}  // namespace soak
