#include <ramie/net/testing.hpp>
#include <ramie/redis.hpp>

#include <filesystem>
#include <memory>

namespace ramie::redis {
namespace {

using namespace std::chrono_literals;

/// A Redis server of the tests' own, on a local socket.
class scratch_server {
 public:
  [[nodiscard]] static std::unique_ptr<scratch_server> start() {
    try {
      return std::make_unique<scratch_server>();
    } catch (const net::io_error& e) {
      if (e.code() == std::errc::no_such_file_or_directory) return nullptr;
      throw;
    }
  }
  scratch_server() { start_again(); }
  scratch_server(const scratch_server&) = delete;
  scratch_server& operator=(const scratch_server&) = delete;
  ~scratch_server() { stop(); }
  [[nodiscard]] std::string where() const { return folder_ / "socket"; }
  void pause() { server_.kill(SIGSTOP); }
  void go_on() { server_.kill(SIGCONT); }
  void stop() {
    server_.kill(SIGKILL);
    server_.wait();
  }
  void start_again() {
    std::filesystem::remove(where());
    server_ =
        net::child{{"redis-server", "--port", "0", "--unixsocket", where(), "--save", "", "--dir", folder_.path()},
                   {.in = net::child_io::null, .out = net::child_io::null, .err = net::child_io::null}};
    for (;;) {
      try {
        const connection c{{.where = where()}};
        return;
      } catch (const connection_error&) {
        this_fiber::sleep_for(10ms);
      }
    }
  }

 private:
  net::scratch_folder folder_;
  net::child server_;
};

using servers = net::shared_server<scratch_server>;
const ::testing::Environment* const shared = servers::add();

class with_redis : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!servers::get()) GTEST_SKIP() << "redis-server is not installed (Debian: redis-server)";
    connection{{.where = where()}}.command("flushall");
  }
  static std::string where() { return servers::get()->where(); }
};
class redis_connection : public with_redis {};
class redis_client : public with_redis {};

TEST_F(redis_connection, gives_replies_of_all_kinds) {
  net::with_workers([] {
    connection c{{.where = where()}};
    const std::string bytes{"a\r\n\0b", 5};
    EXPECT_EQ(c.command("set", "k", bytes).text(), "OK");
    EXPECT_EQ(c.command("get", "k").text(), bytes);
    EXPECT_TRUE(c.command("get", "none").is_null());
    EXPECT_EQ(c.command("get", "none").maybe_text(), std::nullopt);
    EXPECT_EQ(c.command("incrby", "n", -5).integer(), -5);
    EXPECT_EQ(c.command("get", "n").integer(), -5);
    EXPECT_EQ(c.command("incrbyfloat", "f", 0.1).text(), "0.1");
    c.command("rpush", "l", 1, 2, 3);
    EXPECT_EQ(c.command("lrange", "l", 0, -1).array().size(), 3u);
    EXPECT_THROW(static_cast<void>(c.command("get", "k").integer()), invalid_argument);
    EXPECT_THROW(c.command("incr", "k"), command_error);
    EXPECT_THROW(c.command("no such command"), command_error);
    EXPECT_EQ(c.command("ping").text(), "PONG");
    c.command("del", "n", "f", "l");
  });
}

TEST_F(redis_connection, sends_several_commands_at_once) {
  run([] {
    connection c{{.where = where()}};
    commands all;
    all.add("multi");
    all.add("set", "a", 1);
    all.add("incr", "a");
    all.add("exec");
    all.add("nonsense");
    const std::vector<reply> replies = c.run(all);
    ASSERT_EQ(replies.size(), 5u);
    EXPECT_EQ(replies[3].array()[1].integer(), 2);
    EXPECT_EQ(replies[4].is(), reply::kind::error);
    // More than all buffers hold.
    commands large;
    for (int i = 0; i < 100; ++i) large.add("echo", std::string(100'000, 'x'));
    EXPECT_EQ(c.run(large).size(), 100u);
  });
}

TEST_F(redis_connection, subscribes) {
  net::with_workers([] {
    connection c{{.where = where()}}, other{{.where = where()}};
    c.subscribe("news");
    c.psubscribe("w*");
    EXPECT_THROW(with_timeout(1ms, [&] { static_cast<void>(c.next_message()); }), timeout_error);
    auto f = spawn([&] { return c.next_message(); });
    EXPECT_EQ(other.command("publish", "news", "hello").integer(), 1);
    const message m = f.join();
    EXPECT_EQ(m.channel, "news");
    EXPECT_EQ(m.payload, "hello");
    other.command("publish", "weather", "rain");
    c.unsubscribe("news");  // keeps what came before the confirmation
    const message w = c.next_message();
    EXPECT_EQ(w.pattern, "w*");
    EXPECT_EQ(w.payload, "rain");
    EXPECT_EQ(other.command("publish", "news", "nobody").integer(), 0);
  });
}

TEST_F(redis_connection, is_closed_by_a_command_that_is_cut_short) {
  run([] {
    connection c{{.where = where()}};
    EXPECT_THROW(with_timeout(5ms, [&] { c.command("blpop", "empty", 0); }), timeout_error);
    EXPECT_FALSE(c.is_open());
    EXPECT_THROW(c.command("ping"), connection_error);
    EXPECT_THROW((connection{{.where = "/no/such/socket"}}), connection_error);
    EXPECT_THROW((connection{{.where = "nonsense"}}), invalid_argument);
    EXPECT_THROW((connection{{.where = where(), .password = "wrong"}}), command_error);
    EXPECT_THROW((connection{{.where = where(), .database = 9999}}), command_error);
  });
}

TEST_F(redis_connection, refuses_what_is_not_redis) {
  run([] {
    net::tcp_listener l{{"127.0.0.1", 0}};
    auto server = spawn([&] {
      for (const std::string& says :
           {std::string{"HTTP/1.1 400 Bad Request\r\n\r\n"}, "$2000000000\r\n" + std::string(3'000'000, 'x')}) {
        net::tcp_stream s = l.accept();
        std::array<std::byte, 100> asked;
        static_cast<void>(s.read_some(asked));
        try {
          s.write_all(says);
          static_cast<void>(s.read_some(asked));
        } catch (const net::io_error&) {
        }
      }
    });
    for (int i = 0; i < 2; ++i) {
      connection c{{.where = l.local().to_string(), .reply_most = 1 << 20}};
      EXPECT_THROW(c.command("ping"), connection_error);
    }
    server.join();
  });
}

TEST_F(redis_client, is_shared_by_many_fibers) {
  net::with_workers([] {
    client db{{.where = where()}};
    scope all;
    for (int i = 0; i < 500; ++i)
      all.spawn([&db, i] {
        EXPECT_EQ(db.command("echo", i).integer(), i);
        db.command("incr", "shared");
      });
    all.join();
    EXPECT_EQ(db.command("getdel", "shared").integer(), 500);
    const client_statistics s = db.statistics();
    EXPECT_EQ(s.connected, 1u);
    EXPECT_EQ(s.commands, 1001u);
    EXPECT_LE(s.writes, s.commands);
  });
}

TEST_F(redis_client, is_not_hurt_by_a_fiber_that_gives_up) {
  run([] {
    client db{{.where = where()}};
    db.command("ping");
    servers::get()->pause();
    std::vector<join_handle<void>> all;
    all.reserve(20);
    for (int i = 0; i < 10; ++i)
      all.push_back(
          spawn([&db] { EXPECT_THROW(with_timeout(1ms, [&] { db.command("echo", "wrong"); }), timeout_error); }));
    for (auto& f : all) f.join();
    auto stopped = spawn([&] { db.command("echo", "wrong"); });
    stopped.request_stop();
    EXPECT_THROW(stopped.join(), cancelled);
    servers::get()->go_on();
    EXPECT_EQ(db.command("echo", "right").text(), "right");
    EXPECT_EQ(db.statistics().connected, 1u);
  });
}

TEST_F(redis_client, connects_again) {
  run([] {
    client db{{.where = where()}};
    EXPECT_EQ(db.command("ping").text(), "PONG");
    servers::get()->stop();
    EXPECT_THROW(db.command("ping"), connection_error);
    EXPECT_THROW(db.command("ping"), connection_error);
    servers::get()->start_again();
    EXPECT_EQ(db.command("ping").text(), "PONG");
    // What is under way when the connection ends fails, all of it.
    servers::get()->pause();
    const std::uint64_t before = db.statistics().commands;
    std::vector<join_handle<void>> all;
    all.reserve(20);
    for (int i = 0; i < 20; ++i) all.push_back(spawn([&db] { EXPECT_THROW(db.command("ping"), connection_error); }));
    while (db.statistics().commands < before + 20) this_fiber::sleep_for(1ms);
    servers::get()->stop();
    for (auto& f : all) f.join();
    servers::get()->start_again();
    EXPECT_EQ(db.command("ping").text(), "PONG");
  });
}

}  // namespace
}  // namespace ramie::redis
