// What the tests of this floor share.
#pragma once

#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace ramie::net {

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span{text}); }
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Runs `program` as the main fiber of runtimes with one, two and eight workers, which are otherwise as `options` say.
template <class F>
void with_workers(F program, runtime_options options = {.name = "net"}) {
  for (const int n : {1, 2, 8}) {
    SCOPED_TRACE("workers: " + std::to_string(n));
    options.workers = n;
    runtime rt{options};
    rt.run([&] { program(); });
  }
}

/// The same for a program in which descriptors run short. UBSan opens a pipe to look whether it may read an object of a
/// type that it has not met, and takes the type for a wrong one if it cannot: so there no spare thread may be started.
template <class F>
void with_workers_in_a_shortage(F program) {
  runtime_options options{.name = "net"};
  if (RAMIE_ASAN) options.spare_workers = 0;
  with_workers(std::move(program), std::move(options));
}

/// A connection over the loopback interface: the client's end, and the server's.
inline std::pair<tcp_stream, tcp_stream> tcp_pair() {
  tcp_listener l{{"127.0.0.1", 0}};
  auto client = spawn([at = l.local()] { return tcp_stream::connect(at); });
  tcp_stream server = l.accept();
  return {client.join(), std::move(server)};
}

/// Reads until the end.
template <class Stream>
std::string read_all(Stream& from) {
  std::string all;
  std::array<std::byte, 1000> part;
  while (const std::size_t n = from.read_some(part)) all += text_of(std::span{part}.first(n));
  return all;
}

/// The error code that `f` fails with; none if it does not.
template <class F>
std::error_code code_of(F f) {
  try {
    f();
  } catch (const io_error& e) {
    return e.code();
  }
  return {};
}

/// A folder that is removed with its content.
class scratch_folder {
 public:
  scratch_folder() {
    path_ = std::filesystem::temp_directory_path() / "ramie_XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error{"mkdtemp " + path_};
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A server for all tests of the program, which ends with them: Server::start(), which is null where the server is not
/// installed. One line makes it so: `const auto* const shared = shared_server<Server>::add();`
template <class Server>
class shared_server : public ::testing::Environment {
 public:
  static const ::testing::Environment* add() { return ::testing::AddGlobalTestEnvironment(new shared_server); }
  void SetUp() override { get() = Server::start(); }
  void TearDown() override { get().reset(); }
  static std::unique_ptr<Server>& get() {
    static std::unique_ptr<Server> one;
    return one;
  }
};

// A filter of one architecture; TSan's runtime does not outlive the death test that such a process is.
#if defined(__x86_64__) && !RAMIE_TSAN
#define RAMIE_CAN_REFUSE_CALLS 1
/// From now on the kernel refuses this system call to the process, as container runtimes do; ends with 77 where it
/// cannot be told to.
inline void refuse_calls(long number, int code) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(code)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    ::_exit(77);
}
#else
#define RAMIE_CAN_REFUSE_CALLS 0
#endif

/// Bytes that depend on their place, so that a lost, doubled or moved byte is noticed.
inline std::byte byte_at(std::uint64_t i) noexcept {
  i *= 0x9e3779b97f4a7c15u;
  return static_cast<std::byte>(i >> 56);
}

}  // namespace ramie::net
