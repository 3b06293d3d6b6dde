// What a connection is made of: libpq's own connection, and the waits around its calls.
//
//  Q1 One fiber at a time (`busy`). libpq never waits: it is in its non-blocking mode, and what its calls would wait for
//     is awaited on a duplicate of its socket, which stays in the poller. The original belongs to libpq.
//  Q2 A command is put into libpq's buffer at once, then sent as the socket takes it. What comes meanwhile is taken as
//     well: a server that cannot get rid of its answers reads no further commands.
//  Q3 From the first byte until its last result has been read, a command is `in flight`. What leaves it earlier, a
//     cancellation or any exception, goes through `give_up`: the server is told to stop (PQcancel, which blocks, so on
//     a helper thread), and the results are read to their end. That waits shielded, for cancel_time at most; then, or
//     if anything fails, the connection is closed.
//  Q4 A cancel request cannot reach the next command. PQcancel returns when the server has signalled the process that
//     serves this connection, and that process looks at its signals, and forgets a request for which it has no
//     command, before it begins with another command (PostgreSQL's ProcessInterrupts while DoingCommandRead). So a
//     request may also overtake the command that it is for, and be forgotten: `give_up` asks again after a pause.
//  Q5 So where a call was ended by a stop or deadline, the command may have been carried out or not.
#pragma once

#include <ramie/net.hpp>
#include <ramie/postgres/connection.hpp>

#include <libpq-fe.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ramie::postgres {

/// Which statements a connection has prepared, by their texts. A name is used once, also if its preparation failed.
class statement_names {
 public:
  /// The name of the statement prepared with this text; "" if it is not.
  [[nodiscard]] std::string find(std::string_view sql) const {
    const auto at = names_.find(sql);
    return at == names_.end() ? std::string{} : at->second;
  }
  /// A name for one more, besides `planned` that will be added; "" if there would be too many: it is to run unprepared.
  [[nodiscard]] std::string next(std::size_t planned = 0) {
    return names_.size() + planned < most ? "ramie_" + std::to_string(++given_) : std::string{};
  }
  void clear() noexcept { names_.clear(); }
  void add(std::string_view sql, std::string name) { names_.insert_or_assign(std::string{sql}, std::move(name)); }
  /// That this name does not stand for the text.
  void forget(std::string_view sql, std::string_view name) {
    if (const auto at = names_.find(sql); at != names_.end() && at->second == name) names_.erase(at);
  }

 private:
  /// A guess: programs have fewer, unless they make them up, and each takes memory of the server.
  static constexpr std::size_t most = 1000;
  std::map<std::string, std::string, std::less<>> names_;
  std::size_t given_ = 0;
};

struct connection::state {
  explicit state(const connection_options& options);
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() { close(); }

  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return pq != nullptr && PQstatus(pq) == CONNECTION_OK; }
  [[noreturn]] void fail();  // closes, and throws a connection_error with libpq's message

  // Q2. `check` is for libpq's calls that return 1 for success.
  void check(int code) {
    if (code != 1) fail();
  }
  void flush();
  void take();                                    // waits for something from the server, and takes it
  [[nodiscard]] result next();                    // null inside at the end of a command's results
  [[nodiscard]] result finish(result last = {});  // reads to the end; throws the first failure

  void give_up() noexcept;  // Q3

  PGconn* pq = nullptr;
  std::shared_ptr<PGcancel> cancel;
  net::unix_stream socket;  // Q1; of whatever family
  std::chrono::nanoseconds cancel_time;
  statement_names names;
  std::atomic<bool> busy{false};
  bool in_flight = false;

 private:
  void connect(const connection_options& options);
  void drain();
  void cancel_at_server();
};

/// Values as libpq wants them. They have to stay.
class parameter_list {
 public:
  template <class Values>
  explicit parameter_list(const Values& values) {
    if (values.size() > 65535) throw invalid_argument{"ramie: postgres: more than 65535 parameters"};
    if (values.size() > few_.size()) many_.resize(values.size());
    const char** to = data();
    for (const parameter& p : values) {
      *to++ = p.text() ? p.text()->c_str() : nullptr;
      ++size_;
    }
  }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const char** data() noexcept { return many_.empty() ? few_.data() : many_.data(); }

 private:
  std::array<const char*, 16> few_{};
  std::vector<const char*> many_;
  int size_ = 0;
};

[[nodiscard]] query_error error_of(const PGresult* failed);
[[nodiscard]] bool is_failure(const PGresult* r) noexcept;

/// f() as one use of the connection. Q1, Q3.
template <class F>
std::invoke_result_t<F&> use(connection::state* s, F f) {
  if (s == nullptr || s->pq == nullptr) throw connection_error{"the connection is closed"};
  if (s->busy.exchange(true, std::memory_order_acquire))
    throw usage_error{"ramie: postgres: the connection is in use by another fiber"};
  struct leaving {
    connection::state* of;
    ~leaving() { of->busy.store(false, std::memory_order_release); }
  } afterwards{s};
  try {
    return f();
  } catch (...) {
    if (s->in_flight) s->give_up();
    throw;
  }
}

}  // namespace ramie::postgres
