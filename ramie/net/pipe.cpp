#include <ramie/net/pipe.hpp>

#include <ramie/net/system.hpp>

namespace ramie::net {

using namespace detail;

pipe_reader pipe_reader::adopt(int fd) {
  system::check("adopt", system::set_nonblocking(fd));
  return pipe_reader{fd};
}

pipe_writer pipe_writer::adopt(int fd) {
  system::check("adopt", system::set_nonblocking(fd));
  return pipe_writer{fd};
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
  std::pair<pipe_reader, pipe_writer> ends;
  ends.first.kind_ = ends.second.kind_ = stream::kind::file;
  ends.first.handle_ = std::move(reader);
  ends.second.handle_ = handle::owning(both[1], endings::last);
  return ends;
}

}  // namespace ramie::net
