#include "testing.hpp"

namespace ramie::postgres {
namespace {

using namespace std::chrono_literals;

class postgres_pool : public with_postgres {};

TEST_F(postgres_pool, shares_few_connections_among_many_fibers) {
  net::with_workers([] {
    pool db{{.where = where(), .most = 3}};
    std::vector<join_handle<int>> all;
    all.reserve(300);
    for (int i = 0; i < 300; ++i)
      all.push_back(spawn([&db, i] { return db.query(prepared{"select $1::int"}, i)[0].get<int>(0); }));
    for (int i = 0; i < 300; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].join(), i);
    const pool_statistics s = db.statistics();
    EXPECT_LE(s.connected, 3u);
    EXPECT_EQ(s.open, s.idle);
    EXPECT_EQ(s.replaced, 0u);
    EXPECT_EQ(s.waiting, 0u);
  });
}

TEST_F(postgres_pool, lets_waiters_be_cancelled) {
  run([] {
    pool db{{.where = where(), .most = 1}};
    {
      pool::lease one = db.take();
      EXPECT_THROW(with_timeout(1ms, [&] { static_cast<void>(db.take()); }), timeout_error);
      EXPECT_THROW(with_timeout(1ms, [&] { static_cast<void>(db.query("select 1")); }), timeout_error);
    }
    EXPECT_EQ(db.query("select 1")[0].get<int>(0), 1);
    EXPECT_EQ(db.statistics().connected, 1u);
  });
}

TEST_F(postgres_pool, keeps_a_connection_whose_query_was_cancelled) {
  run([] {
    pool db{{.where = where(), .most = 1}};
    for (int i = 0; i < 5; ++i)
      EXPECT_THROW(with_timeout(5ms, [&] { static_cast<void>(db.query("select pg_sleep(600)")); }), timeout_error);
    EXPECT_EQ(db.query("select 1")[0].get<int>(0), 1);
    EXPECT_EQ(db.statistics().connected, 1u);
  });
}

TEST_F(postgres_pool, closes_what_comes_back_in_a_transaction) {
  run([] {
    pool db{{.where = where(), .most = 1}};
    static_cast<void>(db.take()->script("begin"));
    EXPECT_FALSE(db.take()->in_transaction());
    EXPECT_EQ(db.statistics().replaced, 1u);
  });
}

TEST_F(postgres_pool, replaces_what_the_server_has_ended) {
  run([] {
    pool db{{.where = where(), .most = 2}};
    connection other = connect();
    const int process = db.take()->server_process();
    static_cast<void>(other.query("select pg_terminate_backend($1)", process));
    while (other.query("select 1 from pg_stat_activity where pid = $1", process).size() != 0) {
    }
    this_fiber::sleep_for(2ms);
    EXPECT_EQ(db.query("select 1")[0].get<int>(0), 1);  // without an error
    EXPECT_EQ(db.statistics().replaced, 1u);
  });
}

TEST_F(postgres_pool, asks_a_connection_that_was_idle_for_long) {
  run([] {
    pool db{{.where = where(), .most = 1, .check_after = 0ns}};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(db.query("select $1::int", i)[0].get<int>(0), i);
    EXPECT_EQ(db.statistics().connected, 1u);
  });
}

TEST_F(postgres_pool, comes_back_after_the_server_does) {
  run([] {
    pool db{{.where = where(), .most = 2}};
    EXPECT_EQ(db.query("select 1")[0].get<int>(0), 1);
    servers::get()->stop();
    EXPECT_THROW(static_cast<void>(db.query("select 1")), connection_error);
    servers::get()->start_again();
    EXPECT_EQ(db.query("select 1")[0].get<int>(0), 1);
  });
}

TEST_F(postgres_pool, refuses_to_be_empty) { EXPECT_THROW((pool{{.most = 0}}), invalid_argument); }

}  // namespace
}  // namespace ramie::postgres
