// Lists of cases for select, on channels of several capacities, against a model of queues. On one plain thread there
// are no other waiters, so a channel is its buffer, and a rendezvous is never ready.
#include "input.hpp"

#include <ramie/ramie.hpp>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace {

struct modelled {
  explicit modelled(std::size_t capacity) : real{capacity} {}
  ramie::channel<std::unique_ptr<int>> real;
  std::deque<int> queue;
  bool closed = false;
  [[nodiscard]] bool can_send() const { return closed || queue.size() < real.capacity(); }
  [[nodiscard]] bool can_receive() const { return closed || !queue.empty(); }
  void check() const {
    fuzz::require(real.size() == queue.size(), "a channel has another size than its model");
    fuzz::require(real.is_closed() == closed, "a channel is closed, and its model not, or the other way");
  }
  void received(std::optional<std::unique_ptr<int>> got) {
    if (queue.empty()) {
      fuzz::require(!got && closed, "something came out of an empty channel, or nothing out of an open one");
      return;
    }
    fuzz::require(got && **got == queue.front(), "another element came than the oldest");
    queue.pop_front();
  }
  void sent(ramie::channel_status st, int value) {
    if (closed) return fuzz::require(st == ramie::channel_status::closed, "sent on a closed channel");
    fuzz::require(st == ramie::channel_status::ok && queue.size() < real.capacity(), "sent on a full channel");
    queue.push_back(value);
  }
};

using receive_case = decltype(ramie::on_recv(std::declval<ramie::channel<std::unique_ptr<int>>&>(),
                                             std::declval<std::function<void(std::optional<std::unique_ptr<int>>)>>()));

/// A list of receives; some channels more than once.
void receive_among(std::array<modelled, 3>& all, fuzz::input& in) {
  std::vector<receive_case> cases;
  std::vector<std::size_t> which;
  bool ready = false;
  for (unsigned n = in.pick(5); n > 0; --n) {
    const std::size_t i = in.pick(2);
    which.push_back(i);
    ready |= all[i].can_receive();
    cases.push_back(ramie::on_recv(all[i].real, std::function<void(std::optional<std::unique_ptr<int>>)>{
                                                    [&m = all[i]](auto v) { m.received(std::move(v)); }}));
  }
  bool none = false;
  const std::size_t fired =
      in.pick(1) == 0 ? ramie::select(cases, ramie::otherwise([&] { none = true; }))
                      : ramie::select(cases, ramie::on_timeout(std::chrono::nanoseconds{0}, [&] { none = true; }));
  fuzz::require(none == !ready, "select waited for what was ready, or found what was not");
  fuzz::require(ready ? fired < which.size() : fired == which.size(), "select tells another case than it served");
}

/// Sends and receives mixed; one of each.
void choose(std::array<modelled, 3>& all, fuzz::input& in, int& next) {
  modelled& to = all[in.pick(2)];
  modelled& from = all[in.pick(2)];
  const bool could_send = to.can_send(), could_receive = from.can_receive();
  const int value = next++;
  bool none = false, sent = false, received = false;
  const std::size_t fired =
      ramie::select(ramie::on_send(to.real, std::make_unique<int>(value),
                                   [&](ramie::channel_status st) { to.sent(st, value), sent = true; }),
                    ramie::on_recv(from.real, [&](auto v) { from.received(std::move(v)), received = true; }),
                    ramie::otherwise([&] { none = true; }));
  fuzz::require(int{sent} + int{received} + int{none} == 1, "not one case was done");
  fuzz::require(fired == (sent ? 0u : received ? 1u : 2u), "select tells another case than it served");
  fuzz::require((!sent || could_send) && (!received || could_receive) && none == !(could_send || could_receive),
                "a case was done that was not ready");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in{data, size};
  std::array<modelled, 3> all{modelled{in.pick(3)}, modelled{in.pick(3)}, modelled{in.pick(3)}};
  int next = 1;
  while (!in.empty()) {
    modelled& m = all[in.pick(2)];
    switch (in.pick(5)) {
      case 0: {
        auto one = std::make_unique<int>(next);
        const auto st = m.real.try_send(std::move(one));
        if (st == ramie::channel_status::full) fuzz::require(!m.can_send(), "full, with room");
        else m.sent(st, next);
        ++next;
        break;
      }
      case 1: {
        auto got = m.real.try_recv();
        if (got) m.received(std::move(got));
        else fuzz::require(m.queue.empty(), "empty, with elements");
        break;
      }
      case 2:
        if (in.pick(7) == 0) {
          m.real.close();
          m.closed = true;
        }
        break;
      case 3: receive_among(all, in); break;
      default: choose(all, in, next); break;
    }
    for (const auto& each : all) each.check();
  }
  return 0;
}
