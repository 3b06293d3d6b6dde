// What an actor gets when it needs it first (actor/extras.hpp): another actor may make it, by a link, while the actor
// itself uses it; and constructors that give references away.
#include "programs.hpp"

#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <utility>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

struct keep {};
struct give_back {};
struct count {};
struct link_to {
  any_actor whom;
};
struct take {};

class answering : public actor<answering> {
 public:
  int on(take) { return 3; }
};

/// What the actor does first, for which it needs, or looks for, what a link makes, too.
enum class first : std::uint8_t { stashes, asks, unstashes };

class busy : public actor<busy> {
 public:
  busy(actor_ref<answering> from, first does) : from_{std::move(from)}, does_{does} {}
  void on(const keep&) {
    if (++seen_ == 1 && does_ == first::stashes) {
      stash();
      return;
    }
    ask_then(from_, take{}, [this](answer<int> a) { answers_ += a.value(); });
  }
  void on(give_back) { unstash_all(); }
  int on(count) { return answers_; }

 private:
  actor_ref<answering> from_;
  first does_;
  int seen_ = 0;
  int answers_ = 0;
};

class linking : public actor<linking> {
 public:
  void on(const link_to& l) { link(l.whom); }
};

/// It is busy just when another worker links to it.
template <first does>
void link_to_one_that_is_busy() {
  auto from = spawn_actor<answering>();
  auto b = spawn_actor<linking>();
  for (int i = 0; i < 3; ++i) {
    auto a = spawn_actor<busy>(from, does);
    auto linker = spawn([b, a] { b.tell(link_to{a}); });
    switch (does) {
      case first::stashes: a.tell(keep{}); [[fallthrough]];
      case first::asks: a.tell(keep{}); break;
      case first::unstashes: break;
    }
    a.tell(give_back{});
    a.tell(keep{});
    detail::os_sleep(200 * pick(50));  // the linker is stolen
    linker.join();
    while (a.ask(count{}) == 0) this_fiber::sleep_for(2us);
    a.stop();
    a.join();
  }
  b.stop();
  b.join();
  from.stop();
  from.join();
}
TEST(an_actor, uses_what_a_first_link_makes) {
  expect_sound("stash beside a first link", {.seeds = 1500}, in_runtime(link_to_one_that_is_busy<first::stashes>));
  expect_sound("ask_then beside a first link", {.seeds = 1500}, in_runtime(link_to_one_that_is_busy<first::asks>));
  expect_sound("unstash beside a first link", {.seeds = 1500}, in_runtime(link_to_one_that_is_busy<first::unstashes>));
}

/// The same, but it keeps its first message at about the moment of the link. That it looks for that moment orders
/// nothing.
struct moment {
  detail::atomic<bool> has_come{false};
};
class linking_at : public actor<linking_at> {
 public:
  explicit linking_at(moment& m) : m_{m} {}
  void on(const link_to& l) {
    m_.has_come.store(true, std::memory_order_relaxed);
    link(l.whom);
  }

 private:
  moment& m_;
};
class keeping_at : public actor<keeping_at> {
 public:
  explicit keeping_at(moment& m) : m_{m} {}
  void on(const keep&) {
    if (++seen_ > 1) return;
    for (int i = 0; i < 300 && !m_.has_come.load(std::memory_order_relaxed); ++i) detail::spin_pause();
    for (unsigned i = pick(12); i != 0; --i) detail::spin_pause();
    stash();
  }
  void on(give_back) { unstash_all(); }
  int on(count) { return seen_; }

 private:
  moment& m_;
  int seen_ = 0;
};
void keep_at_the_moment_of_a_link() {
  moment m;
  auto b = spawn_actor<linking_at>(std::ref(m));
  auto a = spawn_actor<keeping_at>(std::ref(m));
  fork_join([&] { b.tell(link_to{a}); }, [&] { a.tell(keep{}); });
  a.tell(give_back{});
  while (a.ask(count{}) != 2) this_fiber::sleep_for(2us);
  for (const any_actor& each : {any_actor{a}, any_actor{b}}) {
    each.stop();
    each.join();
  }
}
TEST(an_actor, keeps_a_message_while_it_is_linked_to) {
  expect_sound("keep at the moment of a link", {.seeds = 3000}, in_runtime(keep_at_the_moment_of_a_link));
}

/// Its constructor gives a reference to a fiber that sends something, and is gone.
class generous : public actor<generous> {
 public:
  generous() {
    spawn([me = self()] { me.tell(keep{}); }).detach();
    if (pick(2) == 0) wait_a_little();
  }
  void on(keep) { ++got_; }
  int on(count) { return got_; }

 private:
  int got_ = 0;
};

void give_oneself_away() {
  for (int i = 0; i < 2; ++i) {
    auto a = spawn_actor<generous>();
    while (a.ask(count{}) == 0) this_fiber::sleep_for(2us);
    a.stop();
    a.join();
  }
}
TEST(an_actor, may_give_itself_away_in_its_constructor) {
  expect_sound("give oneself away", {.seeds = 2000}, in_runtime(give_oneself_away));
}

}  // namespace
}  // namespace ramie::interleave
