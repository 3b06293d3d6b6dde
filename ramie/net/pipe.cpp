#include <ramie/net/pipe.hpp>

#include <ramie/poll/system.hpp>

namespace ramie::net {

using namespace detail;

pipe_reader pipe_reader::adopt(int fd) {
  system::check("adopt", system::set_nonblocking(fd));
  return pipe_reader{handle{fd, endings::last}};
}

pipe_writer pipe_writer::adopt(int fd) {
  system::check("adopt", system::set_nonblocking(fd));
  return pipe_writer{handle{fd, endings::last}};
}

std::pair<pipe_reader, pipe_writer> make_pipe() {
  int both[2];
  system::check("pipe", system::pipe(both));
  handle reader;
  try {
    reader = handle::owning(both[0], endings::last);
  } catch (...) {
    system::close(both[1]);
    throw;
  }
  handle writer = handle::owning(both[1], endings::last);
  return {pipe_reader{std::move(reader)}, pipe_writer{std::move(writer)}};
}

pipe_reader standard_input() {
  system::result fd = system::open_again(0);
  if (fd < 0) fd = system::duplicate(0);
  system::check("standard input", fd);
  handle owner = handle::owning(static_cast<int>(fd), endings::last);  // closes it if it cannot be adopted
  system::check("standard input", system::set_nonblocking(owner.fd()));
  return pipe_reader{std::move(owner)};
}

}  // namespace ramie::net
