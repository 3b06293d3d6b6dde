// Acts with actors.
#include "../otp_model.hpp"
#include "soak.hpp"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace soak {

namespace {

using namespace ramie;

struct add {
  int amount;
};
struct total {};
struct fail_now {};
struct parcel {
  std::unique_ptr<tracked> content;
};

class counter_actor : public actor<counter_actor> {
 public:
  void on(add m) { sum_ += m.amount; }
  void on(parcel p) { sum_ += p.content->value; }
  void on(fail_now) { throw std::runtime_error{"planned"}; }
  long on(total) const { return sum_; }

 private:
  long sum_ = 0;
  tracked kept_{4};
};

void sums(dice& d) {
  const auto ref = spawn_actor<counter_actor>();
  const int tellers = d.between(1, 4), each = d.between(1, 30 * scale);
  std::vector<join_handle<void>> all;
  for (int t = 0; t < tellers; ++t)
    all.push_back(spawn([&, seed = d.next()] {
      dice mine{seed};
      for (int i = 0; i < each; ++i) {
        if (mine.one_in(3)) ref.tell(parcel{std::make_unique<tracked>(1)});
        else ref.tell(add{1});
        if (mine.one_in(20)) this_fiber::yield();
      }
    }));
  for (auto& h : all) h.join();
  require(ref.ask(total{}) == long{tellers} * each, "actors: messages were lost or doubled");
  ref.stop();
  require(ref.join().kind() == exit_kind::stopped, "actors: it did not stop");
}

class forwarder : public actor<forwarder> {
 public:
  explicit forwarder(channel<int>* end) : end_{end} {}
  struct start {
    std::vector<actor_ref<forwarder>> ring;
    std::size_t at;
    int left;
  };
  void on(start s) {
    if (s.left == 0) {
      static_cast<void>(end_->try_send(static_cast<int>(s.at)));
      return;
    }
    --s.left;
    s.at = (s.at + 1) % s.ring.size();
    const actor_ref<forwarder> next = s.ring[s.at];
    next.tell(std::move(s));
  }

 private:
  channel<int>* end_;
};

void rings(dice& d) {
  channel<int> end{1};
  std::vector<actor_ref<forwarder>> ring;
  const int n = d.between(1, 8);
  for (int i = 0; i < n; ++i) ring.push_back(spawn_actor<forwarder>(&end));
  const int hops = d.between(1, 50 * scale);
  ring[0].tell(forwarder::start{ring, 0, hops});
  const auto at = end.recv();
  require(at == hops % n, "ring: the token ended elsewhere");
  for (const auto& r : ring) r.stop();
  for (const auto& r : ring) r.join();
}

void deaths(dice& d) {
  const int n = d.between(1, 6);
  std::vector<actor_ref<counter_actor>> all;
  for (int i = 0; i < n; ++i) all.push_back(spawn_actor<counter_actor>());
  for (const auto& ref : all) {
    for (int i = d.between(0, 20); i > 0; --i) ref.tell(parcel{std::make_unique<tracked>(1)});
    auto later = ref.ask_async(total{});
    const bool killed = d.one_in(2);
    if (killed) ref.kill();
    else ref.stop();
    try {
      later.get();
    } catch (const actor_down&) {
      require(killed, "actors: one that was stopped did not answer before");
    }
  }
  for (const auto& ref : all) {
    const exit_kind how = ref.join().kind();
    require(how == exit_kind::killed || how == exit_kind::stopped, "actors: a strange end");
    require(ref.tell(add{1}) == tell_status::down, "actors: the dead take mail");
  }
}

void supervision(dice& d) {
  supervisor sup{{.strategy = d.one_in(2) ? restart::one_for_one : restart::one_for_all, .max_restarts = 1000}};
  std::vector<actor_ref<counter_actor>> all;
  for (int i = d.between(1, 4); i > 0; --i)
    all.push_back(sup.spawn_actor<counter_actor>(child_options{.actor = {.asks_wait_for_restart = true}}));
  const int failures = d.between(0, 4);
  for (int i = 0; i < failures; ++i) {
    const auto& victim = all[static_cast<std::size_t>(d.between(0, static_cast<int>(all.size()) - 1))];
    victim.tell(fail_now{});
    require(victim.ask(total{}) == 0, "supervisor: a restarted actor has an old state");
  }
  require(sup.restarts() >= static_cast<std::uint64_t>(failures), "supervisor: restarts were lost");
}

void mailboxes(dice& d) {
  const int n = d.between(1, 20 * scale);
  channel<long> result{1};
  const auto ref = spawn_actor<int, parcel>([&result](mailbox<int, parcel>& box) {
    long sum = 0;
    while (auto m = box.receive()) {
      if (const int* v = std::get_if<int>(&*m)) sum += *v;
      else sum += std::get<parcel>(*m).content->value;
    }
    static_cast<void>(result.send(sum));
  });
  for (int i = 1; i <= n; ++i) {
    if (d.one_in(2)) ref.tell(i);
    else ref.tell(parcel{std::make_unique<tracked>(i)});
    if (d.one_in(30)) this_fiber::yield();
  }
  ref.stop();
  require(result.recv() == long{n} * (n + 1) / 2, "mailbox: messages were lost or doubled");
  ref.join();
}

/// Random programs against the reference of tests/otp_reference.hpp.
void models(dice& d) {
  for (int i = 0; i < 10 * scale; ++i) {
    otp_model::program program{[&](std::uint32_t n) { return static_cast<std::uint32_t>(d.next() % n); },
                               [](const std::string& wrong) { fail(wrong); }, 200'000};
    program.run(12);
  }
}

}  // namespace

const std::array<named_act, 6> actor_acts{{{"sums", &sums},
                                           {"rings", &rings},
                                           {"deaths", &deaths},
                                           {"supervision", &supervision},
                                           {"mailboxes", &mailboxes},
                                           {"models", &models}}};

}  // namespace soak
