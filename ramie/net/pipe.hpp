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
  friend pipe_reader standard_input();
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

/// What comes on standard input: from a terminal, a pipe, or a file, which is read from its beginning. It is opened
/// anew, so that it is not made non-blocking for the other programs that have it. (A socket is: it cannot be opened.)
/// Throws io_error. Does not suspend.
[[nodiscard]] pipe_reader standard_input();

}  // namespace ramie::net
