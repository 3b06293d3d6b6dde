// Streams, message sockets and listeners that tell their actor what arrives. A "stream" below is any of them.
//
//  Y1 A stream has one note, a message to its actor: "read now". It rests with the stream; or is at the descriptor, as
//     its sink (descriptor.hpp, N7); or on its way to the mailbox, in it, or handled. All that the stream knows is in
//     it, so that the stream itself is two words. Only the actor's own turns use it, but for Y3.
//  Y2 To send it off, `ready` is taken if it is set, and the note is posted at once; otherwise it becomes the sink, under
//     the same lock. So no edge is missed.
//  Y3 The thread that sees the edge has the note, posts it, and then drops the reference to the actor that came with it; the
//     actor's block stays until then. That allocates nothing and runs no code of the user's.
//  Y4 The actor handles it by reading once (receiving, accepting). If there was nothing, a new note is sent off. Otherwise
//     the bytes, the datagram or the connection is the note's payload, and the handler is called; after that a new note is
//     made, which is sent off if more was asked for.
//     So one piece at most waits in memory, a stream that floods its actor puts one message between any two others, and
//     a handler that waits stops the stream. The new note is another one because the old one still belongs to the caller
//     of the handler, or was stashed by it.
//  Y5 A stream that ends takes its note back from the descriptor. If somebody has it by then, the stream writes in it
//     that it is gone (`owner`), and then sets `left`: the note is freed as a message is, when its turn comes.
//  Y6 But an actor that has ended takes no message, and the stream may be about to look at its note. A refused sender
//     sets `refused`. Of the two, the second one frees the note.
#include <ramie/patterns/active.hpp>
#include <ramie/patterns/active_socket.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/poll/traffic.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>

namespace ramie::net::detail {

using ramie::detail::body_node;
using ramie::detail::free_message;
using ramie::detail::make_message;

active_note::active_note(const active_note* before) noexcept {
  edge = &on_edge;
  if (before == nullptr) return;
  owner = before->owner;
  actor = before->actor;
  type = before->type;
  d = before->d;
  piece = before->piece;
  wanted = before->wanted;
}

// Y5, Y6.
void active_note::free() noexcept {
  at = place::freed;
  free_message(this);
}

// Idle actors have one each: the smallest block must do.
static_assert(sizeof(note_of<received>) <= ramie::detail::task_cache::block_sizes[0]);

namespace {

constexpr std::uint32_t pause_most_ms = 100;  // as with `accept`

/// The actor's own turn, or its constructor.
std::uint32_t incarnation_of(actor_cell& c) noexcept {
  const ramie::detail::actor_extras* x = c.more.load(std::memory_order_acquire);
  return x == nullptr ? 0 : x->now.number;
}

/// It was no message until it was read: a look at whether the actor is busy shall see it.
void count_as_message(actor_cell& c) noexcept {
  {
    const std::lock_guard guard{c.lock};
    ++c.posted;
  }
  c.handled.store(c.handled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

// Y3. Once it is posted it may be gone.
void active_note::on_edge(edge_sink& self) noexcept {
  auto& n = static_cast<active_note&>(self);
  actor_cell& c = *n.actor;
  if (!c.post_note(&n, n.incarnation, false) &&
      (n.ends.exchange(fate::refused, std::memory_order_acq_rel) == fate::left || RAMIE_PLANT(active_refusal_freed)))
    n.free();
  c.release();
}

// Y2.
void active_note::send_off() {
  incarnation = incarnation_of(*actor);
  if (const possible_use during{*d}; during) {
    at = place::out;
    actor->add_reference();
    try {
      if (set_sink(*d, *this)) return;
    } catch (...) {
      at = place::rests;
      actor->release();
      throw;
    }
    actor->release();
  }
  at = actor->post_note(this, incarnation, false) ? place::out : place::rests;
  if (at == place::rests) set_ready(*d, direction::in);
}

void active_note::act_on(message& self, message_verb verb, void* context) {
  auto& n = static_cast<active_note&>(self);
  switch (verb) {
    case message_verb::handle: n.handle(); break;
    case message_verb::discard:
      if (n.filled) n.type->destroy(n);
      break;
    case message_verb::type: *static_cast<const type_info**>(context) = &n.type->payload(); break;
    default: break;
  }
}

namespace {

/// As payload_guard: a payload that was not stashed is destroyed.
struct destroying {
  active_note& n;
  ~destroying() {
    if ((n.flags & message::kept) == 0) n.type->destroy(n);
  }
};

}  // namespace

// Y4.
void active_note::handle() {
  if (filled) {  // it was stashed
    const destroying afterwards{*this};
    type->deliver(*actor, *this);
    return;
  }
  if (owner == nullptr) return;
  at = place::handled;
  struct letting_go {
    active_note& n;
    ~letting_go() {
      if (n.owner != nullptr) n.owner->note_ = nullptr;
    }
  };
  active_note* fresh = nullptr;
  {
    const letting_go afterwards{*this};
    take_and_tell();
    if (owner == nullptr) return;
    fresh = type->make(this);
  }
  owner->note_ = fresh;
  if (wanted != 0 && !actor->ending) fresh->send_off();
}

void active_note::take_and_tell() {
  if (wanted == 0) {
    set_ready(*d, direction::in);  // the edge is for the next reader
    return;
  }
  std::error_code why = io_errc::closed;
  taken what = taken::ended;
  taken_edge its_edge{*d, direction::in};
  if (const possible_use during{*d}; during) what = type->take(*this, why);
  its_edge.set(what == taken::later);
  switch (what) {
    case taken::nothing: found_nothing(*d, direction::in); return;
    case taken::later:
      ramie::this_fiber::sleep_for(std::chrono::milliseconds{piece});
      piece = std::min<std::uint32_t>(2 * piece, pause_most_ms);
      return;
    case taken::ended:
      wanted = 0;
      tell(type->act_on_ended, ended{why, owner});
      return;
    case taken::failed:
    case taken::piece: break;
  }
  if (wanted != active_base::always) --wanted;
  if (what == taken::failed) {
    if (type->act_on_failed != nullptr) tell(type->act_on_failed, receive_failed{why, owner});
  } else {
    count_as_message(*actor);
    filled = true;
    const destroying afterwards{*this};
    type->deliver(*actor, *this);
  }
  if (wanted == 0 && owner != nullptr && type->act_on_paused != nullptr) tell(type->act_on_paused, paused{owner});
}

template <class M>
void active_note::tell(message_function handler, const M& m) {
  actor->post_timed(make_message<body_node<M>>(handler, message::own, m), incarnation_of(*actor), true);
}

// ---- what is taken ------------------------------------------------------------------------------------------------

taken take_bytes(active_note& n, std::error_code& why, active_reader read) {
  std::unique_ptr<std::byte[]> block{new std::byte[n.piece]};
  system::result got = 0;
  do got = read(n.d->fd, block.get(), n.piece);
  while (got == -EINTR);
  if (got == -EAGAIN) return taken::nothing;
  if (!is_drained_by(*n.d, got, n.piece)) set_ready(*n.d, direction::in);
  count_read(got);
  why = {static_cast<int>(-got), std::system_category()};
  if (got == 0) why.clear();
  if (got <= 0) return taken::ended;
  static_cast<note_of<received>&>(n).fill(std::move(block), static_cast<std::size_t>(got), n.owner);
  return taken::piece;
}

template <bool ends_at_empty>
taken take_datagram(active_note& n, std::error_code& why) {
  std::unique_ptr<std::byte[]> block{new std::byte[n.piece]};
  endpoint sender;
  bool truncated = false;
  system::result got = 0;
  do got = receive_datagram(n.d->fd, {block.get(), n.piece}, sender, truncated);
  while (got == -EINTR);
  if (got == -EAGAIN) return taken::nothing;
  set_ready(*n.d, direction::in);
  count_read(got);
  why = {static_cast<int>(got < 0 ? -got : 0), std::system_category()};
  if (got < 0) return ends_at_empty ? taken::ended : taken::failed;
  if (got == 0 && ends_at_empty) return taken::ended;
  static_cast<note_of<datagram>&>(n).fill(
      std::move(block), std::min(static_cast<std::size_t>(got), std::size_t{n.piece}), truncated, sender, n.owner);
  return taken::piece;
}
template taken take_datagram<false>(active_note& n, std::error_code& why);
template taken take_datagram<true>(active_note& n, std::error_code& why);

taken take_connection(active_note& n, listener& from, handle& into, std::error_code& why) {
  try {
    if (!socket_access::accept_now(from, n.d->fd, into)) return taken::nothing;
  } catch (const io_error& e) {
    why = e.code();
    return taken::ended;
  }
  if (into.get() == nullptr) {
    socket_access::count_pause(from);
    return taken::later;
  }
  n.piece = 1;
  set_ready(*n.d, direction::in);
  return taken::piece;
}

// ---- the stream ----------------------------------------------------------------------------------------------------

void active_base::begin(actor_cell& owner, const active_type& type, descriptor* d, std::uint32_t piece) {
  if (piece == 0) throw invalid_argument{"ramie: active_stream: piece is 0; it must be at least 1"};
  if (d == nullptr) throw io_error{"active_stream", io_errc::closed};
  note_ = type.make(nullptr);
  note_->owner = this;
  note_->actor = &owner;
  note_->type = &type;
  note_->d = d;
  note_->piece = piece;
}

active_base::active_base(active_base&& other) noexcept : note_{std::exchange(other.note_, nullptr)} {
  if (note_ != nullptr) note_->owner = this;
}

void active_base::activate(std::uint32_t pieces) {
  if (note_ == nullptr || pieces == 0) return;  // it is closed
  active_note& n = *note_;
  const std::uint32_t before = n.wanted;
  n.wanted = pieces > always - n.wanted ? always : n.wanted + pieces;
  if (n.at != active_note::place::rests) return;
  try {
    n.send_off();
  } catch (...) {
    n.wanted = before;
    throw;
  }
}

void active_base::deactivate() noexcept {
  if (note_ == nullptr) return;
  note_->wanted = 0;
  if (note_->at != active_note::place::out) return;
  if (!take_sink_back(*note_->d, *note_)) {
    set_ready(*note_->d, direction::in);  // for whoever reads before the note's turn comes
    return;
  }
  note_->at = active_note::place::rests;
  note_->actor->release();
}

bool active_base::is_active() const noexcept { return note_ != nullptr && note_->wanted != 0; }

void active_base::end() noexcept {
  if (note_ == nullptr) return;
  deactivate();
  active_note& n = *std::exchange(note_, nullptr);
  switch (n.at) {
    case active_note::place::rests: n.free(); break;
    case active_note::place::handled: n.owner = nullptr; break;
    case active_note::place::out:
      n.owner = nullptr;
      if (n.ends.exchange(active_note::fate::left, std::memory_order_acq_rel) == active_note::fate::refused) n.free();
      break;
    case active_note::place::freed: RAMIE_ASSERT(false, "a note was freed that its stream still has");
  }
}

}  // namespace ramie::net::detail
