#include <ramie/asio.hpp>
#include <ramie/net/testing.hpp>

#include <boost/asio.hpp>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <string>
#include <thread>

namespace ramie::asio {
namespace {

using namespace std::chrono_literals;
namespace ba = boost::asio;
using ba::ip::tcp;

template <class F>
void with_context(F f) {
  for (const int n : {1, 2, 8}) {
    SCOPED_TRACE("workers: " + std::to_string(n));
    runtime rt{{.workers = n, .name = "asio"}};
    rt.run([&] {
      context io{rt};
      f(io);
    });
  }
}

tcp::acceptor listener_in(context& io) { return {io.get_executor(), {ba::ip::address_v4::loopback(), 0}}; }

TEST(asio_yield, waits_for_timers) {
  with_context([](context& io) {
    ba::steady_timer by_fibers{io.get_executor(), 1ms}, by_thread{io.io(), 1ms};
    by_fibers.async_wait(yield);
    by_thread.async_wait(yield);
    scope all;
    for (int i = 0; i < 100; ++i)
      all.spawn([&] {
        ba::steady_timer t{io.get_executor(), 1ms};
        t.async_wait(yield);
      });
    all.join();
  });
}

TEST(asio_yield, reads_and_writes_sockets) {
  with_context([](context& io) {
    tcp::acceptor l = listener_in(io);
    auto server = spawn([&] {
      tcp::socket s = l.async_accept(yield);
      std::string text;
      boost::system::error_code code;
      ba::async_read(s, ba::dynamic_buffer(text), ba::redirect_error(yield, code));
      EXPECT_EQ(code, ba::error::eof);
      return text;
    });
    tcp::socket s{io.get_executor()};
    s.async_connect(l.local_endpoint(), yield);
    const std::string text(1'000'000, 'x');
    EXPECT_EQ(ba::async_write(s, ba::buffer(text), yield), text.size());
    s.close();
    EXPECT_EQ(server.join(), text);
    const auto [code, results] = tcp::resolver{io.get_executor()}.async_resolve("127.0.0.1", "80", ba::as_tuple(yield));
    EXPECT_FALSE(code);
    EXPECT_EQ(results->endpoint().port(), 80);
  });
}

TEST(asio_yield, throws_what_fails) {
  with_context([](context& io) {
    tcp::acceptor l = listener_in(io);
    const tcp::endpoint gone = l.local_endpoint();
    l.close();
    tcp::socket s{io.get_executor()};
    EXPECT_THROW(s.async_connect(gone, yield), boost::system::system_error);
    // A handler that is dropped.
    EXPECT_THROW((ba::async_initiate<const yield_t, void()>([](auto) {}, yield)), boost::system::system_error);
  });
}

TEST(asio_yield, is_reached_by_deadlines_and_stops) {
  with_context([](context& io) {
    ba::steady_timer t{io.get_executor(), 1h};
    EXPECT_THROW(with_timeout(2ms, [&] { t.async_wait(yield); }), timeout_error);
    tcp::acceptor l = listener_in(io);
    EXPECT_THROW(with_timeout(2ms, [&] { static_cast<void>(l.async_accept(yield)); }), timeout_error);
    ba::steady_timer by_thread{io.io(), 1h};
    auto f = spawn([&] { by_thread.async_wait(yield); });
    f.request_stop();
    EXPECT_THROW(f.join(), cancelled);
    // Around the moment at which it ends by itself.
    for (int i = 0; i < 200; ++i) {
      ba::steady_timer soon{io.get_executor(), 500us};
      try {
        with_timeout(std::chrono::microseconds{400 + i}, [&] { soon.async_wait(yield); });
      } catch (const timeout_error&) {
      }
    }
    // Both ends of a socket are as before.
    auto client = spawn([&] {
      tcp::socket s{io.get_executor()};
      s.async_connect(l.local_endpoint(), yield);
      return ba::async_write(s, ba::buffer("hello", 5), yield);
    });
    tcp::socket s = l.async_accept(yield);
    std::array<char, 5> text{};
    ba::async_read(s, ba::buffer(text), yield);
    EXPECT_EQ(std::string(text.data(), 5), "hello");
    EXPECT_EQ(client.join(), 5u);
  });
}

TEST(asio_yield, works_on_a_plain_thread) {
  runtime rt{{.workers = 1}};
  context io{rt};
  ba::steady_timer t{io.get_executor(), 1ms};
  t.async_wait(yield);
}

TEST(asio_executor, runs_functions_as_fibers) {
  with_context([](context& io) {
    std::atomic<int> ran{0};
    wait_group all;
    for (int i = 0; i < 100; ++i) {
      all.add(1);
      ba::post(io.get_executor(), [&] {
        this_fiber::sleep_for(1ms);  // it may wait
        ++ran;
        all.done();
      });
    }
    all.wait();
    EXPECT_EQ(ran.load(), 100);
    // A strand: one after the other.
    auto strand = ba::make_strand(io.get_executor());
    int inside = 0, most = 0;
    for (int i = 0; i < 50; ++i) {
      all.add(1);
      ba::post(strand, [&] {
        most = std::max(most, ++inside);
        this_fiber::sleep_for(10us);
        --inside;
        all.done();
      });
    }
    all.wait();
    EXPECT_EQ(most, 1);
    const ba::any_io_executor any = io.get_executor();
    EXPECT_EQ(ba::post(any, ba::use_future([] { return 5; })).get(), 5);
  });
}

TEST(asio_executor, is_waited_for_by_the_end_of_the_context) {
  for (const int n : {1, 2, 8}) {
    SCOPED_TRACE("workers: " + std::to_string(n));
    runtime rt{{.workers = n, .name = "asio"}};
    rt.run([&] {
      auto ended = std::make_shared<std::atomic<int>>(0);
      event begun;
      std::weak_ptr<int> owned;
      {
        context io{rt};
        auto of_handler = std::make_shared<int>(1);
        owned = of_handler;
        // One waits for an operation of the context, one for something else, and one computes; all use the context at
        // their end.
        ba::post(io.get_executor(), [&io, ended, held = std::move(of_handler)] {
          ba::steady_timer never{io.get_executor(), 1h};
          EXPECT_THROW(never.async_wait(yield), cancelled);
          ba::post(io.get_executor(), [ended] { *ended += 1000; });
          ++*ended;
        });
        ba::post(io.get_executor(), [&io, ended] {
          event never;
          EXPECT_THROW(never.wait(), cancelled);
          ba::post(io.get_executor(), [ended] { *ended += 1000; });
          ++*ended;
        });
        ba::post(io.get_executor(), [&io, &begun, ended] {
          begun.set();
          while (!this_fiber::stop_requested()) this_fiber::yield();
          ba::post(io.get_executor(), [ended] { *ended += 1000; });
          ++*ended;
        });
        begun.wait();
      }
      EXPECT_EQ(ended->load(), 3);  // and none of those that came afterwards
      EXPECT_TRUE(owned.expired());
    });
  }
}

TEST(asio_executor, destroys_handlers_that_come_too_late) {
  with_context([](context& outer) {
    for (int i = 0; i < 200; ++i) {
      std::atomic<int> under_way{0};
      struct counted {
        std::atomic<int>* of;
        explicit counted(std::atomic<int>& n) : of{&n} { ++n; }
        counted(counted&& other) noexcept : of{std::exchange(other.of, nullptr)} {}
        counted& operator=(counted&&) = delete;
        ~counted() {
          if (of != nullptr) --*of;
        }
      };
      {
        context io{outer.machine()};
        auto posting = spawn([&] {
          for (int k = 0; k < 20; ++k) ba::post(io.get_executor(), [c = counted{under_way}] { this_fiber::yield(); });
        });
        if (i % 2 == 0) this_fiber::yield();
        posting.join();
      }
      EXPECT_EQ(under_way.load(), 0);
    }
  });
}

ba::awaitable<int> sum_of(context& io, channel<int>& c) {
  int sum = 0;
  for (;;) {
    const std::optional<int> n = co_await async_call(io, [&c] { return c.recv(); }, ba::use_awaitable);
    if (!n) co_return sum;
    sum += *n;
  }
}

TEST(asio_coroutines, of_asio_and_fibers_wait_for_each_other) {
  with_context([](context& io) {
    channel<int> c;
    auto sender = spawn([&] {
      for (int i = 1; i <= 100; ++i) static_cast<void>(c.send(i));
      c.close();
    });
    EXPECT_EQ(ba::co_spawn(io.get_executor(), sum_of(io, c), yield), 5050);
    sender.join();
    EXPECT_THROW(ba::co_spawn(
                     io.get_executor(),
                     [&]() -> ba::awaitable<void> {
                       co_await async_call(io, [] { throw std::runtime_error{"no"}; }, ba::use_awaitable);
                     },
                     yield),
                 std::runtime_error);
  });
}

/// As another library would have it: lazy, for one waiter.
template <class T>
class task_of {
 public:
  struct promise_type {
    outcome<T> result;
    T value{};
    std::exception_ptr failure;
    std::coroutine_handle<> waiter;
    task_of get_return_object() { return task_of{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct finish {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) noexcept {
        return h.promise().waiter;
      }
      void await_resume() noexcept {}
    };
    finish final_suspend() noexcept { return {}; }
    void return_value(T v) { value = std::move(v); }
    void unhandled_exception() { failure = std::current_exception(); }
  };
  explicit task_of(std::coroutine_handle<promise_type> h) : h_{h} {}
  task_of(task_of&& other) noexcept : h_{std::exchange(other.h_, nullptr)} {}
  ~task_of() {
    if (h_) h_.destroy();
  }
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> w) {
    h_.promise().waiter = w;
    return h_;
  }
  T await_resume() {
    if (h_.promise().failure) std::rethrow_exception(h_.promise().failure);
    return std::move(h_.promise().value);
  }

 private:
  std::coroutine_handle<promise_type> h_;
};

task_of<int> add_up(channel<int>& c, future<int> f, join_handle<int> h, channel<int>& back) {
  int sum = 0;
  while (const std::optional<int> n = co_await receive(c)) sum += *n;
  sum += co_await result_of(std::move(f));
  sum += co_await end_of(std::move(h));
  co_await send(back, sum);
  co_return sum;
}

task_of<int> failing() {
  co_await in_fiber([] { throw std::runtime_error{"no"}; });
  co_return 0;
}

TEST(asio_coroutines, of_any_library_await_channels_futures_and_fibers) {
  net::with_workers([] {
    channel<int> c{4}, back{1};
    promise<int> p;
    auto sender = spawn([&] {
      for (int i = 1; i <= 100; ++i) static_cast<void>(c.send(i));
      c.close();
      this_fiber::sleep_for(1ms);
      p.set_value(1000);
    });
    auto h = spawn([] {
      this_fiber::sleep_for(1ms);
      return 10'000;
    });
    EXPECT_EQ(wait_for(add_up(c, p.get_future(), std::move(h), back)), 16050);
    EXPECT_EQ(back.recv(), 16050);
    EXPECT_THROW(wait_for(failing()), std::runtime_error);
    sender.join();
  });
}

}  // namespace
}  // namespace ramie::asio
