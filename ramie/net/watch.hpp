// Waiting for changes of files and folders.
#pragma once

#include <ramie/poll/descriptor.hpp>
#include <ramie/poll/io_error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <source_location>
#include <string>

namespace ramie::net {

/// What happened.
enum class change_kind : std::uint8_t {
  created,     // in a watched folder
  modified,    // written to, or truncated; several in a row may be one
  written,     // closed by a process that had it open for writing
  attributes,  // permissions, times, number of links
  deleted,     // a file or folder in a watched folder, or what is watched
  moved_away,  // under this name it is no more: an entry of a watched folder, or what is watched
  moved_here,  // into a watched folder, or to this name in it; replaces what had the name
  unwatched,   // nothing more comes for this path: removed by `remove`, deleted, or its file system is gone
  lost,        // changes came faster than they were taken, and some are missing: look at everything again
};

/// A change of a file or folder.
struct change {
  change_kind kind;
  std::string path;      // as it was added; for what is in a watched folder, "folder/name". Empty for `lost`
  bool is_folder;        // only known for what is in a watched folder, or is one
  std::uint32_t cookie;  // of moved_away and moved_here: the same number if it was one move; otherwise 0
};

/// Tells what happens to files and folders (not in the folders below them), as inotify(7) knows it: changes made on
/// this machine. A file that is replaced by another of its name is not watched any more, so watch its folder. Not
/// movable; all calls but `close` are for one fiber at a time.
class watch {
 public:
  /// Throws io_error (EMFILE: fs.inotify.max_user_instances), std::bad_alloc.
  watch();
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;

  /// From now on changes of `path` are told. What is already watched, under any name, is watched under this name from
  /// now on. Throws io_error that names `path` (ENOSPC: fs.inotify.max_user_watches), io_errc::closed, std::bad_alloc.
  /// Does not suspend.
  void add(const std::string& path);
  /// No more, once `unwatched` has been told. Does nothing for a path that is not watched. Throws io_errc::closed. Does
  /// not suspend.
  void remove(const std::string& path);

  /// The next change, in the order in which they happened. Suspends. Throws io_error with io_errc::closed, `cancelled`;
  /// no change is lost by that.
  [[nodiscard]] change next(std::source_location where = std::source_location::current());

  /// Ends a call of `next` with io_errc::closed; later calls throw that, too. Does not suspend. Any thread.
  void close() noexcept { handle_.close(); }
  [[nodiscard]] int native_handle() const noexcept { return handle_.fd(); }

 private:
  friend struct detail::socket_access;
  [[nodiscard]] bool take(change& into);
  [[nodiscard]] std::optional<change> take_read();
  [[nodiscard]] std::optional<change> take_now(int fd);
  void note_read(std::int64_t n);

  detail::handle handle_;
  std::map<int, std::string> paths_;                 // by the kernel's number
  alignas(8) std::array<std::byte, 4096> buffer_{};  // what has been read
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace ramie::net
