#include <lab/load/newcomers.hpp>

#include <lab/harness/error.hpp>
#include <lab/load/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include <sys/socket.h>
#include <unistd.h>

using namespace std::chrono_literals;

namespace ramie::lab {
namespace {

/// Answers one message of each connection after `pause`, changed if `wrong`.
class answering_server {
 public:
  explicit answering_server(std::chrono::milliseconds pause, bool wrong = false)
      : thread_{[this, pause, wrong] { serve(pause, wrong); }} {}
  ~answering_server() {
    listener_.stop();
    thread_.join();
  }
  [[nodiscard]] load_options load() const { return {.port = listener_.port(), .size = 16}; }

 private:
  void serve(std::chrono::milliseconds pause, bool wrong) const {
    for (int fd = listener_.accept(); fd >= 0; fd = listener_.accept()) {
      std::string message(16, ' ');
      EXPECT_EQ(recv(fd, message.data(), message.size(), MSG_WAITALL), 16);
      if (wrong) message[7] ^= 1;
      std::this_thread::sleep_for(pause);
      EXPECT_EQ(send(fd, message.data(), message.size(), MSG_NOSIGNAL), 16);
      close(fd);
    }
  }

  loopback_listener listener_;
  std::thread thread_;  // the last one: it uses the other
};

TEST(load_newcomers, come_at_their_rate) {
  const answering_server server{0ms};
  const auto begin = std::chrono::steady_clock::now();
  newcomers all{server.load(), 1000};
  std::this_thread::sleep_for(100ms);
  const std::int64_t came = all.stop().total();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(came, 1);
  EXPECT_LE(static_cast<double>(came), took.count() + 1);
}

// One at a time, each 10 ms late: the later ones have waited for all of those before them.
TEST(load_newcomers, are_charged_from_when_they_were_due) {
  const answering_server server{10ms};
  newcomers all{server.load(), 1000};
  std::this_thread::sleep_for(200ms);
  const histogram times = all.stop();
  EXPECT_GE(times.quantile(0), 10'000'000);
  EXPECT_GE(times.quantile(1), 9'000'000 * times.total());
}

TEST(load_newcomers, notice_a_wrong_answer) {
  const answering_server server{0ms, true};
  newcomers all{server.load(), 1000};
  EXPECT_THROW(all.stop(), lab_error);
}

TEST(load_newcomers, end_with_their_owner) {
  const answering_server server{0ms};
  const newcomers all{server.load(), 1};
}

}  // namespace
}  // namespace ramie::lab
