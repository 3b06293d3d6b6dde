#include <ramie/base/testing.hpp>
#include <ramie/net/testing.hpp>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

/// Is there neither a process nor one that nobody has waited for?
bool is_gone(pid_t id) { return ::kill(id, 0) != 0 && errno == ESRCH; }

TEST(net_child, ends_with_a_code_or_by_a_signal) {
  with_workers([] {
    EXPECT_EQ(child({"true"}).wait(), (child_status{0, 0}));
    EXPECT_TRUE(child({"true"}).wait().success());
    const child_status seven = child({"sh", "-c", "exit 7"}).wait();
    EXPECT_EQ(seven, (child_status{7, 0}));
    EXPECT_EQ(seven.to_string(), "exited with 7");
    const child_status killed = child({"sh", "-c", "kill -KILL $$"}).wait();
    EXPECT_EQ(killed, (child_status{0, SIGKILL}));
    EXPECT_EQ(killed.to_string(), "killed by signal 9 (Killed)");
    EXPECT_FALSE(killed.success());
  });
}

TEST(net_child, may_be_waited_for_again) {
  with_workers([] {
    child c{{"sh", "-c", "exit 3"}};
    EXPECT_EQ(c.wait().code, 3);
    EXPECT_EQ(c.wait().code, 3);
    c.kill();  // does nothing
  });
}

TEST(net_child, reads_and_writes_through_pipes) {
  with_workers([] {
    child c{{"cat"}, {.in = child_io::pipe, .out = child_io::pipe}};
    c.in().write_all(bytes_of("one\n"));
    std::array<std::byte, 4> answer;
    ASSERT_TRUE(c.out().read_exactly(answer));
    EXPECT_EQ(text_of(answer), "one\n");
    c.in().write_all(bytes_of("two"));
    c.in().close();
    EXPECT_EQ(read_all(c.out()), "two");
    EXPECT_TRUE(c.wait().success());
    EXPECT_FALSE(c.err().is_open());
  });
}

TEST(net_child, gives_back_all_that_it_was_given) {
  std::string input;
  for (std::uint64_t i = 0; i < 300'000; ++i) input.push_back(static_cast<char>(byte_at(i)));
  with_workers([&] {
    const child_output r = run_child({"cat"}, input);
    EXPECT_EQ(r.out, input);
    EXPECT_EQ(r.err, "");
    EXPECT_TRUE(r.status.success());
  });
}

TEST(net_child, has_two_outputs) {
  with_workers([] {
    const child_output apart = run_child({"sh", "-c", "echo good; echo bad >&2; exit 2"});
    EXPECT_EQ(apart.out, "good\n");
    EXPECT_EQ(apart.err, "bad\n");
    EXPECT_EQ(apart.status.code, 2);
    const child_output joined = run_child({"sh", "-c", "echo good; echo bad >&2"}, {}, {.err = child_io::to_out});
    EXPECT_EQ(joined.out, "good\nbad\n");
    EXPECT_EQ(joined.err, "");
    const child_output quiet =
        run_child({"sh", "-c", "cat; echo good; echo bad >&2"}, {}, {.in = child_io::null, .err = child_io::null});
    EXPECT_EQ(quiet.out, "good\n");
  });
}

TEST(net_child, need_not_read_its_input) {
  const std::string much(1 << 20, 'x');
  with_workers([&] { EXPECT_TRUE(run_child({"true"}, much).status.success()); });
}

TEST(net_child, runs_in_a_directory_and_with_an_environment) {
  const std::string folder = std::filesystem::canonical(std::filesystem::temp_directory_path());
  with_workers([&] {
    EXPECT_EQ(run_child({"pwd"}, {}, {.directory = folder}).out, folder + "\n");
    EXPECT_EQ(run_child({"/usr/bin/env"}, {}, {.environment = std::vector<std::string>{"A=1", "B=two words"}}).out,
              "A=1\nB=two words\n");
    ::setenv("CHILD_OF_TEST", "ours", 1);
    EXPECT_EQ(run_child({"sh", "-c", "echo $CHILD_OF_TEST"}).out, "ours\n");
    ::unsetenv("CHILD_OF_TEST");
  });
}

TEST(net_child, that_cannot_be_started_says_why) {
  with_workers([] {
    try {
      child c{{"no-such-program-anywhere"}};
      FAIL();
    } catch (const io_error& e) {
      EXPECT_EQ(e.code(), std::errc::no_such_file_or_directory);
      EXPECT_NE(std::string{e.what()}.find("run \"no-such-program-anywhere\""), std::string::npos) << e.what();
    }
    EXPECT_EQ(code_of([] { child c{{"/"}}; }), std::errc::permission_denied);
    try {
      child c{{"true"}, {.directory = "/no/such/folder"}};
      FAIL();
    } catch (const io_error& e) {
      EXPECT_NE(std::string{e.what()}.find("in \"/no/such/folder\""), std::string::npos) << e.what();
    }
    EXPECT_THROW(child{std::vector<std::string>{}}, invalid_argument);
    EXPECT_THROW((child{{"true"}, {.out = child_io::to_out}}), invalid_argument);
    EXPECT_THROW(child{}.wait(), usage_error);
  });
}

TEST(net_child, is_killed_with_its_owner) {
  with_workers([] {
    pid_t id = 0;
    {
      const child c{{"sleep", "1000"}};
      id = c.id();
      EXPECT_FALSE(is_gone(id));
    }
    EXPECT_TRUE(is_gone(id));
  });
}

TEST(net_child, is_killed_when_its_owner_is_cancelled) {
  with_workers([] {
    channel<pid_t> started{1};
    auto owner = spawn([&] {
      child c{{"sleep", "1000"}};
      static_cast<void>(started.send(c.id()));
      c.wait();
    });
    const pid_t id = *started.recv();
    owner.request_stop();
    EXPECT_THROW(owner.join(), cancelled);
    EXPECT_TRUE(is_gone(id));
  });
}

TEST(net_child, is_killed_when_its_time_is_over) {
  with_workers([] {
    EXPECT_THROW(with_timeout(20ms, [] { run_child({"sleep", "1000"}); }), timeout_error);
    // One that ignores all that it can ignore.
    EXPECT_THROW(with_timeout(50ms, [] { run_child({"sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done"}); }),
                 timeout_error);
  });
}

TEST(net_child, is_sent_signals_while_a_fiber_waits_for_it) {
  with_workers([] {
    child c{{"sleep", "1000"}};
    auto waiter = spawn([&] { return c.wait(); });
    this_fiber::yield();
    c.kill();
    EXPECT_EQ(waiter.join().signal, SIGTERM);
    EXPECT_EQ(code_of([] {
                child d{{"sleep", "1000"}};
                d.kill(9999);
              }),
              std::errc::invalid_argument);
  });
}

TEST(net_child, has_only_the_standard_descriptors) {
  // One that is open for good, without close-on-exec, as a careless library leaves it.
  const int careless = ::open("/dev/null", O_RDONLY);
  ASSERT_GE(careless, 0);
  with_workers([] {
    EXPECT_EQ(run_child({"ls", "/proc/self/fd"}).out, "0\n1\n2\n3\n");  // the last is the folder itself
  });
  ::close(careless);
}

TEST(net_child, has_default_signals) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  with_workers([] {
    // SigIgn of a process that inherited it would have bit 12 set.
    const std::string ignored = run_child({"grep", "SigIgn", "/proc/self/status"}).out;
    const std::string blocked = run_child({"grep", "SigBlk", "/proc/self/status"}).out;
    EXPECT_EQ(std::stoull(ignored.substr(ignored.find('\t') + 1), nullptr, 16) & 0x1000u, 0u) << ignored;
    EXPECT_EQ(std::stoull(blocked.substr(blocked.find('\t') + 1), nullptr, 16), 0u) << blocked;
  });
  std::signal(SIGPIPE, before);
}

TEST(net_child, with_too_much_output_is_killed) {
  with_workers([] { EXPECT_EQ(code_of([] { run_child({"yes"}, {}, {.output_most = 100'000}); }), io_errc::too_long); });
}

TEST(net_child, is_one_of_a_hundred_eight_at_a_time) {
  with_workers([] {
    std::array<int, 100> codes{};
    limited_scope s{8};
    for (int i = 0; i < 100; ++i)
      s.spawn([&, i] {
        codes[static_cast<std::size_t>(i)] = child({"sh", "-c", "exit " + std::to_string(i)}).wait().code;
      });
    s.join();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(codes[static_cast<std::size_t>(i)], i);
  });
}

TEST(net_child, moves) {
  with_workers([] {
    child a{{"sh", "-c", "exit 4"}};
    child b = std::move(a);
    a = child({"sleep", "1000"});
    const pid_t second = a.id();
    EXPECT_EQ(b.wait().code, 4);
    a = std::move(b);
    EXPECT_TRUE(is_gone(second));
    EXPECT_EQ(a.wait().code, 4);
  });
}

TEST(net_child, is_given_descriptors_by_their_places) {
  with_workers([] {
    auto [from_a, to_a] = make_pipe();
    auto [from_b, to_b] = make_pipe();
    const auto run = [](const std::vector<int>& descriptors) {
      return run_child({"sh", "-c", "echo one >&3; echo two >&4; [ ! -e /proc/self/fd/5 ]"}, {},
                       {.err = child_io::null, .descriptors = descriptors});
    };
    // Whatever numbers they have here; also the same twice.
    EXPECT_TRUE(run({to_a.native_handle(), to_b.native_handle()}).status.success());
    EXPECT_TRUE(run({to_b.native_handle(), to_a.native_handle()}).status.success());
    EXPECT_TRUE(run({to_a.native_handle(), to_a.native_handle()}).status.success());
    to_a.close();
    to_b.close();
    EXPECT_EQ(read_all(from_a), "one\ntwo\none\ntwo\n");
    EXPECT_EQ(read_all(from_b), "two\none\n");
    EXPECT_EQ(code_of([&] { run({-1}); }), std::errc::bad_file_descriptor);
  });
}

TEST(net_child, is_looked_at_without_waiting) {
  with_workers([] {
    child c{{"sh", "-c", "read word; exit 3"}, {.in = child_io::pipe}};
    EXPECT_EQ(c.try_wait(), std::nullopt);
    c.in().close();
    while (!c.try_wait()) this_fiber::sleep_for(1ms);
    EXPECT_EQ(c.try_wait(), (child_status{3, 0}));
    EXPECT_EQ(c.wait(), (child_status{3, 0}));
    EXPECT_THROW(static_cast<void>(child{}.try_wait()), usage_error);
  });
}

TEST(net_child, that_is_released_goes_on) {
  with_workers([] {
    auto [from, to] = make_pipe();
    child c{{"sh", "-c", "read word; echo still here >&3"},
            {.in = child_io::pipe, .descriptors = {to.native_handle()}}};
    to.close();
    const pid_t id = c.release();
    EXPECT_EQ(c.id(), 0);
    EXPECT_THROW(c.wait(), usage_error);
    c = {};
    EXPECT_EQ(read_all(from), "still here\n");  // its input has ended
    EXPECT_EQ(::waitpid(id, nullptr, 0), id);
  });
}

TEST(net_child, is_asked_to_end_then_killed) {
  with_workers([] {
    const auto started = [](const char* what) {
      child c{{"sh", "-c", what}, {.out = child_io::pipe}};
      std::array<std::byte, 10> some;
      EXPECT_NE(c.out().read_some(some), 0u);  // it is ready for the signal
      return c;
    };
    EXPECT_EQ(started("trap 'exit 5' TERM; echo; while :; do sleep 0.01; done").terminate(10min), (child_status{5, 0}));
    EXPECT_EQ(started("trap '' TERM; echo; while :; do sleep 0.01; done").terminate(20ms), (child_status{0, SIGKILL}));
    child ended = started("echo; exit 4");
    EXPECT_EQ(ended.wait(), (child_status{4, 0}));
    EXPECT_EQ(ended.terminate(0ms), (child_status{4, 0}));
  });
}

/// A pipe that ends when no process has its other end any more, which children get as 3. (A process that is only dead
/// may keep its number: whoever is its parent then may not ask for it.)
struct lifeline {
  std::pair<pipe_reader, pipe_writer> ends = make_pipe();
  [[nodiscard]] child_options options(child_options o = {}) const {
    o.own_group = true;
    o.descriptors = {ends.second.native_handle()};
    return o;
  }
  /// That it begins: what the first process writes there.
  void await_first() {
    std::array<std::byte, 1> one;
    ASSERT_TRUE(ends.first.read_exactly(one));
  }
  /// Hangs if one lives on.
  void await_last() {
    ends.second.close();
    EXPECT_EQ(read_all(ends.first), "");
  }
};

TEST(net_child, ends_with_its_group) {
  const auto run = [] {
    {
      lifeline all;
      {
        const child c{{"sh", "-c", "sleep 1000 & sh -c 'sleep 1000 & echo -n x >&3; wait' & wait"}, all.options()};
        all.await_first();
      }
      all.await_last();
    }
    {
      lifeline all;
      child c{{"sh", "-c", "sleep 1000 & echo -n x >&3; exit 4"}, all.options()};
      all.await_first();
      EXPECT_EQ(c.wait(), (child_status{4, 0}));
      all.await_last();
    }
    {
      lifeline all;
      const child_output done =
          run_child({"sh", "-c", "(trap '' TERM; sleep 1000) & echo out"}, {}, all.options());  // it has our output
      EXPECT_EQ(done.out, "out\n");
      all.await_last();
    }
  };
  with_workers(run);
  run();  // on a plain thread
}

TEST(net_child, is_cancelled_with_its_group) {
  with_workers([] {
    lifeline all;
    auto runs = spawn([&] { run_child({"sh", "-c", "sleep 1000 & echo -n x >&3; wait"}, {}, all.options()); });
    all.await_first();
    runs.request_stop();
    EXPECT_THROW(runs.join(), cancelled);
    all.await_last();
  });
}

TEST(net_child, is_asked_to_end_with_its_group_then_killed) {
  with_workers([] {
    for (const char* others :
         {"sleep 1000", "trap '' TERM; sleep 1000", "trap '' TERM; while :; do sleep 0.01; done"}) {
      lifeline all;
      child c{{"sh", "-c", "sh -c \"" + std::string{others} + "\" & trap 'exit 5' TERM; echo -n x >&3; wait"},
              all.options()};
      all.await_first();
      EXPECT_EQ(c.terminate(10min), (child_status{5, 0}));
      all.await_last();
      c.kill(SIGKILL);  // does nothing
    }
  });
}

/// Processes that it has started live on, and have its output.
TEST(net_child, is_waited_for_no_longer_than_its_output_may_take) {
  const auto run = [] {
    const child_output all =
        run_child({"sh", "-c", "sleep 1000 & echo $!; exit 7"}, {}, {.output_wait = std::chrono::milliseconds{20}});
    EXPECT_EQ(all.status.code, 7);
    EXPECT_EQ(::kill(static_cast<pid_t>(std::stol("0" + all.out)), SIGKILL), 0) << all.out;  // it lives still
    EXPECT_EQ(code_of([] {
                run_child({"sh", "-c", "yes & exit 0"}, {},
                          {.output_most = 100'000, .output_wait = std::chrono::milliseconds{20}});
              }),
              io_errc::too_long);
  };
  with_workers(run);
  run();  // on a plain thread
}

/// The kernel takes the thread that started it for its parent.
TEST(net_child, lives_longer_than_the_thread_that_asked_for_it) {
  child c;
  std::error_code missing;
  std::thread{[&] {
    missing = code_of([&c] {
      c = child({"setpriv", "--pdeathsig", "KILL", "sh", "-c", "echo ready; read word; exit 3"},
                {.in = child_io::pipe, .out = child_io::pipe});
      std::array<std::byte, 10> some;
      c.out().read_some(some);  // it has asked
    });
  }}.join();
  if (missing == std::errc::no_such_file_or_directory) GTEST_SKIP() << "setpriv is not there";
  ASSERT_EQ(missing, std::error_code{});
  c.in().close();
  EXPECT_EQ(c.wait(), (child_status{3, 0}));
}

#if RAMIE_CAN_REFUSE_CALLS
void run_without_pidfds(int code) {
  refuse_calls(SYS_pidfd_open, code);
  with_workers([] {
    EXPECT_EQ(run_child({"tr", "a-z", "A-Z"}, "loud").out, "LOUD");
    child slow{{"sleep", "1000"}};
    auto waiting = spawn([&] { return slow.wait(); });
    this_fiber::sleep_for(2ms);
    slow.kill();
    EXPECT_EQ(waiting.join().signal, SIGTERM);
    child moved = std::move(slow);
    slow.kill();  // nobody; certainly not this process
    pid_t id = 0;
    {
      const child left{{"sleep", "1000"}};
      id = left.id();
    }
    EXPECT_TRUE(is_gone(id));
  });
  ::_exit(::testing::Test::HasFailure() ? 8 : 7);
}
TEST(net_child, is_looked_for_where_there_are_no_pidfds) {
  if (ramie::detail::testing::emulated()) GTEST_SKIP() << "an emulator makes the calls itself";
  GTEST_FLAG_SET(death_test_style, ramie::detail::testing::death_test_style());
  for (const int code : {EPERM, ENOSYS}) EXPECT_EXIT(run_without_pidfds(code), ::testing::ExitedWithCode(7), "");
}
#endif

TEST(net_child, of_a_plain_thread_is_given_input_while_its_output_is_read) {
  const std::string much(1'000'000, 'x');
  EXPECT_EQ(run_child({"cat"}, much).out, much);
  EXPECT_EQ(code_of([] { run_child({"yes"}, {}, {.output_most = 100'000}); }), io_errc::too_long);
  EXPECT_EQ(code_of([&] { run_child({"sh", "-c", "cat >&2"}, much, {.output_most = 100'000}); }), io_errc::too_long);
  EXPECT_EQ(code_of([&] { run_child({"sh", "-c", "sleep 5 & yes >&2"}, {}, {.output_most = 100'000}); }),
            io_errc::too_long);
  EXPECT_EQ(code_of([&] { run_child({"yes"}, {}, {.output_most = 100'000, .output_wait = 60s}); }), io_errc::too_long);
}

TEST(net_child, of_a_plain_thread) {
  EXPECT_EQ(child({"sh", "-c", "exit 5"}).wait().code, 5);
  EXPECT_EQ(run_child({"tr", "a-z", "A-Z"}, "loud").out, "LOUD");
}

}  // namespace
}  // namespace ramie::net
