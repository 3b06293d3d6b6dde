// Cases of a select: values that were not sent, cases that are kept, guards, lists made at run time, cases without a
// function.
#include <ramie/channel/case_list.hpp>
#include <ramie/channel/testing.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace channel_tests;

constexpr auto ignore = [](auto&&...) {};
constexpr auto wrong = [](auto&&...) { ADD_FAILURE() << "the wrong case"; };

class select_cases : public in_worlds {};
INSTANTIATE_TEST_SUITE_P(in, select_cases, all_worlds(), name_of);

TEST_P(select_cases, leave_a_value_that_was_not_sent_with_its_owner) {
  run([](crew&) {
    channel<std::unique_ptr<int>> c;
    channel<int> other{1};
    static_cast<void>(other.send(1));
    auto mine = std::make_unique<int>(7);
    EXPECT_EQ(select(on_send(c, std::move(mine), wrong), on_recv(other, ignore)), 1u);
    ASSERT_NE(mine, nullptr);
    EXPECT_EQ(*mine, 7);
    select(on_send(c, std::move(mine), wrong), otherwise(ignore));
    ASSERT_NE(mine, nullptr);
    select(on_send(c, std::move(mine), wrong), on_timeout(1us, ignore));
    ASSERT_NE(mine, nullptr);
    c.close();
    channel_status status{};
    select(on_send(c, std::move(mine), status));
    EXPECT_EQ(status, channel_status::closed);
    ASSERT_NE(mine, nullptr);
    EXPECT_EQ(*mine, 7);
  });
}

TEST_P(select_cases, take_a_value_that_was_sent) {
  run([](crew& all) {
    channel<std::unique_ptr<int>> c;
    all.start([&] { EXPECT_EQ(**c.recv(), 7); });
    auto mine = std::make_unique<int>(7);
    channel_status status = channel_status::closed;
    EXPECT_EQ(select(on_send(c, std::move(mine), status)), 0u);
    EXPECT_EQ(status, channel_status::ok);
    EXPECT_EQ(mine, nullptr);
    all.join();
  });
}

TEST_P(select_cases, may_be_kept_and_used_again) {
  run([](crew&) {
    channel<std::string> c{1};
    std::string next;
    std::vector<std::string> got;
    auto send = on_send(c, std::ref(next), [](channel_status s) { EXPECT_EQ(s, channel_status::ok); });
    auto receive = on_recv(c, [&](std::optional<std::string> s) { got.push_back(std::move(*s)); });
    for (const char* word : {"one", "two", "three"}) {
      next = word;
      EXPECT_EQ(select(send, receive), 0u);
      EXPECT_EQ(select(send, receive), 1u);
    }
    EXPECT_EQ(got, (std::vector<std::string>{"one", "two", "three"}));
    channel<int> numbers{3};
    auto number = on_send(numbers, 5, ignore);
    for (int i = 0; i < 3; ++i) select(number);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(numbers.recv(), 5);
  });
}

TEST_P(select_cases, may_do_without_functions) {
  run([](crew&) {
    channel<int> a{1};
    channel<std::string> b{1};
    std::optional<int> number;
    std::optional<std::string> word = "old";
    static_cast<void>(b.send("new"));
    switch (select(on_recv(a, number), on_recv(b, word), on_timeout(1h))) {
      case 1: EXPECT_EQ(word, "new"); break;
      default: ADD_FAILURE();
    }
    EXPECT_EQ(select(on_recv(a, number), on_recv(b, word), otherwise()), 2u);
    EXPECT_EQ(select(on_recv(a, number), on_timeout(std::chrono::system_clock::now() + 1us)), 1u);
    b.close();
    EXPECT_EQ(select(on_recv(b, word)), 0u);
    EXPECT_EQ(word, std::nullopt);
  });
}

TEST_P(select_cases, that_are_guarded_are_left_out) {
  run([](crew&) {
    channel<int> a{1}, b{1};
    static_cast<void>(a.send(1));
    EXPECT_EQ(select(when(false, on_recv(a, wrong)), when(true, on_send(b, 2, ignore))), 1u);
    EXPECT_EQ(select(when(false, on_recv(a, wrong)), when(false, on_send(b, 2, wrong)), otherwise()), 2u);
    EXPECT_EQ(select(when(true, on_recv(a, ignore)), when(false, on_recv(b, wrong))), 0u);
    EXPECT_EQ(b.size(), 1u);
  });
}

TEST_P(select_cases, make_lists_of_many_kinds) {
  run([](crew& all) {
    channel<int> a;
    channel<std::string> b;
    channel<std::unique_ptr<int>> c;
    std::optional<int> number;
    std::optional<std::string> word;
    auto out = std::make_unique<int>(3);
    case_list list;
    EXPECT_TRUE(list.empty());
    EXPECT_THROW(select(list), invalid_argument);
    EXPECT_EQ(list.add(on_recv(a, number)), 0u);
    EXPECT_EQ(list.add(on_recv(b, word)), 1u);
    EXPECT_EQ(list.add(on_send(c, std::ref(out), ignore)), 2u);
    EXPECT_EQ(select(list, otherwise()), 3u);
    EXPECT_EQ(select(list, on_timeout(1us)), 3u);
    ASSERT_NE(out, nullptr);
    all.start([&] { static_cast<void>(a.send(1)); });
    EXPECT_EQ(select(list), 0u);
    EXPECT_EQ(number, 1);
    all.start([&] { static_cast<void>(b.send("two")); });
    EXPECT_EQ(select(list), 1u);
    EXPECT_EQ(word, "two");
    all.start([&] { EXPECT_EQ(**c.recv(), 3); });
    EXPECT_EQ(select(list), 2u);
    EXPECT_EQ(out, nullptr);
    all.join();
    list.enable(0, false);
    list.enable(2, false);
    a.close();
    b.close();
    EXPECT_EQ(select(list), 1u);
    EXPECT_EQ(word, std::nullopt);
    list.enable(1, false);
    EXPECT_THROW(select(list), invalid_argument);
    EXPECT_EQ(select(list, otherwise()), 3u);
    list.enable(0);
    EXPECT_EQ(select(list), 0u);
    EXPECT_THROW(list.enable(3), std::out_of_range);
  });
}

TEST_P(select_cases, of_lists_lose_nothing_among_many) {
  run([](crew& all) {
    constexpr int senders = 6, each = 50;
    std::vector<std::unique_ptr<channel<int>>> channels;
    for (int i = 0; i < senders; ++i)
      channels.push_back(std::make_unique<channel<int>>(static_cast<std::size_t>(i % 2)));
    for (auto& c : channels)
      all.start([&c] {
        for (int i = 0; i < each; ++i) static_cast<void>(c->send(i));
        c->close();
      });
    case_list list;
    std::vector<std::optional<int>> got(senders);
    for (std::size_t i = 0; i < senders; ++i) list.add(on_recv(*channels[i], got[i]));
    std::vector<int> next(senders, 0);
    for (int open = senders; open > 0;) {
      const std::size_t i = select(list);
      if (got[i]) {
        EXPECT_EQ(*got[i], next[i]++);
      } else {
        list.enable(i, false);
        --open;
      }
    }
    for (const int n : next) EXPECT_EQ(n, each);
    all.join();
  });
}

}  // namespace
}  // namespace ramie
