// For the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ramie::lab {

/// A socket that listens on the loopback, for a server that a test has a thread for.
class loopback_listener {
 public:
  loopback_listener() : socket_{socket(AF_INET, SOCK_STREAM, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket_, 100), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  loopback_listener(const loopback_listener&) = delete;
  loopback_listener& operator=(const loopback_listener&) = delete;
  ~loopback_listener() { close(socket_); }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// The caller's. Negative: `stop` was called.
  [[nodiscard]] int accept() const { return ::accept(socket_, nullptr, nullptr); }
  void stop() const { shutdown(socket_, SHUT_RDWR); }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

}  // namespace ramie::lab
