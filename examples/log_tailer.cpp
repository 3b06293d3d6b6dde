// Follows a log file as `tail -F` does: `example_log_tailer FILE` prints the lines that are appended, until Ctrl-C or
// SIGTERM. It goes on with the new file when the old one is renamed, deleted or replaced, and begins anew when it is
// truncated. (What is written to the old file after the new one has been seen is missed, as by tail.) Without a file it
// follows one of its own, so that there is something to see.
#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <sys/stat.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace net = ramie::net;

namespace {

class tailer {
 public:
  using line_function = std::function<void(std::string_view)>;

  /// `print` gets each line without its end.
  tailer(std::filesystem::path path, line_function print) : path_{std::move(path)}, print_{std::move(print)} {
    // The folder is watched, not the file: the name is what is followed. From before the first look on, so that no
    // change falls between the two.
    changes_.add(path_.has_parent_path() ? path_.parent_path().string() : ".");
  }

  /// What is already there is not printed.
  void skip_to_end() {
    open();
    if (file_) position_ = file_->size();
  }

  /// Until `stop` is called. A change of any file in the folder is a reason to look: most often it is this one, and the
  /// old one may still grow under its new name.
  void run() {
    try {
      for (;;) {
        look();
        (void)changes_.next();
      }
    } catch (const net::io_error& e) {
      if (e.code() != net::io_errc::closed) throw;
    }
    look();  // what came just before
  }
  void stop() noexcept { changes_.close(); }

 private:
  void look() {
    if (file_) read_on();
    if (file_ && is_same_file()) return;
    if (file_) read_on();  // what was written between the first look and the change of files
    open();
    if (file_) read_on();
  }

  /// Prints the complete lines from `position_` on.
  void read_on() {
    if (file_->size() < position_) {
      position_ = 0;
      unfinished_.clear();
    }
    std::array<std::byte, 16 * 1024> buffer;
    while (const std::size_t n = file_->read_at(position_, buffer)) {
      position_ += n;
      unfinished_.append(reinterpret_cast<const char*>(buffer.data()), n);
      std::string_view rest = unfinished_;
      for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1))
        print_(rest.substr(0, end));
      unfinished_.erase(0, unfinished_.size() - rest.size());
    }
  }

  /// Has the name still the file that is open?
  [[nodiscard]] bool is_same_file() const {
    struct stat named{}, ours{};
    if (::stat(path_.c_str(), &named) != 0) return true;  // none: the old one stays until there is a new one
    return ::fstat(file_->native_handle(), &ours) == 0 && named.st_ino == ours.st_ino && named.st_dev == ours.st_dev;
  }

  void open() {
    try {
      file_ = net::file::open(path_.string());
    } catch (const net::io_error& e) {
      if (e.code() != std::errc::no_such_file_or_directory) throw;
      return;
    }
    position_ = 0;
    unfinished_.clear();
  }

  std::filesystem::path path_;
  line_function print_;
  net::watch changes_;
  std::optional<net::file> file_;
  std::uint64_t position_ = 0;
  std::string unfinished_;  // the beginning of a line
};

void append(const std::string& path, std::string_view text) {
  net::file f = net::file::open(path, {.read = false, .write = true, .create = true, .append = true});
  f.write_at(0, std::as_bytes(std::span{text}));
}

void show() {
  std::string folder = (std::filesystem::temp_directory_path() / "log_tailer.XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) throw ramie::error{"cannot make " + folder};
  const std::string log = folder + "/log";
  ramie::channel<std::string> lines{8};
  tailer follow{log, [&](std::string_view line) { static_cast<void>(lines.send(std::string{line})); }};
  auto follower = ramie::spawn([&] { follow.run(); });
  const auto next = [&] { std::printf("%s\n", lines.recv()->c_str()); };
  append(log, "a line\nand half ");
  next();
  append(log, "of another\n");
  next();
  std::filesystem::rename(log, log + ".1");
  append(log + ".1", "too late, but not lost\n");
  append(log, "a new file\n");
  next();
  next();
  follow.stop();
  follower.join();
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return ramie::run(show);
  if (argc > 2) {
    std::fprintf(stderr, "usage: example_log_tailer FILE\n");
    return 2;
  }
  return ramie::run([&] {
    tailer follow{argv[1], [](std::string_view line) {
                    std::printf("%.*s\n", static_cast<int>(line.size()), line.data());
                    std::fflush(stdout);
                  }};
    follow.skip_to_end();
    net::signals stop{SIGINT, SIGTERM};
    auto stopper = ramie::spawn([&] {
      stop.wait();
      follow.stop();
    });
    std::fprintf(stderr, "following %s\n", argv[1]);
    follow.run();
    stopper.join();
  });
}
