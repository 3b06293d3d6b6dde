// A crawler: three pages at a time, each with a time limit; and the fastest of several servers.
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace {

struct page {
  std::vector<std::string> links;
  std::chrono::milliseconds delay{1};
};

const std::map<std::string, page> web{
    {"home", {.links = {"news", "docs", "slow"}}},  {"news", {.links = {"home", "docs"}}},
    {"docs", {.links = {"reference", "tutorial"}}}, {"tutorial", {.links = {"docs"}}},
    {"reference", {.links = {"answer"}}},           {"answer", {}},
    {"slow", {.links = {}, .delay = 1h}},
};

/// Takes as long as a server would.
page fetch(const std::string& name) {
  const page& found = web.at(name);
  ramie::this_fiber::sleep_for(found.delay);
  return found;
}

class crawler {
 public:
  /// Returns when all that can be reached from `name` has been seen.
  void visit(const std::string& name) {
    if (!begin(name)) return;
    ramie::limited_scope connections{3};
    std::vector<ramie::child_result<page>> wave{connections.spawn([&] { return fetch_in_time(name); })};
    while (!wave.empty()) {
      std::vector<ramie::child_result<page>> next;
      for (const auto& one : wave) {
        for (const std::string& link : one.get().links)
          if (begin(link)) next.push_back(connections.spawn([link] { return fetch_in_time(link); }));
      }
      wave = std::move(next);
    }
    connections.join();
  }
  [[nodiscard]] const std::set<std::string>& seen() const { return seen_; }

 private:
  static page fetch_in_time(const std::string& name) {
    try {
      return ramie::with_timeout(1s, [&] { return fetch(name); });
    } catch (const ramie::timeout_error&) {
      return {};
    }
  }
  bool begin(const std::string& name) { return seen_.insert(name).second; }

  std::set<std::string> seen_;  // of the fiber in visit alone
};

/// Which of these mirrors answers first? One has to; the others need not go on.
std::string fastest(const std::vector<std::string>& mirrors) {
  ramie::channel<std::string> answers{mirrors.size()};
  ramie::scope s;
  for (const std::string& m : mirrors)
    s.spawn([&, m] {
      fetch(m);
      static_cast<void>(answers.send(m));  // there is room, and nobody closes it
    });
  std::string first = answers.recv().value();
  s.cancel();  // no failure: join does not throw
  s.join();
  return first;
}

}  // namespace

int main() {
  return ramie::run([] {
    crawler c;
    c.visit("home");
    for (const std::string& name : c.seen()) std::printf("%s\n", name.c_str());
    std::printf("first: %s\n", fastest({"slow", "docs"}).c_str());
  });
}
