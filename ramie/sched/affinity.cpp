#include <ramie/sched/affinity.hpp>

#include <algorithm>

namespace ramie::detail {

void home_learner::ran(std::uint64_t cycles, std::uint32_t messages, std::uint64_t hop) noexcept {
  if (messages == 0) return;
  const bool warming = phase_ == phase::follows_warming || phase_ == phase::stays_warming;
  if (warming) {
    count_ = static_cast<std::uint16_t>(std::min<std::uint32_t>(count_ + messages, warmed));
    if (count_ == warmed) enter(phase_ == phase::follows_warming ? phase::follows_timed : phase::stays_timed);
    return;
  }
  rates_ += static_cast<float>(messages) / static_cast<float>(std::max<std::uint64_t>(cycles, 1));
  if (++count_ < measured) return;
  const float cost = static_cast<float>(count_) / rates_;
  if (phase_ == phase::follows_timed) {
    follows_cost_ = cost;
    enter(phase::stays_warming);
    return;
  }
  const bool stays = cost + static_cast<float>(hop) < follows_cost_;
  wait_ = static_cast<std::uint8_t>(stays == stayed_ ? std::min<int>(wait_ + 1, wait_most) : wait_least) & 0x7f;
  stayed_ = stays;
  enter(stays ? phase::stays : phase::follows);
}

}  // namespace ramie::detail
