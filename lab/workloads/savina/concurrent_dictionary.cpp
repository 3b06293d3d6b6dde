// Workers read and write a dictionary that an actor keeps.
#include <lab/workloads/savina/savina.hpp>

#include <unordered_map>

namespace ramie::lab {
namespace {

struct put {
  std::int64_t key;
  std::int64_t value;
};
struct get {
  std::int64_t key;
};
struct work {};

class dictionary : public ramie::actor<dictionary> {
 public:
  std::int64_t on(put p) { return map_[p.key] = p.value; }
  std::int64_t on(get g) {
    const auto found = map_.find(g.key);
    return found == map_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<std::int64_t, std::int64_t> map_;
};

class worker : public ramie::actor<worker> {
 public:
  worker(ramie::actor_ref<dictionary> d, std::uint64_t seed, std::int64_t count, std::int64_t writes)
      : dictionary_{std::move(d)}, random_{seed}, count_{count}, writes_{writes} {}
  /// How many answers were right: a key's value is always its square.
  std::int64_t on(work) {
    std::int64_t right = 0;
    for (std::int64_t i = 0; i < count_; ++i) {
      const std::int64_t key = 1 + random_.below(5000);
      const bool writes = random_.below(100) < writes_;
      const std::int64_t value = writes ? dictionary_.ask(put{key, key * key}) : dictionary_.ask(get{key});
      right += static_cast<std::int64_t>(value == key * key || (!writes && value == 0));
    }
    return right;
  }

 private:
  ramie::actor_ref<dictionary> dictionary_;
  small_random random_;
  std::int64_t count_;
  std::int64_t writes_;
};

run_result run(session& s) {
  const std::int64_t workers = s.parameter("actors");
  const std::int64_t count = s.parameter("requests");
  const std::int64_t writes = s.parameter("write-percent");
  return run_savina(s, [&] {
    auto d = ramie::spawn_actor<dictionary>();
    std::vector<ramie::actor_ref<worker>> all;
    std::vector<ramie::future<std::int64_t>> results;
    for (std::int64_t i = 0; i < workers; ++i) {
      all.push_back(ramie::spawn_actor<worker>(d, static_cast<std::uint64_t>(i), count, writes));
      results.push_back(all.back().ask_async(work{}));
    }
    std::int64_t right = 0;
    for (auto& r : results) right += r.get();
    for (const auto& a : all) a.stop();
    for (const auto& a : all) a.join();
    d.stop();
    d.join();
    return savina_outcome{2 * workers * count, right == workers * count};
  });
}

}  // namespace

workload savina_concurrent_dictionary() {
  return savina_workload(
      "concurrent_dictionary", "workers read and write a dictionary that an actor keeps",
      {{.name = "actors", .help = "workers", .standard = 20, .min = 1, .max = 100'000},
       {.name = "requests", .help = "requests of each", .standard = 20'000, .min = 1, .max = 10'000'000},
       {.name = "write-percent", .help = "share of writes", .standard = 10, .min = 0, .max = 100}},
      run);
}

}  // namespace ramie::lab
