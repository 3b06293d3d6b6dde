// A fixed number of workers share a queue of jobs: at most three jobs run at once.
#include <ramie/ramie.hpp>

#include <atomic>
#include <cstdio>
#include <map>
#include <string>

struct job {
  int number;
  std::string text;
};

struct answer {
  int number;
  std::size_t vowels;
};

std::size_t count_vowels(const std::string& text) {
  std::size_t n = 0;
  for (const char c : text) n += std::string{"aeiou"}.find(c) != std::string::npos ? 1 : 0;
  return n;
}

int main() {
  return ramie::run([] {
    constexpr int workers = 3;
    ramie::channel<job> jobs{8};
    ramie::channel<answer> answers{8};
    std::atomic<int> under_way{0};
    std::atomic<int> most{0};

    ramie::wait_group busy{workers};
    ramie::scope pool;
    for (int i = 0; i < workers; ++i)
      pool.spawn([&] {
        for (const job& j : jobs) {
          const int now = ++under_way;
          for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
          }
          const auto sent = answers.send({j.number, count_vowels(j.text)});  // may wait; the others run meanwhile
          --under_way;
          if (sent != ramie::channel_status::ok) break;
        }
        busy.done();
      });
    pool.spawn([&] {
      busy.wait();
      answers.close();
    });
    pool.spawn([&] {
      int number = 0;
      for (const char* text : {"warp", "weft", "shuttle", "bobbin", "selvedge", "treadle", "heddle", "reed"})
        if (jobs.send({number++, text}) != ramie::channel_status::ok) break;
      jobs.close();
    });

    std::map<int, std::size_t> in_order;
    for (const answer& a : answers) in_order[a.number] = a.vowels;
    pool.join();
    for (const auto& [number, vowels] : in_order) std::printf("job %d: %zu\n", number, vowels);
    std::printf("never more than %d at once: %s\n", workers, most <= workers ? "yes" : "no");
  });
}
