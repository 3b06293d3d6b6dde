// A teller moves money between accounts; the debited account tells the other and replies when the other has replied.
#include <lab/workloads/savina/savina.hpp>

namespace ramie::lab {
namespace {

class account;
struct credit {
  std::int64_t amount;
};
struct debit {
  std::int64_t amount;
  ramie::actor_ref<account> to;
};
struct balance {};

class account : public ramie::actor<account> {
 public:
  explicit account(std::int64_t start) : balance_{start} {}
  bool on(credit c) {
    balance_ += c.amount;
    return true;
  }
  bool on(const debit& d) {
    balance_ -= d.amount;
    return d.to.ask(credit{d.amount});
  }
  std::int64_t on(balance) { return balance_; }

 private:
  std::int64_t balance_;
};

run_result run(session& s) {
  const std::int64_t accounts = s.parameter("accounts");
  const std::int64_t transactions = s.parameter("transactions");
  return run_savina(s, [&] {
    const std::vector<ramie::actor_ref<account>> all = spawn_actors<account>(accounts, 1000);
    small_random random{17};
    std::int64_t done = 0;
    // From a lower to a higher account, so that no two wait for each other; 100 at a time.
    std::vector<ramie::future<bool>> replies;
    for (std::int64_t i = 0; i < transactions; ++i) {
      const std::int64_t from = random.below(accounts - 1);
      const std::int64_t to = from + 1 + random.below(accounts - from - 1);
      replies.push_back(all[static_cast<std::size_t>(from)].ask_async(
          debit{1 + random.below(100), all[static_cast<std::size_t>(to)]}));
      if (replies.size() < 100 && i + 1 < transactions) continue;
      for (auto& r : replies) done += static_cast<std::int64_t>(r.get());
      replies.clear();
    }
    std::int64_t sum = 0;
    for (const auto& a : all) sum += a.ask(balance{});
    for (const auto& a : all) a.stop();
    for (const auto& a : all) a.join();
    return savina_outcome{4 * transactions, done == transactions && sum == 1000 * accounts};
  });
}

}  // namespace

workload savina_bank_transaction() {
  return savina_workload("bank_transaction", "money moves between accounts, each move acknowledged by both",
                         {{.name = "accounts", .help = "actors", .standard = 1000, .min = 2, .max = 1'000'000},
                          {.name = "transactions", .help = "moves", .standard = 100'000, .min = 1, .max = 100'000'000}},
                         run);
}

}  // namespace ramie::lab
