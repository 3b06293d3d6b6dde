// References to actors by what they take, not by what they are.
#pragma once

#include <ramie/actor/ref.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {
/// As actor_ref::try_tell.
template <class M>
tell_status try_tell_to(actor_cell& c, message_function act, M&& m) {
  auto* node = make_message<tell_node<std::remove_cvref_t<M>>>(act, 0, std::forward<M>(m));
  const tell_status became = c.try_post(node, false);
  if (became != tell_status::full || !c.blocks_senders()) return became;
  std::destroy_at(&node->body);
  free_message(node);
  return became;
}
}  // namespace detail

/// A reference to an actor of any class that takes messages of type M.
template <class M>
class recipient : public any_actor {
 public:
  recipient() noexcept = default;
  template <class A>
  recipient(const actor_ref<A>& ref) noexcept : any_actor{ref}, act_{&detail::act_on_tell<A, M>} {
    static_assert(detail::accepts_message<A, M>, "ramie: recipient: this actor does not take these messages");
  }
  /// Same as actor_ref::tell.
  tell_status tell(M m) const {
    return cell()->post(detail::make_message<detail::tell_node<M>>(act_, 0, std::move(m)));
  }
  /// Same as actor_ref::try_tell.
  tell_status try_tell(M m) const { return detail::try_tell_to(*cell(), act_, std::move(m)); }

  /// Internal.
  recipient(const any_actor& who, detail::message_function f) noexcept : any_actor{who}, act_{f} {}
  [[nodiscard]] detail::message_function act() const noexcept { return act_; }

 private:
  detail::message_function act_ = nullptr;
};

/// What became of a message to many.
struct published {
  std::size_t taken = 0;
  std::size_t refused = 0;  // by full mailboxes
};

}  // namespace ramie
