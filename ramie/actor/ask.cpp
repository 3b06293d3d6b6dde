// What asking needs apart from templates.
#include <ramie/actor/ask_async.hpp>
#include <ramie/actor/become.hpp>
#include <ramie/actor/dispatch.hpp>
#include <ramie/base/atomic.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/actor/ref.hpp>

#include <mutex>
#include <new>
#include <utility>

namespace ramie {

namespace detail {

steady::time_point deadline_after(std::chrono::nanoseconds timeout) noexcept {
  const auto now = os_now();
  return timeout > steady::time_point::max() - now ? steady::time_point::max() : now + timeout;
}

void refuse_reply(waiter_ref who, reply_state& slot, const discarded& why) noexcept {
  claimed_wait asker = claim(who);
  if (!asker) return;
  if (why.fate == letter_fate::full) {
    slot.is = reply_state::kind::full;
  } else {
    slot.is = reply_state::kind::down;
    slot.why = why.reason();
  }
  asker.go_on();
}

void handle_within(asked_by& origin, message& self, message_function act, actor_cell& c) {
  struct taking_part {
    asked_by& origin;
    const message& self;
    const bound_set* const bound = std::exchange(origin.bound, nullptr);
    binding_chain* chain = nullptr;
    ~taking_part() {
      if (chain != nullptr) chain->inherited.store(nullptr, std::memory_order_relaxed);
      if ((self.flags & message::kept) != 0) origin.bound = bound;
      else let_go(bound);
    }
  } now{origin, self};
  try {
    now.chain = &extras_of(c).bindings;
  } catch (const std::bad_alloc&) {  // as if its handler had thrown
    discarded why{&c, letter_fate::failed, std::current_exception()};
    act(self, message_verb::discard, &why);
    self.flags &= static_cast<std::uint8_t>(~message::request);  // it has been answered
    throw;
  }
  now.chain->inherited.store(now.bound, std::memory_order_relaxed);
  act(self, message_verb::handle, &c);
}

exit_reason discarded::reason() const noexcept {
  if (failure != nullptr) return exit_reason{exit_kind::failed, failure};
  std::lock_guard guard{cell->lock};
  const actor_extras* x = cell->more.load(std::memory_order_relaxed);
  if (x != nullptr && x->last.kind() != exit_kind::alive) return x->last;
  return exit_reason{cell->last_exit == exit_kind::alive ? exit_kind::stopped : cell->last_exit};
}

void give_failure(waiter_ref who, reply_state& slot, std::exception_ptr failure) noexcept {
  claimed_wait asker = claim(who);
  if (!asker) return;
  slot.is = reply_state::kind::failure;
  slot.why = exit_reason{exit_kind::failed, std::move(failure)};
  asker.go_on();
}

void keep_cell(actor_cell& c) noexcept { c.add_reference(); }
void let_cell_go(actor_cell& c) noexcept { c.release(); }

std::exception_ptr no_answer_of(actor_cell* c) noexcept {
  if (c != nullptr) {
    std::unique_lock guard{c->lock};
    const bool ends = (c->status & (actor_cell::closed | actor_cell::waiting)) != 0;
    guard.unlock();
    if (ends) return refusal_of({c, letter_fate::down});
  }
  return std::make_exception_ptr(broken_reply{});
}

void throw_answered() { throw usage_error{"ramie: reply: it has been answered already"}; }
void throw_two_askers() { throw usage_error{"ramie: reply: it belongs to another request already"}; }

void send_answer(actor_cell& c, std::uint32_t incarnation, message* note) noexcept { c.post_note(note, incarnation); }

std::uint32_t own_incarnation(const actor_cell& c) noexcept {
  const actor_extras* x = c.more.load(std::memory_order_acquire);
  return x == nullptr ? 0 : x->now.number;
}

std::exception_ptr refusal_of(const discarded& why) noexcept {
  if (why.fate == letter_fate::full) return std::make_exception_ptr(mailbox_full{});
  return std::make_exception_ptr(actor_down{why.reason()});
}

void throw_reply(const reply_state& slot) {
  if (slot.is == reply_state::kind::full) throw mailbox_full{};
  if (slot.is == reply_state::kind::failure) std::rethrow_exception(slot.why.exception());
  throw actor_down{slot.why};
}

std::exception_ptr no_answer_in_time() noexcept {
  return std::make_exception_ptr(timeout_error{"ramie: ask_then_for: no reply in time"});
}

void throw_ask_timeout() { throw timeout_error{"ramie: ask_for: no reply in time"}; }

void check_not_self(const actor_cell& c) {
  if (this_actor() == &c) throw usage_error{"ramie: ask: an actor cannot ask itself: it would never return"};
}

void* substitute_for(actor_cell& c, const type_info& message) noexcept {
  actor_extras& x = *c.more.load(std::memory_order_acquire);
  if (!x.now.replaced.empty()) x.now.replaced.clear();
  return x.now.becoming == nullptr ? nullptr : x.now.becoming->find(message);
}

void change_behaviour(actor_cell& c, std::shared_ptr<behaviour> to) {
  actor_extras& x = c.extras();
  if (x.now.becoming != nullptr) x.now.replaced.push_back(x.now.becoming);
  x.now.becoming = std::move(to);
}

namespace {
void act_on_stop(message& m, message_verb verb, void* context) {
  if (verb == message_verb::handle) heed_stop(*static_cast<actor_cell*>(context), m);
  else if (verb == message_verb::type) *static_cast<const type_info**>(context) = &type_of<exit_reason>();
}

using stop_node = body_node<exit_reason>;
void act_on_stop_with(message& m, message_verb verb, void* context) {
  act_on_stop(m, verb, context);
  if (verb == message_verb::handle || verb == message_verb::discard) std::destroy_at(&static_cast<stop_node&>(m).body);
}
}  // namespace

bool is_stop(const message& m) noexcept { return m.act == &act_on_stop || m.act == &act_on_stop_with; }

void heed_stop(actor_cell& c, const message& m) noexcept {
  c.ending = true;
  if (m.act == &act_on_stop_with)
    c.more.load(std::memory_order_acquire)->now.stop_reason = static_cast<const stop_node&>(m).body;
}

void stop_with(actor_cell& c, exit_reason why) {
  c.extras().now.stop_reason = std::move(why);
  c.ending = true;
}

void exit_by_signal(actor_cell& c, const exit_reason& why) {
  if (const message_function act = c.how().exit_act; act != nullptr) {
    actor_cell* const from = this_actor();
    c.post_lifecycle(make_message<body_node<exit_signal>>(
        act, message::lifecycle, exit_signal{from == nullptr ? any_actor{} : any_actor{*from}, why}));
  } else if (!why.normal()) {
    c.kill(why);
  }
}

}  // namespace detail

void any_actor::stop() const {
  cell_->post_lifecycle(detail::make_message<detail::message_base>(&detail::act_on_stop, detail::message::lifecycle));
}
void any_actor::stop(exit_reason why) const {
  cell_->extras();
  cell_->post_lifecycle(
      detail::make_message<detail::stop_node>(&detail::act_on_stop_with, detail::message::lifecycle, std::move(why)));
}

}  // namespace ramie
