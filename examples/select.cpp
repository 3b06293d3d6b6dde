// Select: the first channel operation of several that is ready; with a timeout, or without waiting.
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>

using namespace std::chrono_literals;

int main() {
  return ramie::run([] {
    ramie::channel<int> a{8}, b;
    const auto st = a.send(1);  // channel_status::ok or ::closed
    if (st == ramie::channel_status::ok) std::puts("sent");
    const std::optional<int> x = a.recv();  // nullopt: closed and drained
    std::printf("received %d\n", x.value_or(0));

    // Nothing is sent on a, nothing is received from b: the timeout fires.
    std::size_t fired = ramie::select(  //
        ramie::on_recv(a, [&](std::optional<int>) { std::puts("from a"); }),
        ramie::on_send(b, 42, [&](ramie::channel_status) { std::puts("to b"); }),
        ramie::on_timeout(10ms, [&] { std::puts("nothing in 10 ms"); }));
    std::printf("case %zu\n", fired);

    auto receiver = ramie::spawn([&] { std::printf("b brought %d\n", b.recv().value_or(0)); });
    fired = ramie::select(  //
        ramie::on_recv(a, [&](std::optional<int>) { std::puts("from a"); }),
        ramie::on_send(b, 42, [&](ramie::channel_status) {}));
    receiver.join();
    std::printf("case %zu\n", fired);

    ramie::select(ramie::on_recv(a, [](std::optional<int>) { std::puts("from a"); }),
                  ramie::otherwise([] { std::puts("nothing was ready"); }));

    a.close();
    ramie::select(ramie::on_recv(a, [](std::optional<int> v) { std::puts(v ? "from a" : "a is closed"); }));

    ramie::ticker t{1ms};
    const auto first = t.channel().recv();
    const auto second = t.channel().recv();
    std::puts(*second - *first >= 1ms ? "ticked twice" : "ticked too fast");
  });
}
