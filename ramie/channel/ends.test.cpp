#include <ramie/channel/ends.hpp>

#include <ramie/channel/select.hpp>
#include <ramie/channel/testing.hpp>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace channel_tests;

static_assert(std::is_copy_constructible_v<sender<int>> && std::is_nothrow_move_constructible_v<receiver<int>>);
static_assert(!std::is_constructible_v<sender<int>, receiver<int>>);
template <class End>
concept can_send = requires(const End& e) { e.try_send(1); };
template <class End>
concept can_receive = requires(const End& e) { e.try_recv(); };
static_assert(can_send<sender<int>> && !can_receive<sender<int>>);
static_assert(can_receive<receiver<int>> && !can_send<receiver<int>>);

class ends : public in_worlds {};
INSTANTIATE_TEST_SUITE_P(in, ends, all_worlds(), name_of);

TEST_P(ends, close_the_channel_with_the_last_sender) {
  run([](crew& all) {
    auto [to, from] = make_channel<int>(4);
    for (int i = 0; i < 3; ++i)
      all.start([to = to, i] {
        for (int n = 0; n < 10; ++n) EXPECT_EQ(to.send(i * 10 + n), channel_status::ok);
      });
    to.reset();
    EXPECT_FALSE(to);
    std::vector<int> seen(30, 0);
    for (const int v : from) ++seen[static_cast<std::size_t>(v)];
    EXPECT_EQ(seen, std::vector<int>(30, 1));
    EXPECT_TRUE(from.is_closed());
    EXPECT_EQ(from.recv(), std::nullopt);
    all.join();
  });
}

TEST_P(ends, tell_senders_that_the_last_receiver_has_gone) {
  run([](crew& all) {
    auto [to, from] = make_channel<std::string>();
    std::vector<channel_status> told(3);
    for (auto& t : told) all.start([&t, to = to] { t = to.send("nobody reads this"); });
    all.start([from = std::move(from)] {
      auto copy = from;
      EXPECT_EQ(copy.recv(), "nobody reads this");
    });
    all.join();
    EXPECT_EQ(std::count(told.begin(), told.end(), channel_status::ok), 1);
    EXPECT_EQ(std::count(told.begin(), told.end(), channel_status::closed), 2);
    std::string kept = "kept";
    EXPECT_EQ(to.send(std::move(kept)), channel_status::closed);
    EXPECT_EQ(kept, "kept");
    EXPECT_EQ(to.try_send("x"), channel_status::closed);
    EXPECT_EQ(to.send_for("x", 1h), channel_status::closed);
  });
}

/// The asker waits for an answer that the receiver, which is gone, will never give: the request, and with it the way
/// back, must go with the last receiver.
TEST_P(ends, drop_what_is_buffered_with_the_last_receiver) {
  run([](crew& all) {
    auto [requests, work] = make_channel<sender<int>>(unbounded);
    auto [answer, result] = make_channel<int>();
    EXPECT_EQ(requests.send(std::move(answer)), channel_status::ok);
    all.start([work = std::move(work)]() mutable { work.reset(); });
    EXPECT_EQ(result.recv(), std::nullopt);
    all.join();
    EXPECT_TRUE(requests.is_closed());
  });
}

TEST_P(ends, may_go_while_others_send_and_receive) {
  run([](crew& all) {
    for (int i = 0; i < scaled(200); ++i) {
      std::atomic<int> sent{0}, got{0};
      auto [to, from] = make_channel<std::shared_ptr<int>>(2);
      const auto element = std::make_shared<int>(1);
      for (int s = 0; s < 2; ++s)
        all.start([&, to = to] {
          for (int n = 0; n < 5; ++n)
            if (to.send(element) == channel_status::ok) ++sent;
        });
      for (int r = 0; r < 2; ++r)
        all.start([&, from = from] {
          for (int n = 0; n < 2 && from.recv(); ++n) ++got;
        });
      to.reset();
      from.reset();
      all.join();
      EXPECT_LE(got, sent);
      EXPECT_EQ(element.use_count(), 1) << "an element is still somewhere";
    }
  });
}

TEST_P(ends, are_cases_of_a_select) {
  run([](crew& all) {
    auto [to, from] = make_channel<int>();
    auto [stop, stopped] = make_channel<int>();
    int sum = 0;
    all.start([&, from = std::move(from), stopped = std::move(stopped)] {
      for (bool open = true; open;)
        select(on_recv(from, [&](std::optional<int> v) { sum += v.value_or(0); }),
               on_recv(stopped, [&](std::optional<int>) { open = false; }));
    });
    for (int i = 1; i <= 10; ++i) select(on_send(to, i, [](channel_status s) { EXPECT_EQ(s, channel_status::ok); }));
    stop.reset();
    all.join();
    EXPECT_EQ(sum, 55);
  });
}

TEST(channel_ends, without_a_channel_tell_it) {
  sender<int> to;
  EXPECT_FALSE(to);
  EXPECT_EQ(message_of<usage_error>([&] { static_cast<void>(to.send(1)); }),
            "ramie: channel: send: this end holds no channel: default-constructed, moved from, or reset");
  receiver<int> from;
  EXPECT_THROW(from.recv(), usage_error);
  EXPECT_THROW(select(on_recv(from, [](auto) {}), otherwise()), usage_error);
  auto made = make_channel<int>(3);
  EXPECT_EQ(made.receiver.capacity(), 3u);
  EXPECT_TRUE(made.sender);
  to = made.sender;
  EXPECT_EQ(to.try_send(5), channel_status::ok);
  EXPECT_EQ(made.receiver.size(), 1u);
  receiver<int> taken = std::move(made.receiver);
  EXPECT_THROW(made.receiver.try_recv(), usage_error);  // NOLINT(bugprone-use-after-move): what is tested
  EXPECT_EQ(taken.try_recv(), 5);
}

class unbounded_channels : public in_worlds {};
INSTANTIATE_TEST_SUITE_P(in, unbounded_channels, all_worlds(), name_of);

TEST_P(unbounded_channels, never_make_a_sender_wait) {
  run([](crew&) {
    channel<std::unique_ptr<int>> c{unbounded};
    EXPECT_EQ(c.capacity(), 4'294'967'295u);
    int next_in = 0, next_out = 0;
    // Filled and emptied to different depths, so that it grows with the oldest element in the middle.
    for (int round = 1; round < 60; ++round) {
      for (int i = 0; i < round; ++i) EXPECT_EQ(c.try_send(std::make_unique<int>(next_in++)), channel_status::ok);
      for (int i = 0; i < round / 2; ++i) EXPECT_EQ(**c.try_recv(), next_out++);
    }
    EXPECT_EQ(c.size(), static_cast<std::size_t>(next_in - next_out));
    c.close();
    for (const auto& p : c) EXPECT_EQ(*p, next_out++);
    EXPECT_EQ(next_in, next_out);
  });
}

TEST_P(unbounded_channels, hand_everything_over_once_and_in_order) {
  run([](crew& all) {
    const int n = scaled(2000);
    channel<std::pair<int, int>> c{unbounded};
    for (int s = 0; s < 3; ++s)
      all.start([&, s] {
        for (int i = 0; i < n; ++i) EXPECT_EQ(c.send({s, i}), channel_status::ok);
      });
    std::vector<int> next(3, 0);
    for (int i = 0; i < 3 * n; ++i) {
      const auto [who, what] = *c.recv();
      EXPECT_EQ(what, next[static_cast<std::size_t>(who)]++);
    }
    all.join();
    EXPECT_TRUE(c.empty());
  });
}

TEST_P(unbounded_channels, are_always_ready_for_a_select_that_sends) {
  run([](crew&) {
    channel<int> c{unbounded}, never;
    for (int i = 0; i < 100; ++i)
      select(on_send(c, i, [](channel_status s) { EXPECT_EQ(s, channel_status::ok); }),
             on_recv(never, [](auto) { ADD_FAILURE(); }), otherwise([] { ADD_FAILURE() << "there is always room"; }));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(c.recv(), i);
  });
}

TEST_P(ends, and_channels_tell_closed_from_late) {
  run([](crew& all) {
    channel<int> c;
    std::optional<int> got = 1;
    EXPECT_EQ(c.recv_for(got, 1us), channel_status::timeout);
    EXPECT_EQ(got, std::nullopt);
    EXPECT_EQ(c.recv_until(got, std::chrono::system_clock::now() + 1us), channel_status::timeout);
    EXPECT_EQ(c.send_until(1, std::chrono::system_clock::now() + 1us), channel_status::timeout);
    EXPECT_EQ(c.send_until(1, std::chrono::system_clock::now() - 1h), channel_status::timeout);
    all.start([&] { EXPECT_EQ(c.send_until(7, std::chrono::system_clock::now() + 1h), channel_status::ok); });
    EXPECT_EQ(c.recv_until(got, std::chrono::system_clock::now() + 1h), channel_status::ok);
    EXPECT_EQ(got, 7);
    all.join();
    c.close();
    EXPECT_EQ(c.recv_for(got, 1h), channel_status::closed);
    EXPECT_EQ(c.recv_until(got, std::chrono::system_clock::now() + 1h), channel_status::closed);
    EXPECT_EQ(c.send_until(1, std::chrono::system_clock::now() + 1h), channel_status::closed);

    auto [to, from] = make_channel<int>();
    EXPECT_EQ(from.recv_for(got, 1us), channel_status::timeout);
    EXPECT_EQ(from.recv_for(1us), std::nullopt);
    to.reset();
    EXPECT_EQ(from.recv_for(got, 1h), channel_status::closed);
    EXPECT_EQ(from.recv_until(std::chrono::system_clock::now() + 1h), std::nullopt);
  });
}

}  // namespace
}  // namespace ramie
