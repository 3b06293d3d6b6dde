// One fiber sends squares over a channel, another prints them.
#include <ramie/ramie.hpp>

#include <cstdio>

int main() {
  return ramie::run([] {              // one worker per available CPU; returns main's int, or 0
    ramie::channel<int> squares{16};  // capacity 16; {} or {0} is a rendezvous
    auto producer = ramie::spawn([&] {
      for (int i = 0; i < 10; ++i)
        if (squares.send(i * i) != ramie::channel_status::ok) break;
      squares.close();
    });
    for (int s : squares) std::printf("%d\n", s);  // until closed and drained
    producer.join();
  });
}
