// The sieve of Eratosthenes as a pipeline: each actor keeps some primes and passes on what they do not divide.
#include <lab/workloads/savina/savina.hpp>

#include <atomic>

namespace ramie::lab {
namespace {

class filter;
struct candidate {
  std::int64_t n;
};
struct no_more {
  std::int64_t primes_before;
  std::int64_t* result;
};

class filter : public ramie::actor<filter> {
 public:
  filter(std::size_t room, std::atomic<std::int64_t>* passed) : room_{room}, passed_{passed} {}
  void on(candidate c) {
    ++messages_;
    for (const std::int64_t p : primes_) {
      if (p * p > c.n) break;
      if (c.n % p == 0) return;
    }
    if (primes_.size() < room_) {
      primes_.push_back(c.n);
      return;
    }
    if (!next_) next_ = ramie::spawn_actor<filter>(room_, passed_);
    next_.tell(c);
  }
  void on(no_more m) {
    passed_->fetch_add(messages_ + 1, std::memory_order_relaxed);
    m.primes_before += static_cast<std::int64_t>(primes_.size());
    if (next_) next_.tell(m);
    else *m.result = m.primes_before;
    if (next_) next_.join();
    stop();
  }

 private:
  std::size_t room_;
  std::atomic<std::int64_t>* passed_;
  std::vector<std::int64_t> primes_;
  ramie::actor_ref<filter> next_;
  std::int64_t messages_ = 0;
};

std::int64_t count_primes(std::int64_t below) {
  std::vector<bool> composite(static_cast<std::size_t>(below));
  std::int64_t count = 0;
  for (std::int64_t i = 2; i < below; ++i) {
    if (composite[static_cast<std::size_t>(i)]) continue;
    ++count;
    for (std::int64_t j = i * i; j < below; j += i) composite[static_cast<std::size_t>(j)] = true;
  }
  return count;
}

run_result run(session& s) {
  const std::int64_t below = s.parameter("below");
  const auto room = static_cast<std::size_t>(s.parameter("primes-each"));
  const std::int64_t expected = count_primes(below);
  return run_savina(s, [&] {
    std::atomic<std::int64_t> messages{0};
    std::int64_t primes = 0;
    auto first = ramie::spawn_actor<filter>(room, &messages);
    first.tell(candidate{2});
    for (std::int64_t n = 3; n < below; n += 2) {
      first.tell(candidate{n});
      if (n % 128 == 1) ramie::this_fiber::yield();
    }
    first.tell(no_more{0, &primes});
    first.join();
    return savina_outcome{messages.load(), primes == expected};
  });
}

}  // namespace

workload savina_sieve() {
  return savina_workload(
      "sieve", "primes by a pipeline of actors that each keep some",
      {{.name = "below", .help = "looked at", .standard = 200'000, .min = 3, .max = 100'000'000},
       {.name = "primes-each", .help = "primes that an actor keeps", .standard = 1000, .min = 1, .max = 1'000'000}},
      run);
}

}  // namespace ramie::lab
