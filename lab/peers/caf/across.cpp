// CAF: experiment 8, actors of two processes by its middleman (the protocol BASP over TCP).
#include "frame.hpp"

#include <common/processes.hpp>

#include <caf/io/all.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace {

using std::int64_t;

using note_atom = caf::atom_constant<caf::atom("note")>;
using many_atom = caf::atom_constant<caf::atom("many")>;
using number_atom = caf::atom_constant<caf::atom("number")>;
using members_atom = caf::atom_constant<caf::atom("members")>;

struct noted {
  int64_t count = 0;
};

caf::behavior noting(caf::stateful_actor<noted>* self) {
  return {[=](note_atom, const std::string&) { ++self->state.count; }, [=](many_atom) { return self->state.count; },
          [=](number_atom, int64_t n) { return n; },
          [=](members_atom, int64_t count) {
            std::vector<caf::strong_actor_ptr> all;
            for (int64_t i = 0; i < count; ++i)
              all.push_back(caf::actor_cast<caf::strong_actor_ptr>(self->spawn(noting)));
            return all;
          }};
}

struct io_config : caf::actor_system_config {
  io_config(const std::string& policy, int workers) {
    load<caf::io::middleman>();
    set("scheduler.policy", caf::atom_from_string(policy));
    set("scheduler.max-threads", static_cast<std::size_t>(workers));
  }
};

/// The far process, the near one's system, and the far actor. `once(self, far actor, processors())`.
template <class Once>
void with_far(const peer::options& o, const measure& m, Once once) {
  peer::child far{{peer::this_program(), "far", o.style, std::to_string(o.workers)}};
  const auto port = static_cast<std::uint16_t>(std::stoi(far.line()));
  io_config config{o.style, o.workers};
  caf::actor_system system{config};
  const auto there = system.middleman().remote_actor("127.0.0.1", port);
  if (!there) throw std::runtime_error{"CAF: cannot connect: " + system.render(there.error())};
  m([&] {
    caf::scoped_actor self{system};
    const double before = peer::processor_s("self") + peer::processor_s(far.id());
    peer::outcome all = once(self, *there);
    all.figures["processor_ns_per_unit"] =
        (peer::processor_s("self") + peer::processor_s(far.id()) - before) / static_cast<double>(all.units) * 1e9;
    return all;
  });
}

template <class T, class... What>
T asked(caf::scoped_actor& self, const caf::actor& whom, What... what) {
  T got{};
  self->request(whom, std::chrono::seconds{60}, what...)
      .receive([&](const T& value) { got = value; },
               [&](caf::error& e) { throw std::runtime_error{"CAF: " + self->system().render(e)}; });
  return got;
}

void tell(const peer::options& o, const measure& m) {
  const int64_t count = o.number("count", 500'000);
  const std::string text(static_cast<std::size_t>(o.number("size", 64)), 'x');
  with_far(o, m, [&](caf::scoped_actor& self, const caf::actor& there) {
    const auto before = asked<int64_t>(self, there, many_atom::value);
    int64_t got = 0;
    const double seconds = peer::seconds_of([&] {
      for (int64_t i = 0; i < count; ++i) self->send(there, note_atom::value, text);
      got = asked<int64_t>(self, there, many_atom::value) - before;
    });
    return peer::outcome{seconds, count, got == count, {{"lost", static_cast<double>(count - got)}}};
  });
}

void ask(const peer::options& o, const measure& m) {
  const int64_t count = o.number("count", 2000);
  with_far(o, m, [&](caf::scoped_actor& self, const caf::actor& there) {
    std::vector<double> us;
    bool ok = true;
    const double seconds = peer::seconds_of([&] {
      for (int64_t i = 0; i < count; ++i)
        us.push_back(1e6 *
                     peer::seconds_of([&] { ok = asked<int64_t>(self, there, number_atom::value, i) == i && ok; }));
    });
    std::sort(us.begin(), us.end());
    return peer::outcome{seconds, count, ok, {{"p50_us", us[us.size() / 2]}, {"p99_us", us[us.size() * 99 / 100]}}};
  });
}

void fan_out(const peer::options& o, const measure& m) {
  const int64_t count = o.number("count", 20'000);
  const int64_t members = o.number("members", 16);
  const std::string text(static_cast<std::size_t>(o.number("size", 64)), 'x');
  with_far(o, m, [&](caf::scoped_actor& self, const caf::actor& there) {
    std::vector<caf::actor> all;
    for (const auto& one : asked<std::vector<caf::strong_actor_ptr>>(self, there, members_atom::value, members))
      all.push_back(caf::actor_cast<caf::actor>(one));
    int64_t got = 0;
    const double seconds = peer::seconds_of([&] {
      for (int64_t i = 0; i < count; ++i)
        for (const caf::actor& a : all) self->send(a, note_atom::value, text);
      for (const caf::actor& a : all) got += asked<int64_t>(self, a, many_atom::value);
    });
    for (const caf::actor& a : all) self->send_exit(a, caf::exit_reason::user_shutdown);
    return peer::outcome{
        seconds, count * members, got == count * members, {{"lost", static_cast<double>(count * members - got)}}};
  });
}

}  // namespace

int serve_across(const std::string& policy, int workers) {
  io_config config{policy, workers};
  caf::actor_system system{config};
  const auto port = system.middleman().publish(system.spawn(noting), 0, "127.0.0.1");
  if (!port) return 1;
  std::printf("%d\n", static_cast<int>(*port));
  std::fflush(stdout);
  for (;;) ::pause();
}

std::vector<peer::entry> across_entries() {
  std::vector<peer::entry> entries;
  for (const char* policy : {"stealing", "sharing"}) {
    entries.push_back({"across_tell", policy, "message", tell});
    entries.push_back({"across_ask", policy, "request", ask});
    entries.push_back({"across_fan_out", policy, "message", fan_out});
  }
  return entries;
}
