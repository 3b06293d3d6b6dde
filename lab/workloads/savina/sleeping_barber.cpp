// Customers come to a barber's waiting room; those that find no free chair come again.
#include <lab/workloads/savina/savina.hpp>

#include <atomic>
#include <deque>

namespace ramie::lab {
namespace {

class customer;
class room;
class barber;

struct enter {
  ramie::actor_ref<customer> who;
};
struct full {};
struct cut {
  ramie::actor_ref<customer> who;
};
struct next {};
struct ready {};
struct begin {};

class room : public ramie::actor<room> {
 public:
  room(std::size_t chairs, ramie::actor_ref<barber> b) : chairs_{chairs}, barber_{std::move(b)} {}
  void on(enter e);
  void on(next);

 private:
  std::size_t chairs_;
  ramie::actor_ref<barber> barber_;
  std::deque<ramie::actor_ref<customer>> waiting_;
  bool asleep_ = true;
};

class customer : public ramie::actor<customer> {
 public:
  customer(ramie::actor_ref<room> r, std::atomic<std::int64_t>* messages) : room_{std::move(r)}, messages_{messages} {}
  void on(begin) { come(); }
  void on(full) {
    ++sent_;
    come();
  }
  void on(ready) {
    messages_->fetch_add(sent_ + 3, std::memory_order_relaxed);  // into the chair, out of it, the next one called
    stop();
  }

 private:
  void come() {
    ++sent_;
    room_.tell(enter{self()});
  }
  ramie::actor_ref<room> room_;
  std::atomic<std::int64_t>* messages_;
  std::int64_t sent_ = 0;
};

class barber : public ramie::actor<barber> {
 public:
  void on(ramie::actor_ref<room> r) { room_ = std::move(r); }
  void on(const cut& c) {
    c.who.tell(ready{});
    room_.tell(next{});
  }

 private:
  ramie::actor_ref<room> room_;
};

void room::on(enter e) {
  if (asleep_) {
    asleep_ = false;
    barber_.tell(cut{std::move(e.who)});
  } else if (waiting_.size() < chairs_) {
    waiting_.push_back(std::move(e.who));
  } else {
    e.who.tell(full{});
  }
}

void room::on(next) {
  if (waiting_.empty()) {
    asleep_ = true;
    return;
  }
  barber_.tell(cut{std::move(waiting_.front())});
  waiting_.pop_front();
}

run_result run(session& s) {
  const std::int64_t customers = s.parameter("customers");
  const auto chairs = static_cast<std::size_t>(s.parameter("chairs"));
  return run_savina(s, [&] {
    std::atomic<std::int64_t> messages{0};
    auto b = ramie::spawn_actor<barber>();
    auto r = ramie::spawn_actor<room>(chairs, b);
    b.tell(r);
    std::vector<ramie::actor_ref<customer>> all;
    for (std::int64_t i = 0; i < customers; ++i) {
      all.push_back(ramie::spawn_actor<customer>(r, &messages));
      all.back().tell(begin{});
      if (i % 64 == 63) ramie::this_fiber::yield();
    }
    bool ok = true;
    for (const auto& c : all) ok = c.join().normal() && ok;
    b.stop();
    b.join();
    r.stop();
    r.join();
    return savina_outcome{messages.load(), ok && messages.load() >= 4 * customers};
  });
}

}  // namespace

workload savina_sleeping_barber() {
  return savina_workload(
      "sleeping_barber", "customers wait for a barber, or come again if there is no chair",
      {{.name = "customers", .help = "haircuts", .standard = 3000, .min = 1, .max = 1'000'000},
       {.name = "chairs", .help = "in the waiting room", .standard = 1000, .min = 1, .max = 1'000'000}},
      run);
}

}  // namespace ramie::lab
