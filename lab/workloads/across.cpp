// Experiment 8. The process under measurement, the near one, starts the far one, and that a nats-server on a free port
// of the loopback. Processor time is that of all three. A message that does not arrive makes the result wrong.
#include <lab/workloads/across.hpp>

#ifdef RAMIE_LAB_CLUSTER

#include <lab/harness/child.hpp>
#include <lab/harness/error.hpp>
#include <lab/harness/session.hpp>

#include <components/cluster/test_processes.hpp>

#include <ramie/cluster.hpp>
#include <ramie/ramie.hpp>

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace ramie::lab {
namespace {

using namespace std::chrono_literals;

struct note {
  std::string text;
};
struct how_many {};
struct number {
  std::uint64_t value = 0;
};
RAMIE_WIRE(note, "lab.note", (1, text))
RAMIE_WIRE(how_many, "lab.how_many")
RAMIE_WIRE(number, "lab.number", (1, value))

std::atomic<std::uint64_t>& noted_by_members() {
  static std::atomic<std::uint64_t> all{0};
  return all;
}

class member : public ramie::actor<member> {
 public:
  using remote = ramie::messages<note>;
  void on(const note&) { noted_by_members().fetch_add(1, std::memory_order_relaxed); }
};

struct join {
  std::uint64_t members = 0;
};
RAMIE_WIRE(join, "lab.join", (1, members))

class far_actor : public ramie::actor<far_actor> {
 public:
  using remote = ramie::messages<note, how_many, number, join>;
  explicit far_actor(ramie::cluster& c) : cluster_{c} {}
  void on(const note&) { ++noted_; }
  std::uint64_t on(how_many) { return noted_ + noted_by_members().load(std::memory_order_relaxed); }
  std::uint64_t on(number n) { return n.value; }
  void on(join j) {
    while (members_.size() < j.members) {
      members_.push_back(ramie::spawn_actor<member>());
      cluster_.group<note>("members").join(members_.back());
    }
  }

 private:
  ramie::cluster& cluster_;
  std::uint64_t noted_ = 0;
  std::vector<ramie::actor_ref<member>> members_;
};

using process = cluster_tests::process;

/// Seconds of processor time of all threads of a process.
double processor_s(const std::string& pid) {
  std::ifstream file{"/proc/" + pid + "/stat"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  unsigned long user = 0, system = 0;
  const std::size_t at = text.rfind(')');
  if (at == std::string::npos ||
      std::sscanf(text.c_str() + at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
    throw lab_error{"process " + pid + " is gone"};
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// The far process, for the life of this one.
class far_process {
 public:
  explicit far_process(int workers)
      : it_{{this_program(), across_far_command, "--workers=" + std::to_string(workers)}, "-"} {
    char url[128], server[32];
    const std::string line = it_.line();
    if (std::sscanf(line.c_str(), "ready %127s %31s", url, server) != 2)
      throw lab_error{"the far process did not start; is nats-server here?"};
    url_ = url;
    server_ = server;
  }
  far_process(const far_process&) = delete;
  far_process& operator=(const far_process&) = delete;
  ~far_process() { it_.end(SIGTERM); }  // it ends its server
  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  [[nodiscard]] double processors() const {
    return processor_s("self") + processor_s(std::to_string(it_.id())) + processor_s(server_);
  }

 private:
  process it_;
  std::string url_, server_;
};

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

/// In a fiber, as a node: `measured(cluster, far actor)` returns whether the result is right.
template <class F>
run_result across(session& s, std::int64_t units, F measured) {
  static far_process far{(s.runtime(), s.workers())};
  run_result result{.seconds = 0, .units = units, .ok = false};
  s.runtime().run([&] {
    ramie::cluster c{{.url = far.url(), .name = "lab", .node = "near"}};
    c.knows<far_actor>();
    c.knows<member>();
    const auto there = c.whereis<far_actor>("far").value();
    static_cast<void>(there.ask(number{1}));  // the link is open
    double before = 0;
    const auto begin = [&] {
      before = far.processors();
      return std::chrono::steady_clock::now();
    };
    result.ok = measured(c, there, begin, result);
    result.figures.push_back(
        {"processor_ns_per_" + std::string{"unit"}, (far.processors() - before) / static_cast<double>(units) * 1e9});
  });
  return result;
}

run_result tell(session& s) {
  const std::int64_t count = s.parameter("count");
  const std::string text(static_cast<std::size_t>(s.parameter("size")), 'x');
  return across(s, count, [&](ramie::cluster&, const auto& there, const auto& begin, run_result& r) {
    const std::uint64_t wanted = there.ask(how_many{}) + static_cast<std::uint64_t>(count);
    const auto start = begin();
    for (std::int64_t i = 0; i < count; ++i) there.tell(note{text});
    const std::uint64_t got = there.ask(how_many{});
    r.seconds = seconds_since(start);
    r.figures.push_back({"lost", static_cast<double>(wanted - got)});
    return got == wanted;
  });
}

run_result ask(session& s) {
  const std::int64_t count = s.parameter("count");
  return across(s, count, [&](ramie::cluster&, const auto& there, const auto& begin, run_result& r) {
    std::vector<double> us;
    us.reserve(static_cast<std::size_t>(count));
    bool ok = true;
    const auto start = begin();
    for (std::int64_t i = 0; i < count; ++i) {
      const auto one = std::chrono::steady_clock::now();
      ok = there.ask(number{static_cast<std::uint64_t>(i)}) == static_cast<std::uint64_t>(i) && ok;
      us.push_back(seconds_since(one) * 1e6);
    }
    r.seconds = seconds_since(start);
    std::sort(us.begin(), us.end());
    r.figures.push_back({"p50_us", us[us.size() / 2]});
    r.figures.push_back({"p99_us", us[us.size() * 99 / 100]});
    return ok;
  });
}

run_result fan_out(session& s) {
  const auto members = static_cast<std::uint64_t>(s.parameter("members"));
  const std::int64_t count = s.parameter("count");
  const std::string text(static_cast<std::size_t>(s.parameter("size")), 'x');
  return across(s, count * s.parameter("members"),
                [&](ramie::cluster& c, const auto& there, const auto& begin, run_result& r) {
                  auto all = c.group<note>("members");
                  there.tell(join{members});
                  while (all.size() < members) ramie::this_fiber::sleep_for(10ms);
                  const std::uint64_t wanted = there.ask(how_many{}) + static_cast<std::uint64_t>(count) * members;
                  const auto start = begin();
                  for (std::int64_t i = 0; i < count; ++i) all.publish(note{text});
                  std::uint64_t got = 0;
                  // The members' mailboxes are not the far actor's: what is in them may be handled after its answer.
                  while ((got = there.ask(how_many{})) < wanted && seconds_since(start) < 60) {
                  }
                  r.seconds = seconds_since(start);
                  r.figures.push_back({"lost", static_cast<double>(wanted - got)});
                  return got == wanted;
                });
}

run_result queue(session& s) {
  const std::int64_t count = s.parameter("count");
  const std::int64_t fibers = s.parameter("fibers");
  const std::string text(static_cast<std::size_t>(s.parameter("size")), 'x');
  return across(s, count, [&](ramie::cluster& c, const auto&, const auto& begin, run_result& r) {
    static std::atomic<int> queues{0};
    auto jobs = c.queue<note>("jobs" + std::to_string(++queues));
    const auto start = begin();
    {
      ramie::scope putting;
      for (std::int64_t f = 0; f < fibers; ++f)
        putting.spawn([&, f] {
          for (std::int64_t i = f; i < count; i += fibers) jobs.put(note{text}, "job-" + std::to_string(i));
        });
    }
    r.seconds = seconds_since(start);
    const std::uint64_t stored = jobs.size();
    r.figures.push_back({"lost", static_cast<double>(count) - static_cast<double>(stored)});
    return stored == static_cast<std::uint64_t>(count);
  });
}

workload one(const char* name, const char* summary, const char* unit, const char* style_summary,
             std::vector<parameter> parameters, run_result (*run)(session&)) {
  return {.name = name,
          .summary = summary,
          .unit = unit,
          .parameters = std::move(parameters),
          .styles = {{"actor", style_summary, true, run}},
          .yardstick = "",
          .standard_runs = 5,
          .standard_warmup = 1,
          .standard_workers = "2"};
}

parameter count_of(const char* help, std::int64_t standard) {
  return {.name = "count", .help = help, .standard = standard, .min = 1, .max = 100'000'000};
}
parameter size_of_text() {
  return {.name = "size", .help = "bytes of each message's text", .standard = 64, .min = 0, .max = 1 << 20};
}

}  // namespace

int serve_across(int workers) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  cluster_tests::nats_server server;
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &end, nullptr);
  ramie::runtime_options options;
  options.workers = static_cast<unsigned>(workers);
  ramie::runtime runtime{options};
  runtime.run([&] {
    ramie::cluster c{{.url = server.url(), .name = "lab", .node = "far"}};
    c.knows<far_actor>();
    c.knows<member>();
    const auto here = ramie::spawn_actor<far_actor>(std::ref(c));
    c.register_name("far", here);
    std::printf("ready %s %d\n", server.url().c_str(), static_cast<int>(server.id()));
    std::fflush(stdout);
    ramie::blocking([&] {
      int which = 0;
      sigwait(&end, &which);
    });
    here.stop();
  });
  return 0;
}

std::vector<workload> across_workloads() {
  return {
      one("across_tell", "experiment 8: messages to an actor of another process, until all have been handled",
          "message", "a fiber tells", {count_of("messages", 500'000), size_of_text()}, tell),
      one("across_ask", "experiment 8: requests to an actor of another process, one at a time", "request",
          "a fiber asks", {count_of("requests", 2000)}, ask),
      one("across_fan_out", "experiment 8: messages to a group whose members are in another process", "message",
          "a fiber publishes",
          {count_of("messages to the group", 20'000),
           size_of_text(),
           {.name = "members", .help = "of the group", .standard = 16, .min = 1, .max = 10'000}},
          fan_out),
      one("across_queue", "experiment 8: jobs put into a durable queue, each with an id", "job",
          "fibers that put one job at a time",
          {count_of("jobs", 20'000),
           size_of_text(),
           {.name = "fibers", .help = "that put at once", .standard = 256, .min = 1, .max = 10'000}},
          queue),
  };
}

}  // namespace ramie::lab

#endif
