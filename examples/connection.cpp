// A connection as a state machine: what is sent while it is not there is postponed, a dial that nobody answers is
// repeated after the state's timeout, and given up in the end. As gen_statem of Erlang/OTP has it.
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

using namespace std::chrono_literals;

struct dialled {
  int attempt;
};
struct answered {};
struct line {
  std::string text;
};
struct lost {};
struct too_late {};
struct until_closed {};

class connection;

/// The other side: it does not answer the first call.
class network : public ramie::actor<network> {
 public:
  void on(const ramie::actor_ref<connection>& caller) { caller_ = caller; }
  void on(dialled d);
  void on(const line& l);

 private:
  ramie::actor_ref<connection> caller_;
};

enum class phase { closed, dialling, open };

class connection : public ramie::state_machine<connection, phase> {
 public:
  explicit connection(ramie::actor_ref<network> net) : state_machine{phase::closed}, net_{std::move(net)} {}

  void on(const line& l) {
    if (state() == phase::open) {
      net_.tell(l);
      return;
    }
    postpone();
    if (state() == phase::closed) next_state(phase::dialling);
  }
  void on(answered) {
    if (state() == phase::dialling) next_state(phase::open);
  }
  void on(too_late) {
    std::puts("no answer");
    repeat_state();  // dials again
  }
  void on(lost) { next_state(phase::closed); }
  void on(until_closed) {
    if (state() != phase::closed) postpone();  // the asker waits
  }

  void enter(phase from) {
    switch (state()) {
      case phase::closed: std::puts("closed"); break;
      case phase::dialling:
        std::puts(from == phase::dialling ? "dialling again" : "dialling");
        ++attempts_;
        state_timeout(attempts_ == 1 ? 20ms : 1min, too_late{});
        net_.tell(dialled{attempts_});
        break;
      case phase::open: std::puts("open"); attempts_ = 0;
    }
  }

 private:
  ramie::actor_ref<network> net_;
  int attempts_ = 0;
};

void network::on(dialled d) {
  if (d.attempt == 2) caller_.tell(answered{});
}
void network::on(const line& l) {
  std::printf("heard: %s\n", l.text.c_str());
  if (l.text == "bye") caller_.tell(lost{});
}

int main() {
  return ramie::run([] {
    auto net = ramie::spawn_actor<network>();
    auto c = ramie::spawn_actor<connection>(net);
    net.tell(c);
    for (const char* text : {"hello", "are you there?", "bye"}) c.tell(line{text});
    c.ask(until_closed{});
    c.stop();
    c.join();
    net.stop();
    net.join();
    return 0;
  });
}
