// Runs commands as make -j does: at most four at a time. The first failure stops what still runs.
#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <cstdio>
#include <string>
#include <vector>

struct step {
  std::string name;
  std::string command;
};

/// Returns the output; throws what the command said if it fails.
std::string run(const step& s) {
  ramie::net::child_output done =
      ramie::net::run_child({"sh", "-c", s.command}, {}, {.err = ramie::net::child_io::to_out});
  if (!done.status.success()) throw std::runtime_error{s.name + " " + done.status.to_string() + ": " + done.out};
  return std::move(done.out);
}

void build(const std::vector<step>& steps) {
  std::vector<std::string> outputs(steps.size());
  ramie::limited_scope jobs{4};
  for (std::size_t i = 0; i < steps.size(); ++i) jobs.spawn([&, i] { outputs[i] = run(steps[i]); });
  jobs.join();  // throws what the first failing job threw, when the others have been stopped: their processes are
                // killed
  for (std::size_t i = 0; i < steps.size(); ++i) std::printf("%s: %s", steps[i].name.c_str(), outputs[i].c_str());
}

int main() {
  return ramie::run([] {
    std::vector<step> steps;
    for (int i = 0; i < 10; ++i)
      steps.push_back({"step " + std::to_string(i), "echo $((" + std::to_string(i) + " * " + std::to_string(i) + "))"});
    build(steps);

    try {
      build({{"long", "sleep 1000"}, {"wrong", "echo 'no rule to make target'; exit 2"}, {"longer", "sleep 2000"}});
    } catch (const std::runtime_error& e) {
      std::printf("%s", e.what());
    }
  });
}
