#include <lab/load/drive.hpp>

#include <lab/harness/error.hpp>
#include <lab/load/testing.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

using namespace std::chrono_literals;

namespace ramie::lab {
namespace {

/// A server for one connection, by a thread: `answer` changes what it got, and says whether it is to be sent.
class small_server {
 public:
  explicit small_server(std::function<bool(int message, std::vector<char>& bytes)> answer)
      : thread_{[this, answer = std::move(answer)] { serve(answer); }} {}
  ~small_server() {
    listener_.stop();
    thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const { return listener_.port(); }

 private:
  void serve(const std::function<bool(int, std::vector<char>&)>& answer) const {
    const int fd = listener_.accept();
    std::vector<char> bytes(1 << 20);
    for (int message = 0;; ++message) {
      const ssize_t n = recv(fd, bytes.data(), bytes.size(), 0);
      if (n <= 0) break;
      std::vector<char> got{bytes.data(), bytes.data() + n};
      if (!answer(message, got)) break;
      if (send(fd, got.data(), got.size(), MSG_NOSIGNAL) < 0) break;
    }
    close(fd);
  }

  loopback_listener listener_;
  std::thread thread_;  // the last one: it uses the other
};

bool as_it_is(int, std::vector<char>&) { return true; }

TEST(load, counts_what_was_answered) {
  const small_server server{as_it_is};
  load_driver driver{{.port = server.port(), .connections = 1, .size = 64}};
  const load_outcome outcome = driver.run(20ms);
  EXPECT_GT(outcome.requests, 0);
  EXPECT_EQ(outcome.times.total(), outcome.requests);
  EXPECT_GE(outcome.seconds, 0.02);
  EXPECT_GT(outcome.times.quantile(0.5), 0);
}

TEST(load, sends_messages_that_do_not_fit_into_the_socket) {
  const small_server server{as_it_is};
  load_driver driver{{.port = server.port(), .connections = 1, .size = 10'000'000}};
  EXPECT_GE(driver.run(1ms).requests, 1);
}

TEST(load, finds_an_answer_with_another_byte) {
  const small_server server{[](int message, std::vector<char>& bytes) {
    if (message == 3) bytes.back() ^= 1;
    return true;
  }};
  load_driver driver{{.port = server.port(), .connections = 1, .size = 64}};
  EXPECT_THROW(driver.run(10s), lab_error);
}

TEST(load, finds_the_answer_to_an_earlier_request) {
  std::vector<char> first;
  const small_server server{[&](int message, std::vector<char>& bytes) {
    if (message == 0) first = bytes;
    if (message == 1) bytes = first;
    return true;
  }};
  load_driver driver{{.port = server.port(), .connections = 1, .size = 64}};
  EXPECT_THROW(driver.run(10s), lab_error);
}

TEST(load, finds_a_connection_that_was_closed) {
  const small_server server{[](int message, std::vector<char>&) { return message < 2; }};
  load_driver driver{{.port = server.port(), .connections = 1, .size = 64}};
  EXPECT_THROW(driver.run(10s), lab_error);
}

TEST(load, at_a_rate_sends_what_is_due_and_no_more) {
  const small_server server{as_it_is};
  load_driver driver{{.port = server.port(), .connections = 1, .size = 64, .rate = 1000}};
  EXPECT_EQ(driver.run(100ms).requests, 100);
}

// A server that stops for 100 ms delays all requests that were due meanwhile, not only the one that it was given.
TEST(load, at_a_rate_charges_a_stop_to_all_that_were_due_in_it) {
  const small_server server{[](int message, std::vector<char>&) {
    if (message == 1) std::this_thread::sleep_for(100ms);
    return true;
  }};
  load_driver driver{{.port = server.port(), .connections = 1, .size = 64, .rate = 1000}};
  const load_outcome outcome = driver.run(200ms);
  EXPECT_EQ(outcome.requests, 200);
  EXPECT_GE(outcome.times.quantile(0.76), 49'000'000);
  EXPECT_GE(outcome.times.quantile(0.96), 89'000'000);
}

/// Answers every request by `text`.
std::function<bool(int, std::vector<char>&)> always(std::string text) {
  return [text = std::move(text)](int, std::vector<char>& bytes) {
    bytes.assign(text.begin(), text.end());
    return true;
  };
}

load_options by_http(const small_server& to) {
  return {.port = to.port(), .how = talk::http, .path = "/", .connections = 1};
}

TEST(load, by_http_takes_answers_of_the_length_that_they_tell) {
  const small_server server{always("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")};
  load_driver driver{by_http(server)};
  EXPECT_GT(driver.run(20ms).requests, 0);
  const std::string large(100'000, 'x');
  const small_server other{always("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + large)};
  EXPECT_GT(load_driver{by_http(other)}.run(20ms).requests, 0);
}

TEST(load, by_http_finds_answers_that_are_wrong) {
  for (const char* answer : {"HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\nhello", "HTTP/1.1 200 OK\r\n\r\nhello",
                             "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhello"}) {
    const small_server server{always(answer)};
    EXPECT_THROW(load_driver{by_http(server)}, lab_error) << answer;
  }
}

/// Sends each message back, without the mask. It is a frame of less than 126 bytes.
bool as_websocket(int message, std::vector<char>& bytes) {
  if (message == 0) return always("HTTP/1.1 101 Switching Protocols\r\n\r\n")(0, bytes);
  bytes[1] = static_cast<char>(bytes[1] & 127);
  bytes.erase(bytes.begin() + 2, bytes.begin() + 6);
  return true;
}

TEST(load, by_websocket_compares_what_comes_back) {
  const load_options options{.how = talk::websocket, .path = "/echo", .connections = 1, .size = 64};
  const auto with_port = [&](const small_server& s) {
    load_options o = options;
    o.port = s.port();
    return o;
  };
  const small_server server{&as_websocket};
  EXPECT_GT(load_driver{with_port(server)}.run(20ms).requests, 0);
  const small_server wrong{[](int message, std::vector<char>& bytes) {
    as_websocket(message, bytes);
    if (message == 2) bytes.back() ^= 1;
    return true;
  }};
  load_driver driver{with_port(wrong)};
  EXPECT_THROW(driver.run(10s), lab_error);
  const small_server refuses{always("HTTP/1.1 404 Not Found\r\n\r\n")};
  EXPECT_THROW(load_driver{with_port(refuses)}, lab_error);
}

}  // namespace
}  // namespace ramie::lab
