// Redis for fibers, by hiredis: link ramie::redis.
//
//   namespace redis = ramie::redis;
//   redis::client db{{.where = "127.0.0.1:6379"}};
//   db.command("set", "plum", 3);
//   const std::string price = db.command("get", "plum").text();
#pragma once

#include <ramie/ramie.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie::redis {

/// The server refused a command. The message is the server's, as "ERR unknown command".
class command_error : public error {
 public:
  explicit command_error(const std::string& what) : error{"ramie: redis: " + what} {}
};

/// There is no connection, or it broke: whether the command under way was carried out is not known.
class connection_error : public error {
 public:
  explicit connection_error(const std::string& what) : error{"ramie: redis: " + what} {}
};

/// What the server says to a command.
class reply {
 public:
  enum class kind : std::uint8_t { null, integer, text, error, array };

  reply() noexcept = default;
  explicit reply(std::int64_t number) noexcept : is_{kind::integer}, number_{number} {}
  reply(kind is, std::string text) noexcept : is_{is}, text_{std::move(text)} {}
  explicit reply(std::vector<reply> parts) noexcept : is_{kind::array}, parts_{std::move(parts)} {}

  [[nodiscard]] kind is() const noexcept { return is_; }
  [[nodiscard]] bool is_null() const noexcept { return is_ == kind::null; }
  /// These throw invalid_argument if it is of another kind. A text may have any bytes.
  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] std::int64_t integer() const;  // also of a text that is a number
  [[nodiscard]] const std::vector<reply>& array() const;
  /// nullopt: null.
  [[nodiscard]] std::optional<std::string> maybe_text() const {
    return is_null() ? std::nullopt : std::optional{text()};
  }
  /// The server's message, if it refused (only inside of arrays and of what `run` returns; `command` throws it).
  [[nodiscard]] const std::string& error() const;

 private:
  kind is_ = kind::null;
  std::int64_t number_ = 0;
  std::string text_;
  std::vector<reply> parts_;
};

/// A word of a command: bytes, or a number.
class word {
 public:
  word(std::string_view text) : text_{text} {}
  word(const std::string& text) : text_{text} {}
  word(const char* text) : text_{text} {}
  template <class T>
    requires(std::is_arithmetic_v<T> && !std::same_as<T, bool> && !std::same_as<T, char>)
  word(T number) : text_{from_number(number)} {}
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  template <class T>
  static std::string from_number(T number) {
    if constexpr (std::is_floating_point_v<T>) return exact(number);
    else return std::to_string(number);
  }
  static std::string exact(double number);
  std::string text_;
};

/// Commands that go out together. MULTI and EXEC among them make a transaction.
class commands {
 public:
  template <class... T>
    requires(sizeof...(T) > 0 && (std::convertible_to<const T&, word> && ...))
  void add(const T&... words) {
    add_words({word{words}...});
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  void add_words(std::initializer_list<word> words);
  std::string bytes_;
  std::size_t count_ = 0;
};

struct options {
  /// "host:port", or the path of a local socket.
  std::string where = "127.0.0.1:6379";
  std::string user{}, password{};
  int database = 0;
  std::chrono::nanoseconds connect_time = std::chrono::seconds{5};
  /// Until the server takes what it is sent; then the connection is over.
  std::chrono::nanoseconds write_time = std::chrono::seconds{10};
  /// Bytes of one reply. A guess: Redis itself bounds a text at 512 MiB.
  std::size_t reply_most = std::size_t{64} << 20;
};

struct message {
  std::string channel, payload;
  std::string pattern{};  // of psubscribe, by which it came
};

/// A connection of one's own: for MULTI with WATCH, commands that block, and subscriptions. For one fiber (or plain
/// thread) at a time. Movable. All calls but `close` suspend, and throw connection_error, `cancelled`. A command that
/// is ended by a stop or deadline closes the connection, for its reply may still come.
class connection {
 public:
  connection() noexcept;
  /// Throws connection_error, also after connect_time; command_error if the password is refused.
  explicit connection(const options& o);
  connection(connection&&) noexcept;
  connection& operator=(connection&&) noexcept;
  ~connection();

  /// Throws command_error if the server refuses.
  template <class... T>
    requires(sizeof...(T) > 0 && (std::convertible_to<const T&, word> && ...))
  reply command(const T&... words) {
    commands one;
    one.add(words...);
    return single(run(one));
  }
  /// All in one write. The replies in order; a refusal is one of them.
  std::vector<reply> run(const commands& all);

  /// From now on no other commands but these.
  void subscribe(std::string_view channel);
  void psubscribe(std::string_view pattern);
  void unsubscribe(std::string_view channel);
  void punsubscribe(std::string_view pattern);
  /// The next message, in the order of arrival. A call that is cancelled loses none.
  [[nodiscard]] message next_message();

  [[nodiscard]] bool is_open() const noexcept;
  void close() noexcept;

 private:
  friend class client;
  struct state;
  static reply single(std::vector<reply> one);
  std::unique_ptr<state> state_;
};

struct client_statistics {
  std::uint64_t commands = 0, writes = 0, connected = 0;
};

/// A connection that any number of fibers share: commands of those that run at the same time go out together, and each
/// gets its reply. There is no pool: a Redis server carries out the commands of all connections one after the other
/// anyway. Connects at the first command and after a failure. Not for commands that block or change the connection
/// (BLPOP, SUBSCRIBE, WATCH, SELECT). Made and destroyed by a fiber.
class client {
 public:
  explicit client(options o = {});
  client(const client&) = delete;
  client& operator=(const client&) = delete;
  ~client();  // no command is under way

  /// As connection's. A call that is cancelled leaves the connection as it is; its command may have been carried out.
  template <class... T>
    requires(sizeof...(T) > 0 && (std::convertible_to<const T&, word> && ...))
  reply command(const T&... words) {
    commands one;
    one.add(words...);
    return connection::single(run(one));
  }
  std::vector<reply> run(const commands& all);

  [[nodiscard]] client_statistics statistics() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace ramie::redis
