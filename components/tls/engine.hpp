// One connection of OpenSSL, between two buffers: what came from the peer, and what has to go there.
//
//  E1 OpenSSL never waits: its BIO reads from `in` and writes to `out`, and says "retry" when `in` is empty. So a fiber
//     never suspends inside it, where the thread's error queue and other thread-local state of OpenSSL are in use.
//  E2 Each call here clears the thread's error queue first, and takes out what it has left before it returns.
//  E3 Calls exclude each other by the stream's lock. `in` belongs to the reader alone: calls that write do not read
//     (there is no renegotiation), so the reader fills it without the lock.
#pragma once

#include <ramie/tls.hpp>

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace ramie::tls {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* p) const noexcept {
    Free(p);
  }
};
template <class T, auto Free>
using owned = std::unique_ptr<T, freed_by<Free>>;
using owned_context = owned<SSL_CTX, SSL_CTX_free>;

/// The thread's queue of errors as text; it is empty afterwards.
[[nodiscard]] std::string drain_errors();
/// Throws io_error with errc::protocol and what the queue says.
[[noreturn]] void throw_errors(const std::string& what);

class engine {
 public:
  /// Throws std::bad_alloc, io_error.
  explicit engine(SSL_CTX* context);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine();

  enum class outcome { done, needs_input, ended };
  /// They throw io_error.
  outcome handshake();
  outcome read(std::span<std::byte> into, std::size_t& got);
  void write(std::span<const std::byte> from);  // at most 16 KiB become one record
  void shut_down();

  /// Where the reader puts what comes from the peer, and how much that was; 0: the stream has ended. To be called when
  /// input is needed: then OpenSSL has taken all that was there.
  [[nodiscard]] std::span<std::byte> room();
  void arrived(std::size_t n) noexcept;
  [[nodiscard]] bool has_input() const noexcept { return in_begin_ != in_end_ || SSL_has_pending(ssl_) == 1; }
  /// Gives the buffer back if nothing is in it, and that of `out` if that is large.
  void give_back_room() noexcept;
  static constexpr std::size_t kept_most = 512;  // of a buffer that is empty, by a connection that may be idle; a guess

  [[nodiscard]] SSL* ssl() const noexcept { return ssl_; }
  std::string out;

 private:
  friend struct engine_bio;
  outcome judge(int result, const char* what);

  SSL* ssl_;
  std::unique_ptr<std::byte[]> in_;
  std::size_t in_begin_ = 0, in_end_ = 0;
  bool peer_ended_ = false;
};

}  // namespace ramie::tls
