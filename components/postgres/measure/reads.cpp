// Reads by primary key: fibers over ramie::postgres' pool and its shared_pool, beside plain threads with libpq, which
// are as many as the pools have connections. `measure_postgres_reads WHERE [CONNECTIONS] [FIBERS] [SECONDS] [ROUNDS]
// [KIND]` runs all in turns and prints reads a second of each, and the ratios; with one of the kinds, "threads", "pool"
// and "shared", only that: for strace and callgrind.
#include <ramie/postgres.hpp>
#include <ramie/ramie.hpp>

#include <libpq-fe.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace pg = ramie::postgres;

namespace {

using clock_type = std::chrono::steady_clock;
constexpr int rows = 10'000;

struct load {
  std::string where;
  int connections, fibers;
  std::chrono::milliseconds time;
};

struct rate {
  double per_second, cpu_us;  // processor time of this process for a read
};

/// From its making on.
class meter {
 public:
  [[nodiscard]] rate of(long reads) const {
    const auto n = static_cast<double>(reads);
    return {n / std::chrono::duration<double>(clock_type::now() - since_).count(), (cpu_us() - cpu_since_) / n};
  }

 private:
  [[nodiscard]] static double cpu_us() {
    rusage u{};
    ::getrusage(RUSAGE_SELF, &u);
    return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
  }
  clock_type::time_point since_ = clock_type::now();
  double cpu_since_ = cpu_us();
};

rate by_threads(const load& l) {
  std::vector<PGconn*> all;
  for (int i = 0; i < l.connections; ++i) {
    PGconn* c = PQconnectdb(l.where.c_str());
    PQclear(PQprepare(c, "read", "select value from measured where id = $1", 1, nullptr));
    all.push_back(c);
  }
  std::atomic<bool> stop{false};
  std::atomic<long> reads{0};
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(l.connections));
  const meter m;
  for (int i = 0; i < l.connections; ++i)
    threads.emplace_back([&, i] {
      unsigned at = static_cast<unsigned>(i);
      long n = 0;
      for (; !stop.load(std::memory_order_relaxed); ++n) {
        const std::string id = std::to_string((at = at * 1664525 + 1013904223) % rows);
        const char* const values[] = {id.c_str()};
        PGresult* r = PQexecPrepared(all[static_cast<std::size_t>(i)], "read", 1, values, nullptr, nullptr, 0);
        if (PQntuples(r) != 1) std::abort();
        PQclear(r);
      }
      reads += n;
    });
  std::this_thread::sleep_for(l.time);
  stop = true;
  for (std::thread& t : threads) t.join();
  const rate result = m.of(reads);
  for (PGconn* c : all) PQfinish(c);
  return result;
}

constexpr pg::prepared read_one{"select value from measured where id = $1"};

/// As above: connected and prepared before.
void warm_up(pg::pool& db, const load& l) {
  std::vector<pg::pool::lease> all;
  all.reserve(static_cast<std::size_t>(l.connections));
  for (int i = 0; i < l.connections; ++i) all.push_back(db.take());
  for (auto& one : all) one->query(read_one, 1);
}
void warm_up(pg::shared_pool& db, const load& l) {
  ramie::scope all;
  for (int i = 0; i < l.fibers; ++i) all.spawn([&db] { db.query(read_one, 1); });
  all.join();
}

template <class Pool>
rate by_fibers(const load& l) {
  ramie::runtime rt;
  return rt.run([&] {
    Pool db{{.where = l.where, .most = static_cast<std::size_t>(l.connections)}};
    warm_up(db, l);
    std::atomic<bool> stop{false};
    std::atomic<long> reads{0};
    ramie::scope fibers;
    const meter m;
    for (int i = 0; i < l.fibers; ++i)
      fibers.spawn([&, i] {
        unsigned at = static_cast<unsigned>(i);
        long n = 0;
        for (; !stop.load(std::memory_order_relaxed); ++n)
          if (db.query(read_one, (at = at * 1664525 + 1013904223) % rows).size() != 1) std::abort();
        reads += n;
      });
    ramie::this_fiber::sleep_for(l.time);
    stop = true;
    fibers.join();
    return m.of(reads);
  });
}

double median(std::vector<double> of) {
  std::ranges::sort(of);
  return of[of.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s WHERE [CONNECTIONS] [FIBERS] [SECONDS] [ROUNDS]\n", argv[0]);
    return 2;
  }
  const auto number = [&](int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; };
  const load l{argv[1], number(2, 8), number(3, 800), std::chrono::seconds{number(4, 2)}};
  {
    pg::connection c{{.where = l.where}};
    c.script(
        "drop table if exists measured; create table measured (id int primary key, value text);"
        "insert into measured select n, 'value ' || n from generate_series(0, " +
        std::to_string(rows - 1) + ") as n; analyze measured");
  }
  const std::string only = argc > 6 ? argv[6] : "";
  struct way {
    const char* name;
    rate (*run)(const load&);
    std::vector<double> ratios{}, cpu_ratios{};
    rate last{};
  };
  std::vector<way> ways{
      {"threads", &by_threads}, {"pool", &by_fibers<pg::pool>}, {"shared", &by_fibers<pg::shared_pool>}};
  std::erase_if(ways, [&](const way& w) { return !only.empty() && only != w.name; });
  for (int i = 0; i < number(5, 6); ++i) {
    // In turns, and each of them first as often as the others.
    for (std::size_t k = 0; k < ways.size(); ++k) {
      way& w = ways[(k + static_cast<std::size_t>(i)) % ways.size()];
      w.last = w.run(l);
    }
    for (way& w : ways) {
      w.ratios.push_back(w.last.per_second / ways[0].last.per_second);
      w.cpu_ratios.push_back(w.last.cpu_us / ways[0].last.cpu_us);
      std::printf("%s: %.0f reads/s, %.1f us  ", w.name, w.last.per_second, w.last.cpu_us);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  for (const way& w : ways)
    std::printf("median of %s / %s: reads/s %.3f, processor time %.3f\n", w.name, ways[0].name, median(w.ratios),
                median(w.cpu_ratios));
}
