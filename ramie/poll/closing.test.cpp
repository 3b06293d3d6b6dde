// close() while others wait, descriptors that come back under the same number, shortages at accept.
#include <ramie/net/listener.hpp>
#include <ramie/net/ready.hpp>
#include <ramie/net/testing.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

TEST(net_closing, wakes_waiters_in_both_directions) {
  with_workers([] {
    for (int i = 0; i < 100; ++i) {
      auto [a, b] = unix_stream::pair();
      auto reader = spawn([&b] {
        return code_of([&] {
          std::array<std::byte, 1> one;
          b.read_some(one);
        });
      });
      auto writer = spawn([&b] {
        const std::string much(1'000'000, 'x');
        return code_of([&] {
          for (;;) b.write_all(much);
        });
      });
      if (i % 2 == 0) this_fiber::sleep_for(100us);
      b.close();
      EXPECT_EQ(reader.join(), io_errc::closed);
      EXPECT_EQ(writer.join(), io_errc::closed);
      EXPECT_EQ(code_of([&b] { b.write_all("x"); }), io_errc::closed);
      EXPECT_FALSE(b.is_open());
    }
  });
}

TEST(net_closing, wakes_all_who_accept) {
  with_workers([] {
    tcp_listener l{{"127.0.0.1", 0}};
    std::vector<join_handle<std::error_code>> all;
    for (int i = 0; i < 10; ++i) all.push_back(spawn([&] { return code_of([&] { static_cast<void>(l.accept()); }); }));
    this_fiber::sleep_for(1ms);
    l.close();
    for (auto& one : all) EXPECT_EQ(one.join(), io_errc::closed);
  });
}

/// A waiter must never read from a descriptor that was closed and reused.
TEST(net_closing, hands_no_waiter_anothers_descriptor) {
  with_workers([] {
    for (int i = 0; i < 300; ++i) {
      auto old_pair = unix_stream::pair();
      auto reader = spawn([&b = old_pair.second] {
        std::array<std::byte, 8> some;
        const std::size_t n = b.read_some(some);
        return text_of(std::span{some}.first(n));
      });
      if (i % 2 == 0) this_fiber::sleep_for(20us);
      old_pair.second.close();
      auto new_pair = unix_stream::pair();  // takes the number if it is free
      new_pair.first.write_all("secret");
      EXPECT_THROW(reader.join(), io_error);
      std::array<std::byte, 6> six;
      ASSERT_TRUE(new_pair.second.read_exactly(six));
    }
  });
}

TEST(net_closing, a_duplicate_of_a_closed_descriptor_wakes_nobody) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    auto waiter = spawn([&b] {
      return code_of([&] {
        std::array<std::byte, 1> one;
        b.read_some(one);
      });
    });
    this_fiber::sleep_for(1ms);
    const int copy = ::dup(b.native_handle());
    b.close();
    EXPECT_EQ(waiter.join(), io_errc::closed);
    auto [c, d] = unix_stream::pair();  // reuses the record
    a.write_all("x");                   // an event for the duplicate, if it were still in the set
    EXPECT_THROW(with_timeout(2ms,
                              [&d] {
                                std::array<std::byte, 1> one;
                                return d.read_some(one);
                              }),
                 timeout_error);
    ::close(copy);
  });
}

TEST(net_accepting, by_several_fibers_takes_each_connection_once) {
  with_workers([] {
    tcp_listener l{{"127.0.0.1", 0}};
    constexpr int connections = 200;
    std::vector<join_handle<int>> servers;
    for (int i = 0; i < 4; ++i)
      servers.push_back(spawn([&] {
        int taken = 0;
        try {
          for (;; ++taken) {
            tcp_stream s = l.accept();
            s.write_all("hi");
          }
        } catch (const io_error&) {
        }
        return taken;
      }));
    {
      scope s;
      for (int i = 0; i < connections; ++i)
        s.spawn([at = l.local()] {
          tcp_stream c = tcp_stream::connect(at);
          EXPECT_EQ(read_all(c), "hi");
        });
      s.join();
    }
    l.close();
    int all = 0;
    for (auto& one : servers) all += one.join();
    EXPECT_EQ(all, connections);
  });
}

TEST(net_accepting, waits_out_a_shortage_of_descriptors) {
  with_workers_in_a_shortage([] {
    tcp_listener l{{"127.0.0.1", 0}};
    auto client = spawn([at = l.local()] { return tcp_stream::connect(at); });
    tcp_stream connected = client.join();  // in the backlog
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{3, before.rlim_max};  // 0, 1 and 2 are taken, whatever the monitor opens and closes
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    auto server = spawn([&] { return l.accept(); });
    while (l.pauses() < 3) this_fiber::sleep_for(1ms);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    tcp_stream accepted = server.join();
    connected.write_all("nothing lost");
    connected.close();
    EXPECT_EQ(read_all(accepted), "nothing lost");
  });
}

TEST(net_accepting, ends_early_in_a_shortage_if_the_listener_is_closed) {
  with_workers_in_a_shortage([] {
    // First without a shortage: UBSan needs descriptors when it meets a type for the first time.
    tcp_listener other{{"127.0.0.1", 0}};
    other.close();
    EXPECT_EQ(code_of([&] { static_cast<void>(other.accept()); }), io_errc::closed);

    tcp_listener l{{"127.0.0.1", 0}};
    tcp_stream connected = spawn([at = l.local()] { return tcp_stream::connect(at); }).join();
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{3, before.rlim_max};  // 0, 1 and 2 are taken, whatever the monitor opens and closes
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    auto server = spawn([&] { return code_of([&] { static_cast<void>(l.accept()); }); });
    while (l.pauses() < 2) this_fiber::sleep_for(1ms);
    l.close();
    EXPECT_EQ(server.join(), io_errc::closed);
    ::setrlimit(RLIMIT_NOFILE, &before);
  });
}

TEST(net_accepting, at_a_name_leaves_it_to_the_next_listener) {
  with_workers([] {
    const std::string name = std::filesystem::temp_directory_path() / ("ramie_name_" + std::to_string(::getpid()));
    const endpoint at = endpoint::local(name), other = endpoint::local(name + "_other");
    const auto is_served = [](unix_listener& l, const endpoint& there) {
      auto client = spawn([&there] { return unix_stream::connect(there); });
      l.accept().write_all("served");
      unix_stream s = client.join();
      return read_all(s) == "served";
    };
    auto first = std::make_unique<unix_listener>(at);
    EXPECT_TRUE(is_served(*first, at));
    first->close();
    EXPECT_FALSE(std::filesystem::exists(name));
    {
      unix_listener second{at};
      first.reset();  // leaves the file of the second alone
      EXPECT_TRUE(is_served(second, at));
      second = unix_listener{other};
      EXPECT_FALSE(std::filesystem::exists(name));
      EXPECT_TRUE(is_served(second, other));
    }
    EXPECT_FALSE(std::filesystem::exists(name + "_other"));
  });
}

TEST(net_accepting, at_a_name_removes_nothing_but_sockets_that_nobody_listens_at) {
  with_workers([] {
    const scratch_folder folder;
    const std::string path = folder / "name";
    const endpoint at = endpoint::local(path);
    const auto in_use = std::error_code{EADDRINUSE, std::system_category()};
    write_file(path, "precious");
    EXPECT_EQ(code_of([&] { unix_listener{at}; }), in_use);
    EXPECT_EQ(read_file(path), "precious");
    std::filesystem::remove(path);

    std::filesystem::create_symlink(folder / "elsewhere", path);
    EXPECT_EQ(code_of([&] { unix_listener{at}; }), in_use);
    EXPECT_TRUE(std::filesystem::is_symlink(path));
    std::filesystem::remove(path);

    const unix_datagram other{at};
    EXPECT_EQ(code_of([&] { unix_listener{at}; }), in_use);
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_THROW(unix_listener(endpoint{"127.0.0.1", 0}), invalid_argument);
    EXPECT_THROW(unix_listener(endpoint{}), invalid_argument);
  });
}

TEST(net_accepting, at_a_name_is_one_listeners_of_those_that_begin_at_once) {
  with_workers([] {
    const scratch_folder folder;
    const endpoint at = endpoint::local(folder / "name");
    for (int round = 0; round < 20; ++round) {
      const int stale = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      ASSERT_EQ(::bind(stale, at.data(), at.size()), 0);
      ::close(stale);
      std::vector<join_handle<std::unique_ptr<unix_listener>>> all;
      for (int i = 0; i < 4; ++i)
        all.push_back(spawn([&]() -> std::unique_ptr<unix_listener> {
          try {
            return std::make_unique<unix_listener>(at);
          } catch (const io_error& e) {
            EXPECT_EQ(e.code().value(), EADDRINUSE);
            return nullptr;
          }
        }));
      std::vector<std::unique_ptr<unix_listener>> won;
      for (auto& one : all)
        if (auto l = one.join(); l != nullptr) won.push_back(std::move(l));
      ASSERT_EQ(won.size(), 1u);
      auto client = spawn([&] { return unix_stream::connect(at); });
      won[0]->accept().write_all("served");
      unix_stream s = client.join();
      EXPECT_EQ(read_all(s), "served");
    }
  });
}

/// Somebody removed the file, and another listener took the name.
TEST(net_accepting, at_a_name_that_is_anothers_by_now_leaves_the_file) {
  with_workers([] {
    const scratch_folder folder;
    const endpoint at = endpoint::local(folder / "name");
    auto first = std::make_unique<unix_listener>(at);
    std::filesystem::rename(at.address(), folder / "moved");  // so that its inode is not used again
    const unix_listener second{at};
    first.reset();
    EXPECT_TRUE(std::filesystem::exists(at.address()));
  });
}

/// With one worker no thread is within accept while another fiber runs.
TEST(net_accepting, leaves_the_address_at_once_although_fibers_wait) {
  runtime rt{{.workers = 1, .name = "net", .spare_workers = 0}};
  rt.run([] {
    std::optional<tcp_listener> l{std::in_place, endpoint{"127.0.0.1", 0}};
    for (int round = 0; round < 20; ++round) {
      const endpoint at = l->local();
      scope waiting;
      int begun = 0;
      for (int i = 0; i < 3; ++i)
        waiting.spawn([&] {
          ++begun;
          EXPECT_EQ(code_of([&] { static_cast<void>(l->accept()); }), io_errc::closed);
        });
      while (begun != 3) this_fiber::yield();
      l->close();
      EXPECT_EQ(code_of([&] { static_cast<void>(l->local()); }), io_errc::closed);
      tcp_listener next{at};
      waiting.join();
      l.emplace(std::move(next));
    }
  });
}

TEST(net_accepting, at_a_name_is_closed_by_several_at_once) {
  with_workers([] {
    const scratch_folder folder;
    const endpoint at = endpoint::local(folder / "name");
    for (int round = 0; round < 50; ++round) {
      unix_listener l{at};
      scope all;
      for (int i = 0; i < 3; ++i)
        all.spawn([&] {
          l.close();
          try {
            const unix_listener next{at};
            EXPECT_TRUE(std::filesystem::exists(at.address()));
          } catch (const io_error& e) {
            EXPECT_EQ(e.code().value(), EADDRINUSE);  // another one has it
          }
        });
      all.join();
    }
  });
}

TEST(net_foreign_descriptors, are_waited_for_without_being_owned) {
  with_workers([] {
    int both[2];
    ASSERT_EQ(::pipe(both), 0);  // blocking ones, as a library may have them
    auto waiter = spawn([&] {
      wait_readable(both[0]);
      char c = 0;
      return ::read(both[0], &c, 1) == 1 ? c : '?';
    });
    this_fiber::sleep_for(1ms);
    ASSERT_EQ(::write(both[1], "z", 1), 1);
    EXPECT_EQ(waiter.join(), 'z');
    wait_writable(both[1]);
    EXPECT_THROW(with_timeout(1ms, [&] { wait_readable(both[0]); }), timeout_error);
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    const int least = static_cast<int>(std::min<rlim_t>(limit.rlim_cur - 1, 500));
    const int high = ::fcntl(both[0], F_DUPFD, least);  // no other thread is given such a number
    ASSERT_GE(high, least);
    ::close(high);
    ::close(both[0]);
    ::close(both[1]);
    EXPECT_EQ(code_of([&] { wait_readable(high); }).value(), EBADF);
  });
}

TEST(net_descriptors, are_closed_in_programs_that_are_executed) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    auto [r, w] = make_pipe();
    for (const int fd : {a.native_handle(), b.native_handle(), r.native_handle(), w.native_handle()})
      EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  });
}

// ---- listeners that were given
// ---------------------------------------------------------------------------------------

TEST(net_listeners, that_are_adopted_go_on) {
  with_workers([] {
    tcp_listener first{{"127.0.0.1", 0}};
    const endpoint at = first.local();
    tcp_stream before = tcp_stream::connect(at);  // waits in the backlog
    const int fd = ::dup(first.native_handle());
    ASSERT_EQ(::fcntl(fd, F_SETFL, 0), 0);
    tcp_listener second = tcp_listener::adopt(fd);
    EXPECT_NE(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
    first.close();
    EXPECT_EQ(second.local(), at);
    EXPECT_EQ(second.accept().peer(), before.local());
    auto later = spawn([&] { return second.accept(); });
    tcp_stream after = tcp_stream::connect(at);
    EXPECT_EQ(later.join().peer(), after.local());
  });
}

TEST(net_listeners, are_adopted_only_if_they_listen) {
  with_workers([] {
    tcp_listener l{{"127.0.0.1", 0}};
    EXPECT_THROW(static_cast<void>(unix_listener::adopt(l.native_handle())), invalid_argument);
    const tcp_stream c = tcp_stream::connect(l.local());
    EXPECT_THROW(static_cast<void>(tcp_listener::adopt(c.native_handle())), invalid_argument);
    EXPECT_THROW(static_cast<void>(tcp_listener::adopt(-1)), invalid_argument);
    const unix_listener local{endpoint::local("@ramie_adopted_" + std::to_string(::getpid()))};
    EXPECT_THROW(static_cast<void>(tcp_listener::adopt(local.native_handle())), invalid_argument);
    EXPECT_EQ(tcp_stream::connect(l.local()).peer(), l.local());  // it is still ours
  });
}

TEST(net_listeners, that_are_adopted_leave_their_file) {
  with_workers([] {
    const scratch_folder folder;
    const endpoint at = endpoint::local(folder.path() + "/socket");
    std::optional<unix_listener> first{at};
    unix_listener second = unix_listener::adopt(::dup(first->native_handle()));
    first->leave_file();
    first.reset();
    {
      unix_listener third = unix_listener::adopt(::dup(second.native_handle()));
      auto client = spawn([&] { return unix_stream::connect(at); });
      static_cast<void>(third.accept());
      static_cast<void>(client.join());
    }
    auto client = spawn([&] { return unix_stream::connect(at); });
    static_cast<void>(second.accept());
    static_cast<void>(client.join());
  });
}

/// In a process that was started with them; how many there are, or -1 for what is thrown.
int given_to_a_child(const char* count, const char* names, bool is_meant, std::vector<std::string> expected = {}) {
  int both[2];
  EXPECT_EQ(::pipe(both), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::fcntl(both[0], F_DUPFD, 10), 3);
    ::dup2(::fcntl(both[1], F_DUPFD, 10), 4);
    for (int fd = 5; fd < 100; ++fd) ::close(fd);
    ::setenv("LISTEN_PID", std::to_string(::getpid() + (is_meant ? 0 : 1)).c_str(), 1);
    ::setenv("LISTEN_FDS", count, 1);
    if (names != nullptr) ::setenv("LISTEN_FDNAMES", names, 1);
    int n = 100;
    try {
      const std::vector<given_socket> all = given_sockets();
      n = static_cast<int>(all.size());
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].fd != 3 + static_cast<int>(i) || all[i].name != expected.at(i) ||
            ::fcntl(all[i].fd, F_GETFD) != FD_CLOEXEC)
          n = 101;
      if (!given_sockets().empty() || ::getenv("LISTEN_FDS") != nullptr) n = 102;
    } catch (const error&) {
      n = 103;
    } catch (...) {
      n = 104;
    }
    ::_exit(n);
  }
  ::close(both[0]);
  ::close(both[1]);
  int status = 0;
  EXPECT_GT(child, 0);
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status) == 103 ? -1 : WEXITSTATUS(status);
}
TEST(net_listeners, that_a_supervisor_gives_are_found_once) {
  EXPECT_EQ(given_to_a_child("2", nullptr, true, {"unknown", "unknown"}), 2);
  EXPECT_EQ(given_to_a_child("2", "web:log", true, {"web", "log"}), 2);
  EXPECT_EQ(given_to_a_child("1", "", true, {""}), 1);
  EXPECT_EQ(given_to_a_child("0", nullptr, true), 0);
  EXPECT_EQ(given_to_a_child("0", "", true), 0);
  EXPECT_EQ(given_to_a_child("2", nullptr, false), 0);
  EXPECT_EQ(given_to_a_child("3", nullptr, true), -1);  // the third is not open
  for (const char* wrong : {"", "x", "1x", "-1", "2147483648"}) EXPECT_EQ(given_to_a_child(wrong, nullptr, true), -1);
  EXPECT_EQ(given_to_a_child("2", "one", true, {"one", ""}), -1);
}

}  // namespace
}  // namespace ramie::net
