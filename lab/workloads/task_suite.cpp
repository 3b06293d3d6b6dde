// Experiment 9: the programs of task suites, by fork_join and by scopes.
#include <lab/harness/session.hpp>
#include <lab/peers/common/tasks/suite.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace ramie::lab {
namespace {

/// Any number of tasks by forks of two.
struct fork_join_crew {
  template <class F, class G>
  static void both(F&& f, G&& g) {
    ramie::fork_join(std::forward<F>(f), std::forward<G>(g));
  }
  template <class F>
  static void all(std::size_t n, const F& f) {
    if (n != 0) from_to(0, n, f);
  }
  template <class T, class F>
  static T sum(std::size_t n, const F& f) {
    return n == 0 ? T{} : sum_from_to<T>(0, n, f);
  }

 private:
  template <class F>
  static void from_to(std::size_t begin, std::size_t end, const F& f) {
    if (end - begin == 1) {
      f(begin);
      return;
    }
    const std::size_t middle = begin + (end - begin) / 2;
    ramie::fork_join([=, &f] { from_to(begin, middle, f); }, [=, &f] { from_to(middle, end, f); });
  }
  template <class T, class F>
  static T sum_from_to(std::size_t begin, std::size_t end, const F& f) {
    if (end - begin == 1) return f(begin);
    const std::size_t middle = begin + (end - begin) / 2;
    auto [low, high] = ramie::fork_join([=, &f] { return sum_from_to<T>(begin, middle, f); },
                                        [=, &f] { return sum_from_to<T>(middle, end, f); });
    low += high;
    return low;
  }
};

/// A child of a scope for each task.
struct scope_crew {
  template <class F, class G>
  static void both(F&& f, G&& g) {
    ramie::scope children;
    children.spawn(std::forward<F>(f));
    g();
    children.join();
  }
  template <class F>
  static void all(std::size_t n, const F& f) {
    ramie::scope children;
    for (std::size_t i = 0; i < n; ++i) children.spawn([&f, i] { f(i); });
    children.join();
  }
  template <class T, class F>
  static T sum(std::size_t n, const F& f) {
    return ::tasks::sum_of_parts<scope_crew, T>(n, f);
  }
};

struct session_clock {
  session& of;
  template <class F>
  double operator()(F&& f) const {
    return of.time(std::forward<F>(f));
  }
};

template <class Crew, std::size_t Index>
run_result run(session& s) {
  const ::tasks::result r = ::tasks::run<Crew>(::tasks::programs[Index].name, s.parameter("size"), session_clock{s});
  return {.seconds = r.seconds, .units = r.units, .ok = r.ok};
}

std::string object_to_strassen(std::int64_t size) {
  return std::has_single_bit(static_cast<std::uint64_t>(size)) ? "" : "must be a power of two";
}

template <std::size_t Index>
workload one() {
  const ::tasks::program& p = ::tasks::programs[Index];
  return {
      .name = p.name,
      .summary = "experiment 9: a program of task suites",
      .unit = p.unit,
      .parameters = {{.name = "size",
                      .help = p.what_size_is,
                      .standard = p.standard,
                      .min = p.least,
                      .max = p.most,
                      .objection = std::string{"strassen"} == p.name ? object_to_strassen : nullptr}},
      .styles =
          {
              {"plain", "calls instead of tasks, the yardstick", false, run<::tasks::plain, Index>},
              {"fork_join", "any number of tasks by forks of two", true, run<fork_join_crew, Index>},
              {"scope", "tasks spawned into a scope, then its join", true, run<scope_crew, Index>},
          },
  };
}

template <std::size_t... Indices>
std::vector<workload> all(std::index_sequence<Indices...>) {
  std::vector<workload> made;
  (made.push_back(one<Indices>()), ...);
  return made;
}

}  // namespace

std::vector<workload> task_suite_workloads() { return all(std::make_index_sequence<std::size(::tasks::programs)>{}); }

}  // namespace ramie::lab
