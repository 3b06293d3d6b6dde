// Message traces: who tells whom what.
// A program of its own: what it expects has names of types.
#include <ramie/patterns/message_trace.hpp>

#include <ramie/actor/testing.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/supervise/supervisor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;
using fiber_tests::captured_stderr;
using fiber_tests::contains;
using fiber_tests::occurrences;

struct deposit {
  int amount;
};
std::ostream& operator<<(std::ostream& out, const deposit& d) { return out << "of " << d.amount; }
struct balance {};
struct tick {};

class account : public actor<account> {
 public:
  void on(deposit d) { sum_ += d.amount; }
  int on(balance) { return sum_; }
  void on(tick) { ++ticks_; }

 private:
  int sum_ = 0;
  int ticks_ = 0;
};

class teller : public actor<teller> {
 public:
  explicit teller(actor_ref<account> a) : account_{std::move(a)} {}
  void on(int amount) { account_.tell(deposit{amount}); }
  int on(balance) { return 0; }

 private:
  actor_ref<account> account_;
};

/// What one trace showed, by time, without times and with short names of types.
class shown {
 public:
  [[nodiscard]] message_trace::function function() {
    return [this](const traced_message& m) {
      std::string line = to_string(m);
      line.erase(0, line.find("  ") + 2);
      for (const std::string part : {"ramie::", "{anonymous}::", "(anonymous namespace)::"})
        for (std::size_t at = line.find(part); at != std::string::npos; at = line.find(part))
          line.erase(at, part.size());
      const std::lock_guard guard{lock_};
      lines_.emplace(m.at, std::move(line));
    };
  }
  [[nodiscard]] std::vector<std::string> lines() const {
    const std::lock_guard guard{lock_};
    std::vector<std::string> by_time;
    by_time.reserve(lines_.size());
    for (const auto& [at, line] : lines_) by_time.push_back(line);
    return by_time;
  }
  [[nodiscard]] std::size_t count() const { return lines().size(); }

 private:
  mutable std::mutex lock_;
  std::multimap<std::chrono::nanoseconds, std::string> lines_;
};

using texts = std::vector<std::string>;

class message_traces : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, message_traces, few_and_many());

TEST_P(message_traces, tell_who_told_whom_what) {
  shown all, later;
  runtime rt{options()};
  std::optional<actor_ref<account>> a;
  rt.run([&] {
    a = spawn_actor<account>(actor_options{.name = "alice"});
    auto t = spawn_actor<teller>(*a);
    EXPECT_EQ(a->ask(balance{}), 0);  // not shown: before
    const message_trace trace{{}, all.function()};
    t.tell(5);
    stop_and_join(t);
    EXPECT_EQ(a->ask(balance{}), 5);
  });
  {
    const message_trace trace{rt, {}, later.function()};
    a->tell(deposit{7});
  }
  a->tell(deposit{8});
  EXPECT_EQ(all.lines(), (texts{
                             "fiber \"main\" -> (teller): int 5",
                             "(teller) -> \"alice\" (account): deposit of 5",
                             "fiber \"main\" -> \"alice\" (account): balance",
                         }));
  EXPECT_EQ(later.lines(), texts{"a thread -> \"alice\" (account): deposit of 7"});
  EXPECT_THROW(message_trace{}, usage_error);
}

TEST_P(message_traces, miss_nothing_whoever_owned_the_mailbox_before) {
  in_runtime([] {
    auto old = spawn_actor<account>();
    for (int i = 0; i < 1000; ++i) old.tell(deposit{1});
    EXPECT_EQ(old.ask(balance{}), 1000);
    shown all;
    const int n = scaled(2000);
    {
      const message_trace trace{{}, all.function()};
      auto fresh = spawn_actor<account>();
      fork_join(
          [&] {
            for (int i = 0; i < n; ++i) old.tell(deposit{1});
          },
          [&] {
            for (int i = 0; i < n; ++i) fresh.tell(deposit{1});
          },
          [&] {
            for (int i = 0; i < n; ++i) (i % 2 == 0 ? old : fresh).tell(deposit{1});
          });
      EXPECT_EQ(old.ask(balance{}) + fresh.ask(balance{}), 1000 + 3 * n);
      EXPECT_EQ(all.count(), static_cast<std::size_t>(3 * n + 2));
      stop_and_join(fresh);
    }
    old.tell(deposit{1});
    EXPECT_EQ(old.ask(balance{}), 1000 + n + (n + 1) / 2 + 1);
    EXPECT_EQ(all.count(), static_cast<std::size_t>(3 * n + 2));
  });
}

TEST_P(message_traces, are_filtered_by_actor_and_type) {
  in_runtime([] {
    auto a = spawn_actor<account>(actor_options{.name = "a"});
    auto b = spawn_actor<account>(actor_options{.name = "b"});
    auto t = spawn_actor<teller>(b);
    shown of_t, deposits, both, none;
    const message_trace first{{.actors = {t}}, of_t.function()};
    const message_trace second{{.types = {&type_of<deposit>()}}, deposits.function()};
    const message_trace third{{.actors = {a, t}, .types = {&type_of<deposit>(), &type_of<tick>()}}, both.function()};
    const message_trace fourth{{.types = {&type_of<shown>()}}, none.function()};
    a.tell(deposit{1});
    t.tell(2);
    stop_and_join(t);
    a.tell(tick{});
    b.tell(tick{});
    EXPECT_EQ(of_t.lines(), (texts{"fiber \"main\" -> (teller): int 2", "(teller) -> \"b\" (account): deposit of 2"}));
    EXPECT_EQ(deposits.lines(),
              (texts{"fiber \"main\" -> \"a\" (account): deposit of 1", "(teller) -> \"b\" (account): deposit of 2"}));
    EXPECT_EQ(both.lines(),
              (texts{"fiber \"main\" -> \"a\" (account): deposit of 1", "(teller) -> \"b\" (account): deposit of 2",
                     "fiber \"main\" -> \"a\" (account): tick"}));
    EXPECT_EQ(none.count(), 0u);
  });
}

TEST_P(message_traces, are_of_one_runtime) {
  runtime rt{options()};
  runtime other{options()};
  shown of_rt;
  const message_trace trace{rt, {}, of_rt.function()};
  const auto program = [](const char* name) {
    auto a = spawn_actor<account>(actor_options{.name = name});
    a.tell(deposit{1});
    stop_and_join(a);
    return a;
  };
  rt.run(program, "here");
  actor_ref<account> there = other.run(program, "there");
  EXPECT_EQ(of_rt.lines(), texts{"fiber \"main\" -> \"here\" (account): deposit of 1"});
  other.shutdown();
  there.tell(deposit{2});
  EXPECT_EQ(of_rt.count(), 1u);
}

TEST_P(message_traces, say_what_became_of_the_message) {
  in_runtime([] {
    std::atomic<bool> go{false};
    class slow : public actor<slow> {
     public:
      explicit slow(std::atomic<bool>& go) : go_{go} {}
      void on(int) {
        await([this] { return go_.load(); });
      }

     private:
      std::atomic<bool>& go_;
    };
    auto bounded = spawn_actor<slow>(actor_options{.mailbox_capacity = 1, .overflow = overflow::fail}, go);
    shown all;
    const message_trace trace{{.types = {&type_of<int>()}}, all.function()};
    while (bounded.tell(1) == tell_status::ok) {
    }
    go = true;
    stop_and_join(bounded);
    bounded.tell(2);
    const texts lines = all.lines();
    ASSERT_GE(lines.size(), 3u);
    EXPECT_TRUE(lines.front().ends_with(": int 1")) << lines.front();
    EXPECT_TRUE(lines[lines.size() - 2].ends_with(": int 1  (full)")) << lines[lines.size() - 2];
    EXPECT_TRUE(lines.back().ends_with(": int 2  (has ended)")) << lines.back();
  });
}

TEST_P(message_traces, show_what_timers_send_when_it_is_handled) {
  in_runtime([] {
    auto a = spawn_actor<account>(actor_options{.name = "a"});
    shown all;
    const message_trace trace{{.types = {&type_of<tick>(), &type_of<deposit>()}}, all.function()};
    static_cast<void>(send_after(1us, a, tick{}));
    await([&] { return all.count() == 1; });
    EXPECT_EQ(all.lines(), texts{"a timer -> \"a\" (account): tick"});
    stop_and_join(a);
  });
}

TEST_P(message_traces, show_requests_to_fiber_actors) {
  in_runtime([] {
    auto doubler = spawn_actor<request<deposit, int>>([](mailbox<request<deposit, int>>& mail) {
      while (auto r = mail.receive()) std::get<0>(*r).reply.set_value(2 * std::get<0>(*r).body.amount);
    });
    shown all;
    const message_trace trace{{}, all.function()};
    EXPECT_EQ(doubler.ask(deposit{4}), 8);
    ASSERT_EQ(all.count(), 1u);
    EXPECT_TRUE(all.lines().front().ends_with("of 4")) << all.lines().front();
    stop_and_join(doubler);
  });
}

TEST_P(message_traces, go_to_standard_error_and_into_a_recording) {
  runtime rt{options()};
  captured_stderr err;
  rt.record();
  rt.run([] {
    auto a = spawn_actor<account>(actor_options{.name = "alice"});
    const message_trace trace;
    a.tell(deposit{3});
    stop_and_join(a);
  });
  rt.stop_recording();
  const std::string text = err.text();
  EXPECT_TRUE(contains(text, " ms  fiber \"main\" -> \"alice\" (")) << text;
  EXPECT_TRUE(contains(text, "of 3\n")) << text;
  const std::string recorded = rt.trace();
  EXPECT_EQ(occurrences(recorded, "\"name\":\"tells "), 1);
  EXPECT_TRUE(contains(recorded, "\"args\":{\"to\":\"alice\"}")) << recorded;
}

/// When messages of this type were told, by the recording, in order.
std::vector<double> recorded_times(const std::string& recording, std::string_view type) {
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(occurrences(recording, "\"name\":\"tells ")));
  for (std::size_t at = 0; (at = recording.find("\"name\":\"tells ", at)) != std::string::npos; ++at) {
    const std::size_t time = recording.find("\"ts\":", at);
    if (std::string_view{recording}.substr(at, time - at).find(type) == std::string_view::npos) continue;
    times.push_back(std::stod(recording.substr(time + 5, 32)));
  }
  std::sort(times.begin(), times.end());
  return times;
}

// Shown they may be in any order: the receiver runs before the sender has come to show what it sent.
TEST_P(message_traces, tell_by_their_times_what_came_first) {
  constexpr std::size_t n = 300;
  std::mutex lock;
  std::vector<std::chrono::nanoseconds> causes;
  std::vector<std::chrono::nanoseconds> effects;
  runtime rt{options()};
  rt.record();
  rt.run([&] {
    auto a = spawn_actor<account>();
    auto t = spawn_actor<teller>(a);
    const message_trace trace{{.types = {&type_of<int>(), &type_of<deposit>()}}, [&](const traced_message& m) {
                                const std::lock_guard guard{lock};
                                (*m.type == type_of<int>() ? causes : effects).push_back(m.at);
                              }};
    for (std::size_t i = 0; i < n; ++i) {
      t.tell(1);
      t.ask(balance{});  // so each time the teller is idle, and begins at once
    }
    stop_and_join(t);
    stop_and_join(a);
  });
  rt.stop_recording();
  ASSERT_EQ(causes.size(), n);
  ASSERT_EQ(effects.size(), n);
  for (std::size_t i = 0; i < n; ++i) EXPECT_LE(causes[i], effects[i]) << i;
  const std::string recording = rt.trace();
  const std::vector<double> told = recorded_times(recording, "tells int\"");
  const std::vector<double> passed_on = recorded_times(recording, "deposit\"");
  ASSERT_EQ(told.size(), n);
  ASSERT_EQ(passed_on.size(), n);
  for (std::size_t i = 0; i < n; ++i) EXPECT_LE(told[i], passed_on[i]) << i;
}

TEST_P(message_traces, come_and_go_while_messages_are_sent) {
  in_runtime([] {
    auto a = spawn_actor<account>();
    std::atomic<bool> done{false};
    const int rounds = scaled(500);
    int sent = 0;
    std::atomic<int> seen{0};
    fork_join(
        [&] {
          for (; !done; ++sent) {
            a.tell(deposit{1});
            if (sent % 16 == 0) this_fiber::yield();
            if (sent % 1024 == 0) {
              EXPECT_EQ(a.ask(balance{}), sent + 1);
            }
          }
        },
        [&] {
          for (int i = 0; i < rounds; ++i) {
            const message_trace trace{{.actors = {a}}, [&seen](const traced_message&) { ++seen; }};
            this_fiber::yield();
          }
          done = true;
        });
    EXPECT_EQ(a.ask(balance{}), sent);
    EXPECT_LE(seen, sent + sent / 1024 + 2);
    stop_and_join(a);
  });
}

}  // namespace
}  // namespace ramie
