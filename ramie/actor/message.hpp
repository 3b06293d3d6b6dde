// A message on its way: a node of a mailbox, with the code that knows its type.
//
// Nodes come from the caches of task blocks that each worker has, and go back to the cache of the worker that handled
// them, so that messages cost no malloc in the steady state.
#pragma once

#include <ramie/actor/exit.hpp>
#include <ramie/base/printing.hpp>
#include <ramie/base/type_info.hpp>
#include <ramie/task/bound.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/task.hpp>
#include <ramie/task/task_memory.hpp>

#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace ramie::detail {

struct actor_cell;
struct message;

/// Why a message is not handled.
enum class letter_fate : std::uint8_t {
  down,
  full,
  restarting,
  failed,  // its handler did; no dead letter
};

/// What is asked of a message's own code, and what `context` is then.
enum class message_verb : std::uint8_t {
  handle,   // actor_cell*: call the handler, then destroy the payload. May throw; the payload is destroyed even then
  fail,     // requests whose handler threw: discarded*: the waiter for a reply gets an exception
  take,     // fiber actors: std::variant<...>*: move the payload there, then destroy it
  discard,  // discarded*: destroy the payload; the waiter for a reply gets an exception instead
  type,     // const type_info**: the payload's type goes there
  text,     // std::ostream*: the payload goes there if it can be printed. May throw
  make,     // with `late` only: making*: make the payload, if it is wanted. May throw; then there is none
};

struct discarded {
  actor_cell* cell;
  letter_fate fate;
  std::exception_ptr failure{};  // with `failed`
  [[nodiscard]] exit_reason reason() const noexcept;
};

using message_function = void (*)(message& self, message_verb verb, void* context);

struct message {
  static constexpr std::uint8_t lifecycle = 1;  // from ramie itself: never dropped, never counted
  static constexpr std::uint8_t request = 2;    // somebody waits for a reply
  static constexpr std::uint8_t kept = 4;       // its handler stashed it: the payload stays
  static constexpr std::uint8_t counted = 8;    // among the handled, though it is only just taken out
  static constexpr std::uint8_t apart = 16;     // its memory is from no cache
  static constexpr std::uint8_t own = 32;       // for `incarnation` alone: a note, a timer's message
  static constexpr std::uint8_t first = 64;     // a fiber actor's urgent mail, in its batch
  static constexpr std::uint8_t late = 128;     // the payload is made by its receiver: see late_node in timer.hpp

  message* next = nullptr;
  message_function act = nullptr;
  std::uint8_t list = 0;  // of task_cache
  std::uint8_t flags = 0;
  std::uint8_t urgency;       // of urgent mail only, so that others need not write it: 1 to urgency_most
  std::uint32_t incarnation;  // of its receiver; with `own` only, as before
};

/// Without a payload.
struct message_base : message {};

/// As allocate_task.
RAMIE_ALWAYS_INLINE void* allocate_message(std::uint8_t list) {
  if (worker_base* me = current_worker(); me != nullptr) [[likely]] {
    if (void* memory = me->blocks_here->try_take(list); memory != nullptr) [[likely]]
      return memory;
  }
  return allocate_task(list);
}

/// A message with everything set but the link. Throws std::bad_alloc and what the payload's constructor throws.
template <class Node, class... Args>
RAMIE_ALWAYS_INLINE Node* make_message(message_function act, std::uint8_t flags, Args&&... args) {
  static_assert(alignof(Node) <= task_alignment_most, "ramie: messages may be aligned to 64 bytes at most");
  constexpr std::uint8_t list =
      alignof(Node) <= task_alignment ? task_cache::list_of(sizeof(Node)) : task_cache::no_list;
  void* memory;
  if constexpr (list == task_cache::no_list)
    memory = ::operator new(sizeof(Node), std::align_val_t{task_alignment_most});
  else memory = allocate_message(list);
  Node* made;
  if constexpr (std::is_nothrow_constructible_v<Node, Args...>) {
    made = ::new (memory) Node(std::forward<Args>(args)...);
  } else {
    try {
      made = ::new (memory) Node(std::forward<Args>(args)...);
    } catch (...) {
      if constexpr (list == task_cache::no_list) ::operator delete(memory, std::align_val_t{task_alignment_most});
      else free_task_memory(memory, list);
      throw;
    }
  }
  made->act = act;
  made->list = list;
  made->flags = list == task_cache::no_list ? flags | message::apart : flags;
  return made;
}

/// With a payload, which is destroyed by hand: a node is only freed.
template <class M>
struct body_node : message {
  union {
    M body;
  };
  template <class T>
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): a message is never copied
  explicit body_node(T&& from) noexcept(std::is_nothrow_constructible_v<M, T>) : body(std::forward<T>(from)) {}
  body_node(const body_node&) = delete;
  body_node& operator=(const body_node&) = delete;
  ~body_node() {}  // NOLINT(modernize-use-equals-default): that would be deleted

 protected:
  struct without_payload {};
  explicit body_node(without_payload) noexcept {}
};

/// Destroys the payload when the handler is through with it, unless it stashed the message.
template <class Node>
struct payload_guard {
  Node& node;
  explicit payload_guard(Node& n) noexcept : node{n} {}
  payload_guard(const payload_guard&) = delete;
  payload_guard& operator=(const payload_guard&) = delete;
  ~payload_guard() {
    if ((node.flags & message::kept) == 0) std::destroy_at(&node.body);
  }
};

/// For the verbs `type` and `text`, whatever others there are.
template <class M>
RAMIE_NOINLINE void describe_payload(const M& body, message_verb verb, void* context) {
  if (verb == message_verb::type) *static_cast<const type_info**>(context) = &type_of<M>();
  else if (verb == message_verb::text) print(*static_cast<std::ostream*>(context), body);
}

/// The payload is destroyed already.
RAMIE_ALWAYS_INLINE void free_message(message* m) noexcept {
  const std::uint8_t list = m->list;
  if (list != task_cache::no_list) [[likely]]
    free_task_memory(m, list);
  else ::operator delete(static_cast<void*>(m), std::align_val_t{task_alignment_most});
}

/// First in, first out, linked through the messages. Guarded by its owner.
struct message_queue {
  message* first = nullptr;
  message* last = nullptr;

  RAMIE_ALWAYS_INLINE void push(message* m) noexcept {
    m->next = nullptr;
    (first == nullptr ? first : last->next) = m;
    last = m;
  }
  RAMIE_ALWAYS_INLINE message* pop() noexcept {
    message* m = first;
    if (m != nullptr) first = m->next;
    return m;
  }
  RAMIE_ALWAYS_INLINE message* take_all() noexcept { return std::exchange(first, nullptr); }
  /// False if it is not in here. Looks from the first on.
  bool remove(message* m) noexcept {
    message* before = nullptr;
    for (message* at = first; at != nullptr; before = at, at = at->next) {
      if (at != m) continue;
      (before == nullptr ? first : before->next) = at->next;
      if (at->next == nullptr) last = before;
      return true;
    }
    return false;
  }
  /// All of `other`, behind what is here.
  void append(message_queue& other) noexcept {
    if (other.first == nullptr) return;
    (first == nullptr ? first : last->next) = other.first;
    last = other.last;
    other.first = nullptr;
  }
  /// All of `other`, before what is here.
  void prepend(message_queue& other) noexcept {
    if (other.first == nullptr) return;
    other.append(*this);
    *this = other;
    other.first = nullptr;
  }
};

}  // namespace ramie::detail
