// CAF: experiment 5, actors whose messages touch their state, alone and talking.
#include "frame.hpp"

#include <common/random.hpp>

#include <memory>
#include <numeric>

namespace {

using std::int64_t;
using std::uint64_t;

struct world {
  int64_t accesses = 0;
  bool talking = false;
  caf::actor parent;
  std::vector<std::vector<uint64_t>> states;
  std::vector<caf::actor> cells;
};

struct cell_state {
  peer::random_numbers random{1};
};

caf::behavior cell(caf::stateful_actor<cell_state>* self, const std::shared_ptr<world>& w, std::size_t number) {
  self->state.random = peer::random_numbers{number + 1};
  return {[=](int64_t left) {
            peer::touch(w->states[number], w->accesses, self->state.random);
            if (left == 0) self->send(w->parent, done_atom::value);
            else if (w->talking) self->send(w->cells[self->state.random.below(w->cells.size())], left - 1);
            else self->send(self, left - 1);
          },
          [=](done_atom) { self->quit(); }};
}

peer::outcome affinity(caf::actor_system& system, const peer::options& o) {
  const int64_t actors = o.number("actors", 24);
  const bool talking = o.number("talking", 0) != 0;
  const int64_t lines = talking ? o.number("messages", 12) : actors;
  const int64_t each = std::max<int64_t>(1, o.number("count", 1'000'000) / lines);
  const auto words = static_cast<std::size_t>(o.number("state", 32'000)) / sizeof(uint64_t);
  caf::scoped_actor self{system};
  const auto w = std::make_shared<world>();
  w->accesses = o.number("accesses", 100);
  w->talking = talking;
  w->parent = self;
  w->states.assign(static_cast<std::size_t>(actors), std::vector<uint64_t>(words));
  for (std::size_t i = 0; i < w->states.size(); ++i) w->cells.push_back(self->spawn(cell, w, i));
  const double seconds = peer::seconds_of([&] {
    for (int64_t i = 0; i < lines; ++i) self->send(w->cells[static_cast<std::size_t>(i % actors)], each - 1);
    int64_t left = lines;
    self->receive_while([&] { return left > 0; })([&](done_atom) { --left; });
  });
  for (const caf::actor& c : w->cells) self->send(c, done_atom::value);
  uint64_t touched = 0;
  for (const auto& state : w->states) touched = std::accumulate(state.begin(), state.end(), touched);
  return {seconds, lines * each, touched == static_cast<uint64_t>(lines * each * w->accesses)};
}

}  // namespace

std::vector<peer::entry> affinity_entries() {
  std::vector<peer::entry> entries;
  add_entries(entries, "affinity", "message", affinity);
  return entries;
}
