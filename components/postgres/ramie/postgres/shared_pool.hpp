// Connections on which statements of many fibers are under way at the same time.
#pragma once

#include <ramie/postgres/connection.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace ramie::postgres {

struct shared_pool_options {
  std::string where{};  // see connection_options, as the next one
  std::chrono::nanoseconds connect_time = std::chrono::seconds{10};
  std::size_t most = 8;  // connections at a time. A guess, as pool_options::most
  /// Statements under way on one connection; more wait, in their order. A guess: enough that a connection always has
  /// some, and few enough for their answers to fit into the socket's buffers.
  std::size_t under_way_most = 64;
  /// Until the server takes what it is sent; then the connection is over.
  std::chrono::nanoseconds write_time = std::chrono::seconds{10};
};

struct shared_pool_statistics {
  std::size_t open = 0, under_way = 0;  // connections, statements
  std::uint64_t connected = 0, statements = 0;
};

/// For many short statements: those that are given at the same time go out on one connection without waiting for each
/// other (libpq's pipeline mode), each as a transaction of its own. That costs both sides fewer system calls than a
/// `pool`. What it costs otherwise: a statement that takes long, or waits for a lock, holds up those behind it on its
/// connection; and a stop or deadline ends the wait alone, while the statement is carried out all the same. Use `pool`
/// for transactions, for what takes long, and where a deadline has to end the query at the server.
///
/// Made and destroyed by a fiber; calls are for any fibers and plain threads.
class shared_pool {
 public:
  explicit shared_pool(const shared_pool_options& options);
  shared_pool(const shared_pool&) = delete;
  shared_pool& operator=(const shared_pool&) = delete;
  ~shared_pool();  // no call is under way. Suspends

  /// One statement. Suspends. Throws query_error; connection_error (whether it was carried out is not known);
  /// usage_error for a statement that begins a transaction, which ends its connection; `cancelled`, std::bad_alloc.
  template <class... T>
    requires(std::convertible_to<const T&, parameter> && ...)
  result query(std::string_view sql, const T&... values) {
    return run(sql, false, {parameter{values}...});
  }
  template <class... T>
    requires(std::convertible_to<const T&, parameter> && ...)
  result query(prepared p, const T&... values) {
    return run(p.text, true, {parameter{values}...});
  }

  [[nodiscard]] shared_pool_statistics statistics() const;  // does not suspend

 private:
  result run(std::string_view sql, bool is_prepared, std::initializer_list<parameter> values);
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace ramie::postgres
