// A producer sends increments as fast as it can; then the counter is asked.
#include <lab/workloads/savina/savina.hpp>

namespace ramie::lab {
namespace {

struct increment {};
struct how_many {};
struct start {
  std::int64_t count;
};

class counter : public ramie::actor<counter> {
 public:
  void on(increment) { ++count_; }
  std::int64_t on(how_many) { return count_; }

 private:
  std::int64_t count_ = 0;
};

class producer : public ramie::actor<producer> {
 public:
  explicit producer(ramie::actor_ref<counter> to) : counter_{std::move(to)} {}
  std::int64_t on(start s) {
    for (std::int64_t i = 0; i < s.count; ++i) counter_.tell(increment{});
    return counter_.ask(how_many{});
  }

 private:
  ramie::actor_ref<counter> counter_;
};

run_result run(session& s) {
  const std::int64_t count = s.parameter("count");
  return run_savina(s, [&] {
    auto c = ramie::spawn_actor<counter>();
    auto p = ramie::spawn_actor<producer>(c);
    const std::int64_t counted = p.ask(start{count});
    p.stop();
    c.stop();
    p.join();
    c.join();
    return savina_outcome{count, counted == count};
  });
}

}  // namespace

workload savina_counting() {
  return savina_workload("counting", "one actor sends another increments, without a pause",
                         {{.name = "count", .help = "increments", .standard = 1'000'000, .min = 1, .max = 100'000'000}},
                         run);
}

}  // namespace ramie::lab
