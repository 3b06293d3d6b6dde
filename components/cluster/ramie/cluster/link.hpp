// A link between two nodes: what it promises, and how. Pure: it knows no clock, no thread, no network.
//
// Promise: what is sent while a link is open arrives in order, without a gap and without a duplicate, until either side
// reports that the other is lost. What was under way then may or may not have arrived.
//
// The network may lose, delay, reorder and double frames, and stop carrying them one way or both ways.
//
//  K1 Each side numbers its epochs, upwards. A frame has the epoch of its sender, and the epoch of the receiver that it
//     is for, 0 if the sender knows none yet. So a frame belongs to one epoch on each side, and to no other link.
//  K2 Opening: a side sends `hello` until it is answered. An epoch of the peer that came with a 0 is only a guess: it
//     may be an old frame. The link is open once a frame comes that is for my epoch: its sender has heard of it, so its
//     own epoch is no older than that. Only then is anything sent that is to be delivered.
//  K3 Data frames have a number, from 1. The receiver takes the next one only; others are dropped, and a gap is told, by
//     an acknowledgement that asks for the rest. A number that is taken is delivered before it is acknowledged.
//  K4 The sender keeps frames until they are acknowledged, and sends them all again, in order, when a gap is told, when
//     the network is back, and when nothing was acknowledged for a while (go back N).
//  K5 Credit: each frame says up to which number of bytes, in all, its sender is ready to take. It grows when the
//     receiver has passed bytes on. It is in heartbeats, too, so a lost one delays and does not stall.
//  K6 The end. A side ends its epoch when it hears nothing for `lost_after`, when the network says for `refused_after`
//     that nobody is there, and when it is told of a newer epoch of the peer: that side has ended the link before. It
//     reports this once, forgets what was not acknowledged, and begins a new epoch (K2). A frame of an older epoch of the
//     peer, or for an older one of mine, is not looked at; the latter is answered by `hello`, so that the peer hears (K6).
//
// What goes wrong without each: K1, K6: after a cut the old frames of one side would be taken for the new link's. K2: a
// delayed hello of an old epoch would open a link that is lost again at once, though nothing was cut. K3 (delivery
// before acknowledgement): a node that dies in between would have acknowledged what nobody has seen. K4: what NATS
// takes while the other side is away is lost, though each publish succeeds. K5: a slow receiver would be cut off by the
// server as a slow consumer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace ramie::detail {

/// Where mistakes can be planted, for tests of the tests: see link.test.cpp. None in programs.
enum class link_mistake : std::uint8_t {
  none,
  acked_too_early,       // K3
  epoch_ignored,         // K1
  credit_lost,           // K5
  not_resent,            // K4
  duplicates_delivered,  // K3
};

struct link_settings {
  using duration = std::chrono::milliseconds;
  duration heartbeat{500};
  duration lost_after{3000};
  duration refused_after{300};   // of the network saying that nobody is there: a peer may just reconnect
  duration refused_pause{2000};  // after my own reconnection, in which that means nothing: the peer may still be away
  duration resend_after{250};    // more than acknowledge_after and a round trip: a guess
  duration acknowledge_after{20};
  duration hello{200};
  std::size_t window_bytes = std::size_t{4} << 20;  // sent and not passed on; far below NATS' limit for slow consumers
};

/// The head of a frame. All integers are little-endian.
struct frame_head {
  enum class what : std::uint8_t { hello, data, acknowledge, heartbeat, gap };
  static constexpr std::size_t size = 48;
  what kind = what::hello;
  std::uint64_t from_epoch = 0;
  std::uint64_t to_epoch = 0;
  std::uint64_t number = 0;        // of data; else of the last that was sent
  std::uint64_t acknowledged = 0;  // the last that was taken
  std::uint64_t credit = 0;        // bytes, in all

  void append_to(std::string& bytes) const;
  /// False: that is no frame of this version.
  bool read(std::string_view bytes) noexcept;
};

/// What a link wants done. Called from within its own functions.
struct link_output {
  virtual void send(std::string_view frame, bool probe) = 0;  // probe: it matters whether there is anybody
  virtual void opened() = 0;
  /// In order, each once. The bytes are credited when node_link::passed_on is called.
  virtual void deliver(std::string_view payload) = 0;
  /// Once for each epoch, also if it never was open.
  virtual void lost() = 0;

 protected:
  ~link_output() = default;
};

class node_link {
 public:
  using duration = std::chrono::milliseconds;
  static constexpr std::size_t frame_bytes = std::size_t{32} << 10;

  /// `epoch`: larger than of any link that this node had with this peer.
  node_link(link_output& out, std::uint64_t epoch, duration now, link_settings set = {},
            link_mistake mistake = link_mistake::none)
      : out_{out}, set_{set}, mistake_{mistake}, epoch_{epoch}, taken_bytes_{set.window_bytes}, heard_{now} {}

  /// True if `send` would take this many bytes now.
  [[nodiscard]] bool can_send(std::size_t bytes) const noexcept {
    return open_ && sent_bytes_ + bytes <= credit_ && kept_.size() < frames_most;
  }
  /// One frame's payload. Only if `can_send`.
  void send(std::string_view payload, duration now);
  /// A frame has come.
  void received(std::string_view frame, duration now);
  /// The receiver is through with so many bytes that were delivered.
  void passed_on(std::size_t bytes) noexcept { taken_bytes_ += bytes; }
  /// Nothing more to be sent just now: acknowledges, if it is time.
  void idle(duration now);
  /// The network says that a probe reached nobody.
  void refused(duration now);
  /// The network was away and is back.
  void reconnected(duration now);
  /// To be called at `next_tick` or soon after.
  void tick(duration now);
  [[nodiscard]] duration next_tick() const noexcept;
  /// Ends the epoch, as if nothing had been heard.
  void end(duration now);

  [[nodiscard]] bool is_open() const noexcept { return open_; }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::size_t unacknowledged() const noexcept { return kept_.size(); }
  [[nodiscard]] std::uint64_t credit_left() const noexcept { return credit_ > sent_bytes_ ? credit_ - sent_bytes_ : 0; }

 private:
  static constexpr std::size_t frames_most = 1024;  // small ones; a guess
  struct kept {
    std::uint64_t number;
    std::string frame;
  };

  void put(frame_head::what kind, std::string_view payload, bool probe);
  void put_head(std::string& frame, frame_head::what kind, std::uint64_t number) const;
  void resend(duration now);
  void take_acknowledgement(const frame_head& h, duration now);
  void take_data(const frame_head& h, std::string_view payload, duration now);
  void begin_epoch(std::uint64_t peer, duration now);

  link_output& out_;
  link_settings set_;
  link_mistake mistake_;

  std::uint64_t epoch_;
  std::uint64_t peer_ = 0;  // 0: unknown; a guess until the link is open
  bool open_ = false;

  std::deque<kept> kept_;  // sent, not acknowledged
  std::uint64_t sent_ = 0;
  std::uint64_t sent_bytes_ = 0;
  std::uint64_t credit_ = 0;  // the peer takes

  std::uint64_t taken_ = 0;
  std::uint64_t seen_ = 0;              // the highest that came, for a planted mistake
  std::uint64_t taken_bytes_;           // what was passed on, and the window
  std::uint64_t unanswered_bytes_ = 0;  // taken since the last acknowledgement
  bool owes_ = false;
  bool told_gap_ = false;  // of this one

  duration heard_;
  duration owes_since_{0};
  duration progress_{0};  // when something was acknowledged, or sent with nothing kept
  duration resend_wait_{0};
  duration last_put_{duration::min()};
  duration refused_since_{duration::max()};
  duration refusals_count_from_{duration::min()};
};

}  // namespace ramie::detail
