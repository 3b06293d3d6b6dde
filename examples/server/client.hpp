// The other side of the servers of docs/tutorial_server.md: says lines, and prints what comes back.
#pragma once

#include <ramie/net.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace net = ramie::net;

class client {
 public:
  client(std::string name, const net::endpoint& server)
      : name_{std::move(name)}, connection_{net::tcp_stream::connect(server)} {}

  void say(std::string_view line) { connection_.write_all(std::string{line} + "\n"); }
  /// The next line, or "(the end)".
  std::string hear() {
    try {
      if (const auto line = reader_.read_line()) return std::string{*line};
    } catch (const net::io_error&) {
      // Cut off with something unread: the kernel says "connection reset".
    }
    return "(the end)";
  }
  void print_what_it_hears() { std::printf("%s hears %s\n", name_.c_str(), hear().c_str()); }
  void leave() noexcept { connection_.close(); }

 private:
  std::string name_;
  net::tcp_stream connection_;
  net::buffered_reader<net::tcp_stream> reader_{connection_};
};
