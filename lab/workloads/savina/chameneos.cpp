// Creatures meet in pairs at a mall and change their colours (C. Kaiser, J.-F. Pradat-Peyre, 2003).
#include <lab/workloads/savina/savina.hpp>

namespace ramie::lab {
namespace {

class creature;
class mall;

enum class colour { blue, red, yellow };
colour complement(colour a, colour b) {
  return a == b ? a : static_cast<colour>(3 - static_cast<int>(a) - static_cast<int>(b));
}

struct meet {
  ramie::actor_ref<creature> who;
  colour of;
};
struct met {
  ramie::actor_ref<creature> other;
  colour of;
};
struct change {
  colour to;
};
struct closed {};
struct meetings {
  std::int64_t count;
};
struct begin {};

class mall : public ramie::actor<mall> {
 public:
  mall(std::int64_t count, std::int64_t creatures) : left_{count}, creatures_{creatures} {}
  void on(meet m);
  void on(meetings m) {
    sum_ += m.count;
    if (--creatures_ == 0) stop();
  }
  void on(std::int64_t* place) { result_ = place; }
  ~mall() {
    if (result_ != nullptr) *result_ = sum_;
  }

 private:
  std::int64_t left_;
  std::int64_t creatures_;
  std::int64_t sum_ = 0;
  std::int64_t* result_ = nullptr;
  ramie::actor_ref<creature> waiting_;
  colour its_ = colour::blue;
};

class creature : public ramie::actor<creature> {
 public:
  creature(ramie::actor_ref<mall> m, colour c) : mall_{std::move(m)}, colour_{c} {}
  void on(begin) { mall_.tell(meet{self(), colour_}); }
  void on(const met& m) {
    colour_ = complement(colour_, m.of);
    m.other.tell(change{colour_});
    again();
  }
  void on(change c) {
    colour_ = c.to;
    again();
  }
  void on(closed) {
    mall_.tell(meetings{count_});
    stop();
  }

 private:
  void again() {
    ++count_;
    mall_.tell(meet{self(), colour_});
  }
  ramie::actor_ref<mall> mall_;
  colour colour_;
  std::int64_t count_ = 0;
};

void mall::on(meet m) {
  if (left_ == 0) {
    m.who.tell(closed{});
  } else if (!waiting_) {
    waiting_ = std::move(m.who);
    its_ = m.of;
  } else {
    --left_;
    const auto first = std::exchange(waiting_, {});
    first.tell(met{std::move(m.who), m.of});
  }
}

run_result run(session& s) {
  const std::int64_t creatures = s.parameter("creatures");
  const std::int64_t count = s.parameter("meetings");
  return run_savina(s, [&] {
    std::int64_t sum = 0;
    auto m = ramie::spawn_actor<mall>(count, creatures);
    m.tell(&sum);
    for (std::int64_t i = 0; i < creatures; ++i)
      ramie::spawn_actor<creature>(m, static_cast<colour>(i % 3)).tell(begin{});
    m.join();
    // Each meeting: two come, one is told of the other, one is told to change.
    return savina_outcome{4 * count, sum == 2 * count};
  });
}

}  // namespace

workload savina_chameneos() {
  return savina_workload("chameneos", "creatures meet in pairs at a mall and change colours",
                         {{.name = "creatures", .help = "actors", .standard = 100, .min = 2, .max = 100'000},
                          {.name = "meetings", .help = "meetings", .standard = 200'000, .min = 1, .max = 100'000'000}},
                         run);
}

}  // namespace ramie::lab
