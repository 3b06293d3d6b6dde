// Reads and writes are tried at once with RWF_NOWAIT, which fails where the kernel would have to wait for the disk, or
// for a lock; the rest is done by io_uring (poll/ring.hpp), or on a helper thread where that is refused. A cached page
// is read in the time of pread(2). Direct reads are not tried: with RWF_NOWAIT the kernel waits for the disk all the
// same.
#include <ramie/net/file.hpp>

#include <ramie/base/error.hpp>
#include <ramie/fiber/blocking.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/poll/io_error.hpp>
#include <ramie/poll/poller.hpp>
#include <ramie/poll/retry.hpp>
#include <ramie/poll/ring.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/poll/traffic.hpp>
#include <ramie/task/io_wait.hpp>
#include <ramie/task/ready_point.hpp>
#include <ramie/worker/worker.hpp>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

namespace ramie::net {

namespace {

using namespace detail;

// One call moves no more than that (read(2)).
constexpr std::size_t bytes_most = 0x7ffff000;

/// Until `size` bytes, the end of the file or an error: how many, or minus the errno if there were none before it.
/// `call(done)` moves what is left and returns as system calls do.
template <class Call>
system::result repeat(std::size_t size, std::size_t& done, Call call) {
  while (done < size) {
    const ssize_t n = call();
    if (n > 0) done += static_cast<std::size_t>(n);
    else if (n == 0) break;
    else if (errno != EINTR) return -errno;
  }
  return 0;
}

/// Or does the kernel, or a filter in front of it (EPERM), not know such calls?
bool would_wait(system::result code) noexcept {
  return code == -EAGAIN || code == -EOPNOTSUPP || code == -ENOSYS || code == -EINVAL || code == -EPERM;
}

off_t offset_of(std::uint64_t position, const char* what, const std::string& path) {
  if (position > static_cast<std::uint64_t>(INT64_MAX))
    throw invalid_argument{"ramie: " + std::string{what} + " \"" + path + "\": position " + std::to_string(position) +
                           "; at most " + std::to_string(INT64_MAX)};
  return static_cast<off_t>(position);
}

std::string named(const char* what, const std::string& path) { return std::string{what} + " \"" + path + "\""; }

int flags_of(const file_options& o, const std::string& path) {
  if ((o.create || o.truncate || o.append) && !o.write)
    throw invalid_argument{"ramie: open \"" + path + "\": create, truncate and append need write"};
  if (o.exclusive && !o.create) throw invalid_argument{"ramie: open \"" + path + "\": exclusive needs create"};
  if (!o.read && !o.write) throw invalid_argument{"ramie: open \"" + path + "\": neither read nor write"};
  int flags = O_CLOEXEC | (o.read && o.write ? O_RDWR : o.write ? O_WRONLY : O_RDONLY);
  if (o.create) flags |= O_CREAT;
  if (o.exclusive) flags |= O_EXCL;
  if (o.truncate) flags |= O_TRUNC;
  if (o.append) flags |= O_APPEND;
  if (o.direct) flags |= O_DIRECT;
  return flags;
}

/// Null: on a plain thread, or where the kernel refuses it.
ring* ring_here() noexcept {
  if (ramie::detail::worker::current() == nullptr) return nullptr;
  try {
    return poller_here().ring_for_files();
  } catch (...) {
    return nullptr;  // no epoll set, no memory: helper threads may do
  }
}

/// The rest of a read or write, by the ring. False: not all of it, and the rest is for a helper thread. `left()` as in
/// read_at. What has begun to be written is not cancelled.
template <class Left>
bool by_ring(ring_call what, int fd, off_t at, std::size_t size, std::size_t& done, Left left, system::result& code,
             const std::source_location& where) {
  ring* const r = ring_here();
  if (r == nullptr) return false;
  code = 0;
  while (done < size) {
    const iovec part = left();
    system::result n = 0;
    if (!r->call(what, fd, part, at + static_cast<off_t>(done), n, what == ring_call::read || done == 0, where))
      return false;
    if (n > 0) done += static_cast<std::size_t>(n);
    else if (n == 0) break;
    else if (would_wait(n) || n == -ECANCELED) return false;  // its thread has ended, or the kernel cannot do it so
    else if (n != -EINTR) {
      code = n;
      break;
    }
  }
  return true;
}

/// A system call again and again until no signal interrupts it: what it returns, or minus the errno.
template <class Call>
system::result uninterrupted(Call call) {
  for (;;) {
    const auto n = static_cast<system::result>(call());
    if (n >= 0) return n;
    if (errno != EINTR) return -errno;
  }
}

/// The same on a helper thread.
template <class Call>
system::result call_elsewhere(Call call, const std::source_location& where) {
  return blocking([&] { return uninterrupted(call); }, where);
}

/// Between file systems of two kinds. Moves both offsets; returns how many bytes, at most `size`, or minus the errno.
system::result copy_through_memory(int in, off_t& source, int out, off_t& target, std::size_t size) {
  std::vector<char> buffer(std::min(size, std::size_t{128} << 10));
  std::size_t got = 0, put = 0;
  system::result code = repeat(buffer.size(), got, [&] {
    return ::pread(in, buffer.data() + got, buffer.size() - got, source + static_cast<off_t>(got));
  });
  if (code == 0)
    code = repeat(got, put,
                  [&] { return ::pwrite(out, buffer.data() + put, got - put, target + static_cast<off_t>(put)); });
  source += static_cast<off_t>(put);
  target += static_cast<off_t>(put);
  return code < 0 && put == 0 ? code : static_cast<system::result>(put);  // an error comes again
}

/// A part that is not in the page cache is sent by a helper thread: the kernel waits for the disk in sendfile.
constexpr std::size_t part_most = std::size_t{256} << 10;
bool is_cached(int fd, off_t at) noexcept {
  char one;
  const iovec part{&one, 1};
  return ::preadv2(fd, &part, 1, at, RWF_NOWAIT) >= 0;
}

}  // namespace

file file::open(std::string path, const file_options& options, std::source_location where) {
  check_no_zero("open: the path", path);
  const int flags = flags_of(options, path);
  const system::result fd = call_elsewhere([&] { return ::open(path.c_str(), flags, options.permissions); }, where);
  if (fd < 0) system::fail(named("open", path), fd);
  file made;
  made.handle_ = handle::owning(static_cast<int>(fd), endings::pass);
  made.path_ = std::move(path);
  made.direct_ = options.direct;
  return made;
}

std::size_t file::read_at(std::uint64_t position, std::span<std::byte> into, std::source_location where) {
  const off_t at = offset_of(position, "read", path_);
  ramie::detail::ready_point();
  const use during{handle_.get(), "read"};
  const int fd = during.fd();
  std::size_t done = 0;
  const auto left = [&] { return iovec{into.data() + done, std::min(into.size() - done, bytes_most)}; };
  system::result code = -EAGAIN;
  if (!direct_)
    code = repeat(into.size(), done, [&] {
      const iovec part = left();
      return ::preadv2(fd, &part, 1, at + static_cast<off_t>(done), RWF_NOWAIT);
    });
  // A read that is cut short may have met what is not cached; only 0 is the end.
  if (would_wait(code) && !by_ring(ring_call::read, fd, at, into.size(), done, left, code, where))
    code = blocking(
        [&] {
          return repeat(into.size(), done, [&] {
            const iovec part = left();
            return ::preadv(fd, &part, 1, at + static_cast<off_t>(done));
          });
        },
        where);
  count_read(static_cast<system::result>(done));
  if (code < 0) system::fail(named("read", path_), code);
  return done;
}

void file::write_at(std::uint64_t position, std::span<const std::byte> from, std::size_t* written,
                    std::source_location where) {
  const off_t at = offset_of(position, "write", path_);
  std::size_t ignored = 0;
  std::size_t& done = written == nullptr ? ignored : *written;
  done = 0;
  ramie::detail::ready_point();
  const use during{handle_.get(), "write"};
  const int fd = during.fd();
  const auto left = [&] {
    return iovec{const_cast<std::byte*>(from.data()) + done, std::min(from.size() - done, bytes_most)};
  };
  system::result code = -EAGAIN;
  if (!direct_)
    code = repeat(from.size(), done, [&] {
      const iovec part = left();
      return ::pwritev2(fd, &part, 1, at + static_cast<off_t>(done), RWF_NOWAIT);
    });
  if (would_wait(code) && !by_ring(ring_call::write, fd, at, from.size(), done, left, code, where)) {
    const auto rest = [&] {
      return blocking(
          [&] {
            return repeat(from.size(), done, [&] {
              const iovec part = left();
              return ::pwritev(fd, &part, 1, at + static_cast<off_t>(done));
            });
          },
          where);
    };
    code = done == 0 ? rest() : shield(rest);  // what has begun is not cancelled
  }
  count_written(static_cast<system::result>(done));
  if (code < 0)
    system::fail(
        named("write", path_) + " after " + std::to_string(done) + " of " + std::to_string(from.size()) + " bytes",
        code);
}

void file::sync(bool metadata, std::source_location where) {
  const use during{handle_.get(), "sync"};
  const int fd = during.fd();
  system::result code = 0;
  ring* const r = ring_here();
  if (r == nullptr || !r->call(metadata ? ring_call::sync : ring_call::sync_data, fd, {}, 0, code, true, where) ||
      would_wait(code) || code == -ECANCELED || code == -EINTR)
    code = call_elsewhere([&] { return metadata ? ::fsync(fd) : ::fdatasync(fd); }, where);
  if (code < 0) system::fail(named("sync", path_), code);
}

std::uint64_t file::size() const {
  const use during{handle_.get(), "size"};
  struct stat found{};
  if (::fstat(during.fd(), &found) != 0) system::fail(named("size of", path_), -errno);
  return static_cast<std::uint64_t>(found.st_size);
}

void file::resize(std::uint64_t size, std::source_location where) {
  const off_t to = offset_of(size, "resize", path_);
  const use during{handle_.get(), "resize"};
  const int fd = during.fd();
  const system::result code = call_elsewhere([&] { return ::ftruncate(fd, to); }, where);
  if (code < 0) system::fail(named("resize", path_), code);
}

std::uint64_t file::copy_from(file& from, std::uint64_t from_position, std::uint64_t position, std::uint64_t size,
                              std::uint64_t* copied, std::source_location where) {
  std::uint64_t ignored = 0;
  std::uint64_t& done = copied == nullptr ? ignored : *copied;
  done = 0;
  off_t source = offset_of(from_position, "copy", from.path_);
  off_t target = offset_of(position, "copy", path_);
  const use during{handle_.get(), "copy"};
  const use during_from{from.handle_.get(), "copy"};
  const int in = during_from.fd(), out = during.fd();
  while (done < size) {
    const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(size - done, bytes_most));
    // The kernel moves the offsets.
    system::result n = call_elsewhere([&] { return ::copy_file_range(in, &source, out, &target, part, 0); }, where);
    // 0: at the end, or, before Linux 5.19, in a file system that is made up. EBADF: it is opened to append.
    if (n == 0 || n == -EXDEV || n == -EBADF || (would_wait(n) && n != -EAGAIN))
      n = blocking([&] { return copy_through_memory(in, source, out, target, part); }, where);
    if (n < 0) system::fail("copy \"" + from.path_ + "\" to \"" + path_ + "\"", n);
    if (n == 0) break;
    count_read(n);
    count_written(n);
    done += static_cast<std::uint64_t>(n);
  }
  return done;
}

std::uint64_t file::send_to(stream& to, std::uint64_t position, std::uint64_t size, std::uint64_t* written,
                            std::source_location where) {
  off_t at = offset_of(position, "send", path_);
  std::uint64_t ignored = 0;
  std::uint64_t& done = written == nullptr ? ignored : *written;
  done = 0;
  const use during{handle_.get(), "send"};
  const use during_to{to.handle_.get(), "send"};
  const int in = during.fd();
  const char* const writing = ramie::detail::io_reason.write;
  while (done < size) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(size - done, part_most));
    const bool cached = is_cached(in, at) && is_cached(in, at + static_cast<off_t>(part) - 1);
    const system::result n = retry_writing(*to.handle_, writing, where, [&](int out) {
      if (cached) return system::send_file(out, in, at, part);
      return blocking([&] { return system::send_file(out, in, at, part); }, where);
    });
    if (n < 0) system::fail(named("send", path_), n);
    if (n == 0) break;
    count_written(n);
    done += static_cast<std::uint64_t>(n);
  }
  return done;
}

void file_cursor::write_all(std::span<const std::byte> from, std::size_t* written, std::source_location where) {
  std::size_t ignored = 0;
  std::size_t& done = written == nullptr ? ignored : *written;
  done = 0;
  struct mover {
    std::uint64_t& position;
    const std::size_t& done;
    ~mover() { position += done; }
  } const moves{position_, done};
  file_->write_at(position_, from, &done, where);
}

std::string read_file(const std::string& path, std::size_t most, std::source_location where) {
  file f = file::open(path, {}, where);
  std::string all;
  const std::uint64_t size = f.size();  // 0 for those that are made up as they are read, in /proc
  constexpr std::size_t step = std::size_t{1} << 16;
  all.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size, most)) + 1);
  std::size_t done = 0;
  for (;;) {
    const std::size_t n = f.read_at(done, std::as_writable_bytes(std::span{all}.subspan(done)), where);
    done += n;
    if (done > most)
      throw io_error{"read \"" + f.path() + "\": it has more than " + std::to_string(most) + " bytes",
                     io_errc::too_long};
    if (done < all.size()) break;
    all.resize(all.size() + std::min(step, most - done + 1));
  }
  all.resize(done);
  return all;
}

namespace {

/// Until it has another name, what is written has this one, if any: one that a process which was killed has left is not
/// in the way.
std::string name_beside(const std::string& path) {
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) < 0) random = static_cast<std::uint32_t>(::getpid());
  static detail::atomic<std::uint32_t> names{0};
  return path + "." + std::to_string(random ^ names.fetch_add(1, std::memory_order_relaxed)) + ".new";
}

/// What of the permissions of a file goes to the one that replaces it. A group that it cannot have gets no more than
/// others.
void hand_on(const struct stat& from, int fd) noexcept {
  struct stat now{};
  if (::fstat(fd, &now) != 0) return;
  mode_t mode = from.st_mode & 0777;
  // A process without privileges may at best choose the group.
  if (now.st_uid != from.st_uid) static_cast<void>(::fchown(fd, from.st_uid, static_cast<gid_t>(-1)));
  if (now.st_gid != from.st_gid && ::fchown(fd, static_cast<uid_t>(-1), from.st_gid) != 0)
    mode &= ~mode_t{070} | static_cast<mode_t>((mode & 07) << 3);
  // Where the file system has no permissions of its own for each file, nothing is lost.
  if ((now.st_mode & 0777) != mode) static_cast<void>(::fchmod(fd, mode));
}

/// As system calls return. It has no name until it is written, where the file system can do that, and /proc is there.
system::result replace(const std::string& path, std::string_view content, mode_t permissions, bool nameless = true) {
  const std::string folder = folder_of(path);
  struct stat before{};
  const bool is_there = ::lstat(path.c_str(), &before) == 0 && S_ISREG(before.st_mode);
  if (is_there) permissions = 0600;  // until it is whole
  std::string other;
  constexpr int usual = O_CLOEXEC | O_WRONLY;
  const auto opened = [&](const std::string& name, int flags) {
    return uninterrupted([&] { return ::open(name.c_str(), usual | flags, permissions); });
  };
  system::result code = nameless ? opened(folder, O_TMPFILE) : -EOPNOTSUPP;
  nameless = code >= 0;
  for (int tries = 0; code < 0 && (tries == 0 || code == -EEXIST) && tries < 100; ++tries)
    code = opened(other = name_beside(path), O_CREAT | O_EXCL);
  if (code < 0) return code;
  const raw_fd fresh{static_cast<int>(code)};
  struct left_over {
    const std::string* name = nullptr;
    ~left_over() {
      if (name != nullptr) ::unlink(name->c_str());
    }
  } left;
  if (!nameless) left.name = &other;
  std::size_t done = 0;
  code = repeat(content.size(), done, [&] {
    return ::write(fresh.get(), content.data() + done, std::min(content.size() - done, bytes_most));
  });
  if (code == 0 && is_there) hand_on(before, fresh.get());
  if (code == 0) code = uninterrupted([&] { return ::fsync(fresh.get()); });
  // For its new name. A folder that may not be read cannot be synced.
  const system::result where =
      uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  const raw_fd place{static_cast<int>(where)};
  if (code == 0 && where < 0 && where != -EACCES) code = where;
  if (code < 0) return code;
  if (nameless) {
    const std::string self = "/proc/self/fd/" + std::to_string(fresh.get());
    do {
      other = name_beside(path);
      code = ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, other.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0 : -errno;
    } while (code == -EEXIST);
    if (code != 0) return replace(path, content, permissions, false);
    left.name = &other;
  }
  if (::rename(other.c_str(), path.c_str()) != 0) return -errno;
  left.name = nullptr;
  if (place.get() < 0) return 0;
  code = uninterrupted([&] { return ::fsync(place.get()); });
  return code == -EINVAL || code == -EBADF ? 0 : code;  // some file systems have no such call for folders
}

}  // namespace

void write_file(const std::string& path, std::string_view content, mode_t permissions, std::source_location where) {
  check_no_zero("write: the path", path);
  const system::result code = blocking([&] { return replace(path, content, permissions); }, where);
  if (code < 0) system::fail(named("write", path), code);
  count_written(static_cast<system::result>(content.size()));
}

}  // namespace ramie::net
