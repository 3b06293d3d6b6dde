// Pipes, and other descriptors that are read or written like them: a terminal, a FIFO, standard input.
#pragma once

#include <ramie/net/stream.hpp>

#include <utility>

namespace ramie::net {

/// The read end.
class pipe_reader : public stream {
 public:
  pipe_reader() noexcept = default;
  /// Takes ownership of `fd` and makes it non-blocking, which also affects other processes that share it (a terminal,
  /// for example). Reading from a regular file blocks its worker. Throws io_error; then `fd` is the caller's.
  [[nodiscard]] static pipe_reader adopt(int fd);

 private:
  friend std::pair<pipe_reader, class pipe_writer> make_pipe();
  explicit pipe_reader(detail::handle end) noexcept : stream{std::move(end), kind::file} {}
};

/// The write end. Each write may cost two system calls more than on a socket, to avoid SIGPIPE.
class pipe_writer : public stream {
 public:
  pipe_writer() noexcept = default;
  /// Same as pipe_reader::adopt.
  [[nodiscard]] static pipe_writer adopt(int fd);

 private:
  friend std::pair<pipe_reader, pipe_writer> make_pipe();
  explicit pipe_writer(detail::handle end) noexcept : stream{std::move(end), kind::file} {}
};

/// Both ends of a new pipe. Throws io_error.
[[nodiscard]] std::pair<pipe_reader, pipe_writer> make_pipe();

}  // namespace ramie::net
