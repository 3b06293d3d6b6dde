// A pool of connections that fibers share.
#pragma once

#include <ramie/postgres/connection.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie::postgres {

struct pool_options {
  std::string where{};  // see connection_options, as the next two
  std::chrono::nanoseconds connect_time = std::chrono::seconds{10};
  std::chrono::nanoseconds cancel_time = std::chrono::seconds{5};
  /// Connections at a time; more fibers wait for one, in their order. A guess: twice the processors of a small server.
  std::size_t most = 8;
  /// A connection that nobody has used for so long answers an empty query before it is given out, or is replaced. A
  /// guess: what firewalls forget takes minutes. So does one for which the server has sent something meanwhile (unless
  /// it goes straight from one fiber to the next).
  std::chrono::nanoseconds check_after = std::chrono::seconds{30};
};

struct pool_statistics {
  std::size_t open = 0, idle = 0, waiting = 0;  // connections; those of them that nobody uses; fibers that wait for one
  std::uint64_t connected = 0;                  // since the start
  std::uint64_t replaced = 0;                   // that were found to be over, or did not come back in order
};

/// Connects when there is need. All calls but `statistics` suspend, and throw what connection's do. Any fibers and
/// plain threads.
class pool {
 public:
  explicit pool(const pool_options& options);
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  ~pool();  // all leases have been given back

  /// A connection for a while. Its destructor gives it back: one that is in the middle of a transaction is closed.
  class lease {
   public:
    lease(lease&& other) noexcept : of_{std::exchange(other.of_, nullptr)}, what_{std::move(other.what_)} {}
    lease& operator=(lease&&) = delete;
    ~lease() {
      if (of_ != nullptr) of_->take_back(std::move(what_));
    }
    connection& operator*() noexcept { return what_; }
    connection* operator->() noexcept { return &what_; }

   private:
    friend class pool;
    lease(pool& of, connection what) noexcept : of_{&of}, what_{std::move(what)} {}
    pool* of_;
    connection what_;
  };
  [[nodiscard]] lease take();

  /// As connection's, on one of the pool's.
  template <class Sql, class... T>
  result query(const Sql& sql, const T&... values) {
    return take()->query(sql, values...);
  }
  std::vector<result> run(const batch& statements) { return take()->run(statements); }
  template <class F>
    requires std::invocable<F&, connection&>
  std::invoke_result_t<F&, connection&> transaction(F&& f) {
    lease l = take();
    return l->transaction(f);
  }

  [[nodiscard]] pool_statistics statistics() const;

 private:
  void take_back(connection c) noexcept;
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace ramie::postgres
