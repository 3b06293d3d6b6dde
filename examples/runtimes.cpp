// A runtime object, used from plain threads.
#include <ramie/ramie.hpp>

#include <cstdio>
#include <thread>

int main() {
  ramie::runtime rt{
      {.workers = 4, .placement = ramie::placement::work_stealing, .stack_size = 256 * 1024, .name = "io"}};
  auto h = rt.spawn([] { return 42; });  // from any thread; h.join() blocks a plain thread, suspends a fiber
  std::printf("%d\n", h.join());
  std::jthread other{[&] { rt.spawn([] {}).join(); }};
  other.join();
  const int v = rt.run([] { return 7; });
  std::printf("%d\n", v);
  auto named = rt.spawn(ramie::fiber_options{.name = "x", .stack_size = 64 * 1024},
                        [] { return ramie::this_fiber::name() == "x"; });
  std::printf("%s\n", named.join() ? "named" : "nameless");
  rt.shutdown();  // or the destructor: stop accepting, cancel, wait
}
