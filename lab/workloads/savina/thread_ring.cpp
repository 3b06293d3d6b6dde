// A token goes round a ring of actors until its hops are used up.
#include <lab/workloads/savina/savina.hpp>

namespace ramie::lab {
namespace {

struct token {
  std::int64_t left;
};

class node : public ramie::actor<node> {
 public:
  void on(ramie::actor_ref<node> next) { next_ = std::move(next); }
  bool on(token t) {
    if (t.left > 0) next_.tell(token{t.left - 1});
    else next_.stop();  // each ends the next one, the last ends itself
    return t.left == 0;
  }
  void on(const ramie::down&) {}

 private:
  ramie::actor_ref<node> next_;
};

run_result run(session& s) {
  const std::int64_t nodes = s.parameter("nodes");
  const std::int64_t hops = s.parameter("hops");
  return run_savina(s, [&] {
    const std::vector<ramie::actor_ref<node>> ring = spawn_actors<node>(nodes);
    for (std::size_t i = 0; i < ring.size(); ++i) ring[i].tell(ring[(i + 1) % ring.size()]);
    ring[0].tell(token{hops});
    const std::size_t stopped = static_cast<std::size_t>((hops + 1) % nodes);
    const bool ok = ring[stopped].join().normal();
    for (const auto& n : ring) n.stop();
    for (const auto& n : ring) n.join();
    return savina_outcome{hops + 1, ok};
  });
}

}  // namespace

workload savina_thread_ring() {
  return savina_workload(
      "thread_ring", "a token goes round a ring of actors",
      {{.name = "nodes", .help = "actors", .standard = 100, .min = 2, .max = 1'000'000},
       {.name = "hops", .help = "hops of the token", .standard = 2'000'000, .min = 0, .max = 1'000'000'000}},
      run);
}

}  // namespace ramie::lab
