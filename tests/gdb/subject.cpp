// The program for the test of the debugger's extension: fibers that wait in known ways, actors with known mailboxes.
#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace {

struct order {};
class till : public ramie::actor<till> {
 public:
  explicit till(ramie::event& open) : open_{open} {}
  void on(order) { open_.wait(); }

 private:
  ramie::event& open_;
};
class idler : public ramie::actor<idler> {
 public:
  void on(order) {}
};

RAMIE_NOINLINE void wait_for_number(ramie::channel<int>& numbers) {
  volatile int marker = 4711;  // a local that the debugger is to find
  static_cast<void>(numbers.recv());
  marker = marker + 1;
}

bool leave_a_core_file = false;
RAMIE_NOINLINE void everything_is_set() {
  if (leave_a_core_file) std::abort();
  asm volatile("");
}

}  // namespace

// With an argument it crashes when everything is in place.
int main(int count, char**) {
  leave_a_core_file = count > 1;
  return ramie::run({.workers = 1, .name = "subject", .spare_workers = 0}, [] {
    ramie::channel<int> numbers{8};
    ramie::mutex taken;
    ramie::event open;
    ramie::latch gate{3};
    taken.lock();
    ramie::net::tcp_listener listener{{"127.0.0.1", 0}};
    ramie::net::tcp_stream client = ramie::net::tcp_stream::connect(listener.local());
    auto reader = ramie::spawn(ramie::fiber_options{.name = "reader"}, [server = listener.accept()]() mutable {
      std::array<std::byte, 8> some;
      static_cast<void>(server.read_some(some));
    });
    std::printf("client %s\n", client.local().to_string().c_str());
    std::fflush(stdout);
    auto left = ramie::spawn(ramie::fiber_options{.name = "left"}, [&] { wait_for_number(numbers); });
    auto right = ramie::spawn(ramie::fiber_options{.name = "right"}, [&] {
      taken.lock();
      taken.unlock();
    });
    auto busy = ramie::spawn_actor<till>(ramie::actor_options{.name = "busy"}, open);
    auto idle = ramie::spawn_actor<idler>(ramie::actor_options{.name = "idle"});
    for (int i = 0; i < 4; ++i) busy.tell(order{});
    for (int i = 0; i < 10; ++i) ramie::this_fiber::yield();
    ramie::this_fiber::sleep_for(std::chrono::milliseconds{20});
    asm volatile("" : : "r"(&left) : "memory");  // in memory, where gdb finds it
    everything_is_set();
    taken.unlock();
    static_cast<void>(numbers.send(1));
    open.set();
    left.join();
    right.join();
    client.close();
    reader.join();
    gate.count_down(3);
    busy.stop();
    idle.stop();
  });
}
