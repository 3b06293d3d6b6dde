// Mail of all kinds, put into bounded and unbounded mailboxes while their actor is held up, against a model of what it
// then handles, and in which order.
#include "input.hpp"

#include <ramie/ramie.hpp>

#include <deque>
#include <vector>

namespace {

struct gate {
  ramie::event* inside;
  ramie::event* open;
};
struct handled {};

class recorder : public ramie::actor<recorder> {
 public:
  explicit recorder(std::vector<int>* into) : into_{into} {}
  void on(gate g) {
    g.inside->set();
    g.open->wait();
  }
  void on(int value) { into_->push_back(value); }

 private:
  std::vector<int>* into_;
};

struct model {
  std::size_t capacity;
  ramie::overflow overflow;
  std::deque<int> urgent, mail;
  bool stopped = false;
  std::size_t behind_stop = 0;  // mail that came after it, which takes room and is not handled
  std::size_t stop_at = 0;

  ramie::tell_status post(int value, bool is_urgent) {
    if (capacity != 0 && urgent.size() + mail.size() >= capacity) {
      if (overflow == ramie::overflow::fail) return ramie::tell_status::full;
      if (overflow == ramie::overflow::drop_newest) return ramie::tell_status::dropped;
      if (!mail.empty()) {
        mail.pop_front();
        if (stopped && stop_at != 0) --stop_at;
      } else {
        urgent.pop_front();  // urgent mail goes only where there is no other
      }
    }
    (is_urgent ? urgent : mail).push_back(value);
    return ramie::tell_status::ok;
  }
};

void one_actor(fuzz::input& in) {
  constexpr ramie::overflow kinds[] = {ramie::overflow::fail, ramie::overflow::drop_newest,
                                       ramie::overflow::drop_oldest};
  model m{in.pick(4), kinds[in.pick(2)], {}, {}};
  std::vector<int> got, expected;
  const auto ref =
      ramie::spawn_actor<recorder>(ramie::actor_options{.mailbox_capacity = m.capacity, .overflow = m.overflow}, &got);
  int next = 0;
  bool ended = false;
  while (!in.empty() && !ended) {
    ramie::event inside, open;
    fuzz::require(ref.tell(gate{&inside, &open}) == ramie::tell_status::ok, "no room in an empty mailbox");
    inside.wait();
    for (unsigned n = in.pick(8); n > 0; --n) {
      const int value = next++;
      switch (in.pick(5)) {
        case 0:
          fuzz::require(ref.tell_urgent(value) == m.post(value, true), "urgent mail met with another fate");
          break;
        case 1:
          if (!m.stopped && in.pick(7) == 0) {
            ref.stop();
            m.stopped = true;
            m.stop_at = m.mail.size();
          }
          break;
        default: fuzz::require(ref.tell(value) == m.post(value, false), "mail met with another fate"); break;
      }
    }
    fuzz::require(ref.mail_count() == m.urgent.size() + m.mail.size(), "another number of messages waits");
    const bool killed = in.pick(15) == 0;
    if (killed) ref.kill();
    if (!killed) {
      expected.insert(expected.end(), m.urgent.begin(), m.urgent.end());
      const std::size_t most = m.stopped ? m.stop_at : m.mail.size();
      expected.insert(expected.end(), m.mail.begin(), m.mail.begin() + static_cast<std::ptrdiff_t>(most));
    }
    m.urgent.clear();
    m.mail.clear();
    open.set();
    ended = m.stopped || killed;
    if (ended) {
      fuzz::require(ref.join().kind() == (killed ? ramie::exit_kind::killed : ramie::exit_kind::stopped),
                    "a strange end");
    } else {
      while (got.size() < expected.size() || ref.mail_count() != 0) ramie::this_fiber::yield();
    }
    fuzz::require(got == expected, "messages were handled in another order, or others were");
  }
  if (!ended) {
    ref.stop();
    ref.join();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto* const rt =
      new ramie::runtime{{.workers = 1, .name = "fuzz", .spare_workers = 0, .report_deadlocks = false}};
  fuzz::input in{data, size};
  rt->run([&] { one_actor(in); });
  return 0;
}
