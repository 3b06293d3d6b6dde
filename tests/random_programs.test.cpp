// Programs drawn by lot: senders, receivers, selects, scopes, deadlines, cancellation and the end of the runtime, in
// every mixture. What must hold of each: it ends, all its fibers have ended, no number is received twice, each that was
// reported as sent is received or still in the channel's buffer, and no other. A failure names its seed; the same seed
// draws the same program, though not the same schedule.
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t programs = RAMIE_TSAN || RAMIE_ASAN ? 60 : 400;
constexpr int channels_most = 4;
constexpr int values_most = 64;  // of each sender

/// Drawn before anything runs, so that it depends on the seed alone.
struct plan {
  enum class end { all_done, scope_cancelled, deadline, child_fails, owner_stopped, runtime_ends };
  struct step {
    enum class kind { plain, timed, trying, select_two, select_timed, poll, random_of_all };
    kind how;
    int first, second;
  };
  struct part {
    bool sends;
    bool nested;  // does its work in a child of a scope of its own
    bool shielded;
    std::vector<step> steps;
  };
  end how;
  int channels;
  std::array<std::size_t, channels_most> capacity;
  std::vector<part> parts;
  int closes_after;  // steps of the owner: yields before channels are closed; -1: at the end alone
  std::chrono::microseconds patience;
};

plan draw(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  plan p{};
  p.how = static_cast<plan::end>(below(6));
  p.channels = 1 + below(channels_most);
  constexpr std::array<std::size_t, 5> capacities{0, 1, 2, 16, std::size_t{~0u}};
  for (std::size_t& c : p.capacity) c = capacities[random() % capacities.size()];
  const int parts = 2 + below(10);
  for (int i = 0; i < parts; ++i) {
    plan::part part{.sends = i % 2 == 0, .nested = below(4) == 0, .shielded = below(6) == 0, .steps = {}};
    const int steps = 1 + below(values_most);
    for (int s = 0; s < steps; ++s)
      part.steps.push_back({static_cast<plan::step::kind>(below(7)), below(p.channels), below(p.channels)});
    p.parts.push_back(std::move(part));
  }
  p.closes_after = below(2) == 0 ? -1 : below(50);
  p.patience = std::chrono::microseconds{below(3000)};
  return p;
}

class trial {
 public:
  explicit trial(std::uint64_t seed) : plan_{draw(seed)} {
    for (int i = 0; i < plan_.channels; ++i) {
      const std::size_t capacity = plan_.capacity[static_cast<std::size_t>(i)];
      if (capacity == std::size_t{~0u}) channels_.push_back(std::make_unique<channel<int>>(unbounded));
      else channels_.push_back(std::make_unique<channel<int>>(capacity));
    }
    for (std::size_t i = 0; i < plan_.parts.size() * values_most; ++i) {
      sent_.push_back(std::make_unique<std::atomic<int>>(0));
      received_.push_back(std::make_unique<std::atomic<int>>(0));
    }
  }

  void run(int workers) {
    // Otherwise somebody may wait for a counterpart that has ended, for ever inside a shield.
    std::thread closer{[this] {
      std::this_thread::sleep_for(plan_.patience);
      close_all();
    }};
    {
      runtime rt{{.workers = workers, .name = "trial"}};
      auto owner = rt.spawn([this] { own(); });
      if (plan_.how == plan::end::owner_stopped) owner.request_stop();
      if (plan_.how == plan::end::runtime_ends) rt.shutdown();
      try {
        owner.join();
      } catch (const cancelled&) {
      } catch (const timeout_error&) {
      } catch (const planned_failure&) {
      }
    }
    closer.join();
    EXPECT_EQ(running_, 0) << "a fiber outlived its scope";
    check();
  }

 private:
  struct planned_failure {};

  void own() {
    const auto work = [this] {
      scope all;
      for (std::size_t i = 0; i < plan_.parts.size(); ++i) all.spawn([this, i] { part(i); });
      if (plan_.how == plan::end::child_fails) all.spawn([] { throw planned_failure{}; });
      if (plan_.closes_after >= 0) {
        for (int i = 0; i < plan_.closes_after; ++i) this_fiber::yield();
        close_all();
      }
      if (plan_.how == plan::end::scope_cancelled) {
        this_fiber::sleep_for(plan_.patience);
        all.cancel();
      }
      all.join();
    };
    if (plan_.how == plan::end::deadline) with_timeout(plan_.patience, work);
    else work();
  }

  void close_all() {
    for (auto& c : channels_) c->close();
  }

  void part(std::size_t i) {
    const plan::part& mine = plan_.parts[i];
    const auto work = [this, i] { steps(i); };
    ++running_;
    struct leaving {
      std::atomic<int>& n;
      ~leaving() { --n; }
    } at_end{running_};
    const auto nested = [&] {
      if (!mine.nested) return work();
      scope own;
      own.spawn(work);
      own.join();
    };
    if (mine.shielded) shield(nested);
    else nested();
  }

  void steps(std::size_t i) {
    const plan::part& mine = plan_.parts[i];
    for (std::size_t s = 0; s < mine.steps.size(); ++s) {
      const bool goes_on = mine.sends ? send(i, s, mine.steps[s]) : receive(mine.steps[s]);
      if (!goes_on) return;
    }
  }

  channel<int>& at(int c) { return *channels_[static_cast<std::size_t>(c)]; }

  bool send(std::size_t i, std::size_t s, const plan::step& step) {
    const int x = static_cast<int>(i * values_most + s);
    channel<int>& a = at(step.first);
    channel<int>& b = at(step.second);
    channel_status how = channel_status::timeout;
    const auto note = [&](channel_status was) { how = was; };
    switch (step.how) {
      case plan::step::kind::plain: how = a.send(x); break;
      case plan::step::kind::timed: how = a.send_for(x, 50us); break;
      case plan::step::kind::trying: how = a.try_send(x); break;
      case plan::step::kind::select_two: select(on_send(a, x, note), on_send(b, x, note)); break;
      case plan::step::kind::select_timed:
        select(on_send(a, x, note), on_send(b, x, note), on_timeout(50us, [] {}));
        break;
      case plan::step::kind::poll: select(on_send(a, x, note), otherwise([] {})); break;
      case plan::step::kind::random_of_all: {
        case_list cases;
        for (auto& c : channels_) cases.add(on_send(*c, x, note));
        select(cases);
        break;
      }
    }
    if (how == channel_status::ok) ++*sent_[static_cast<std::size_t>(x)];
    return how != channel_status::closed;
  }

  bool receive(const plan::step& step) {
    channel<int>& a = at(step.first);
    channel<int>& b = at(step.second);
    bool closed = false;
    const auto note = [&](std::optional<int> x) {
      if (x) ++*received_[static_cast<std::size_t>(*x)];
      else closed = true;
    };
    switch (step.how) {
      case plan::step::kind::plain: note(a.recv()); break;
      case plan::step::kind::timed:
        if (auto x = a.recv_for(50us)) note(x);
        break;
      case plan::step::kind::trying:
        if (auto x = a.try_recv()) note(x);
        break;
      case plan::step::kind::select_two: select(on_recv(a, note), on_recv(b, note)); break;
      case plan::step::kind::select_timed: select(on_recv(a, note), on_recv(b, note), on_timeout(50us, [] {})); break;
      case plan::step::kind::poll: select(on_recv(a, note), otherwise([] {})); break;
      case plan::step::kind::random_of_all: {
        case_list cases;
        for (auto& c : channels_) cases.add(on_recv(*c, note));
        select(cases);
        break;
      }
    }
    return !closed;
  }

  void check() {
    std::vector<int> left(sent_.size(), 0);
    for (auto& c : channels_) {
      c->close();
      while (auto x = c->try_recv()) ++left[static_cast<std::size_t>(*x)];
    }
    for (std::size_t x = 0; x < sent_.size(); ++x)
      EXPECT_EQ(*sent_[x], *received_[x] + left[x]) << "number " << x << ", received " << *received_[x];
  }

  const plan plan_;
  std::vector<std::unique_ptr<channel<int>>> channels_;
  std::vector<std::unique_ptr<std::atomic<int>>> sent_, received_;
  std::atomic<int> running_{0};
};

class random_programs : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(on, random_programs, ::testing::Values(1, 2, 8), ::testing::PrintToStringParamName());

TEST_P(random_programs, end_and_deliver_once) {
  for (std::uint64_t seed = 1; seed <= programs && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    trial{seed}.run(GetParam());
  }
}

}  // namespace
}  // namespace ramie
