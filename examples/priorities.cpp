// A scheduling policy: urgent fibers run first, and the others are not starved. The policy is in priorities/levels.hpp.
// Channels, actors, timers and sleeping work as with any policy.
#include "priorities/levels.hpp"

#include <ramie/ramie.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace {

using priorities::level;

/// Actors have priorities, too.
class diary : public ramie::actor<diary> {
 public:
  void on(const std::string& entry) { std::printf("the diary says: %s\n", entry.c_str()); }
};

void run_by_level() {
  std::vector<ramie::join_handle<void>> jobs;
  const auto add = [&](level l, const char* name) {
    jobs.push_back(
        ramie::spawn(ramie::fiber_options{.name = name, .priority = l}, [name] { std::printf("%s\n", name); }));
  };
  auto book = ramie::spawn_actor<diary>(ramie::actor_options{.priority = priorities::background});
  book.tell(std::string{"a day like any other"});
  add(priorities::background, "tidy up");
  add(priorities::normal, "write a report");
  add(priorities::urgent, "answer a call");
  add(priorities::normal, "read a report");
  add(priorities::urgent, "put out a fire");
  for (auto& j : jobs) j.join();
  book.stop();
  book.join();
}

/// Two urgent fibers do not stop until the cleaner has run. With priorities alone it never would.
void starve_nobody() {
  bool clean = false;  // one worker: they take turns
  int calls = 0;
  const auto answer_calls = [&] {
    while (!clean) {
      ++calls;
      ramie::this_fiber::yield();
    }
  };
  auto first = ramie::spawn(ramie::fiber_options{.priority = priorities::urgent}, answer_calls);
  auto second = ramie::spawn(ramie::fiber_options{.priority = priorities::urgent}, answer_calls);
  auto cleaner = ramie::spawn(ramie::fiber_options{.priority = priorities::background}, [&] {
    std::printf("the cleaner comes after %d calls\n", calls);
    clean = true;
  });
  cleaner.join();
  first.join();
  second.join();
}

}  // namespace

int main() {
  // With one worker and no spares the order is fixed.
  return ramie::run({.workers = 1, .policy = std::make_shared<priorities::levels>(), .spare_workers = 0}, [] {
    run_by_level();
    starve_nobody();
  });
}
