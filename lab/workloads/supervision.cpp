// What a crash costs that a supervisor mends, alone and in a large tree, and what the end of an actor costs that has a
// name among very many.
#include <lab/harness/session.hpp>
#include <lab/workloads/plain_calls.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie::lab {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t batch = 64;

run_result by_plain(session& s) { return run_plain_calls(s, s.parameter("count")); }

struct crash {};
struct touch {};
class fragile : public ramie::actor<fragile> {
 public:
  explicit fragile(ramie::wait_group* restarts) { restarts->done(); }
  void on(crash) { throw std::runtime_error{"asked to crash"}; }
  std::int64_t on(touch) { return ++touched_; }

 private:
  std::int64_t touched_ = 0;
};

/// As OTP's logger at level `none`: what is compared is the restart, not what is written about it.
ramie::supervisor_options silent() {
  ramie::supervisor_options o{.max_restarts = 1'000'000'000, .within = 1s};
  o.report = [](const ramie::child_report&) {};
  return o;
}

/// A top, `supervisors` below it, `children` below them all.
class tree {
 public:
  tree(std::int64_t supervisors, std::int64_t children) {
    restarts_.add(children);
    for (std::int64_t i = 0; i < supervisors; ++i) {
      const ramie::supervisor_ref below = top_.spawn_supervisor(silent());
      const std::int64_t last = children * (i + 1) / supervisors;
      while (static_cast<std::int64_t>(all_.size()) < last) all_.push_back(below.spawn_actor<fragile>(&restarts_));
    }
  }
  /// So many at once, of different supervisors; each crashes once. Waits until they are there again.
  void crash_some(std::int64_t count) {
    restarts_.add(count);
    for (std::int64_t i = 0; i < count; ++i) all_[(next_ += stride) % all_.size()].tell(crash{});
    restarts_.wait();
  }
  /// What can crash once.
  [[nodiscard]] std::int64_t most() const noexcept { return static_cast<std::int64_t>(all_.size()); }
  [[nodiscard]] std::int64_t answering() const {
    std::int64_t n = 0;
    for (const auto& a : all_) n += a.ask(touch{}) == 1 ? 1 : 0;
    return n;
  }

 private:
  static constexpr std::size_t stride = 7919;  // a prime: it comes to each before it comes to one again
  ramie::wait_group restarts_;
  ramie::supervisor top_{silent()};
  std::vector<ramie::actor_ref<fragile>> all_;
  std::size_t next_ = 0;
};

/// At the rate, a hundredth of a second's crashes at a time; without one, 64 at a time, as fast as may be.
void crash_at(tree& t, std::int64_t count, std::int64_t rate) {
  const std::int64_t most = std::min(t.most(), rate == 0 ? batch : std::max<std::int64_t>(1, rate / 100));
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t left = count, tick = 1; left > 0; left -= most, ++tick) {
    t.crash_some(std::min(left, most));
    if (rate != 0) ramie::this_fiber::sleep_until(start + tick * 10ms);
  }
}

run_result crash_in_tree(session& s, std::int64_t supervisors, std::int64_t children) {
  const std::int64_t count = s.parameter("count");
  double seconds = 0;
  double processor = 0;
  std::int64_t answering = 0;
  s.runtime().run([&] {
    tree t{supervisors, children};
    const double before = process_cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    crash_at(t, count, s.parameter("rate"));
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    processor = process_cpu_seconds() - before;
    answering = t.answering();
  });
  return {.seconds = seconds,
          .units = count,
          .ok = answering == children,
          .figures = {{"processor_ns_per_crash", processor * 1e9 / static_cast<double>(count)}}};
}

run_result by_tree(session& s) { return crash_in_tree(s, s.parameter("supervisors"), s.parameter("children")); }
run_result by_restart(session& s) { return crash_in_tree(s, 1, batch); }

class named_one : public ramie::actor<named_one> {
 public:
  std::int64_t on(touch) { return 1; }
};
using named_ones = std::vector<ramie::actor_ref<named_one>>;

named_ones named_from(std::int64_t first, std::int64_t count, bool with_names) {
  named_ones all;
  all.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = first; i < first + count; ++i) {
    all.push_back(ramie::spawn_actor<named_one>());
    if (with_names) ramie::register_name("actor " + std::to_string(i), all.back());
  }
  return all;
}

/// All of [from, to), 64 at a time. How many had ended well.
std::int64_t end_all(const named_ones& all) {
  std::int64_t ended = 0;
  for (std::size_t from = 0; from < all.size(); from += batch) {
    const std::size_t to = std::min(all.size(), from + batch);
    for (std::size_t i = from; i < to; ++i) all[i].stop();
    ramie::this_fiber::yield();
    for (std::size_t i = from; i < to; ++i) ended += all[i].join().normal() ? 1 : 0;
  }
  return ended;
}

/// Real and processor time of what is timed piece by piece.
class stopwatch {
 public:
  template <class F>
  auto time(F f) {
    const double before = process_cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    const auto result = f();
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    processor_ += process_cpu_seconds() - before;
    return result;
  }
  [[nodiscard]] run_result result(std::int64_t units, bool ok) const {
    return {.seconds = seconds_,
            .units = units,
            .ok = ok,
            .figures = {{"processor_ns_per_end", processor_ * 1e9 / static_cast<double>(units)}}};
  }

 private:
  double seconds_ = 0;
  double processor_ = 0;
};

/// Actors that come and go beside those that stay, all with names; only their ends are timed.
run_result ends_beside_names(session& s, bool with_names) {
  const std::int64_t count = s.parameter("count");
  const std::int64_t names = s.parameter("names");
  stopwatch watch;
  std::int64_t ended = 0;
  s.runtime().run([&] {
    const named_ones staying = named_from(0, names, true);
    for (std::int64_t done = 0; done < count; done += batch) {
      const named_ones going = named_from(names + done, std::min(batch, count - done), with_names);
      ended += watch.time([&] { return end_all(going); });
    }
    end_all(staying);
  });
  return watch.result(count, ended == count);
}

run_result by_named_end(session& s) { return ends_beside_names(s, true); }
run_result by_unnamed_end(session& s) { return ends_beside_names(s, false); }

/// Those that stayed end: each is met cold.
run_result all_names_end(session& s, bool with_names) {
  const std::int64_t names = std::max<std::int64_t>(1, s.parameter("names"));
  stopwatch watch;
  std::int64_t ended = 0;
  s.runtime().run([&] {
    const named_ones all = named_from(0, names, with_names);
    ended = watch.time([&] { return end_all(all); });
  });
  return watch.result(names, ended == names);
}

run_result by_all_named(session& s) { return all_names_end(s, true); }
run_result by_all_unnamed(session& s) { return all_names_end(s, false); }

}  // namespace

workload supervision_workload() {
  return {
      .name = "supervision",
      .summary = "crashes that supervisors mend, and the ends of actors with names",
      .unit = "crash",
      .parameters =
          {{.name = "count", .help = "crashes, or ends", .standard = 200'000, .min = 1, .max = 1'000'000'000},
           {.name = "rate",
            .help = "crashes a second; 0: as many as may be",
            .standard = 0,
            .min = 0,
            .max = 10'000'000},
           {.name = "supervisors", .help = "of the tree, below its top", .standard = 100, .min = 1, .max = 100'000},
           {.name = "children", .help = "of all of them", .standard = 10'000, .min = 1, .max = 10'000'000},
           {.name = "names", .help = "actors that have a name", .standard = 100'000, .min = 0, .max = 10'000'000}},
      .styles =
          {
              {"plain", "a noinline function call in place of each crash, the yardstick", false, by_plain},
              {"tree", "children anywhere in a tree of supervisors crash, and are restarted", true, by_tree},
              {"restart", "the 64 children of one supervisor crash, and are restarted", true, by_restart},
              {"named_end", "an actor with a name ends, beside those that stay; a unit is an end", true, by_named_end},
              {"unnamed_end", "the same, but it has none", true, by_unnamed_end},
              {"all_named", "all that have a name end, the oldest first; a unit is an end", true, by_all_named},
              {"all_unnamed", "as many without a name", true, by_all_unnamed},
          },
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
