// What may be sent: things that only move, that are large, empty, over-aligned, or throw when they are moved.
#include <ramie/channel/channel.hpp>
#include <ramie/channel/testing.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace channel_tests;

class elements : public in_worlds {
 protected:
  void SetUp() override { moody::alive = 0; }
  void TearDown() override { EXPECT_EQ(moody::alive, 0); }
};
INSTANTIATE_TEST_SUITE_P(in, elements, all_worlds(), name_of);

/// A few of `make(i)` through channels of all kinds; `check(element, i)`.
template <class Make, class Check>
void pass_on(crew& all, Make make, Check check) {
  using T = decltype(make(0));
  for (const std::size_t capacity : {0u, 1u, 3u}) {
    channel<T> c{capacity};
    all.start([&] {
      for (int i = 0; i < 20; ++i) EXPECT_EQ(c.send(make(i)), channel_status::ok);
      c.close();
    });
    int i = 0;
    for (T& e : c) check(e, i++);
    EXPECT_EQ(i, 20);
    all.join();
  }
}

struct nothing {};
struct alignas(64) line {
  std::uint64_t value;
};
struct alignas(4096) page {
  std::array<int, 1024> values;
};
class no_default {
 public:
  explicit no_default(int v) : value_{v} {}
  [[nodiscard]] int value() const { return value_; }

 private:
  const int value_;  // cannot be assigned to either
};

TEST_P(elements, may_be_of_any_shape) {
  run([](crew& all) {
    const auto aligned = [](const auto& e) {
      return reinterpret_cast<std::uintptr_t>(&e) % alignof(std::decay_t<decltype(e)>) == 0;
    };
    pass_on(all, [](int) { return nothing{}; }, [](nothing&, int) {});
    pass_on(
        all, [](int i) { return std::make_unique<int>(i); },
        [](const std::unique_ptr<int>& p, int i) { EXPECT_EQ(*p, i); });
    pass_on(
        all, [](int i) { return line{static_cast<std::uint64_t>(i)}; },
        [&](const line& l, int i) {
          EXPECT_EQ(l.value, static_cast<std::uint64_t>(i));
          EXPECT_TRUE(aligned(l));
        });
    pass_on(
        all,
        [](int i) {
          auto p = std::make_unique<page>();
          p->values.fill(i);
          return p;
        },
        [&](const std::unique_ptr<page>& p, int i) { EXPECT_EQ(p->values[1023], i); });
    pass_on(all, [](int i) { return no_default{i}; }, [](const no_default& e, int i) { EXPECT_EQ(e.value(), i); });
    pass_on(
        all, [](int i) { return std::string(static_cast<std::size_t>(i) * 10, 'x'); },
        [](const std::string& s, int i) { EXPECT_EQ(s.size(), static_cast<std::size_t>(i) * 10); });
    pass_on(
        all, [](int i) { return std::array<int, 2000>{i}; },
        [](const std::array<int, 2000>& a, int i) { EXPECT_EQ(a[0] + a[1999], i); });
    pass_on(
        all, [](int i) { return std::optional<int>{i % 2 == 0 ? std::optional<int>{i} : std::nullopt}; },
        [](const std::optional<int>& o, int i) { EXPECT_EQ(o.has_value(), i % 2 == 0); });
    all.join();
  });
}

TEST_P(elements, with_the_alignment_of_a_page_have_it_in_the_buffer) {
  run([](crew&) {
    channel<page> c{2};
    for (int i = 0; i < 2; ++i) {
      auto p = std::make_unique<page>();
      p->values.fill(i);
      EXPECT_EQ(c.try_send(std::move(*p)), channel_status::ok);
    }
    EXPECT_EQ(c.recv()->values[7], 0);
    EXPECT_EQ(c.recv()->values[1023], 1);
  });
}

TEST_P(elements, may_be_channels) {
  run([](crew& all) {
    using answer = std::shared_ptr<channel<int>>;
    channel<answer> asks;
    all.start([&] {
      int n = 0;
      for (const answer& a : asks) static_cast<void>(a->send(++n));
    });
    for (int i = 1; i <= 100; ++i) {
      const auto mine = std::make_shared<channel<int>>();
      static_cast<void>(asks.send(mine));
      EXPECT_EQ(mine->recv(), i);
    }
    asks.close();
    all.join();
  });
}

TEST_P(elements, are_moved_once_into_a_waiting_receiver_twice_through_a_buffer) {
  run([](crew& all) {
    counted::reset();
    channel<counted> direct;
    all.start([&] { EXPECT_EQ(direct.recv()->value, 3); });
    await_receivers(direct, 1);
    static_cast<void>(direct.send(counted{3}));
    all.join();
    EXPECT_EQ(counted::moves, 1);
    channel<counted> buffered{1};
    static_cast<void>(buffered.send(counted{4}));
    EXPECT_EQ(buffered.recv()->value, 4);
    EXPECT_EQ(counted::moves, 3);
    EXPECT_EQ(counted::copies, 0);
    EXPECT_EQ(counted::alive, 0);
    all.join();
  });
}

// Moves that throw: the exception leaves the call that moves; the element stays where it was.

TEST_P(elements, that_throw_on_the_way_into_the_buffer_stay_with_the_sender) {
  run([](crew&) {
    channel<moody> c{2};
    moody shy{1, 2};
    EXPECT_THROW(static_cast<void>(c.send(std::move(shy))), std::runtime_error);
    EXPECT_THROW(static_cast<void>(c.try_send(std::move(shy))), std::runtime_error);
    EXPECT_EQ(shy.value, 1);
    EXPECT_EQ(c.size(), 0u);
    EXPECT_EQ(c.send(std::move(shy)), channel_status::ok);
    EXPECT_EQ(c.recv()->value, 1);
  });
}

TEST_P(elements, that_throw_on_the_way_out_of_the_buffer_stay_there) {
  run([](crew&) {
    channel<moody> c{2};
    moody shy{1};
    const auto mood = shy.throws_left;
    static_cast<void>(c.send(std::move(shy)));
    static_cast<void>(c.send(moody{2}));
    *mood = 3;
    EXPECT_THROW(c.recv(), std::runtime_error);
    EXPECT_THROW(c.try_recv(), std::runtime_error);
    EXPECT_THROW(c.recv_for(1h), std::runtime_error);
    EXPECT_EQ(c.size(), 2u);
    EXPECT_EQ(c.recv()->value, 1);
    EXPECT_EQ(c.recv()->value, 2);
  });
}

TEST_P(elements, that_throw_on_the_way_to_a_receiver_leave_it_waiting) {
  run([](crew& all) {
    for (const std::size_t capacity : {0u, 1u}) {
      channel<moody> c{capacity};
      std::atomic<int> got{0};
      for (int timed = 0; timed < 2; ++timed) {
        all.start([&, timed] { got = timed != 0 ? c.recv_for(1h)->value : c.recv()->value; });
        await_receivers(c, 1);
        moody shy{5, 2};
        EXPECT_THROW(static_cast<void>(c.send(std::move(shy))), std::runtime_error);
        await_receivers(c, 1);
        EXPECT_THROW(static_cast<void>(c.try_send(std::move(shy))), std::runtime_error);
        EXPECT_EQ(shy.value, 5);
        EXPECT_EQ(got, 0);
        EXPECT_EQ(c.send(moody{6}), channel_status::ok);
        await([&] { return got == 6; });
        got = 0;
        all.join();
      }
    }
    all.join();
  });
}

TEST_P(elements, that_throw_on_the_way_from_a_sender_leave_it_waiting) {
  run([](crew& all) {
    channel<moody> c;
    std::atomic<int> sent{0};
    const auto mood = std::make_shared<std::atomic<int>>(0);
    for (int i = 1; i <= 2; ++i) {
      all.start([&, i] {
        moody mine{i};
        if (i == 1) mine.throws_left = mood;
        EXPECT_EQ(c.send(std::move(mine)), channel_status::ok);
        EXPECT_EQ(mine.value, -1);
        sent += i;
      });
      await_senders(c, static_cast<std::size_t>(i));
    }
    *mood = 1;
    EXPECT_THROW(c.recv(), std::runtime_error);
    await_senders(c, 2);  // the first has come back, behind the second
    EXPECT_EQ(sent, 0);
    EXPECT_EQ(c.recv()->value, 2);
    EXPECT_EQ(c.recv()->value, 1);
    await([&] { return sent == 3; });
    all.join();
  });
}

TEST_P(elements, that_throw_when_a_place_becomes_free_hurt_no_receiver) {
  run([](crew& all) {
    channel<moody> c{1};
    static_cast<void>(c.send(moody{1}));
    std::atomic<int> thrown{0};
    std::atomic<bool> sent{false};
    const auto mood = std::make_shared<std::atomic<int>>(0);
    all.start([&] {
      moody mine{2};
      mine.throws_left = mood;
      while (!sent) try {
          EXPECT_EQ(c.send(std::move(mine)), channel_status::ok);
          sent = true;
        } catch (const std::runtime_error&) {
          ++thrown;
        }
    });
    await_senders(c, 1);
    *mood = 2;  // once when the receiver would fill the free place, once in the sender's own call
    EXPECT_EQ(c.recv()->value, 1);
    await([&] { return sent.load(); });
    EXPECT_EQ(thrown, 1);
    EXPECT_EQ(c.recv()->value, 2);
    all.join();
  });
}

TEST_P(elements, that_often_throw_arrive_once_each) {
  run([](crew& all) {
    for (const std::size_t capacity : {0u, 1u, 5u}) {
      channel<moody> c{capacity};
      const int n = scaled(GetParam().migrate_always ? 60 : 300);
      constexpr int parties = 3;
      std::vector<std::atomic<int>> arrived(static_cast<std::size_t>(n * parties));
      std::atomic<int> producing{parties};
      for (int p = 0; p < parties; ++p) {
        all.start([&, p] {
          for (int i = 0; i < n; ++i) {
            moody mine{p * n + i, i % 4};
            for (bool done = false; !done;) try {
                EXPECT_EQ(c.send(std::move(mine)), channel_status::ok);
                done = true;
              } catch (const std::runtime_error&) {
                EXPECT_EQ(mine.value, p * n + i);
              }
          }
          if (--producing == 0) c.close();
        });
        all.start([&] {
          for (;;) try {
              const std::optional<moody> got = c.recv();
              if (!got) return;
              ++arrived.at(static_cast<std::size_t>(got->value));
            } catch (const std::runtime_error&) {
            }
        });
      }
      all.join();
      for (const std::atomic<int>& a : arrived) ASSERT_EQ(a, 1);
    }
    all.join();
  });
}

}  // namespace
}  // namespace ramie
