// Experiment 5 on executors made of the standard library.
#include "executors.hpp"

#include <common/peer.hpp>
#include <common/random.hpp>

#include <latch>
#include <numeric>

namespace {

class cell;

struct world {
  executor& threads;
  std::int64_t accesses;
  bool talking;
  std::latch& all_done;
  std::vector<std::unique_ptr<cell>> cells = {};
};

/// Is in the executor's hands while its mailbox is not empty.
class cell : public runnable {
 public:
  cell(world& w, std::size_t words, std::uint64_t seed) : world_{w}, words_(words), random_{seed} { home = seed; }
  void tell(std::int64_t left) {
    bool was_empty = false;
    {
      const std::lock_guard lock{mutex_};
      was_empty = mail_.empty();
      mail_.push_back(left);
    }
    if (was_empty) world_.threads.submit(*this);
  }
  void run() override {
    std::int64_t left = 0;
    {
      const std::lock_guard lock{mutex_};
      left = mail_.front();
    }
    peer::touch(words_, world_.accesses, random_);
    const bool ends = left == 0;
    cell* to = world_.talking ? world_.cells[random_.below(world_.cells.size())].get() : this;
    // Told while its own message is still in the box: then it is not submitted twice.
    if (!ends) to->tell(left - 1);
    bool more = false;
    {
      const std::lock_guard lock{mutex_};
      mail_.pop_front();
      more = !mail_.empty();
    }
    if (more) world_.threads.submit(*this);
    if (ends) world_.all_done.count_down();
  }
  [[nodiscard]] std::uint64_t touched() const {
    return std::accumulate(words_.begin(), words_.end(), std::uint64_t{0});
  }

 private:
  world& world_;
  std::vector<std::uint64_t> words_;
  peer::random_numbers random_;
  std::mutex mutex_;
  std::deque<std::int64_t> mail_;
};

peer::outcome once(const peer::options& o, executor& threads) {
  const std::int64_t actors = o.number("actors", 24);
  const bool talking = o.number("talking", 0) != 0;
  const std::int64_t lines = talking ? o.number("messages", 12) : actors;
  const std::int64_t each = std::max<std::int64_t>(1, o.number("count", 1'000'000) / lines);
  std::latch all_done{lines};
  world w{threads, o.number("accesses", 100), talking, all_done};
  const auto words = static_cast<std::size_t>(o.number("state", 32'000)) / sizeof(std::uint64_t);
  for (std::int64_t i = 0; i < actors; ++i) {
    w.cells.push_back(std::make_unique<cell>(w, words, static_cast<std::uint64_t>(i) + 1));
  }
  const double seconds = peer::seconds_of([&] {
    for (std::int64_t i = 0; i < lines; ++i) w.cells[static_cast<std::size_t>(i % actors)]->tell(each - 1);
    all_done.wait();
  });
  std::uint64_t touched = 0;
  for (const auto& c : w.cells) touched += c->touched();
  return {seconds, lines * each, touched == static_cast<std::uint64_t>(lines * each * w.accesses)};
}

template <class Executor>
void affinity(const peer::options& o, const std::function<void(const peer::run_once&)>& measure) {
  measure([&] {
    Executor threads{static_cast<std::size_t>(o.workers)};
    return once(o, threads);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return peer::run("cpp_executors", "gcc " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__),
                   {{"affinity", "locked_queue", "message", affinity<locked_queue>},
                    {"affinity", "stealing", "message", affinity<stealing>},
                    {"affinity", "dedicated", "message", affinity<dedicated>}},
                   argc, argv);
}
