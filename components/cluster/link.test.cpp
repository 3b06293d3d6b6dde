// Links over a simulated network of seeded loss, delay, reordering, doubling and cuts, and mistakes that this finds.
// Computes.
#include <ramie/cluster/link.hpp>

#include "node.hpp"

#include <gtest/gtest.h>
#include <ramie/base/config.hpp>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using ms = std::chrono::milliseconds;

/// What one side saw, in order.
struct event {
  enum class what { opened, got, lost } kind;
  std::uint64_t session = 0;  // got: of the sender
  std::uint64_t index = 0;
  std::size_t size = 0;
};

struct world {
  struct side final : link_output {
    world* w = nullptr;
    int me = 0;
    std::optional<node_link> l;
    std::vector<event> log;
    std::uint64_t session = 0;  // of mine as a sender: grows with each end
    std::uint64_t next = 0;     // index of what is sent next
    std::deque<std::size_t> held;
    std::size_t held_bytes = 0, held_most = 0;

    void send(std::string_view frame, bool /*probe*/) override { w->transmit(1 - me, frame); }
    void opened() override { log.push_back({event::what::opened}); }
    void deliver(std::string_view payload) override {
      std::uint64_t head[2];
      std::memcpy(head, payload.data(), sizeof(head));
      log.push_back({event::what::got, head[0], head[1], payload.size()});
      held.push_back(payload.size());
      held_bytes += payload.size();
      held_most = std::max(held_most, held_bytes);
    }
    void lost() override {
      log.push_back({event::what::lost});
      ++session;
      next = 0;
      held.clear();
      held_bytes = 0;
    }
  };
  struct in_flight {
    int to;
    std::string bytes;
  };

  explicit world(std::uint64_t seed, link_mistake mistake) : random{seed} {
    loss = percent(30) ? 0 : random() % 300;
    doubles = percent(50) ? 0 : random() % 200;
    delay = 1 + random() % (percent(20) ? 400 : 30);
    cuts = percent(70);
    set.window_bytes = 4096;
    for (int i = 0; i < 2; ++i) {
      sides[i].w = this;
      sides[i].me = i;
      sides[i].l.emplace(sides[i], 1 + random() % 5, now, set, mistake);
    }
  }
  bool percent(unsigned p) { return random() % 100 < p; }

  void transmit(int to, std::string_view frame) {
    ++frames;
    if (cut[to] || (!quiet && random() % 1000 < loss)) return;
    for (int copies = !quiet && random() % 1000 < doubles ? 2 : 1; copies > 0; --copies)
      flying.emplace(now + ms{1 + static_cast<long>(random() % (quiet ? 2 : delay))},
                     in_flight{to, std::string{frame}});
  }

  void act() {
    side& s = sides[random() % 2];
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: {  // a burst
        for (auto n = 1 + random() % 6; n > 0; --n) {
          std::string payload(16 + random() % 600, 'p');
          if (!s.l->can_send(payload.size())) break;
          const std::uint64_t head[2] = {s.session, s.next++};
          std::memcpy(payload.data(), head, sizeof(head));
          s.l->send(payload, now);
        }
        break;
      }
      case 3:
      case 4:
      case 5: consume(s); break;
      case 6: s.l->idle(now); break;
      default:
        if (!cuts || quiet || !percent(6)) break;
        switch (random() % 6) {
          case 0: cut[0] = !cut[0]; break;  // one way
          case 1: cut[1] = !cut[1]; break;
          case 2: cut[0] = cut[1] = !cut[0]; break;
          case 3:  // the server was away: what flew is lost, or came late
            if (percent(50)) flying.clear();
            sides[0].l->reconnected(now);
            sides[1].l->reconnected(now);
            break;
          case 4: s.l->refused(now); break;
          default: s.l->end(now); break;
        }
    }
  }
  void consume(side& s) {
    for (auto n = random() % 5; n > 0 && !s.held.empty(); --n) {
      s.l->passed_on(s.held.front());
      s.held_bytes -= s.held.front();
      s.held.pop_front();
    }
  }

  void run(ms until) {
    while (now < until) {
      now += ms{1};
      for (side& s : sides)
        if (s.l->next_tick() <= now) s.l->tick(now);
      while (!flying.empty() && flying.begin()->first <= now) {
        const in_flight f = std::move(flying.begin()->second);
        flying.erase(flying.begin());
        sides[f.to].l->received(f.bytes, now);
      }
      if (quiet) {
        for (side& s : sides) consume(s);
        if (random() % 20 == 0) act();
      } else if (random() % 4 == 0) {
        act();
      }
    }
  }

  std::mt19937_64 random;
  link_settings set;
  std::uint64_t loss = 0, doubles = 0, delay = 1, frames = 0;
  bool cuts = false, quiet = false;
  bool cut[2] = {false, false};
  ms now{0};
  std::multimap<ms, in_flight> flying;
  side sides[2];
};

/// The promise, for what `to` saw of `from`: empty, or how it is broken. A session of the sender is what it sends
/// between two ends.
std::string judge(const world::side& from, const world::side& to) {
  std::set<std::uint64_t> over;
  std::optional<std::uint64_t> session;
  std::uint64_t expected = 0;
  bool open = false;
  for (const event& e : to.log) {
    if (e.kind == event::what::opened) {
      if (open) return "opened twice";
      open = true;
      session.reset();
      expected = 0;
    } else if (e.kind == event::what::lost) {
      if (session) over.insert(*session);
      open = false;
    } else {
      if (!open) return "something came while the link was not open";
      if (!session) session = e.session;
      if (over.contains(e.session)) return "something came after the link was lost";
      if (e.session != *session) return "two sessions were mixed";
      if (e.index < expected) return "something came twice, or late";
      if (e.index > expected) return "something is missing";
      ++expected;
    }
  }
  if (!from.l->is_open() || !to.l->is_open()) return "the link does not open again";
  if (from.next != 0 && (session != from.session || expected != from.next)) return "what was sent last does not arrive";
  if (!from.l->can_send(600)) return "there is no credit, though all was passed on";
  if (to.held_most > to.w->set.window_bytes) return "more was sent than there was credit for";
  return "";
}

struct outcome {
  std::string wrong;
  std::uint64_t frames = 0;
  std::size_t got = 0, lost = 0;
};

outcome run(std::uint64_t seed, link_mistake mistake = link_mistake::none) {
  world w{seed, mistake};
  w.run(ms{4000 + static_cast<long>(w.random() % 8000)});
  w.quiet = true;
  w.cut[0] = w.cut[1] = false;
  w.run(w.now + ms{9000});
  // No more is sent, and what is under way arrives.
  for (ms end = w.now + ms{6000}; w.now < end;) {
    w.now += ms{1};
    for (world::side& s : w.sides) {
      w.consume(s);
      if (s.l->next_tick() <= w.now) s.l->tick(w.now);
    }
    while (!w.flying.empty() && w.flying.begin()->first <= w.now) {
      const auto f = std::move(w.flying.begin()->second);
      w.flying.erase(w.flying.begin());
      w.sides[f.to].l->received(f.bytes, w.now);
    }
  }
  outcome o;
  o.frames = w.frames;
  for (int i = 0; i < 2; ++i) {
    if (o.wrong.empty()) o.wrong = judge(w.sides[i], w.sides[1 - i]);
    for (const event& e : w.sides[i].log) {
      o.got += e.kind == event::what::got ? 1 : 0;
      o.lost += e.kind == event::what::lost ? 1 : 0;
    }
  }
  return o;
}

constexpr std::uint64_t seeds = RAMIE_TSAN || RAMIE_ASAN ? 150 : 3000;

TEST(links, deliver_in_order_without_gap_or_duplicate_until_lost) {
  std::size_t got = 0, lost = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const outcome o = run(seed);
    ASSERT_EQ(o.wrong, "") << "seed " << seed;
    got += o.got;
    lost += o.lost;
  }
  // It was a test of something.
  EXPECT_GT(got, 100 * seeds);
  EXPECT_GT(lost, seeds / 2);
}

/// How many seeds it takes to find the mistake; 0: not found.
std::uint64_t found_after(link_mistake mistake) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed)
    if (!run(seed, mistake).wrong.empty()) return seed;
  return 0;
}

TEST(links, planted_mistakes_are_found) {
  EXPECT_NE(found_after(link_mistake::acked_too_early), 0u);
  EXPECT_NE(found_after(link_mistake::epoch_ignored), 0u);
  EXPECT_NE(found_after(link_mistake::credit_lost), 0u);
  EXPECT_NE(found_after(link_mistake::not_resent), 0u);
  EXPECT_NE(found_after(link_mistake::duplicates_delivered), 0u);
}

TEST(links, the_judge_sees_wrong_histories) {
  const auto judged = [](std::vector<event> log) {
    world w{1, link_mistake::none};
    w.quiet = true;
    w.run(ms{2000});
    w.sides[0].session = 7;
    w.sides[0].next = 2;
    w.sides[1].log = std::move(log);
    return judge(w.sides[0], w.sides[1]);
  };
  using e = event::what;
  EXPECT_EQ(judged({{e::opened}, {e::got, 7, 0}, {e::got, 7, 1}}), "");
  EXPECT_EQ(judged({{e::opened}, {e::got, 6, 0}, {e::lost}, {e::opened}, {e::got, 7, 0}, {e::got, 7, 1}}), "");
  EXPECT_EQ(judged({{e::opened}, {e::got, 7, 0}}), "what was sent last does not arrive");
  EXPECT_EQ(judged({{e::opened}, {e::got, 7, 1}}), "something is missing");
  EXPECT_EQ(judged({{e::opened}, {e::got, 7, 0}, {e::got, 7, 0}}), "something came twice, or late");
  EXPECT_EQ(judged({{e::opened}, {e::got, 6, 0}, {e::got, 7, 0}}), "two sessions were mixed");
  EXPECT_EQ(judged({{e::got, 7, 0}}), "something came while the link was not open");
  EXPECT_EQ(judged({{e::opened}, {e::got, 7, 0}, {e::lost}, {e::opened}, {e::got, 7, 1}}),
            "something came after the link was lost");
}

TEST(links, notice_a_peer_that_is_gone) {
  world w{3, link_mistake::none};
  w.quiet = true;
  w.run(ms{2000});
  ASSERT_TRUE(w.sides[0].l->is_open());
  const ms cut_at = w.now;
  w.cut[0] = w.cut[1] = true;
  const auto lost_at = [&](int i) {
    while (w.now < cut_at + ms{10'000}) {
      if (w.sides[i].log.back().kind == event::what::lost) return w.now - cut_at;
      w.run(w.now + ms{1});
    }
    return ms{10'000};
  };
  const ms first = lost_at(0);
  EXPECT_GE(first, ms{2400});
  EXPECT_LE(first, ms{3010});  // lost_after
  EXPECT_LE(lost_at(1), ms{3010});
}

TEST(links, believe_the_network_that_nobody_is_there) {
  world w{4, link_mistake::none};
  w.quiet = true;
  w.run(ms{2000});
  node_link& l = *w.sides[0].l;
  ASSERT_TRUE(l.is_open());
  l.refused(w.now);
  EXPECT_TRUE(l.is_open());
  w.now += ms{100};
  l.refused(w.now);
  EXPECT_TRUE(l.is_open());
  w.now += ms{200};
  l.refused(w.now);
  EXPECT_EQ(w.sides[0].log.back().kind, event::what::lost);
  // After a reconnection the peer may be a little later.
  w.run(w.now + ms{3000});
  ASSERT_TRUE(l.is_open());
  l.reconnected(w.now);
  for (int i = 0; i < 10; ++i) {
    w.now += ms{50};
    l.refused(w.now);
  }
  EXPECT_TRUE(l.is_open());
}

TEST(links, ignore_what_is_no_frame) {
  world w{5, link_mistake::none};
  w.quiet = true;
  w.run(ms{1000});
  std::mt19937_64 random{5};
  node_link& l = *w.sides[0].l;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 100, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (i % 2 == 0) bytes = std::string{"ramie\1", 6} + bytes.substr(0, frame_head::size - 7);
    l.received(bytes, w.now);
  }
  w.run(w.now + ms{12'000});
  EXPECT_TRUE(l.is_open());
}

/// Several proxies may be the first to send a kind of message. Its description takes a while to write.
TEST(peers, announce_a_type_before_anyone_writes_it) {
  const auto core = std::make_shared<cluster_core>(cluster_options{}, nullptr);
  known_message kind{};
  kind.index = 7;
  kind.how.name = "kind";
  kind.how.schema.assign(100'000, 's');
  for (int round = 0; round < 50; ++round) {
    peer there{core, {}};
    std::barrier together{4};
    std::vector<std::thread> writers;
    for (int i = 0; i < 4; ++i)
      writers.emplace_back([&] {
        together.arrive_and_wait();
        there.announce(kind);
        there.write("!");
      });
    for (std::thread& w : writers) w.join();
    std::string all;
    for (const std::string& c : there.chunks) all += c;
    EXPECT_EQ(std::count(all.begin(), all.end(), '!'), 4);
    EXPECT_TRUE(all.ends_with("!!!!")) << "round " << round << ": a message went before its type";
    EXPECT_EQ(all.find("kind"), all.rfind("kind")) << "round " << round << ": announced twice";
  }
}

}  // namespace
}  // namespace ramie::detail
