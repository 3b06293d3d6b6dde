// CAF: the mixed case, skynet and ping-pong with event-based, dynamically typed actors.
#include "frame.hpp"

#include <common/skynet.hpp>

namespace {

using std::int64_t;
using std::uint64_t;

constexpr uint64_t product = 28'350'160'440'309'881;

// Messages are told apart by their types, as in the library's own examples of its time.
using token_atom = caf::atom_constant<caf::atom("token")>;
using task_atom = caf::atom_constant<caf::atom("task")>;
using factors_atom = caf::atom_constant<caf::atom("factors")>;
using ping_atom = caf::atom_constant<caf::atom("ping")>;
using pong_atom = caf::atom_constant<caf::atom("pong")>;

/// Trial division as the original has it: no end at the square root.
std::vector<uint64_t> factorise(uint64_t n) {
  std::vector<uint64_t> factors;
  for (uint64_t d = 2; d < n;) {
    if (n % d == 0) {
      factors.push_back(d);
      n /= d;
    } else {
      d = d == 2 ? 3 : d + 2;
    }
  }
  factors.push_back(n);
  return factors;
}

struct mixed_sizes {
  int64_t rings;
  int64_t ring_size;
  int64_t token;
  int64_t repetitions;
  bool factorises;
};

caf::behavior link_of(caf::event_based_actor* self, const caf::actor& next) {
  return {[=](token_atom t, int64_t value) {
    self->send(next, t, value);
    if (value == 0) self->quit();
  }};
}

caf::behavior worker(caf::event_based_actor* self, const caf::actor& collector) {
  return {[=](task_atom, uint64_t n) {
            const std::vector<uint64_t> factors = factorise(n);
            self->send(collector, factors_atom::value, factors.size() == 2 ? factors[0] * factors[1] : 0);
          },
          [=](done_atom) { self->quit(); }};
}

struct master_state {
  caf::actor first;
  caf::actor worker;
  int64_t rings_left = 0;
  int64_t rounds = 0;
};

void build_ring(caf::stateful_actor<master_state>* self, const mixed_sizes& sizes) {
  master_state& state = self->state;
  if (sizes.factorises) self->send(state.worker, task_atom::value, product);
  caf::actor next = self;
  for (int64_t i = 1; i < sizes.ring_size; ++i) next = self->spawn(link_of, next);
  state.first = next;
  --state.rings_left;
  self->send(state.first, token_atom::value, sizes.token);
}

caf::behavior master(caf::stateful_actor<master_state>* self, const caf::actor& collector, const mixed_sizes& sizes) {
  if (sizes.factorises) self->state.worker = self->spawn(worker, collector);
  self->state.rings_left = sizes.repetitions;
  build_ring(self, sizes);
  return {[=](token_atom t, int64_t value) {
    master_state& state = self->state;
    ++state.rounds;
    if (value > 0) {
      self->send(state.first, t, value - 1);
    } else if (state.rings_left > 0) {
      build_ring(self, sizes);
    } else {
      if (sizes.factorises) self->send(state.worker, done_atom::value);
      self->send(collector, done_atom::value, state.rounds * sizes.ring_size);
      self->quit();
    }
  }};
}

/// Starts everything and collects. This is the thread of the caller.
peer::outcome mixed_once(caf::actor_system& system, const mixed_sizes& sizes) {
  const int64_t results_wanted = sizes.factorises ? sizes.rings * sizes.repetitions : 0;
  int64_t masters = 0;
  int64_t messages = 0;
  int64_t results = 0;
  int64_t right = 0;
  const double seconds = peer::seconds_of([&] {
    caf::scoped_actor self{system};
    const caf::actor collector{self};
    for (int64_t i = 0; i < sizes.rings; ++i) self->spawn(master, collector, sizes);
    self->receive_while([&] { return masters < sizes.rings || results < results_wanted; })(
        [&](factors_atom, uint64_t found) {
          ++results;
          if (found == product) ++right;
        },
        [&](done_atom, int64_t passed) {
          ++masters;
          messages += passed;
        });
  });
  const int64_t units = sizes.rings * sizes.repetitions * sizes.ring_size * (sizes.token + 1);
  return {seconds, units, messages == units && right == results_wanted};
}

struct sum_state {
  int64_t sum = 0;
  int64_t missing = peer::fan_out;
};

caf::behavior skynet_node(caf::stateful_actor<sum_state>* self, const caf::actor& parent, int64_t first,
                          int64_t leaves) {
  if (leaves == 1) {
    self->send(parent, first);
    return {};
  }
  const int64_t part = leaves / peer::fan_out;
  for (int64_t i = 0; i < peer::fan_out; ++i) self->spawn(skynet_node, caf::actor{self}, first + i * part, part);
  return {[=](int64_t sum) {
    self->state.sum += sum;
    if (--self->state.missing > 0) return;
    self->send(parent, self->state.sum);
    self->quit();
  }};
}

peer::outcome skynet_once(caf::actor_system& system, int64_t leaves) {
  int64_t sum = -1;
  const double seconds = peer::seconds_of([&] {
    caf::scoped_actor self{system};
    self->spawn(skynet_node, caf::actor{self}, 0, leaves);
    self->receive([&](int64_t total) { sum = total; });
  });
  return {seconds, peer::skynet_nodes(leaves), sum == peer::skynet_sum(leaves)};
}

caf::behavior ponger(caf::event_based_actor* self, const caf::actor& pinger) {
  return {[=](ping_atom, int64_t value) { self->send(pinger, pong_atom::value, value + 1); }};
}

caf::behavior pinger(caf::event_based_actor* self, const caf::actor& parent, int64_t rounds) {
  const caf::actor other = self->spawn(ponger, caf::actor{self});
  self->send(other, ping_atom::value, int64_t{0});
  return {[=](pong_atom, int64_t value) {
    if (value < rounds) {
      self->send(other, ping_atom::value, value);
      return;
    }
    self->send(parent, value);
    self->send_exit(other, caf::exit_reason::user_shutdown);
    self->quit();
  }};
}

peer::outcome pingpong_once(caf::actor_system& system, int64_t messages) {
  const int64_t rounds = messages / 2;
  int64_t last = 0;
  const double seconds = peer::seconds_of([&] {
    caf::scoped_actor self{system};
    self->spawn(pinger, caf::actor{self}, rounds);
    self->receive([&](int64_t value) { last = value; });
  });
  return {seconds, 2 * rounds, last == rounds};
}

struct counter_state {
  int64_t count = 0;
};

caf::behavior counter(caf::stateful_actor<counter_state>* self) {
  return {[=](int64_t n) { self->state.count += n; }, [=](done_atom) { self->quit(); }};
}

peer::outcome idle_once(caf::actor_system& system, int64_t count) {
  std::vector<caf::actor> actors(static_cast<std::size_t>(count));
  const int64_t before = peer::status_bytes("VmRSS:");
  const double seconds = peer::seconds_of([&] {
    for (caf::actor& a : actors) a = system.spawn(counter);
  });
  const int64_t grown = peer::status_bytes("VmRSS:") - before;
  const bool all_live = system.registry().running() >= static_cast<std::size_t>(count);
  for (const caf::actor& a : actors) caf::anon_send(a, done_atom::value);
  return {seconds,
          count,
          all_live,
          {{"resident_bytes_per_actor", static_cast<double>(grown) / static_cast<double>(count)}}};
}

void mixed(const peer::options& o, const measure& m) {
  const mixed_sizes sizes{o.number("rings", 20), o.number("ring-size", 50), o.number("token", 10'000),
                          o.number("repetitions", 5), o.number("messages-only", 0) == 0};
  with_system(o, m, [&](caf::actor_system& system) { return mixed_once(system, sizes); });
}

void skynet(const peer::options& o, const measure& m) {
  with_system(o, m, [&](caf::actor_system& system) { return skynet_once(system, o.number("leaves", 1'000'000)); });
}

void pingpong(const peer::options& o, const measure& m) {
  with_system(o, m, [&](caf::actor_system& system) { return pingpong_once(system, o.number("messages", 2'000'000)); });
}

void idle(const peer::options& o, const measure& m) {
  with_system(o, m, [&](caf::actor_system& system) { return idle_once(system, o.number("count", 1'000'000)); });
}

}  // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(mixed_sizes)

int main(int argc, char** argv) {
  if (argc == 4 && std::string{argv[1]} == "far") return serve_across(argv[2], std::atoi(argv[3]));
  std::vector<peer::entry> entries = savina_entries();
  for (const peer::entry& e : affinity_entries()) entries.push_back(e);
  for (const peer::entry& e : across_entries()) entries.push_back(e);
  for (const char* policy : {"stealing", "sharing"}) {
    entries.push_back({"mixed", policy, "message", mixed});
    entries.push_back({"skynet", policy, "fiber", skynet});
    entries.push_back({"pingpong", policy, "message", pingpong});
    entries.push_back({"idle_actors", policy, "actor", idle});
  }
  return peer::run("caf", "0.17", entries, argc, argv);
}
