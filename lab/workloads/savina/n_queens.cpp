// How many ways there are to place n queens: a master hands boards to workers, which send back the work that is left
// and, near the leaves, count themselves.
#include <lab/workloads/savina/savina.hpp>

#include <array>

namespace ramie::lab {
namespace {

constexpr std::size_t size_most = 16;

struct board {
  std::array<std::uint8_t, size_most> columns{};  // of the queens placed so far
  std::int64_t placed = 0;
};
struct solved {
  std::int64_t ways;
};
struct through {};

bool fits(const board& b, std::int64_t column) {
  for (std::int64_t row = 0; row < b.placed; ++row) {
    const std::int64_t other = b.columns[static_cast<std::size_t>(row)];
    if (other == column || other - column == b.placed - row || column - other == b.placed - row) return false;
  }
  return true;
}
board with(board b, std::int64_t column) {
  b.columns[static_cast<std::size_t>(b.placed++)] = static_cast<std::uint8_t>(column);
  return b;
}
std::int64_t count(const board& b, std::int64_t size) {
  if (b.placed == size) return 1;
  std::int64_t ways = 0;
  for (std::int64_t c = 0; c < size; ++c)
    if (fits(b, c)) ways += count(with(b, c), size);
  return ways;
}

class master;
class worker : public ramie::actor<worker> {
 public:
  worker(ramie::actor_ref<master> m, std::int64_t size, std::int64_t depth)
      : master_{std::move(m)}, size_{size}, depth_{depth} {}
  void on(const board& b);

 private:
  ramie::actor_ref<master> master_;
  std::int64_t size_;
  std::int64_t depth_;
};

class master : public ramie::actor<master> {
 public:
  master(std::int64_t size, std::int64_t depth, std::int64_t workers, std::int64_t* ways, std::int64_t* messages)
      : workers_{spawn_actors<worker>(workers, self(), size, depth)}, ways_{ways}, messages_{messages} {}
  void on(const board& b) {
    ++open_;
    *messages_ += 2;
    workers_[turn_++ % workers_.size()].tell(b);
  }
  void on(solved s) {
    ++*messages_;
    *ways_ += s.ways;
  }
  void on(through) {
    ++*messages_;
    if (--open_ != 0) return;
    for (const auto& w : workers_) w.stop();
    stop();
  }

 private:
  std::vector<ramie::actor_ref<worker>> workers_;
  std::int64_t* ways_;
  std::int64_t* messages_;
  std::int64_t open_ = 0;
  std::size_t turn_ = 0;
};

void worker::on(const board& b) {
  if (b.placed >= depth_) {
    master_.tell(solved{count(b, size_)});
  } else {
    for (std::int64_t c = 0; c < size_; ++c)
      if (fits(b, c)) master_.tell(with(b, c));
  }
  master_.tell(through{});
}

run_result run(session& s) {
  static constexpr std::array<std::int64_t, size_most + 1> known{
      1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};
  const std::int64_t size = s.parameter("size");
  return run_savina(s, [&] {
    std::int64_t ways = 0;
    std::int64_t messages = 0;
    auto m = ramie::spawn_actor<master>(size, s.parameter("depth"), s.parameter("actors"), &ways, &messages);
    m.tell(board{});
    m.join();
    return savina_outcome{messages, ways == known[static_cast<std::size_t>(size)]};
  });
}

}  // namespace

workload savina_n_queens() {
  return savina_workload("n_queens", "ways to place queens, the boards spread over workers by a master",
                         {{.name = "size", .help = "of the board", .standard = 12, .min = 1, .max = 16},
                          {.name = "depth", .help = "queens placed by messages", .standard = 4, .min = 0, .max = 16},
                          {.name = "actors", .help = "workers", .standard = 20, .min = 1, .max = 100'000}},
                         run);
}

}  // namespace ramie::lab
