// The program for the test of perf: a fiber that waits again and again, and computes in between, two functions deep.
#include <ramie/ramie.hpp>

#include <ctime>

namespace {

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

RAMIE_NOINLINE long compute(long turns) {
  long sum = 0;
  for (long i = 0; i < turns; ++i) {
    sum += i * i;
    asm volatile("" : "+r"(sum));
  }
  return sum;
}

RAMIE_NOINLINE long answer_requests(ramie::channel<int>& requests) {
  long sum = 0;
  while (const std::optional<int> turns = requests.recv()) sum += compute(*turns);
  asm volatile("" : "+r"(sum));  // no tail call
  return sum;
}

}  // namespace

// Ends when it has used half a second of a processor, however long that takes.
int main() {
  return ramie::run({.workers = 2}, [] {
    ramie::channel<int> requests;
    auto busy = ramie::spawn(ramie::fiber_options{.name = "busy"}, [&] { return answer_requests(requests); });
    while (processor_seconds() < 0.5) static_cast<void>(requests.send(1'000'000));
    requests.close();
    return busy.join() != 0 ? 0 : 1;
  });
}
