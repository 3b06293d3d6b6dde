// What numbers stand for in the simulated kernel (kernel.hpp).
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace ramie::interleave {

using result = std::int64_t;  // of a call: as the kernel's, or minus the errno

/// What one lock of the kernel guards, to the memory model (K1). Of the process, since clocks know it by its address.
struct kernel_lock {
  std::uint64_t word = 0;
};
[[nodiscard]] kernel_lock& next_kernel_lock() noexcept;
void forget_kernel_locks() noexcept;  // those of the run before
/// The caller has the lock, and gives it back: both in this step.
void pass_through(kernel_lock& l) noexcept;

class file;

/// An epoll set, all of whose files are edge-triggered.
class event_set {
 public:
  struct item {
    event_set* set;
    file* of;
    std::uint32_t events;
    std::uint64_t tag;
    bool pending = false;
  };
  explicit event_set(kernel_lock& l) : lock{l} {}
  event_set(const event_set&) = delete;
  event_set& operator=(const event_set&) = delete;
  ~event_set();
  result add(file& f, std::uint32_t events, std::uint64_t tag);
  result remove(file& f) noexcept;
  /// What is pending and still holds; nothing of these is pending then.
  int take(epoll_event* into, int most) noexcept;
  void tell(item& i) noexcept;

  kernel_lock& lock;

 private:
  friend file;
  std::deque<std::unique_ptr<item>> items_;
  std::deque<item*> pending_;
};

class file {
 public:
  explicit file(kernel_lock& l) : lock{l} {}
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  virtual ~file();
  /// What poll would say.
  [[nodiscard]] virtual std::uint32_t mask() const = 0;
  [[nodiscard]] virtual bool reads_short() const { return true; }
  virtual result read(char* to, std::size_t size);
  virtual result write(const char* from, std::size_t size);
  /// Those that wait for it look again.
  void changed() noexcept;

  kernel_lock& lock;

 private:
  friend event_set;
  std::vector<event_set::item*> items_;
};

// ---- pipes ---------------------------------------------------------------------------------------------------------

class pipe_end;
struct pipe_core {
  explicit pipe_core(std::size_t r) : room{r} {}
  const std::size_t room;
  std::deque<char> bytes;
  int writers_ever = 0;
  std::vector<pipe_end*> readers, writers;
  kernel_lock& lock = next_kernel_lock();
};

class pipe_end final : public file {
 public:
  pipe_end(std::shared_ptr<pipe_core> c, bool writes);
  ~pipe_end() override;
  [[nodiscard]] std::uint32_t mask() const override;
  result read(char* to, std::size_t size) override;
  result write(const char* from, std::size_t size) override;

 private:
  const std::shared_ptr<pipe_core> core_;
  const bool writes_;
  const int writers_before_;  // it never saw a writer, so it is not at its end
};

// ---- sockets -------------------------------------------------------------------------------------------------------

class listening_socket;

/// A stream. Of TCP or local.
class socket_file final : public file {
 public:
  socket_file(bool tcp, std::size_t room) : file{next_kernel_lock()}, is_tcp{tcp}, room_{room} {}
  ~socket_file() override;
  static void join(socket_file& a, socket_file& b) noexcept;

  [[nodiscard]] std::uint32_t mask() const override;
  [[nodiscard]] bool reads_short() const override { return !is_tcp; }
  result read(char* to, std::size_t size) override;
  result write(const char* from, std::size_t size) override;
  result shut(bool reading, bool writing);
  [[nodiscard]] int take_error() noexcept;
  void refuse(int code) noexcept;  // a connection that was to be

  const bool is_tcp;
  std::string name, peer_name;           // addresses
  bool bound = false;                    // to a name that may listen
  listening_socket* waits_at = nullptr;  // K6

 private:
  friend listening_socket;
  [[nodiscard]] bool has_half_free() const noexcept;
  void reset(int code) noexcept;
  const std::size_t room_;
  std::deque<char> in_;
  socket_file* peer_ = nullptr;
  bool connected_ = false, in_ended_ = false, out_ended_ = false;
  bool in_finished_ = false;            // TCP: by the peer, and that stays so after a reset
  mutable bool found_no_room_ = false;  // a write, or who asked for the mask
  int error_ = 0;
};

class listening_socket final : public file {
 public:
  listening_socket(bool tcp, std::string at, std::size_t backlog, std::size_t room)
      : file{next_kernel_lock()}, is_tcp{tcp}, name{std::move(at)}, backlog_{backlog}, room_{room} {}
  ~listening_socket() override;
  [[nodiscard]] std::uint32_t mask() const override { return queue_.empty() ? 0u : unsigned{EPOLLIN}; }
  result connect(socket_file& from);
  [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
  [[nodiscard]] std::shared_ptr<socket_file> take();
  void forget(const socket_file& from) noexcept;

  const bool is_tcp;
  const std::string name;

 private:
  void enter(socket_file& from);
  const std::size_t backlog_, room_;
  std::deque<std::shared_ptr<socket_file>> queue_;
  std::deque<socket_file*> outside_;  // K6
};

// ---- others --------------------------------------------------------------------------------------------------------

class event_file final : public file {
 public:
  event_file() : file{next_kernel_lock()} {}
  [[nodiscard]] std::uint32_t mask() const override {
    return raised_ ? unsigned{EPOLLIN | EPOLLOUT} : unsigned{EPOLLOUT};
  }
  result write(const char* from, std::size_t size) override;

 private:
  bool raised_ = false;
};

class set_file final : public file {
 public:
  set_file() : file{next_kernel_lock()}, set{lock} {}
  [[nodiscard]] std::uint32_t mask() const override { return 0; }
  event_set set;
};

}  // namespace ramie::interleave
