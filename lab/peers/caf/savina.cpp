// CAF: classic actor programs of the Savina suite. What counts as a message is as in ramie's own.
#include "frame.hpp"

#include <common/random.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

namespace {

using std::int64_t;

using next_atom = caf::atom_constant<caf::atom("next")>;
using token_atom = caf::atom_constant<caf::atom("token")>;
using begin_atom = caf::atom_constant<caf::atom("begin")>;
using ping_atom = caf::atom_constant<caf::atom("ping")>;
using pong_atom = caf::atom_constant<caf::atom("pong")>;
using count_atom = caf::atom_constant<caf::atom("count")>;
using get_atom = caf::atom_constant<caf::atom("get")>;
using meet_atom = caf::atom_constant<caf::atom("meet")>;
using met_atom = caf::atom_constant<caf::atom("met")>;
using change_atom = caf::atom_constant<caf::atom("change")>;
using closed_atom = caf::atom_constant<caf::atom("closed")>;

// ---- thread ring ---------------------------------------------------------------------------------------------------

struct ring_state {
  caf::actor next;
};

caf::behavior ring_node(caf::stateful_actor<ring_state>* self, const caf::actor& parent) {
  return {[=](next_atom, const caf::actor& next) { self->state.next = next; },
          [=](token_atom t, int64_t left) {
            if (left > 0) self->send(self->state.next, t, left - 1);
            else self->send(parent, left);
          },
          [=](done_atom) { self->quit(); }};
}

peer::outcome thread_ring(caf::actor_system& system, const peer::options& o) {
  const auto nodes = static_cast<std::size_t>(o.number("nodes", 100));
  const int64_t hops = o.number("hops", 2'000'000);
  int64_t last = -1;
  const double seconds = peer::seconds_of([&] {
    caf::scoped_actor self{system};
    std::vector<caf::actor> ring;
    for (std::size_t i = 0; i < nodes; ++i) ring.push_back(self->spawn(ring_node, caf::actor{self}));
    for (std::size_t i = 0; i < nodes; ++i) self->send(ring[i], next_atom::value, ring[(i + 1) % nodes]);
    self->send(ring[0], token_atom::value, hops);
    self->receive([&](int64_t left) { last = left; });
    for (const caf::actor& node : ring) self->send(node, done_atom::value);
  });
  return {seconds, hops + 1, last == 0};
}

// ---- counting ------------------------------------------------------------------------------------------------------

struct counter_state {
  int64_t count = 0;
};

caf::behavior counter(caf::stateful_actor<counter_state>* self) {
  return {[=](count_atom) { ++self->state.count; },
          [=](get_atom) {
            self->quit();
            return self->state.count;
          }};
}

caf::behavior producer(caf::event_based_actor* self, const caf::actor& to, const caf::actor& parent) {
  return {[=](begin_atom, int64_t count) {
    for (int64_t i = 0; i < count; ++i) self->send(to, count_atom::value);
    self->request(to, caf::infinite, get_atom::value).then([=](int64_t counted) {
      self->send(parent, counted);
      self->quit();
    });
  }};
}

peer::outcome counting(caf::actor_system& system, const peer::options& o) {
  const int64_t count = o.number("count", 1'000'000);
  int64_t counted = 0;
  const double seconds = peer::seconds_of([&] {
    caf::scoped_actor self{system};
    const caf::actor to = self->spawn(counter);
    self->send(self->spawn(producer, to, caf::actor{self}), begin_atom::value, count);
    self->receive([&](int64_t n) { counted = n; });
  });
  return {seconds, count, counted == count};
}

// ---- fork-join throughput ------------------------------------------------------------------------------------------

struct worker_state {
  int64_t done = 0;
  int64_t right = 0;
};

caf::behavior worker(caf::stateful_actor<worker_state>* self, const caf::actor& parent, int64_t wanted) {
  return {[=](double of) {
    const double sine = std::sin(of);
    self->state.right += static_cast<int64_t>(sine * sine <= 1.0);
    if (++self->state.done < wanted) return;
    self->send(parent, self->state.right);
    self->quit();
  }};
}

/// Sends 64 messages to each worker at a time, as ramie's program does before it gives way: else all of them would wait
/// in memory. An actor, for a plain thread would compete with the actors' threads for a core.
caf::behavior distributor(caf::event_based_actor* self, const std::vector<caf::actor>& to, int64_t messages) {
  return {[=](begin_atom begin, int64_t first) {
    const int64_t end = std::min<int64_t>(first + 64, messages);
    for (int64_t m = first; m < end; ++m) {
      for (const caf::actor& a : to) self->send(a, 37.2 + static_cast<double>(m));
    }
    if (end < messages) self->send(self, begin, end);
    else self->quit();
  }};
}

peer::outcome fork_join_throughput(caf::actor_system& system, const peer::options& o) {
  const int64_t actors = o.number("actors", 60);
  const int64_t messages = o.number("messages", 10'000);
  int64_t right = 0;
  const double seconds = peer::seconds_of([&] {
    caf::scoped_actor self{system};
    std::vector<caf::actor> all;
    for (int64_t i = 0; i < actors; ++i) all.push_back(self->spawn(worker, caf::actor{self}, messages));
    self->send(self->spawn(distributor, all, messages), begin_atom::value, int64_t{0});
    int64_t left = actors;
    self->receive_while([&] { return left > 0; })([&](int64_t n) {
      right += n;
      --left;
    });
  });
  return {seconds, actors * messages, right == actors * messages};
}

// ---- big -----------------------------------------------------------------------------------------------------------

using players = std::vector<caf::actor>;

struct player_state {
  peer::random_numbers random{1};
  int64_t left = 0;
  int64_t pongs = 0;
};

void ping_another(caf::stateful_actor<player_state>* self, const players& all, const caf::actor& parent) {
  if (self->state.left-- > 0) self->send(all[self->state.random.below(all.size())], ping_atom::value);
  else self->send(parent, self->state.pongs);
}

/// What a handler returns goes to the sender.
caf::behavior player(caf::stateful_actor<player_state>* self, const std::shared_ptr<players>& all,
                     const caf::actor& parent, std::uint64_t seed, int64_t pings) {
  self->state.random = peer::random_numbers{seed};
  self->state.left = pings;
  return {[=](begin_atom) { ping_another(self, *all, parent); }, [=](ping_atom) { return pong_atom::value; },
          [=](pong_atom) {
            ++self->state.pongs;
            ping_another(self, *all, parent);
          },
          [=](done_atom) { self->quit(); }};
}

peer::outcome big(caf::actor_system& system, const peer::options& o) {
  const int64_t actors = o.number("actors", 120);
  const int64_t pings = o.number("pings", 10'000);
  int64_t pongs = 0;
  const auto all = std::make_shared<players>();
  const double seconds = peer::seconds_of([&] {
    caf::scoped_actor self{system};
    for (int64_t i = 0; i < actors; ++i)
      all->push_back(self->spawn(player, all, caf::actor{self}, static_cast<std::uint64_t>(i), pings));
    for (const caf::actor& p : *all) self->send(p, begin_atom::value);
    int64_t left = actors;
    self->receive_while([&] { return left > 0; })([&](int64_t n) {
      pongs += n;
      --left;
    });
    for (const caf::actor& p : *all) self->send(p, done_atom::value);
  });
  return {seconds, 2 * actors * pings, pongs == actors * pings};
}

// ---- chameneos -----------------------------------------------------------------------------------------------------

int64_t complement(int64_t a, int64_t b) { return a == b ? a : 3 - a - b; }

struct mall_state {
  int64_t left = 0;
  int64_t creatures = 0;
  int64_t sum = 0;
  caf::actor waiting;
  int64_t its_colour = 0;
};

caf::behavior mall(caf::stateful_actor<mall_state>* self, const caf::actor& parent, int64_t meetings,
                   int64_t creatures) {
  self->state.left = meetings;
  self->state.creatures = creatures;
  return {[=](meet_atom, const caf::actor& who, int64_t colour) {
            mall_state& state = self->state;
            if (state.left == 0) {
              self->send(who, closed_atom::value);
            } else if (!state.waiting) {
              state.waiting = who;
              state.its_colour = colour;
            } else {
              --state.left;
              self->send(state.waiting, met_atom::value, who, colour);
              state.waiting = nullptr;
            }
          },
          [=](count_atom, int64_t met) {
            self->state.sum += met;
            if (--self->state.creatures > 0) return;
            self->send(parent, self->state.sum);
            self->quit();
          }};
}

struct creature_state {
  int64_t colour = 0;
  int64_t count = 0;
};

caf::behavior creature(caf::stateful_actor<creature_state>* self, const caf::actor& where, int64_t colour) {
  self->state.colour = colour;
  const auto again = [=] {
    ++self->state.count;
    self->send(where, meet_atom::value, caf::actor{self}, self->state.colour);
  };
  self->send(where, meet_atom::value, caf::actor{self}, colour);
  return {[=](met_atom, const caf::actor& other, int64_t of) {
            self->state.colour = complement(self->state.colour, of);
            self->send(other, change_atom::value, self->state.colour);
            again();
          },
          [=](change_atom, int64_t to) {
            self->state.colour = to;
            again();
          },
          [=](closed_atom) {
            self->send(where, count_atom::value, self->state.count);
            self->quit();
          }};
}

peer::outcome chameneos(caf::actor_system& system, const peer::options& o) {
  const int64_t creatures = o.number("creatures", 100);
  const int64_t meetings = o.number("meetings", 200'000);
  int64_t sum = 0;
  const double seconds = peer::seconds_of([&] {
    caf::scoped_actor self{system};
    const caf::actor where = self->spawn(mall, caf::actor{self}, meetings, creatures);
    for (int64_t i = 0; i < creatures; ++i) self->spawn(creature, where, i % 3);
    self->receive([&](int64_t n) { sum = n; });
  });
  return {seconds, 4 * meetings, sum == 2 * meetings};
}

}  // namespace

std::vector<peer::entry> savina_entries() {
  std::vector<peer::entry> entries;
  add_entries(entries, "thread_ring", "message", thread_ring);
  add_entries(entries, "counting", "message", counting);
  add_entries(entries, "fork_join_throughput", "message", fork_join_throughput);
  add_entries(entries, "big", "message", big);
  add_entries(entries, "chameneos", "message", chameneos);
  return entries;
}
