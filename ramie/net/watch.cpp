#include <ramie/net/watch.hpp>

#include <ramie/poll/retry.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/task/io_wait.hpp>

#include <sys/inotify.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ramie::net {

namespace {

using namespace detail;

constexpr const char* watching = ramie::detail::io_reason.watch;
constexpr std::uint32_t wanted = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE | IN_DELETE_SELF |
                                 IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF;

/// An event has one of these bits.
change_kind kind_of(std::uint32_t mask) noexcept {
  if ((mask & IN_Q_OVERFLOW) != 0) return change_kind::lost;
  if ((mask & (IN_IGNORED | IN_UNMOUNT)) != 0) return change_kind::unwatched;
  if ((mask & IN_CREATE) != 0) return change_kind::created;
  if ((mask & IN_MODIFY) != 0) return change_kind::modified;
  if ((mask & IN_CLOSE_WRITE) != 0) return change_kind::written;
  if ((mask & IN_ATTRIB) != 0) return change_kind::attributes;
  if ((mask & (IN_MOVED_FROM | IN_MOVE_SELF)) != 0) return change_kind::moved_away;
  if ((mask & IN_MOVED_TO) != 0) return change_kind::moved_here;
  return change_kind::deleted;
}

handle opened() {
  const system::result fd = system::watch();
  system::check(watching, fd);
  return handle::owning(static_cast<int>(fd), endings::pass);
}

}  // namespace

watch::watch() : handle_{opened()} {}

void watch::add(const std::string& path) {
  check_no_zero("watch: the path", path);
  const use during{handle_.get(), watching};
  const system::result number = system::watch_add(during.fd(), path.c_str(), wanted);
  if (number < 0) system::fail("watch " + path, number);
  paths_[static_cast<int>(number)] = path;
}

void watch::remove(const std::string& path) {
  const use during{handle_.get(), watching};
  const auto at = std::ranges::find(paths_, path, &decltype(paths_)::value_type::second);
  if (at != paths_.end()) system::watch_remove(during.fd(), at->first);  // its name goes when IN_IGNORED comes
}

bool watch::take(change& into) {
  inotify_event e;
  std::memcpy(&e, buffer_.data() + begin_, sizeof e);
  const char* const name = reinterpret_cast<const char*>(buffer_.data() + begin_ + sizeof e);
  into = {kind_of(e.mask), {}, (e.mask & IN_ISDIR) != 0, e.cookie};
  const auto at = paths_.find(e.wd);
  if (at != paths_.end()) {
    into.path = at->second;
    if (e.len != 0) into.path += (into.path.ends_with('/') ? "" : "/") + std::string{name};  // is padded with zeros
  }
  begin_ += sizeof e + e.len;
  if (into.kind == change_kind::lost) return true;
  if (at == paths_.end()) return false;
  if ((e.mask & IN_IGNORED) != 0) paths_.erase(at);
  return (e.mask & IN_UNMOUNT) == 0;  // IN_IGNORED follows
}

/// The next change that has been read, if there is one.
std::optional<change> watch::take_read() {
  while (begin_ != end_)
    if (change next{}; take(next)) return next;
  begin_ = end_ = 0;
  return std::nullopt;
}

void watch::note_read(std::int64_t n) {
  system::check(watching, n);
  end_ = static_cast<std::size_t>(n);
}

std::optional<change> watch::take_now(int fd) {
  for (;;) {
    if (std::optional<change> there = take_read()) return there;
    const system::result n = system::read(fd, buffer_.data(), buffer_.size());
    if (n == -EAGAIN) return std::nullopt;
    if (n != -EINTR) note_read(n);
  }
}

change watch::next(std::source_location where) {
  const use during{handle_.get(), watching};
  for (;;) {
    if (std::optional<change> there = take_read()) return std::move(*there);
    // A short read does not mean that there is no more: the next event may not have fitted.
    note_read(retry_reading(
        *handle_, watching, where, [&](int fd) { return system::read(fd, buffer_.data(), buffer_.size()); },
        [](system::result) { return false; }));
  }
}

}  // namespace ramie::net
