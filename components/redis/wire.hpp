// Bytes to and from the server: hiredis makes and parses them, ramie's streams carry them.
#pragma once

#include <ramie/net.hpp>
#include <ramie/redis.hpp>

#include <hiredis/hiredis.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ramie::redis {

/// Takes bytes as they come, gives replies. Does not suspend.
class parser {
 public:
  explicit parser(std::size_t reply_most);
  void feed(std::span<const std::byte> bytes);
  /// Throws connection_error if this is not Redis' protocol, or the reply is too long.
  [[nodiscard]] std::optional<reply> next();

 private:
  struct free_reader {
    void operator()(redisReader* r) const noexcept { redisReaderFree(r); }
  };
  std::unique_ptr<redisReader, free_reader> reader_;
  std::size_t most_, unused_ = 0;
};

/// A connection that has said who it is. Throws connection_error, command_error, `cancelled`. Suspends.
[[nodiscard]] net::any_stream connect(const options& o, parser& p);
/// The next reply. Suspends. Throws connection_error, `cancelled`.
[[nodiscard]] reply read_reply(net::any_stream& from, parser& p);

}  // namespace ramie::redis
