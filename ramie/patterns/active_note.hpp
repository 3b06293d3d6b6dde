// What all active streams and sockets have in common: the note that goes between the descriptor and the mailbox. The
// protocol is in active.cpp.
#pragma once

#include <ramie/actor/actor.hpp>
#include <ramie/poll/descriptor.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <system_error>

namespace ramie::net {

namespace detail {

class active_base;
struct active_note;

}  // namespace detail

/// Message to the owner of an active stream, socket or listener: nothing more will come. Writing may still be possible.
struct ended {
  std::error_code why;  // none: the peer has closed its write side
  const void* from = nullptr;
  [[nodiscard]] bool is_of(const detail::active_base& x) const noexcept { return from == &x; }
};

/// Message to the owner of an active socket that handles it: a failure that the socket goes on after (ECONNREFUSED for
/// an earlier message, ENOMEM). It counts as a piece.
struct receive_failed {
  std::error_code why;
  const void* from = nullptr;
  [[nodiscard]] bool is_of(const detail::active_base& x) const noexcept { return from == &x; }
};

/// Message to an owner that handles it: as many pieces have come as were asked for, and the stream is passive.
struct paused {
  const void* from = nullptr;
  [[nodiscard]] bool is_of(const detail::active_base& x) const noexcept { return from == &x; }
};

namespace detail {

using ramie::detail::actor_cell;
using ramie::detail::atomic;
using ramie::detail::message;
using ramie::detail::message_function;
using ramie::detail::message_verb;

/// What one try found.
enum class taken : std::uint8_t {
  nothing,
  piece,   // the note has its payload
  failed,  // a failure that is over once it is told
  ended,
  later,  // there is something, and no descriptor or memory for it
};

/// What is the same for all streams of one kind and owners of one class.
struct active_type {
  active_note* (*make)(const active_note* before);
  /// One system call, during a use. `why` is set with `failed` and `ended`.
  taken (*take)(active_note& n, std::error_code& why);
  void (*deliver)(actor_cell& c, active_note& n);
  void (*destroy)(active_note& n) noexcept;  // the payload
  const type_info& (*payload)() noexcept;
  message_function act_on_ended;
  message_function act_on_paused;  // null: it is not told
  message_function act_on_failed;  // likewise
};

/// Y1. The payload is behind it (note_of).
struct active_note : message, edge_sink {
  enum class place : std::uint8_t { rests, out, handled, freed };
  enum class fate : std::uint8_t { open, left, refused };

  active_base* owner = nullptr;
  actor_cell* actor = nullptr;
  const active_type* type = nullptr;
  descriptor* d = nullptr;
  std::uint32_t piece = 0;  // the most bytes of one; of a listener: the next pause in a shortage, in milliseconds
  std::uint32_t wanted = 0;
  place at = place::rests;
  bool filled = false;  // there is a payload, which is being handled or was stashed
  atomic<fate> ends{fate::open};

  explicit active_note(const active_note* before) noexcept;
  static void act_on(message& self, message_verb verb, void* context);
  void send_off();
  void free() noexcept;  // Y5, Y6: not by the caller of the handler

 private:
  static void on_edge(edge_sink& self) noexcept;
  void handle();
  void take_and_tell();
  template <class M>
  void tell(message_function handler, const M& m);
};

template <class M>
struct note_of : active_note {
  union {
    M body;
  };
  explicit note_of(const active_note* before) noexcept : active_note{before} {}
  note_of(const note_of&) = delete;
  note_of& operator=(const note_of&) = delete;
  ~note_of() {}  // NOLINT(modernize-use-equals-default): that would be deleted

  static active_note* make(const active_note* before) {
    return ramie::detail::make_message<note_of>(&act_on, message::lifecycle | message::own, before);
  }
  static void destroy(active_note& n) noexcept { std::destroy_at(&static_cast<note_of&>(n).body); }
  template <class... Args>
  void fill(Args&&... args) {
    std::construct_at(&body, std::forward<Args>(args)...);
  }
};

template <class A, class M, taken (*take)(active_note&, std::error_code&)>
constexpr active_type active_type_of() noexcept {
  active_type t{
      &note_of<M>::make,
      take,
      [](actor_cell& c, active_note& n) { ramie::detail::call_handler<A, M>(c, static_cast<note_of<M>&>(n).body); },
      &note_of<M>::destroy,
      &ramie::type_of<M>,
      &ramie::detail::act_on_tell<A, ended>,
      nullptr,
      nullptr};
  if constexpr (ramie::detail::handles_message<A, paused>) t.act_on_paused = &ramie::detail::act_on_tell<A, paused>;
  if constexpr (ramie::detail::handles_message<A, receive_failed>)
    t.act_on_failed = &ramie::detail::act_on_tell<A, receive_failed>;
  return t;
}

/// An active stream but for the stream. For the turns, the constructor and the destructor of its actor.
class active_base {
 public:
  static constexpr std::uint32_t always = std::numeric_limits<std::uint32_t>::max();

  active_base(const active_base&) = delete;
  active_base& operator=(const active_base&) = delete;

  /// The next `pieces` pieces come as messages, one at a time, in addition to those that were asked for before; with
  /// `always` all that come. There is at most one in the mailbox, whatever arrives: the next is read once the handler
  /// of the one before has returned, and meanwhile the peer finds its buffers full. After the last one on(net::paused)
  /// is told, if there is one and it was not asked for more by then. Does not suspend. Throws io_error, std::bad_alloc.
  void activate(std::uint32_t pieces = 1);
  /// Nothing more is read; one that was read already still comes. Does not suspend.
  void deactivate() noexcept;
  /// True until as many pieces have come as were asked for.
  [[nodiscard]] bool is_active() const noexcept;

 protected:
  active_base() noexcept = default;
  active_base(active_base&& other) noexcept;
  void begin(actor_cell& owner, const active_type& type, descriptor* d, std::uint32_t piece);
  void end() noexcept;  // Y5

 private:
  friend struct active_note;
  active_note* note_ = nullptr;
};

}  // namespace detail

}  // namespace ramie::net
