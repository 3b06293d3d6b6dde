// A program of its own: it replaces the system calls that the floors `poll` and `net` make, and lets them fail, each in
// each way and at each place of an exchange over everything that there is. After each failure: what was received is a
// beginning of what was sent, the error says what the kernel said, no descriptor is lost, and nothing waits for ever.
#include <ramie/poll/testing.hpp>

#include <ramie/net/testing.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;
using namespace faults;

// ---- what fails ----------------------------------------------------------------------------------------------------

struct failure {
  call_id call;
  const char* name;
  std::vector<int> fatal;        // the exchange may fail with it
  std::vector<int> transparent;  // it must not
};

#define RAMIE_CALL(name) call_id::name, #name
const std::vector<failure>& failures() {
  static const std::vector<failure> all{
      {RAMIE_CALL(socket), {EMFILE, ENFILE, ENOBUFS, ENOMEM, EACCES, EAFNOSUPPORT}, {}},
      {RAMIE_CALL(socketpair), {EMFILE, ENFILE, ENOMEM}, {}},
      {RAMIE_CALL(pipe2), {EMFILE, ENFILE}, {}},
      {RAMIE_CALL(bind), {EADDRINUSE, EACCES, EADDRNOTAVAIL, ENOMEM}, {}},
      {RAMIE_CALL(listen), {EADDRINUSE, EOPNOTSUPP}, {}},
      {RAMIE_CALL(connect),
       {ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, EADDRNOTAVAIL, EACCES, EPERM, EAGAIN},
       {EINTR}},
      {RAMIE_CALL(accept4),
       {EBADF, EINVAL},
       {EINTR, ECONNABORTED, EPERM, EPROTO, ENETDOWN, EMFILE, ENFILE, ENOBUFS, ENOMEM}},
      {RAMIE_CALL(shutdown), {ENOBUFS}, {}},
      {RAMIE_CALL(recv), {ECONNRESET, ENOMEM, ETIMEDOUT}, {EINTR}},
      {RAMIE_CALL(send), {ECONNRESET, EPIPE, ENOBUFS, ENOMEM}, {EINTR}},
      {RAMIE_CALL(recvmsg), {ECONNREFUSED, ENOMEM}, {EINTR}},
      {RAMIE_CALL(sendmsg), {ECONNREFUSED, ENOBUFS, ENOMEM, EMSGSIZE, EPIPE, ETOOMANYREFS}, {EINTR}},
      {RAMIE_CALL(read), {EIO, ENOMEM}, {EINTR}},
      {RAMIE_CALL(writev), {EPIPE, EIO, ENOSPC}, {EINTR}},
      {RAMIE_CALL(setsockopt), {ENOMEM, EINVAL}, {}},
      {RAMIE_CALL(getsockopt), {ENOBUFS}, {}},
      {RAMIE_CALL(getsockname), {ENOBUFS}, {}},
      {RAMIE_CALL(getpeername), {ENOBUFS, ENOTCONN}, {}},
      {RAMIE_CALL(fcntl), {EMFILE, EBADF}, {}},
      {RAMIE_CALL(poll), {}, {EINTR, ENOMEM}},
      {RAMIE_CALL(close), {}, {EINTR, EIO, ENOSPC}},
      {RAMIE_CALL(epoll_create1), {EMFILE, ENFILE, ENOMEM}, {}},
      {RAMIE_CALL(epoll_ctl), {ENOMEM, ENOSPC}, {}},
      {RAMIE_CALL(epoll_wait), {}, {EINTR}},
      {RAMIE_CALL(epoll_pwait2), {}, {EINTR, ENOSYS, EPERM}},
      {RAMIE_CALL(eventfd), {EMFILE, ENFILE, ENOMEM}, {}},
      {RAMIE_CALL(inotify_init1), {EMFILE, ENFILE, ENOMEM}, {}},
      {RAMIE_CALL(inotify_add_watch), {ENOSPC, EACCES, ENOMEM}, {}},
      {RAMIE_CALL(inotify_rm_watch), {}, {EINVAL}},
      {RAMIE_CALL(open), {EACCES, EMFILE, ENFILE, ENOSPC, EDQUOT}, {EINTR}},
      {RAMIE_CALL(preadv2), {EIO, EISDIR}, {EINTR, EAGAIN, EOPNOTSUPP, ENOSYS}},
      {RAMIE_CALL(pwritev2), {EIO, ENOSPC, EDQUOT, EFBIG}, {EINTR, EAGAIN, EOPNOTSUPP, ENOSYS}},
      {RAMIE_CALL(preadv), {EIO}, {EINTR}},
      {RAMIE_CALL(pwritev), {EIO, ENOSPC}, {EINTR}},
      {RAMIE_CALL(sendfile), {EIO, EPIPE, ENOMEM}, {EINTR}},
      {RAMIE_CALL(fsync), {EIO, ENOSPC, EDQUOT}, {EINTR}},
      {RAMIE_CALL(fdatasync), {EIO, ENOSPC}, {EINTR}},
      {RAMIE_CALL(ftruncate), {EFBIG, EIO}, {EINTR}},
      {RAMIE_CALL(copy_file_range), {EIO, ENOSPC}, {EINTR, EXDEV, EOPNOTSUPP, ENOSYS}},
      {RAMIE_CALL(pread), {EIO}, {EINTR}},
      {RAMIE_CALL(pwrite), {EIO, ENOSPC}, {EINTR}},
      {RAMIE_CALL(fstat), {EIO, ENOMEM}, {}},
      {RAMIE_CALL(rename), {ENOSPC, EACCES, EXDEV}, {}},
      {RAMIE_CALL(waitid), {}, {EINTR}},
      {RAMIE_CALL(pidfd_open), {EMFILE, ENFILE, ENOMEM}, {}},
      {RAMIE_CALL(pidfd_send_signal), {EPERM}, {}},
      {RAMIE_CALL(io_uring_setup), {}, {EPERM, ENOSYS, ENOMEM, EINVAL, EMFILE}},
      {RAMIE_CALL(io_uring_enter), {}, {EINTR, EAGAIN, EBUSY}},
      {RAMIE_CALL(sigaction), {EINVAL}, {}},
      {RAMIE_CALL(posix_spawnp), {ENOENT, EAGAIN, ENOMEM}, {}},
      {RAMIE_CALL(write), {EIO, ENOSPC, EDQUOT, EFBIG}, {EINTR}},
      {RAMIE_CALL(mmap), {}, {EAGAIN, ENOMEM}},
      {RAMIE_CALL(getaddrinfo), {EAI_AGAIN, EAI_FAIL, EAI_MEMORY, EAI_NONAME, EMFILE}, {}},
  };
  return all;
}

// ---- the exchange --------------------------------------------------------------------------------------------------

/// What failed in one run, and what is wrong with that.
struct outcome {
  std::vector<std::error_code> failed;
  std::vector<std::string> wrong;
};

class exchange {
 public:
  explicit exchange(std::string folder) : folder_{std::move(folder)} {}

  outcome run() {
    runtime rt{{.workers = 2, .name = "faults", .spare_workers = 0}};
    try {
      rt.run([&] {
        with_timeout(60s, [&] {  // an end to a test that has failed already
          attempt([&] { over_tcp(); });
          attempt([&] { over_local_sockets(); });
          attempt([&] { with_messages(); });
          attempt([&] { with_files(); });
          attempt([&] { with_a_watch(); });
          attempt([&] { with_a_child(); });
          attempt([&] { with_foreign_descriptors(); });
          attempt([&] { with_signals(); });
          attempt([&] { with_names(); });
          attempt([&] { with_an_actor(); });
          attempt([&] { with_an_actor_of_datagrams(); });
          attempt([&] { with_an_actor_of_a_listener(); });
        });
      });
    } catch (const std::exception& e) {
      wrong(std::string{"ended by "} + e.what());
    }
    return std::move(found_);
  }

 private:
  template <class F>
  void attempt(F f) {
    try {
      f();
    } catch (const io_error& e) {
      const std::lock_guard guard{lock_};
      found_.failed.push_back(e.code());
    }
  }
  void wrong(std::string what) {
    const std::lock_guard guard{lock_};
    found_.wrong.push_back(std::move(what));
  }
  void check_beginning(const std::string& got, std::string_view sent, const char* where) {
    if (!sent.starts_with(got)) wrong(std::string{where} + ": received what was not sent");
  }

  void over_tcp() {
    tcp_listener l{{"127.0.0.1", 0}};
    scope both;
    const endpoint at = l.local();
    both.spawn([&] {
      attempt([&] {
        struct closing {
          tcp_listener& l;
          ~closing() { l.close(); }
        } afterwards{l};
        tcp_stream s = l.accept();
        static_cast<void>(s.peer());
        std::string got;
        std::array<std::byte, 300> part;
        while (const std::size_t n = s.read_some(part)) got += text_of(std::span{part}.first(n));
        check_beginning(got, much, "tcp server");
        s.write_all(much);
        s.shutdown_write();
      });
    });
    both.spawn([&] {
      attempt([&] {
        struct closing {
          tcp_listener& l;
          bool done = false;
          ~closing() {
            if (!done) l.close();
          }
        } unless{l};
        tcp_stream c = tcp_stream::connect(at);
        const std::string head = much.substr(0, 200), rest = much.substr(200);
        const iovec pieces[] = {{const_cast<char*>(head.data()), head.size()},
                                {const_cast<char*>(rest.data()), rest.size()}};
        c.write_all(pieces);
        c.shutdown_write();
        unless.done = true;
        check_beginning(read_all(c), much, "tcp client");
      });
    });
    both.join();
  }

  void over_local_sockets() {
    auto [a, b] = unix_stream::pair();
    auto [r, w] = make_pipe();
    scope all;
    all.spawn([&] {
      attempt([&] {
        const int fd = w.native_handle();
        a.send_descriptors(std::span{&fd, 1}, bytes_of("fd"));
        w.write_all(much);
      });
      w.close();
      a.close();
    });
    all.spawn([&] {
      attempt([&] {
        std::array<int, 2> fds{-1, -1};
        std::array<std::byte, 10> with;
        const auto [bytes, count] = b.receive_descriptors(fds, with);
        for (std::size_t i = 0; i < count; ++i) ::close(fds[i]);
        if (bytes != 0) b.wait_readable();
      });
      b.close();  // with it goes a descriptor that was not taken
      attempt([&] { check_beginning(read_all(r), much, "pipe"); });
      r.close();
    });
    all.join();
  }

  void with_messages() {
    udp_socket a{{"127.0.0.1", 0}}, b{{"127.0.0.1", 0}};
    scope both;
    const endpoint to = b.local();
    both.spawn([&] {
      bool sent = false;
      attempt([&] {
        a.send_to(to, bytes_of("ping"));
        sent = true;
      });
      if (!sent) b.close();
    });
    both.spawn([&] {
      attempt([&] {
        std::array<std::byte, 10> some;
        const auto got = b.receive_from(some);
        if (text_of(std::span{some}.first(got.size)) != "ping") wrong("a message was changed");
      });
    });
    both.join();
  }

  void with_files() {
    const std::string name = folder_ + "/file", copy = folder_ + "/copy";
    file f = file::create(name);
    f.write_at(0, bytes_of(much));
    f.sync();
    std::vector<std::byte> back(much.size() + 10);
    if (f.read_at(0, back) != much.size() || text_of(std::span{back}.first(much.size())) != much)
      wrong("a file was changed");
    file c = file::create(copy);
    if (c.copy_from(f, 0, 0, much.size()) != much.size()) wrong("not all was copied");
    if (c.size() != much.size()) wrong("the copy is too short");
    auto [r, w] = make_pipe();
    if (f.send_to(w, 0, 100) != 100) wrong("not all was sent");
    w.close();
    if (read_all(r) != much.substr(0, 100)) wrong("what was sent was changed");
    c.resize(10);
    c.sync(true);
    write_file(folder_ + "/whole", much);
    if (read_file(folder_ + "/whole") != much) wrong("a file that was written whole was changed");
  }

  void with_a_watch() {
    watch w;
    w.add(folder_);
    const int fd = static_cast<int>(::creat((folder_ + "/new").c_str(), 0600));
    ::close(fd);
    static_cast<void>(w.next());
    w.remove(folder_);
  }

  void with_a_child() {
    const child_output out = run_child({"cat"}, "through a child");
    check_beginning(out.out, "through a child", "child");  // all of it, but where its input was cut off
    child sleeps{{"sleep", "1000"}};
    sleeps.kill();
    static_cast<void>(sleeps.wait());
  }

  void with_foreign_descriptors() {
    int both[2];
    if (::pipe(both) != 0) return;
    struct closing {
      int* both;
      ~closing() {
        ::close(both[0]);
        ::close(both[1]);
      }
    } afterwards{both};
    wait_writable(both[1]);
    if (::write(both[1], "x", 1) != 1) wrong("a pipe without room");
    wait_readable(both[0]);
  }

  void with_signals() {
    signals s{SIGUSR1};
    ::kill(::getpid(), SIGUSR1);
    if (s.wait() != SIGUSR1) wrong("another signal");
  }

  void with_names() {
    for (const endpoint& e : resolve("127.0.0.1", "80"))
      if (e != endpoint{"127.0.0.1", 80}) wrong("another address");
    if (resolve("localhost", "80").empty()) wrong("no address, and no error");
  }

  class collector : public actor<collector> {
   public:
    collector(unix_stream s, promise<std::string> p) : peer_{std::move(s), self()}, p_{std::move(p)} {
      peer_.activate(active_stream<unix_stream>::always);
    }
    void on(const received& m) { got_ += m.text(); }
    void on(ended) {
      p_.set_value(got_);
      stop();
    }

   private:
    active_stream<unix_stream> peer_;
    promise<std::string> p_;
    std::string got_;
  };
  void with_an_actor() {
    auto [a, b] = unix_stream::pair();
    promise<std::string> p;
    auto got = p.get_future();
    auto c = spawn_actor<collector>(std::move(b), std::move(p));
    attempt([&] { a.write_all(much); });
    a.close();
    const exit_reason why = c.join();
    if (why.kind() == exit_kind::failed) {
      attempt([&] { std::rethrow_exception(why.exception()); });
      return;
    }
    check_beginning(got.get(), much, "actor");
  }

  class hearer : public actor<hearer> {
   public:
    hearer(unix_datagram s, promise<std::string> p) : socket_{std::move(s), self()}, p_{std::move(p)} {
      socket_.activate(socket_.always);
    }
    void on(const datagram& m) { end(std::string{m.text()}); }
    void on(receive_failed) { end(""); }
    void on(ended) { end(""); }

   private:
    void end(std::string heard) {
      p_.set_value(std::move(heard));
      stop();
    }
    active_socket<unix_datagram> socket_;
    promise<std::string> p_;
  };
  void with_an_actor_of_datagrams() {
    auto [a, b] = unix_datagram::pair();
    promise<std::string> p;
    auto got = p.get_future();
    auto h = spawn_actor<hearer>(std::move(b), std::move(p));
    bool sent = false;
    attempt([&] {
      a.send(bytes_of("ping"));
      sent = true;
    });
    if (!sent) h.stop();
    const exit_reason why = h.join();
    if (why.kind() == exit_kind::failed) attempt([&] { std::rethrow_exception(why.exception()); });
    else if (sent) check_beginning(got.get(), "ping", "actor of datagrams");
  }

  class door : public actor<door> {
   public:
    explicit door(tcp_listener l) : listener_{std::move(l), self()} { listener_.activate(); }
    void on(const accepted<tcp_stream>&) { stop(); }
    void on(ended) { stop(); }

   private:
    active_listener<tcp_listener> listener_;
  };
  void with_an_actor_of_a_listener() {
    tcp_listener l{{"127.0.0.1", 0}};
    const endpoint at = l.local();
    auto d = spawn_actor<door>(std::move(l));
    bool connected = false;
    attempt([&] {
      tcp_stream c = tcp_stream::connect(at);
      connected = true;
      if (read_all(c) != "") wrong("an actor wrote what it did not");
    });
    if (!connected) d.stop();
    const exit_reason why = d.join();
    if (why.kind() == exit_kind::failed) attempt([&] { std::rethrow_exception(why.exception()); });
  }

  const std::string much = [] {
    std::string all(700, '\0');
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(byte_at(i));
    return all;
  }();
  std::string folder_;
  std::mutex lock_;
  outcome found_;
};

class net_faults : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "ramie_faults.XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    ::signal(SIGUSR1, SIG_IGN);  // one that comes after the exchange has failed
    run(mode::off);              // what is made once is there
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static int open_descriptors() {
    int n = 0;
    DIR* const d = ::opendir("/proc/self/fd");
    while (::readdir(d) != nullptr) ++n;
    ::closedir(d);
    return n;
  }

  outcome run(mode m) {
    for (const auto& entry : std::filesystem::directory_iterator{folder_}) std::filesystem::remove(entry);
    for (auto& n : made) n.store(0, std::memory_order_relaxed);
    exchange e{folder_};
    now.store(m, std::memory_order_release);
    outcome o = e.run();
    now.store(mode::off, std::memory_order_release);
    return o;
  }

  static std::string text(const outcome& o) {
    std::string all;
    for (const auto& w : o.wrong) all += "wrong: " + w + "; ";
    for (const auto& c : o.failed) all += "failed: " + c.message() + "; ";
    return all;
  }

  std::string folder_;
};

TEST_F(net_faults, none) {
  const outcome o = run(mode::count);
  EXPECT_EQ(text(o), "");
  // Calls that are made in no run are faulted in none.
  for (const failure& f : failures()) {
    const bool rare = f.call == call_id::preadv || f.call == call_id::pwritev || f.call == call_id::pread ||
                      f.call == call_id::pwrite || f.call == call_id::fdatasync || f.call == call_id::io_uring_setup ||
                      f.call == call_id::io_uring_enter || f.call == call_id::epoll_pwait2 ||
                      f.call == call_id::epoll_wait || f.call == call_id::mmap;
    if (rare) continue;
    EXPECT_GT(made[static_cast<std::size_t>(f.call)].load(), 0) << f.name << " is not called";
  }
}

TEST_F(net_faults, short_counts_change_nothing) { EXPECT_EQ(text(run(mode::all_short)), ""); }

TEST_F(net_faults, a_storm_of_interruptions_changes_nothing) { EXPECT_EQ(text(run(mode::storm)), ""); }

TEST_F(net_faults, of_each_call_lose_nothing) {
  static_cast<void>(run(mode::count));
  std::array<int, calls> usual{};
  for (std::size_t i = 0; i < calls; ++i) usual[i] = made[i].load();
  const int places_most = RAMIE_TSAN || RAMIE_ASAN ? 3 : 12;
  const int before = open_descriptors();
  const auto try_one = [&](const failure& f, int code, int number, bool may_fail) {
    SCOPED_TRACE(std::string{f.name} + " fails with " + (code < 0 ? ::gai_strerror(code) : ::strerrorname_np(code)) +
                 " the time " + std::to_string(number));
    victim.store(f.call);
    victim_code.store(code);
    victim_number.store(number);
    const outcome o = run(mode::one_fails);
    if (may_fail && o.wrong.empty()) {
      for (const std::error_code& c : o.failed) {
        // What one side gets because the other one has failed.
        const bool follows = c == io_errc::closed || c == io_errc::unexpected_end || c.value() == ECONNRESET ||
                             c.value() == EPIPE || c.value() == ECONNREFUSED || c.value() == ENOTCONN;
        EXPECT_TRUE(c.value() == code || follows) << text(o);
      }
    } else {
      EXPECT_EQ(text(o), "");
    }
    EXPECT_EQ(open_descriptors(), before);
    siginfo_t left{};
    EXPECT_EQ(::waitid(P_ALL, 0, &left, WEXITED | WNOHANG | WNOWAIT), -1) << "a child is left";
  };
  for (const failure& f : failures()) {
    const int n = std::min(usual[static_cast<std::size_t>(f.call)], places_most);
    for (int i = 0; i < n; ++i) {
      // All codes at the first places, and one at each of the others.
      const auto some = [&](const std::vector<int>& codes, bool may_fail) {
        for (std::size_t k = 0; k < codes.size(); ++k)
          if (i < 2 || static_cast<std::size_t>(i) % codes.size() == k) try_one(f, codes[k], i, may_fail);
      };
      some(f.fatal, true);
      some(f.transparent, false);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace ramie::net
