// What a dump says about programs that are stuck, busy, or that change while it is made.
#include <ramie/inspect/dump.hpp>
#include <ramie/machine/test_options.hpp>
#include <ramie/ramie.hpp>

#include <ramie/base/testing.hpp>

#include "support/heard.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace std::chrono_literals;

/// A private file.
class sink {
 public:
  sink() : file_{std::tmpfile()} {}
  ~sink() { std::fclose(file_); }
  sink(const sink&) = delete;
  sink& operator=(const sink&) = delete;
  [[nodiscard]] int fd() const { return ::fileno(file_); }
  [[nodiscard]] std::string text() const {
    struct stat about{};
    ::fstat(fd(), &about);
    std::string all(static_cast<std::size_t>(about.st_size), '\0');
    EXPECT_EQ(::pread(fd(), all.data(), all.size(), 0), about.st_size);
    return all;
  }

 private:
  std::FILE* file_;
};

std::string dumped(const dump_options& options = {}) {
  sink s;
  EXPECT_TRUE(dump(s.fd(), options));
  return s.text();
}

/// All lines of one fiber or actor: from the line that names it to the next that is not indented.
std::string part_of(const std::string& text, const std::string& name) {
  const std::size_t quoted = text.find("\n" + name);
  if (quoted == std::string::npos) return "";
  std::size_t end = quoted + 1;
  do end = text.find('\n', end) + 1;
  while (end != 0 && end < text.size() && text[end] == ' ');
  return text.substr(quoted + 1, end - quoted - 1);
}

/// Repeats until the dump satisfies the test: the other fibers need time to get there.
template <class Test>
std::string dumped_until(Test test) {
  for (;;) {
    std::string text = dumped();
    if (test(text)) return text;
    this_fiber::sleep_for(1ms);
  }
}

bool has(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

/// Two fibers that wait for each other for ever. Returns when they do.
void deadlock(runtime& rt, std::atomic<int>& line) {
  struct both_mutexes {
    mutex first, second;
    latch both{2};
  };
  auto* m = new both_mutexes;  // never freed
  const auto cross = [m, &line](mutex& mine, mutex& his) {
    const std::lock_guard hold{mine};
    m->both.arrive_and_wait();
    line = __LINE__ + 1;
    his.lock();
  };
  rt.spawn(fiber_options{.name = "left"}, [=] { cross(m->first, m->second); }).detach();
  rt.spawn(fiber_options{.name = "right"}, [=] { cross(m->second, m->first); }).detach();
}

TEST(dump, names_both_culprits_of_a_deadlock_and_their_lines) {
  const auto stuck = [] {
    runtime rt{{.workers = 2, .name = "stuck"}};
    static std::atomic<int> line{0};
    deadlock(rt, line);
    std::string text;
    const auto waits = [&](const char* who) { return has(part_of(text, who), "waits for mutex"); };
    while (!waits("fiber \"left\"") || !waits("fiber \"right\"")) {
      std::this_thread::sleep_for(1ms);
      text = dumped();
    }
    std::fprintf(stderr, "%s\nline %d", text.c_str(), line.load());
    std::_Exit(has(part_of(text, "fiber \"left\""), "dump.test.cpp:" + std::to_string(line)) &&
                       has(part_of(text, "fiber \"right\""), "dump.test.cpp:" + std::to_string(line))
                   ? 0
                   : 1);
  };
  GTEST_FLAG_SET(death_test_style, detail::testing::death_test_style());
  EXPECT_EXIT(stuck(), ::testing::ExitedWithCode(0), "fiber \"left\".*waits for mutex.*\n.*held by fiber \"right\"");
  EXPECT_EXIT(stuck(), ::testing::ExitedWithCode(0), "fiber \"right\".*waits for mutex.*\n.*held by fiber \"left\"");
  EXPECT_EXIT(stuck(), ::testing::ExitedWithCode(0), "#1 .*deadlock");
}

TEST(dump, tells_since_when_somebody_waits_who_joins_him_and_who_runs) {
  runtime rt{{.workers = 2, .stack_size = 4 << 20, .name = "times"}};
  rt.run([] {
    channel<int> never;
    auto waiter = spawn(fiber_options{.name = "patient"}, [&] { never.recv(); });
    auto joiner = spawn(fiber_options{.name = "joiner"}, [&] { waiter.join(); });
    std::smatch found;
    const std::string text = dumped_until([&](const std::string& t) {
      // A second: the coarse clock is a few milliseconds late at most, and never early.
      const std::string part = part_of(t, "fiber \"patient\"");
      return has(part, "joined by fiber \"joiner\"") &&
             std::regex_search(
                 part, std::regex{"waits for channel receive \\([1-9][^)]* (s|min)\\), at .*dump.test.cpp:\\d+"});
    });
    EXPECT_TRUE(has(part_of(text, "fiber \"main\""), "runs on times/")) << text;
    EXPECT_TRUE(has(part_of(text, "fiber \"main\""), "#0 ")) << text;
    EXPECT_TRUE(has(text, "1 for channel receive, at ")) << text;
    never.close();
    joiner.join();
  });
}

struct hello {};
class listener : public actor<listener> {
 public:
  explicit listener(event& go) : go_{go} {}
  void on(hello) { go_.wait(); }

 private:
  event& go_;
};
class sleeper : public actor<sleeper> {
 public:
  void on(hello) {}
};

TEST(dump, tells_of_timers_and_of_blocking_calls) {
  runtime rt{{.workers = 1, .name = "busy"}};
  rt.run([] {
    event over;
    std::atomic<bool> let_go{false};
    auto sleeper = spawn(fiber_options{.name = "sleeper"}, [&] { EXPECT_TRUE(over.wait_for(1h)); });
    auto caller = spawn(fiber_options{.name = "caller"}, [&] { blocking([&] { let_go.wait(false); }); });
    dumped_until([](const std::string& t) {
      return has(t, "a timer due in ") && has(t, "blocking calls: 1 under way") &&
             has(part_of(t, "fiber \"sleeper\""), "waits for event");
    });
    over.set();
    let_go = true;
    let_go.notify_all();
    sleeper.join();
    caller.join();
  });
}

#if !RAMIE_ASAN  // which keeps such memory elsewhere
TEST(dump, tells_how_much_stack_was_used) {
  runtime rt{{.workers = 1, .name = "painted", .paint_stacks = true}};
  rt.run([] { spawn(fiber_options{.name = "hungry"}, [] { this_fiber::yield(); }).join(); });
  const std::string text = dumped();
  EXPECT_TRUE(has(text, "maximum stack use in bytes, of those that have ended")) << text;
  EXPECT_TRUE(has(text, ": \"hungry\", 1 samples")) << text;
}
#endif

TEST(dump, lists_actors_with_their_mailboxes) {
  runtime rt{{.workers = 1, .stack_size = 4 << 20, .name = "actors"}};
  rt.run([] {
    event go;
    auto busy = spawn_actor<listener>(actor_options{.name = "busy"}, go);
    auto idle = spawn_actor<sleeper>(actor_options{.name = "idle"});
    for (int i = 0; i < 8; ++i) busy.tell(hello{});
    const std::string text = dumped_until([](const std::string& t) { return has(t, "for event"); });
    std::smatch match;
    EXPECT_TRUE(std::regex_search(
        text, match, std::regex{"\nactor [^\n]*listener[^\n]*\"busy\"[^\n]*waits for event[^\n]*\n[^\n]*mailbox: 7\n"}))
        << text;
    EXPECT_TRUE(std::regex_search(
        text, match, std::regex{"\nactor [^\n]*sleeper[^\n]*\"idle\"[^\n]*is idle; messages in the mailbox: 0\n"}))
        << text;
    go.set();
    busy.stop();
    idle.stop();
    busy.join();  // it uses `go` until then
    idle.join();
  });
}

TEST(dump, shows_whom_each_actor_is_supervised_by) {
  runtime rt{{.workers = 1, .stack_size = 4 << 20, .name = "family"}};
  rt.run([] {
    event go;
    supervisor top{{.name = "top"}};
    const auto below = top.spawn_supervisor({.name = "below"});
    const auto idle = below.spawn_actor<sleeper>(child_options{.actor = {.name = "idle"}});
    const auto busy =
        below.spawn_actor_by<listener>(child_options{.actor = {.name = "busy"}}, [&go] { return listener{go}; });
    busy.tell(hello{});
    const std::string text = dumped_until([](const std::string& t) { return has(t, "for event"); });
    std::smatch match;
    EXPECT_TRUE(std::regex_search(
        text, match, std::regex{"\nactor [^\n]*\"idle\"[^\n]*; supervised by actor [^\n]*\"below\"[^\n]*\n"}))
        << text;
    EXPECT_TRUE(std::regex_search(
        text, match, std::regex{"\nactor [^\n]*\"below\"[^\n]*; supervised by actor [^\n]*\"top\"[^\n]*\n"}))
        << text;
    EXPECT_TRUE(std::regex_search(text, match,
                                  std::regex{"\nactor [^\n]*\"busy\"[^\n]*waits for event[^\n]*\n[^\n]*mailbox: "
                                             "0\n[^\n]*supervised by actor [^\n]*\"below\"[^\n]*\n"}))
        << text;
    go.set();
  });
}

TEST(dump, is_bounded_in_size) {
  runtime rt{{.workers = 2, .name = "many"}};
  rt.run([] {
    channel<int> never;
    std::vector<join_handle<void>> all;
    const int fibers = RAMIE_TSAN || RAMIE_ASAN ? 200 : 2000;
    for (int i = 0; i < fibers; ++i) all.push_back(spawn([&] { never.recv(); }));
    const std::string wanted = std::to_string(fibers) + " for channel receive";
    for (;;) {
      const std::string text = dumped({.fibers = 10});
      EXPECT_LT(text.size(), 40'000u);
      if (!has(text, wanted)) {
        this_fiber::sleep_for(1ms);
        continue;
      }
      EXPECT_TRUE(has(text, " more fibers")) << text;
      break;
    }
    EXPECT_LE(dumped({.bytes = 3000}).size(), 3000u);
    EXPECT_GE(dumped({.bytes = 3000}).size(), 2900u);
    never.close();
  });
}

TEST(dump, gives_up_on_a_reader_who_does_not_read) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::fcntl(ends[1], F_SETPIPE_SZ, 4096);
  runtime rt{{.workers = 1, .name = "pipe"}};
  rt.run([&] {
    channel<int> never;
    std::vector<join_handle<void>> all;
    for (int i = 0; i < 200; ++i) all.push_back(spawn([&] { never.recv(); }));
    this_fiber::yield();
    EXPECT_TRUE(dump(ends[1]));  // returns
    never.close();
  });
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(dump, one_at_a_time) {
  // From eight threads at once: each writes either a whole dump or nothing.
  std::atomic<int> written{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        sink s;
        const bool did = dump(s.fd());
        const std::string text = s.text();
        EXPECT_EQ(did, has(text, "ramie: end\n"));
        EXPECT_EQ(did, !text.empty());
        written += did;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_GE(written.load(), 1);  // how many depends on how they meet
  sink alone;
  EXPECT_TRUE(dump(alone.fd()));
}

/// Fibers that do a bit of everything, while others dump them.
void bustle(std::atomic<bool>& over) {
  channel<int> numbers{4};
  mutex m;
  scope all;
  for (int i = 0; i < 4; ++i)
    all.spawn([&] {
      while (auto n = numbers.recv()) {
        const std::lock_guard guard{m};
        this_fiber::yield();
      }
    });
  all.spawn([&] {
    while (!over) {
      auto child = spawn(fiber_options{.name = "child"}, [&] { static_cast<void>(numbers.send(1)); });
      spawn([&] { this_fiber::yield(); }).detach();
      auto short_lived = spawn_actor<sleeper>(actor_options{.name = "short"});
      short_lived.tell(hello{});
      auto [a, b] = fork_join([&] { return numbers.try_send(2) == channel_status::ok; }, [] { return 1; });
      static_cast<void>(a);
      static_cast<void>(b);
      child.join();
      short_lived.stop();
    }
    numbers.close();
  });
  all.join();
}

TEST(dump, may_be_made_at_any_moment) {
  for (const bool migrate : {false, true}) {
    const detail::with_test_options migrating{{.migrate_always = migrate}};
    runtime rt{{.workers = 4, .name = "bustle"}};
    std::atomic<bool> over{false};
    auto work = rt.spawn([&] { bustle(over); });
    const int rounds = RAMIE_TSAN || RAMIE_ASAN ? 50 : 300;
    for (int i = 0; i < rounds; ++i) {
      const std::string text = dumped();
      EXPECT_TRUE(has(text, "runtime \"bustle\"")) << text;
    }
    over = true;
    work.join();
  }
}

TEST(dump, while_runtimes_come_and_go) {
  std::atomic<bool> over{false};
  std::thread asker{[&] {
    while (!over) dumped();
  }};
  for (int i = 0; i < (RAMIE_TSAN || RAMIE_ASAN ? 20 : 100); ++i) {
    runtime rt{{.workers = 2, .name = "brief"}};
    rt.run([] { spawn([] { this_fiber::yield(); }).join(); });
  }
  over = true;
  asker.join();
}

/// Standard error, for as long as this lives.
class redirected_stderr {
 public:
  redirected_stderr() : before_{::dup(STDERR_FILENO)} { ::dup2(file_.fd(), STDERR_FILENO); }
  ~redirected_stderr() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }
  [[nodiscard]] std::string text() const { return file_.text(); }

 private:
  sink file_;
  int before_;
};

RAMIE_NOINLINE void spin_in_a_loop(const std::atomic<bool>& over) {
  while (!over.load(std::memory_order_relaxed)) asm volatile("");
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST(dump_on_signal, shows_what_a_busy_worker_is_doing) {
  if (detail::testing::emulated()) GTEST_SKIP() << "the emulator's signals interrupt at other places";
  dump_on_signal(SIGUSR2);
  std::string text;
  {
    redirected_stderr err;
    runtime rt{{.workers = 2, .name = "signal"}};
    std::atomic<bool> over{false};
    auto hog = rt.spawn(fiber_options{.name = "hog"}, [&] { spin_in_a_loop(over); });
    while (!has(text, "spin_in_a_loop")) {
      ::kill(::getpid(), SIGUSR2);
      std::this_thread::sleep_for(5ms);
      text = err.text();
    }
    over = true;
    hog.join();
  }
  EXPECT_TRUE(std::regex_search(text, std::regex{"fiber \"hog\" 0x[0-9a-f]+: runs on signal/"})) << text;
}

TEST(dump_on_signal, interrupts_anybody_without_harm) {
  if (detail::testing::emulated()) GTEST_SKIP() << "the emulator's signals interrupt at other places";
  dump_on_signal(SIGUSR2, {.fibers = 20});
  redirected_stderr err;
  const std::size_t rounds = RAMIE_TSAN || RAMIE_ASAN ? 20 : 100;
  {
    runtime rt{{.workers = 4, .name = "storm"}};
    std::atomic<bool> over{false};
    auto work = rt.spawn([&] { bustle(over); });
    while (count(err.text(), "ramie: end") < rounds) {  // those that come during a dump are dropped
      ::kill(::getpid(), SIGUSR2);                      // to any thread
      std::this_thread::sleep_for(1ms);
    }
    over = true;
    work.join();
  }
  EXPECT_GE(count(err.text(), "ramie: end"), rounds);
  ::signal(SIGUSR2, SIG_IGN);
}

void listen_for_a_signal() {
  detail::testing::heard all;
  runtime rt{{.workers = 2, .name = "signal"}};
  rt.run([&] {
    channel<int> never;
    auto patient = spawn(fiber_options{.name = "patient"}, [&] { never.recv(); });
    dumped_until(
        [](const std::string& t) { return has(part_of(t, "fiber \"patient\""), "waits for channel receive"); });
    // Until the monitor has written one, with readable names: those that come during a dump are dropped.
    std::atomic<bool> enough{false};
    std::thread sender{[&] {
      for (; !enough; std::this_thread::sleep_for(10ms)) ::kill(::getpid(), SIGUSR1);
    }};
    blocking([&] {
      while (!all.until("ramie: end", "listen_for_a_signal()::")) {
      }
    });
    enough = true;
    sender.join();
    never.close();
    patient.join();
  });
  std::exit(0);
}

TEST(dump_on_signal, needs_no_code_and_demangles_names) {
  GTEST_FLAG_SET(death_test_style, detail::testing::death_test_style());
  for (const char* name : {"SIGUSR1", "USR1", "10"})
    EXPECT_EXIT(
        {
          ::setenv("RAMIE_DUMP_ON", name, 1);
          listen_for_a_signal();
        },
        ::testing::ExitedWithCode(0),
        "fiber \"patient\" 0x[0-9a-f]+: waits for channel receive[^\n]*\n(.*\n)*    #[0-9]+ "
        ".*listen_for_a_signal\\(\\)::");
  EXPECT_EXIT(
      {
        ::setenv("RAMIE_DUMP_ON", "SIGNONSENSE", 1);
        try {
          runtime rt;
        } catch (const invalid_argument& e) {
          std::fputs(e.what(), stderr);
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "RAMIE_DUMP_ON is \"SIGNONSENSE\"");
}

TEST(dump_on_signal, comes_without_a_runtime_too) {
  GTEST_FLAG_SET(death_test_style, detail::testing::death_test_style());
  EXPECT_EXIT(
      {
        dump_on_signal(SIGUSR1);
        ::raise(SIGUSR1);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "no running or waiting fibers(.|\n)*ramie: end");
}

TEST(dump_on_signal, refuses_what_cannot_be_caught) {
  EXPECT_THROW(dump_on_signal(SIGKILL), invalid_argument);
  EXPECT_THROW(dump_on_signal(-1), invalid_argument);
}

}  // namespace
}  // namespace ramie
