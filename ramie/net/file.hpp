// Regular files: read and written at a position, so that any number of fibers share one.
#pragma once

#include <ramie/net/stream.hpp>
#include <ramie/poll/descriptor.hpp>

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace ramie::net {

struct file_options {
  bool read = true;
  bool write = false;
  bool create = false;        // if there is none; needs `write`
  bool exclusive = false;     // with `create`: fails with EEXIST if there is one
  bool truncate = false;      // to nothing; needs `write`
  bool append = false;        // all writes go to the end, whatever their position; needs `write`
  bool direct = false;        // past the page cache (O_DIRECT): buffers, sizes and positions are multiples of a block
  mode_t permissions = 0666;  // of a file that is created, less the process's umask
};

/// An open file. What the page cache holds is read and written at once; a call that has to wait for the disk is made by
/// io_uring, or on a helper thread where the kernel refuses that, while the fiber waits. Such a call cannot be
/// interrupted: a fiber that is asked to stop meanwhile throws `cancelled` at its next wait, and no buffer is touched
/// after a call has returned. On a plain thread calls block. All calls may be made by any number of fibers and threads
/// at a time; all but `size`, `close` and `native_handle` may suspend; they throw io_error that names the path,
/// `cancelled` (nothing was done), resource_error.
class file {
 public:
  file() noexcept = default;
  /// Throws invalid_argument if the options contradict each other.
  [[nodiscard]] static file open(std::string path, const file_options& options = {},
                                 std::source_location where = std::source_location::current());
  /// To be written: created if there is none, emptied if there is one.
  [[nodiscard]] static file create(std::string path, std::source_location where = std::source_location::current()) {
    return open(std::move(path), {.read = true, .write = true, .create = true, .truncate = true}, where);
  }

  /// Reads from byte `position` on until `into` is full or the file ends. Returns how many bytes there were.
  std::size_t read_at(std::uint64_t position, std::span<std::byte> into,
                      std::source_location where = std::source_location::current());
  /// Writes all of it. If it throws, the first bytes may have been written: `written`, if not null, says how many.
  void write_at(std::uint64_t position, std::span<const std::byte> from, std::size_t* written = nullptr,
                std::source_location where = std::source_location::current());
  /// Returns when the content, and with `metadata` also times and sizes, is on the disk (fdatasync, fsync).
  void sync(bool metadata = false, std::source_location where = std::source_location::current());
  [[nodiscard]] std::uint64_t size() const;
  /// Cuts it off, or lengthens it with zeros.
  void resize(std::uint64_t size, std::source_location where = std::source_location::current());
  /// Copies up to `size` bytes of `from`, in the kernel where the file systems can. Returns how many there were. If it
  /// throws, `copied`, if not null, says how many have been copied.
  std::uint64_t copy_from(file& from, std::uint64_t from_position, std::uint64_t position, std::uint64_t size,
                          std::uint64_t* copied = nullptr,
                          std::source_location where = std::source_location::current());

  /// Writes up to `size` bytes from `position` on to `to`, in the kernel (sendfile). Returns how many there were before
  /// the end of the file. If it throws, `written`, if not null, says how many `to` has taken.
  std::uint64_t send_to(stream& to, std::uint64_t position, std::uint64_t size, std::uint64_t* written = nullptr,
                        std::source_location where = std::source_location::current());

  /// Later calls fail with io_errc::closed; the descriptor is given back when the last call under way has ended.
  void close() noexcept { handle_.close(); }
  /// The descriptor, which the file still owns; -1 once it is closed.
  [[nodiscard]] int native_handle() const noexcept { return handle_.fd(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  detail::handle handle_;
  std::string path_;
  bool direct_ = false;
};

/// A place in a file that moves as bytes are read and written: so a file is one of the streams for buffered_reader,
/// buffered_writer and `copy`. Keeps a reference to the file. For one fiber at a time.
class file_cursor {
 public:
  explicit file_cursor(file& of, std::uint64_t position = 0) noexcept : file_{&of}, position_{position} {}

  /// As file::read_at: fewer than `into.size()` at the end of the file, and 0 after it.
  std::size_t read_some(std::span<std::byte> into, std::source_location where = std::source_location::current()) {
    const std::size_t n = file_->read_at(position_, into, where);
    position_ += n;
    return n;
  }
  /// As file::write_at. If it throws, the place is behind the bytes that have been written.
  void write_all(std::span<const std::byte> from, std::size_t* written = nullptr,
                 std::source_location where = std::source_location::current());
  void write_all(std::string_view text, std::size_t* written = nullptr,
                 std::source_location where = std::source_location::current()) {
    write_all(std::as_bytes(std::span{text}), written, where);
  }
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  void move_to(std::uint64_t position) noexcept { position_ = position; }

 private:
  file* file_;
  std::uint64_t position_;
};

/// All of a file. `most`: io_errc::too_long if it has more bytes than that.
[[nodiscard]] std::string read_file(const std::string& path, std::size_t most = std::size_t{1} << 30,
                                    std::source_location where = std::source_location::current());
/// Writes a file anew: under another name first, which then replaces it, so that others see the old or the new content
/// and nothing in between. Returns when it is on the disk, and its name, too; if it throws, the content is the old one,
/// or, if only the folder could not be synced, the new one. A file that is replaced hands its permissions (not the bits
/// that change who runs it), and, if the process may give them, its owner and group on; `permissions`, less the
/// process's umask, are for a new one. A symbolic link is replaced itself. The folder must be writable. A process that
/// is killed in the midst may leave a file PATH.NUMBER.new behind, where the file system has no files without a name.
void write_file(const std::string& path, std::string_view content, mode_t permissions = 0666,
                std::source_location where = std::source_location::current());

}  // namespace ramie::net
