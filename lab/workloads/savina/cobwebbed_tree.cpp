// An unbalanced tree of actors grows at random places; then the root has it counted ("unbalanced cobwebbed tree").
#include <lab/workloads/savina/savina.hpp>

#include <algorithm>

namespace ramie::lab {
namespace {

struct grow {
  std::uint64_t way;  // down the tree, a bit a level
};
struct shape {
  std::int64_t nodes;
  std::int64_t height;
  std::int64_t messages;
};
struct measure {};

class node : public ramie::actor<node> {
 public:
  explicit node(std::int64_t work) : work_{work} {}
  void on(grow g) {
    ++messages_;
    // A little work at each node on the way.
    double sum = 0;
    for (std::int64_t i = 1; i <= work_; ++i) sum += 1.0 / static_cast<double>(i);
    burnt_ += sum;
    auto& child = children_[g.way & 1];
    if (child) child.tell(grow{g.way >> 1});
    else child = ramie::spawn_actor<node>(work_);
  }
  shape on(measure) {
    shape all{1, 1, messages_ + 1};
    for (auto& child : children_) {
      if (!child) continue;
      const shape of = child.ask(measure{});
      all.nodes += of.nodes;
      all.messages += of.messages + 1;
      all.height = std::max(all.height, of.height + 1);
      child.stop();
      child.join();
    }
    return all;
  }

 private:
  std::int64_t work_;
  std::int64_t messages_ = 0;
  double burnt_ = 0;
  ramie::actor_ref<node> children_[2];
};

run_result run(session& s) {
  const std::int64_t nodes = s.parameter("nodes");
  return run_savina(s, [&] {
    auto root = ramie::spawn_actor<node>(s.parameter("work"));
    small_random random{3};
    for (std::int64_t i = 1; i < nodes; ++i) {
      // A bit is set in three cases of eight: unbalanced. Below 64 levels all go one way.
      root.tell(grow{random.next() & (random.next() | random.next())});
      if (i % 64 == 0) ramie::this_fiber::yield();
    }
    const shape all = root.ask(measure{});
    root.stop();
    root.join();
    return savina_outcome{all.messages, all.nodes == nodes && all.height > 1};
  });
}

}  // namespace

workload savina_cobwebbed_tree() {
  return savina_workload("cobwebbed_tree", "an unbalanced tree of actors grows at random, and is counted",
                         {{.name = "nodes", .help = "actors", .standard = 100'000, .min = 2, .max = 10'000'000},
                          {.name = "work",
                           .help = "divisions at each node that a message passes",
                           .standard = 10,
                           .min = 0,
                           .max = 1'000'000}},
                         run);
}

}  // namespace ramie::lab
