#include "testing.hpp"

#include <algorithm>
#include <map>

namespace ramie::postgres {
namespace {

using namespace std::chrono_literals;

const ::testing::Environment* const shared = servers::add();

class postgres_connection : public with_postgres {};

std::string state_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const query_error& e) {
    return e.sqlstate();
  }
  return "none";
}

TEST_F(postgres_connection, gives_values_and_takes_them) {
  net::with_workers([] {
    connection c = connect();
    const result r = c.query("select $1::int + 1 as n, $2::text as t, $3::float8 as d, $4::bool, $5::text, $6::bytea",
                             41, "a 'quoted' text", 0.25, true, std::nullopt, std::as_bytes(std::span{"\0\xff", 2}));
    ASSERT_EQ(r.size(), 1u);
    EXPECT_EQ(r[0].get<int>("n"), 42);
    EXPECT_EQ(r[0].get<std::string>("t"), "a 'quoted' text");
    EXPECT_EQ(r[0].get<double>("d"), 0.25);
    EXPECT_TRUE(r[0].get<bool>(3));
    EXPECT_EQ(r[0].get<std::optional<std::string>>(4), std::nullopt);
    EXPECT_THROW(static_cast<void>(r[0].get<std::string>(4)), invalid_argument);
    EXPECT_EQ(r[0].get<std::vector<std::byte>>(5), (std::vector{std::byte{0}, std::byte{255}}));
    EXPECT_THROW(static_cast<void>(r[0].get<int>("t")), invalid_argument);
    EXPECT_THROW(static_cast<void>(r[0].get<int>("no_such_column")), invalid_argument);
    EXPECT_THROW(static_cast<void>(r[1].get<int>(0)), invalid_argument);
    EXPECT_THROW(parameter(std::string_view{"a\0b", 3}), invalid_argument);
    int sum = 0;
    for (const row each : c.query("select generate_series(1, 1000)")) sum += each.get<int>(0);
    EXPECT_EQ(sum, 500500);
  });
}

TEST_F(postgres_connection, tells_what_the_server_refused_and_goes_on) {
  run([] {
    connection c = connect();
    EXPECT_EQ(state_of([&] { static_cast<void>(c.query("select 1/0")); }), "22012");
    EXPECT_EQ(state_of([&] { static_cast<void>(c.query("select nonsense")); }), "42703");
    EXPECT_EQ(state_of([&] { static_cast<void>(c.query("select $1::int", "x")); }), "22P02");
    EXPECT_EQ(c.query("select 1")[0].get<int>(0), 1);
  });
}

TEST_F(postgres_connection, works_on_a_plain_thread) {
  connection c = connect();
  EXPECT_EQ(c.query("select 5")[0].get<int>(0), 5);
  EXPECT_THROW(with_timeout(20ms, [&] { static_cast<void>(c.query("select pg_sleep(600)")); }), timeout_error);
  EXPECT_EQ(c.query("select 6")[0].get<int>(0), 6);
}

TEST_F(postgres_connection, prepares_a_statement_once) {
  run([] {
    connection c = connect();
    const prepared twice{"select 2 * $1::int"};
    for (int i = 0; i < 5; ++i) EXPECT_EQ(c.query(twice, i)[0].get<int>(0), 2 * i);
    const prepared broken{"select no_such_column"};
    for (int i = 0; i < 2; ++i) EXPECT_EQ(state_of([&] { static_cast<void>(c.query(broken)); }), "42703");
    EXPECT_EQ(c.query("select count(*) from pg_prepared_statements")[0].get<int>(0), 1);
  });
}

TEST_F(postgres_connection, carries_out_a_batch_whole_or_not_at_all) {
  run([] {
    connection c = connect();
    static_cast<void>(c.script("create temp table fruit (name text primary key, price int)"));
    const prepared insert{"insert into fruit values ($1, $2)"};
    batch good;
    good.add(insert, "plum", 3);
    good.add(insert, "apple", 2);
    good.add("select sum(price) from fruit");
    const std::vector<result> results = c.run(good);
    ASSERT_EQ(results.size(), 3u);
    EXPECT_EQ(results[1].affected(), 1u);
    EXPECT_EQ(results[2][0].get<int>(0), 5);
    batch bad;
    bad.add(insert, "pear", 4);
    bad.add(insert, "plum", 4);
    bad.add(prepared{"select 1"});
    EXPECT_EQ(state_of([&] { static_cast<void>(c.run(bad)); }), "23505");
    EXPECT_EQ(c.query("select count(*) from fruit")[0].get<int>(0), 2);
    EXPECT_EQ(c.run(good = {}).size(), 0u);
    // Of each round only what was prepared is known as such.
    EXPECT_EQ(c.query(prepared{"select 1"})[0].get<int>(0), 1);
    // More than all buffers hold, in both directions.
    batch large;
    const std::string text(100'000, 'x');
    for (int i = 0; i < 100; ++i) large.add(prepared{"select $1::text"}, text);
    EXPECT_EQ(c.run(large).back()[0].get<std::string_view>(0), text);
  });
}

TEST_F(postgres_connection, commits_a_transaction_or_rolls_it_back) {
  run([] {
    connection c = connect();
    static_cast<void>(c.script("create temp table t (n int)"));
    EXPECT_EQ(c.transaction([](connection& x) { return x.query("insert into t values (1)").affected(); }), 1u);
    EXPECT_THROW(c.transaction([](connection& x) {
      static_cast<void>(x.query("insert into t values (2)"));
      throw std::runtime_error{"no"};
    }),
                 std::runtime_error);
    EXPECT_FALSE(c.in_transaction());
    // A failure that is swallowed does not become a commit of nothing.
    EXPECT_EQ(state_of([&] {
                c.transaction([](connection& x) {
                  static_cast<void>(x.query("insert into t values (3)"));
                  static_cast<void>(state_of([&] { static_cast<void>(x.query("select 1/0")); }));
                });
              }),
              "25P02");
    EXPECT_EQ(c.query("select sum(n) from t")[0].get<int>(0), 1);
  });
}

TEST_F(postgres_connection, cancels_at_the_server_what_a_deadline_ends) {
  net::with_workers([] {
    connection c = connect();
    connection other = connect();
    const int process = c.server_process();
    EXPECT_THROW(with_timeout(20ms, [&] { static_cast<void>(c.query("select pg_sleep(600)")); }), timeout_error);
    // It has stopped by then, and the connection is as good as before.
    EXPECT_EQ(other.query("select state from pg_stat_activity where pid = $1", process)[0].get<std::string>(0), "idle");
    EXPECT_EQ(c.server_process(), process);
    EXPECT_EQ(c.query("select 7")[0].get<int>(0), 7);
    // In a transaction, the rest of it is rolled back.
    EXPECT_THROW(with_timeout(20ms, [&] { c.transaction([](connection& x) { x.query("select pg_sleep(600)"); }); }),
                 timeout_error);
    EXPECT_FALSE(c.in_transaction());
    batch b;
    b.add("select 1");
    b.add("select pg_sleep(600)");
    b.add("select 2");
    EXPECT_THROW(with_timeout(20ms, [&] { static_cast<void>(c.run(b)); }), timeout_error);
    EXPECT_EQ(c.query("select 8")[0].get<int>(0), 8);
    EXPECT_EQ(c.server_process(), process);
  });
}

/// Wherever the deadline falls: in BEGIN, in the statement, in COMMIT.
TEST_F(postgres_connection, leaves_no_transaction_open_that_a_deadline_ends) {
  net::with_workers([] {
    connection c = connect();
    c.query("create temp table t (n int)");
    const int process = c.server_process();
    const auto insert = [&] { c.transaction([](connection& x) { x.query("insert into t values (1)"); }); };
    int done = 0;
    for (int i = 0; i < 60; ++i) {
      try {
        with_timeout(i * 20us, insert);
        ++done;
      } catch (const timeout_error&) {
      }
      ASSERT_FALSE(c.in_transaction()) << i;
    }
    insert();
    EXPECT_GT(c.query("select count(*) from t")[0].get<int>(0), done);
    EXPECT_EQ(c.server_process(), process);
  });
}

TEST_F(postgres_connection, never_cancels_the_next_query) {
  run([] {
    connection c = connect();
    int ended = 0;
    for (int i = 0; i < 300; ++i) {
      try {
        // Around the moment at which it ends by itself.
        with_timeout(std::chrono::microseconds{900 + i * 2},
                     [&] { static_cast<void>(c.query("select pg_sleep(0.001)")); });
      } catch (const timeout_error&) {
        ++ended;
      }
      EXPECT_EQ(c.query("select $1::int", i)[0].get<int>(0), i);
    }
    EXPECT_GT(ended, 0);
  });
}

TEST_F(postgres_connection, is_stopped_with_its_fiber) {
  run([] {
    connection c = connect();
    for (int i = 0; i < 20; ++i) {
      event begun;
      auto f = spawn([&] {
        begun.set();
        static_cast<void>(c.query("select pg_sleep(600)"));
      });
      // At any moment: the request to cancel may be there before the query is.
      begun.wait();
      f.request_stop();
      EXPECT_THROW(f.join(), cancelled);
      EXPECT_EQ(c.query("select 9")[0].get<int>(0), 9);
    }
  });
}

TEST_F(postgres_connection, is_for_one_fiber_at_a_time) {
  run([] {
    connection c = connect();
    auto f = spawn([&] { static_cast<void>(c.query("select pg_sleep(600)")); });
    connection other = connect();
    while (
        other.query("select count(*) from pg_stat_activity where pid = $1 and state = 'active'", c.server_process())[0]
            .get<int>(0) == 0) {
    }
    EXPECT_THROW(static_cast<void>(c.query("select 1")), usage_error);
    f.request_stop();
    EXPECT_THROW(f.join(), cancelled);
  });
}

TEST_F(postgres_connection, copies_in_and_out) {
  run([] {
    connection c = connect();
    static_cast<void>(c.script("create temp table t (n int, s text)"));
    const std::uint64_t n = c.copy_in("copy t from stdin", [](copy_writer& w) {
      w.row(-1, "tab\tand \\ and\nline");
      w.row(-2, std::nullopt);
      for (int i = 0; i < 100'000; ++i) w.row(i, "some text that makes it a few megabytes in all");
    });
    EXPECT_EQ(n, 100'002u);
    EXPECT_EQ(c.query("select s from t where n = -1")[0].get<std::string>(0), "tab\tand \\ and\nline");
    EXPECT_EQ(c.query("select s from t where n = -2")[0].get<std::optional<std::string>>(0), std::nullopt);
    std::size_t rows = 0;
    EXPECT_EQ(c.copy_out("copy (select n from t where n >= 0) to stdout", [&](std::string_view) { ++rows; }), 100'000u);
    EXPECT_EQ(rows, 100'000u);
    // Given up in the middle, by an exception or a deadline: nothing is kept, and the connection stays.
    EXPECT_THROW(c.copy_in("copy t from stdin",
                           [](copy_writer& w) {
                             w.row(1, "x");
                             throw std::runtime_error{"no"};
                           }),
                 std::runtime_error);
    EXPECT_THROW(c.copy_out("copy t to stdout", [](std::string_view) { throw std::runtime_error{"no"}; }),
                 std::runtime_error);
    EXPECT_THROW(with_timeout(5ms,
                              [&] {
                                c.copy_in("copy t from stdin", [](copy_writer& w) {
                                  for (;; this_fiber::sleep_for(1ms)) w.row(1, "x");
                                });
                              }),
                 timeout_error);
    EXPECT_EQ(state_of([&] { c.copy_in("copy t from stdin", [](copy_writer& w) { w.row("no number", "x"); }); }),
              "22P02");
    EXPECT_THROW(c.copy_in("select 1", [](copy_writer&) {}), invalid_argument);
    EXPECT_EQ(c.query("select count(*) from t")[0].get<int>(0), 100'002);
  });
}

TEST_F(postgres_connection, hears_notifications) {
  net::with_workers([] {
    connection c = connect(), other = connect();
    c.listen("Some \"channel\"");
    EXPECT_THROW(with_timeout(1ms, [&] { static_cast<void>(c.next_notification()); }), timeout_error);
    auto f = spawn([&] { return c.next_notification(); });
    static_cast<void>(other.query("select pg_notify('Some \"channel\"', $1)", "hello"));
    const notification n = f.join();
    EXPECT_EQ(n.channel, "Some \"channel\"");
    EXPECT_EQ(n.payload, "hello");
    EXPECT_EQ(n.process, other.server_process());
    c.unlisten("Some \"channel\"");
    EXPECT_EQ(c.query("select 1")[0].get<int>(0), 1);
  });
}

TEST_F(postgres_connection, tells_that_it_is_over) {
  run([] {
    connection c = connect(), other = connect();
    static_cast<void>(other.query("select pg_terminate_backend($1)", c.server_process()));
    EXPECT_THROW(static_cast<void>(c.query("select 1")), connection_error);
    EXPECT_FALSE(c.is_open());
    EXPECT_THROW(static_cast<void>(c.query("select 1")), connection_error);
    EXPECT_THROW((connection{{.where = "host=/no/such/folder password=secret"}}), connection_error);
    try {
      connection{{.where = "host=/no/such/folder password=secret"}};
    } catch (const connection_error& e) {
      EXPECT_EQ(std::string_view{e.what()}.find("secret"), std::string_view::npos);
    }
    // One that accepts, and says nothing.
    net::tcp_listener silent{{"127.0.0.1", 0}};
    EXPECT_THROW(
        (connection{{.where = "host=127.0.0.1 port=" + std::to_string(silent.local().port()), .connect_time = 20ms}}),
        connection_error);
  });
}

}  // namespace
}  // namespace ramie::postgres
