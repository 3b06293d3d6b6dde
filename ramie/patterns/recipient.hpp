// References to actors by what they take, not by what they are.
#pragma once

#include <ramie/actor/ref.hpp>

#include <memory>
#include <utility>

namespace ramie {

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
  tell_status try_tell(M m) const {
    auto* node = detail::make_message<detail::tell_node<M>>(act_, 0, std::move(m));
    const tell_status became = cell()->try_post(node, false);
    if (became != tell_status::full || !cell()->blocks_senders()) return became;
    std::destroy_at(&node->body);
    detail::free_message(node);
    return became;
  }

 private:
  detail::message_function act_ = nullptr;
};

}  // namespace ramie
