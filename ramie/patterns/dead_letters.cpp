#include <ramie/patterns/dead_letters.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/patterns/watches.hpp>

#include <array>
#include <mutex>
#include <sstream>
#include <utility>

namespace ramie {

namespace {

using hook_function = std::function<void(const dead_letter&)>;
using hooks = detail::watches<hook_function>;

struct letter_office {
  std::array<detail::atomic<std::uint64_t>, 4> counts{};
  hooks watching;
  std::mutex changing;
  hooks::entry of_all;  // on_dead_letter's
};

letter_office& office() {
  static auto* the_office = new letter_office;  // actors may end after static destruction began
  return *the_office;
}

}  // namespace

std::string dead_letter::text() const {
  std::ostringstream out;
  if ((letter->flags & detail::message::late) == 0) letter->act(*letter, detail::message_verb::text, &out);
  return std::move(out).str();
}

dead_letter_counts dead_letters() noexcept {
  const auto& counts = office().counts;
  return {counts[0].load(std::memory_order_relaxed), counts[1].load(std::memory_order_relaxed),
          counts[2].load(std::memory_order_relaxed), counts[3].load(std::memory_order_relaxed)};
}

void on_dead_letter(std::function<void(const dead_letter&)> hook) {
  hooks::entry fresh;
  if (hook) fresh = std::make_shared<detail::watch<hook_function>>(nullptr, std::move(hook));
  letter_office& o = office();
  const std::lock_guard guard{o.changing};
  if (fresh != nullptr) o.watching.add(fresh);
  if (o.of_all != nullptr) o.watching.remove(o.of_all);
  o.of_all = std::move(fresh);
}

struct dead_letter_watch::state : detail::watch<hook_function> {
  using watch::watch;
};

dead_letter_watch::dead_letter_watch(runtime& in, std::function<void(const dead_letter&)> hook)
    : state_{std::make_shared<state>(&in.internals(), std::move(hook))} {
  office().watching.add(state_);
}
dead_letter_watch::~dead_letter_watch() { office().watching.remove(state_); }

void detail::report_dead_letter(actor_cell& c, message& m, letter_fate fate) noexcept {
  letter_office& o = office();
  dead_letter_cause cause = static_cast<dead_letter_cause>(fate);
  // Such a cell ends once, and says so before its mail is discarded.
  if (fate == letter_fate::down && c.how().foreign && c.last_exit == exit_kind::node_lost)
    cause = dead_letter_cause::lost;
  o.counts[static_cast<std::size_t>(cause)].fetch_add(1, std::memory_order_relaxed);
  if (!o.watching.any()) [[likely]]
    return;
  const type_info* type = nullptr;
  m.act(m, message_verb::type, &type);
  const dead_letter letter{any_actor{c}, type, cause, &m};
  o.watching.for_each(home_of(c), [&letter](const hook_function& hook) { hook(letter); });
}

}  // namespace ramie
