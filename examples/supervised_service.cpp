// A service that survives its own failures: its supervisor restarts it, and references stay valid; their owners see
// only the requests that failed.
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

using namespace std::chrono_literals;

struct divide {
  int a, b;
};

class divider : public ramie::actor<divider> {
 public:
  int on(divide d) {
    if (d.b == 0) throw std::domain_error{"division by zero"};
    return d.a / d.b;
  }
};

struct what_happened {};

/// Is told once of the end of the service, not of its restarts.
class observer : public ramie::actor<observer> {
 public:
  explicit observer(ramie::any_actor whom) { monitor(whom); }
  void on(const ramie::down& d) { heard_ += std::string{"it has ended: "} + to_string(d.reason.kind()); }
  std::string on(what_happened) { return heard_; }

 private:
  std::string heard_;
};

void use(const ramie::actor_ref<divider>& service, int a, int b) {
  try {
    std::printf("%d / %d = %d\n", a, b, service.ask(divide{a, b}));
  } catch (const ramie::actor_down& e) {
    std::printf("%d / %d failed: %s\n", a, b, e.what());
  }
}

int main() {
  return ramie::run([] {
    ramie::supervisor sup{{.strategy = ramie::restart::one_for_one, .max_restarts = 2, .within = 1h}};
    auto service =
        sup.spawn_actor<divider>(ramie::child_options{.actor = {.name = "divider", .asks_wait_for_restart = true}});
    auto watcher = ramie::spawn_actor<observer>(service);
    use(service, 7, 2);
    use(service, 1, 0);
    use(service, 9, 3);
    use(service, 2, 0);
    use(service, 8, 4);
    std::printf("restarted %d times\n", static_cast<int>(sup.restarts()));
    use(service, 3, 0);  // one too many
    const ramie::exit_reason why = sup.join();
    service.join();
    std::printf("observer: %s\n", watcher.ask(what_happened{}).c_str());
    watcher.stop();
    watcher.join();
    std::printf("supervisor: %s\n", why.what().c_str());
  });
}
