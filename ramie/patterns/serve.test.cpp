#include <ramie/net/testing.hpp>
#include <ramie/patterns/serve.hpp>

#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

tcp_listener on_loopback() { return tcp_listener{{"127.0.0.1", 0}}; }

template <class Stream>
void echo(Stream client) {
  std::array<std::byte, 100> part;
  while (const std::size_t n = client.read_some(part)) client.write_all(std::span<const std::byte>{part}.first(n));
}

/// "ping" out, and what comes back.
template <class Stream>
std::string answer(Stream& s, std::string_view question = "ping") {
  s.write_all(question);
  std::array<std::byte, 100> part;
  return text_of(std::span{part}.first(s.read_some(part)));
}

template <class Stream>
bool has_ended(Stream& s) {
  std::byte one;
  try {
    return s.read_some({&one, 1}) == 0;
  } catch (const io_error&) {
    return true;
  }
}

TEST(servers, serve_each_client_by_a_fiber_of_its_own) {
  with_workers([] {
    tcp_listener l = on_loopback();
    auto server = spawn([&] { serve(l, echo<tcp_stream>); });
    std::vector<tcp_stream> clients;
    for (int i = 0; i < 20; ++i) clients.push_back(tcp_stream::connect(l.local()));
    for (tcp_stream& c : clients) EXPECT_EQ(answer(c), "ping");
    l.close();
    EXPECT_EQ(answer(clients.front()), "ping");  // open ones go on
    clients.clear();
    server.join();
  });
}

TEST(servers, serve_local_sockets) {
  with_workers([] {
    const endpoint at = endpoint::local("@ramie_serve_" + std::to_string(::getpid()));
    unix_listener l{at};
    auto server = spawn([&] { serve(l, echo<unix_stream>); });
    auto client = unix_stream::connect(at);
    EXPECT_EQ(answer(client), "ping");
    client.close();
    l.close();
    server.join();
  });
}

TEST(servers, go_on_when_a_handler_fails) {
  with_workers([] {
    tcp_listener l = on_loopback();
    std::atomic<int> told{0};
    serve_options options;
    options.on_failure = [&](const std::exception_ptr& failure) {
      EXPECT_THROW(std::rethrow_exception(failure), std::logic_error);
      this_fiber::yield();
      ++told;
    };
    auto server = spawn([&] {
      serve(
          l,
          [](tcp_stream client) {
            if (std::byte first; client.read_exactly({&first, 1}) && first == std::byte{'x'})
              throw std::logic_error{"x"};
            client.write_all("fine");
          },
          options);
    });
    for (int i = 0; i < 3; ++i) {
      auto bad = tcp_stream::connect(l.local());
      EXPECT_EQ(answer(bad, "x"), "");
      auto good = tcp_stream::connect(l.local());
      EXPECT_EQ(answer(good, "y"), "fine");
    }
    l.close();
    server.join();
    EXPECT_EQ(told, 3);
  });
}

TEST(servers, tell_of_failures_but_not_of_connections_that_broke) {
  ::testing::internal::CaptureStderr();
  with_workers([] {
    tcp_listener l = on_loopback();
    auto server = spawn([&] {
      serve(l, [](tcp_stream client) {
        if (answer(client, "?") == "break") throw io_error{"read", io_errc::unexpected_end};
        throw std::logic_error{"of the handler"};
      });
    });
    for (const char* how : {"break", "fail"}) {
      auto client = tcp_stream::connect(l.local());
      EXPECT_EQ(answer(client, how), "?");
      EXPECT_TRUE(has_ended(client));
    }
    l.close();
    server.join();
  });
  const std::string line = "ramie: a child of a scope failed: of the handler\n";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), line + line + line);
}

TEST(servers, end_by_what_their_function_for_failures_throws) {
  with_workers([] {
    tcp_listener l = on_loopback();
    serve_options options;
    options.on_failure = [](const std::exception_ptr&) { throw std::runtime_error{"enough"}; };
    auto server = spawn([&] { serve(l, [](tcp_stream) { throw std::logic_error{"x"}; }, options); });
    auto client = tcp_stream::connect(l.local());
    EXPECT_THROW(server.join(), std::runtime_error);
  });
}

TEST(servers, stop_by_signals_and_tokens) {
  with_workers([] {
    for (const bool by_signal : {true, false}) {
      tcp_listener l = on_loopback();
      const endpoint at = l.local();
      std::stop_source source;
      signals users{SIGUSR1, SIGUSR2};
      serve_options options;
      if (by_signal) options.stop_on = &users;
      else options.stop = source.get_token();
      auto server = spawn([&] { serve(l, echo<tcp_stream>, options); });
      auto client = tcp_stream::connect(at);
      EXPECT_EQ(answer(client), "ping");
      if (by_signal) ::kill(::getpid(), SIGUSR2);
      else source.request_stop();
      // The port is closed, and the connection is served to its end.
      for (bool refused = false; !refused;) {
        try {
          auto other = tcp_stream::connect(at);
          this_fiber::sleep_for(1ms);
        } catch (const io_error&) {
          refused = true;
        }
      }
      EXPECT_EQ(answer(client), "ping");
      EXPECT_FALSE(server.has_ended());
      client.close();
      server.join();
    }
  });
}

TEST(servers, cut_off_what_has_not_ended_in_time) {
  with_workers([] {
    tcp_listener l = on_loopback();
    serve_options options;
    options.drain = 1ms;
    auto server = spawn([&] { serve(l, echo<tcp_stream>, options); });
    auto client = tcp_stream::connect(l.local());
    EXPECT_EQ(answer(client), "ping");
    l.close();
    EXPECT_TRUE(has_ended(client));
    server.join();
  });
}

TEST(servers, are_cancelled_with_their_fiber) {
  with_workers([] {
    tcp_listener l = on_loopback();
    auto server = spawn([&] { serve(l, echo<tcp_stream>); });
    auto client = tcp_stream::connect(l.local());
    EXPECT_EQ(answer(client), "ping");
    server.request_stop();
    EXPECT_TRUE(has_ended(client));
    EXPECT_THROW(server.join(), child_cancelled);
  });
}

TEST(servers, serve_no_more_at_a_time_than_they_may) {
  with_workers([] {
    for (const bool stops_when_full : {false, true}) {
      tcp_listener l = on_loopback();
      std::stop_source source;
      serve_options options;
      options.connections_most = 2;
      options.stop = source.get_token();
      std::atomic<int> open{0}, most{0};
      auto server = spawn([&] {
        serve(
            l,
            [&](tcp_stream client) {
              const int now = ++open;
              for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
              }
              echo(std::move(client));
              --open;
            },
            options);
      });
      auto one = tcp_stream::connect(l.local()), two = tcp_stream::connect(l.local());
      EXPECT_EQ(answer(one), "ping");
      EXPECT_EQ(answer(two), "ping");
      if (stops_when_full) {
        source.request_stop();
      } else {
        auto three = tcp_stream::connect(l.local());
        three.write_all("ping");
        this_fiber::sleep_for(1ms);
        one.close();
        EXPECT_EQ(answer(three, "!").substr(0, 4), "ping");
        three.close();
        l.close();
      }
      one.close();
      two.close();
      server.join();
      EXPECT_EQ(most, 2);
    }
  });
}

TEST(servers, tell_of_a_deadline_that_cut_them_off) {
  with_workers([] {
    tcp_listener l = on_loopback();
    auto client = spawn([&] {
      auto c = tcp_stream::connect(l.local());
      EXPECT_EQ(answer(c), "ping");
      l.close();
      EXPECT_TRUE(has_ended(c));
    });
    const auto serve_for_ever = [&] { serve(l, echo<tcp_stream>, {.drain = 1h}); };
    EXPECT_THROW(with_timeout(20ms, serve_for_ever), timeout_error);
    client.join();
  });
}

TEST(servers, stop_by_a_token_also_in_a_shield) {
  with_workers([] {
    tcp_listener l = on_loopback();
    std::stop_source source;
    serve_options options;
    options.stop = source.get_token();
    auto server = spawn([&] { shield([&] { serve(l, echo<tcp_stream>, options); }); });
    auto client = tcp_stream::connect(l.local());
    EXPECT_EQ(answer(client), "ping");
    this_fiber::sleep_for(1ms);  // the server waits for the next one
    source.request_stop();
    client.close();
    server.join();
  });
}

TEST(servers_on_a_plain_thread, say_that_they_need_a_fiber) {
  std::optional<tcp_listener> l;
  runtime{{.workers = 1}}.run([&] { l.emplace(endpoint{"127.0.0.1", 0}); });
  EXPECT_THROW(serve(*l, echo<tcp_stream>), usage_error);
}

}  // namespace
}  // namespace ramie::net
