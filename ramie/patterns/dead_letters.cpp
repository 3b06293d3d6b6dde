#include <ramie/patterns/dead_letters.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/machine/spin_lock.hpp>

#include <array>
#include <memory>
#include <mutex>

namespace ramie {

namespace {

using hook_function = std::function<void(const dead_letter&)>;

struct letter_office {
  std::array<detail::atomic<std::uint64_t>, 3> counts{};
  detail::atomic<bool> has_hook{false};
  detail::spin_lock lock;
  std::shared_ptr<const hook_function> hook;
};

letter_office& office() {
  static auto* the_office = new letter_office;  // actors may end after static destruction began
  return *the_office;
}

}  // namespace

dead_letter_counts dead_letters() noexcept {
  const auto& counts = office().counts;
  return {counts[0].load(std::memory_order_relaxed), counts[1].load(std::memory_order_relaxed),
          counts[2].load(std::memory_order_relaxed)};
}

void on_dead_letter(std::function<void(const dead_letter&)> hook) {
  auto fresh = hook ? std::make_shared<const hook_function>(std::move(hook)) : nullptr;
  letter_office& o = office();
  std::lock_guard guard{o.lock};
  o.hook.swap(fresh);
  o.has_hook.store(o.hook != nullptr, std::memory_order_release);
}

void detail::report_dead_letter(actor_cell& c, message& m, letter_fate fate) noexcept {
  letter_office& o = office();
  o.counts[static_cast<std::size_t>(fate)].fetch_add(1, std::memory_order_relaxed);
  if (!o.has_hook.load(std::memory_order_acquire)) [[likely]]
    return;
  std::shared_ptr<const hook_function> hook;
  {
    std::lock_guard guard{o.lock};
    hook = o.hook;
  }
  if (hook == nullptr) return;
  const type_info* type = nullptr;
  m.act(m, message_verb::type, &type);
  (*hook)({any_actor{c}, type, static_cast<dead_letter_cause>(fate)});
}

}  // namespace ramie
