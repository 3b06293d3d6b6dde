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

}  // namespace ramie::net
