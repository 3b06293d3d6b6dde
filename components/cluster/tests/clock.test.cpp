// A program of its own: the calendar's clock jumps, for this program alone, by hours to and fro. Nothing that nodes
// promise depends on it.
#include "../test_nodes.hpp"

#include <ramie/base/config.hpp>

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>

#if !RAMIE_TSAN && !RAMIE_ASAN

namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
std::atomic<std::int64_t> jumped_s{0};

timespec kernel_time(clockid_t which) {
  timespec t{};
  ::syscall(SYS_clock_gettime, which, &t);
  return t;
}
bool is_calendar(clockid_t which) { return which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE; }

}  // namespace

// libnats looks at this clock for all that it waits for, by these two functions.
extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t which, timespec* to) noexcept {
  const long result = ::syscall(SYS_clock_gettime, which, to);
  if (result == 0 && is_calendar(which)) to->tv_sec += jumped_s;
  return static_cast<int>(result);
}

extern "C" __attribute__((visibility("default"))) int pthread_cond_timedwait(pthread_cond_t* condition,
                                                                             pthread_mutex_t* mutex,
                                                                             const timespec* until) {
  // In short pieces, so that one who waits notices a jump as it would in the kernel.
  for (;;) {
    const timespec now = kernel_time(CLOCK_REALTIME);
    const std::int64_t left = (until->tv_sec - now.tv_sec - jumped_s) * second_ns + (until->tv_nsec - now.tv_nsec);
    if (left <= 0) return ETIMEDOUT;
    const timespec here = kernel_time(CLOCK_MONOTONIC);
    const std::int64_t end = here.tv_nsec + std::min<std::int64_t>(left, second_ns / 200);
    const timespec piece{here.tv_sec + end / second_ns, end % second_ns};
    const int result = ::pthread_cond_clockwait(condition, mutex, CLOCK_MONOTONIC, &piece);
    if (result != ETIMEDOUT) return result;
  }
}

#endif

namespace ramie {
namespace {

using namespace cluster_tests;

TEST(calendars, that_jump_end_no_link_no_lease_and_no_wait) {
#if RAMIE_TSAN || RAMIE_ASAN
  GTEST_SKIP() << "the sanitizer has these functions itself";
#else
  // Longer than the test, and shorter than the jumps.
  constexpr auto long_time = 600s;
  run([&] {
    const auto options = [&](const char* name) {
      cluster_options o = options_for(server().url(), name);
      o.lost_after = long_time;
      return o;
    };
    cluster a{options("a")}, b{options("b")};
    a.knows<keeper>();
    b.knows<keeper>();
    const auto local = spawn_actor<keeper>();
    ASSERT_TRUE(b.register_name("keeper", local));
    const auto there = a.whereis<keeper>("keeper").value();
    const auto shards = a.shards<counter>("calendar", {.count = 4, .lease = long_time});
    const std::uint64_t token = shards.of("k").ask_for(long_time, total{}).token;
    std::uint64_t sent = 0;
    // Back once, while no reply is lost. The server is killed later: a wait of libnats for a reply that was lost ends
    // by this clock, so it ends hours late where the clock is set back.
    for (const std::int64_t hours : {-24, -1, 0, 1, 24}) {
      const auto until = std::chrono::steady_clock::now() + 700ms;  // some heartbeats
      jumped_s = hours * 3600;
      // Libraries see it, too.
      ASSERT_EQ(std::chrono::round<std::chrono::hours>(std::chrono::system_clock::now().time_since_epoch() -
                                                       std::chrono::seconds{kernel_time(CLOCK_REALTIME).tv_sec}),
                std::chrono::hours{hours});
      while (std::chrono::steady_clock::now() < until) {
        for (int i = 0; i < 50; ++i) there.tell(number{sent++});
        EXPECT_EQ(there.ask(order_kept{}), static_cast<std::int64_t>(sent));
        EXPECT_TRUE(a.whereis<keeper>("keeper").has_value());
        EXPECT_EQ(shards.of("k").ask_for(long_time, total{}).token, token);
      }
      EXPECT_THROW(static_cast<void>(there.ask_for(30ms, wait_for{500})), timeout_error);
      // And the connection comes back by the new time.
      server().kill();
      there.tell(number{sent++});
      blocking([] { server().start_again(); });
      EXPECT_EQ(there.ask(order_kept{}), static_cast<std::int64_t>(sent));
    }
    local.stop();
    local.join();
  });
#endif
}

}  // namespace
}  // namespace ramie
