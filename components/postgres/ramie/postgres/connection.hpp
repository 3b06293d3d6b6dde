// One connection to PostgreSQL.
#pragma once

#include <ramie/postgres/value.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie::postgres {

/// A statement that each connection prepares when it first runs it. Its text has to stay, as a literal does.
struct prepared {
  std::string_view text;
};

/// Statements that go out together and are one transaction: all of them are carried out, or none.
class batch {
 public:
  template <class... T>
    requires(std::convertible_to<const T&, parameter> && ...)
  void add(std::string_view sql, const T&... values) {
    entries_.push_back({std::string{sql}, false, {parameter{values}...}});
  }
  template <class... T>
    requires(std::convertible_to<const T&, parameter> && ...)
  void add(prepared p, const T&... values) {
    entries_.push_back({std::string{p.text}, true, {parameter{values}...}});
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  void clear() noexcept { entries_.clear(); }

  struct entry {
    std::string sql;
    bool is_prepared;
    std::vector<parameter> values;
  };
  [[nodiscard]] std::span<const entry> entries() const noexcept { return entries_; }

 private:
  std::vector<entry> entries_;
};

/// Sent by NOTIFY.
struct notification {
  std::string channel, payload;
  int process = 0;  // the server's, of who sent it
};

/// Takes the rows of a COPY ... FROM STDIN.
class copy_writer {
 public:
  copy_writer(const copy_writer&) = delete;
  copy_writer& operator=(const copy_writer&) = delete;
  /// Bytes in the format that the statement names. Suspends. Throws connection_error, `cancelled`.
  virtual void write(std::string_view bytes) = 0;
  /// A row in the format `text`, which is COPY's own.
  template <class... T>
    requires(std::convertible_to<const T&, parameter> && ...)
  void row(const T&... values) {
    write_row({parameter{values}...});
  }

 protected:
  copy_writer() = default;
  ~copy_writer() = default;

 private:
  void write_row(std::initializer_list<parameter> values);
};

struct connection_options {
  /// As libpq has it: "host=/run/postgresql dbname=shop user=me", or "postgresql://me@host/shop"; what is missing comes
  /// from PGHOST and the like.
  std::string where{};
  std::chrono::nanoseconds connect_time = std::chrono::seconds{10};
  /// How long a query that is given up may take to end at the server. After that the connection is closed.
  std::chrono::nanoseconds cancel_time = std::chrono::seconds{5};
};

/// A connection. For one fiber (or plain thread) at a time; usage_error if another uses it. Movable; a moved-from one
/// is closed. All calls suspend. They throw query_error (the connection stays usable), connection_error (it is over),
/// `cancelled`, std::bad_alloc.
///
/// What is ended by a stop or a deadline (`with_timeout`) while the server is at work is cancelled there: the call
/// returns when the server says that it has stopped, or after options.cancel_time, and then the connection is closed.
class connection {
 public:
  connection() noexcept;
  /// Connects. Names are resolved and passwords hashed on a helper thread. Throws connection_error, also if it takes
  /// longer than options.connect_time; the message has no password.
  explicit connection(const connection_options& options);
  connection(connection&&) noexcept;
  connection& operator=(connection&&) noexcept;
  ~connection();  // does not suspend; an open transaction is rolled back by the server

  /// One statement.
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
  /// Any number of statements without parameters, separated by ";". The result of the last.
  result script(const std::string& sql);
  /// All in one round trip (pipeline mode), as one transaction. The results in order. Not within a transaction of its
  /// own. The query_error is that of the first that failed.
  std::vector<result> run(const batch& statements);

  /// BEGIN, f(*this), COMMIT; ROLLBACK if f throws, which is passed on. Returns what f returns.
  template <class F>
    requires std::invocable<F&, connection&>
  std::invoke_result_t<F&, connection&> transaction(F&& f) {
    begin();
    struct rollback {
      connection* of;
      ~rollback() {
        if (of != nullptr) of->roll_back();
      }
    } unless_done{this};
    const auto commit = [&] {
      unless_done.of = nullptr;
      this->commit();
    };
    if constexpr (std::is_void_v<std::invoke_result_t<F&, connection&>>) {
      f(*this);
      commit();
    } else {
      auto value = f(*this);
      commit();
      return value;
    }
  }

  /// Runs "COPY ... FROM STDIN": `source` writes the rows. What it throws ends the COPY, of which nothing is kept, and
  /// is passed on. The number of rows.
  std::uint64_t copy_in(const std::string& sql, const std::function<void(copy_writer&)>& source);
  /// Runs "COPY ... TO STDOUT": `sink` gets each row as the server sends it, and may suspend. What it throws cancels
  /// the COPY, and is passed on. The number of rows.
  std::uint64_t copy_out(const std::string& sql, const std::function<void(std::string_view)>& sink);

  /// Wants the notifications of a channel (whose name is taken as it is, with its case), or no more of them.
  void listen(std::string_view channel);
  void unlisten(std::string_view channel);
  /// The next one, in the order of arrival. A call that is cancelled loses none.
  [[nodiscard]] notification next_notification();

  [[nodiscard]] bool is_open() const noexcept;
  [[nodiscard]] bool in_transaction() const noexcept;
  /// Has the server sent something that nobody has asked for, the end among it? Does not suspend.
  [[nodiscard]] bool has_news() const noexcept;
  [[nodiscard]] int server_process() const noexcept;  // its process there; 0 if closed
  void close() noexcept;                              // does not suspend

  struct state;

 private:
  result run(std::string_view sql, bool is_prepared, std::initializer_list<parameter> values);
  void begin();
  void commit();
  void roll_back() noexcept;

  std::unique_ptr<state> state_;
};

}  // namespace ramie::postgres
