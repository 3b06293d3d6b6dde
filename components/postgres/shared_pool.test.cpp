#include "testing.hpp"

#include <atomic>

namespace ramie::postgres {
namespace {

using namespace std::chrono_literals;

class postgres_shared_pool : public with_postgres {};

TEST_F(postgres_shared_pool, gives_each_fiber_its_own_result) {
  net::with_workers([] {
    shared_pool db{{.where = where(), .most = 3}};
    scope all;
    for (int i = 0; i < 300; ++i)
      all.spawn([&db, i] {
        for (int k = 0; k < 5; ++k) {
          const result r = db.query(prepared{"select $1::int, repeat('x', $1::int)"}, i + k);
          EXPECT_EQ(r[0].get<int>(0), i + k);
          EXPECT_EQ(r[0].get<std::string>(1).size(), static_cast<std::size_t>(i + k));
          EXPECT_EQ(db.query("select $1::text", std::to_string(i))[0].get<int>(0), i);
        }
      });
    all.join();
    const shared_pool_statistics s = db.statistics();
    EXPECT_LE(s.connected, 3u);
    EXPECT_EQ(s.under_way, 0u);
    EXPECT_EQ(s.statements, 3000u);
  });
}

TEST_F(postgres_shared_pool, lets_each_statement_fail_alone) {
  net::with_workers([] {
    shared_pool db{{.where = where(), .most = 1}};
    db.query("create table if not exists alone (n int primary key)");
    db.query("delete from alone");
    scope all;
    for (int i = 0; i < 100; ++i)
      all.spawn([&db, i] {
        if (i % 3 == 0) {
          EXPECT_THROW(db.query("select 1 / $1::int", 0), query_error);
        } else if (i % 3 == 1) {
          // Failures of a preparation are told as such to all whose statement it is.
          try {
            db.query(prepared{"select nonsense"});
            ADD_FAILURE();
          } catch (const query_error& e) {
            EXPECT_EQ(e.sqlstate(), "42703");
          }
        } else {
          EXPECT_EQ(db.query(prepared{"insert into alone values ($1)"}, i).affected(), 1u);
        }
      });
    all.join();
    EXPECT_EQ(db.query("select count(*) from alone")[0].get<int>(0), 33);
    EXPECT_THROW(db.query("select $1::text", std::string("a\0b", 3)), invalid_argument);
    EXPECT_EQ(db.statistics().connected, 1u);
    db.query("drop table alone");
  });
}

TEST_F(postgres_shared_pool, is_not_hurt_by_a_fiber_that_gives_up) {
  net::with_workers([] {
    shared_pool db{{.where = where(), .most = 1, .under_way_most = 10}};
    db.query("select 1");
    connection blocker = connect();
    blocker.script("create table if not exists held (n int)");
    blocker.script("begin; lock table held");
    auto holder = spawn([&db] { db.query("select count(*) from held"); });
    while (db.statistics().under_way < 1) this_fiber::yield();
    std::vector<join_handle<void>> all;  // nine wait behind it, the others for a place
    all.reserve(20);
    for (int i = 0; i < 20; ++i)
      all.push_back(spawn([&db] { EXPECT_THROW(with_timeout(2ms, [&] { db.query("select 1"); }), timeout_error); }));
    for (auto& f : all) f.join();
    auto stopped = spawn([&db] { db.query("select 2"); });
    stopped.request_stop();
    EXPECT_THROW(stopped.join(), cancelled);
    EXPECT_LE(db.statistics().under_way, 10u);
    blocker.script("rollback");
    holder.join();
    EXPECT_EQ(db.query("select 3")[0].get<int>(0), 3);
    EXPECT_EQ(db.statistics().connected, 1u);
    connect().script("drop table held");
  });
}

TEST_F(postgres_shared_pool, sends_and_takes_more_than_the_buffers_hold) {
  net::with_workers([] {
    shared_pool db{{.where = where(), .most = 2}};
    const std::string large(1'000'000, 'x');
    scope all;
    for (int i = 0; i < 10; ++i)
      all.spawn([&] {
        EXPECT_EQ(db.query("select length($1)", large)[0].get<std::size_t>(0), large.size());
        EXPECT_EQ(db.query("select $1::text", large)[0].get<std::string_view>(0), large);
      });
    all.join();
  });
}

TEST_F(postgres_shared_pool, connects_again) {
  net::with_workers([] {
    shared_pool db{{.where = where(), .most = 1}};
    const int process = db.query("select pg_backend_pid()")[0].get<int>(0);
    connection blocker = connect();
    blocker.script("create table if not exists held (n int)");
    blocker.script("begin; lock table held");
    std::vector<join_handle<void>> all;
    all.reserve(10);
    for (int i = 0; i < 10; ++i)
      all.push_back(spawn([&db] { EXPECT_THROW(db.query("select count(*) from held"), connection_error); }));
    while (db.statistics().under_way < 10) this_fiber::yield();
    blocker.query("select pg_terminate_backend($1)", process);
    for (auto& f : all) f.join();
    EXPECT_NE(db.query("select pg_backend_pid()")[0].get<int>(0), process);
    EXPECT_EQ(db.statistics().connected, 2u);
    blocker.script("rollback");
    blocker.script("drop table held");
  });
}

TEST_F(postgres_shared_pool, refuses_to_begin_a_transaction) {
  net::with_workers([] {
    shared_pool db{{.where = where(), .most = 1}};
    db.query("create table if not exists drawn_in (n int)");
    EXPECT_THROW(db.query("begin"), usage_error);
    // Those behind it on the connection are told of no success that is rolled back.
    std::atomic<int> told{0};
    scope all;
    for (int i = 0; i < 50; ++i)
      all.spawn([&, i] {
        try {
          if (i == 20) db.query("start transaction");
          else db.query("insert into drawn_in values ($1)", i);
          ++told;
        } catch (const usage_error&) {
          EXPECT_EQ(i, 20);
        } catch (const connection_error&) {
        }
      });
    all.join();
    EXPECT_EQ(db.query("select count(*) from drawn_in")[0].get<int>(0), told.load());
    db.query("drop table drawn_in");
  });
}

TEST_F(postgres_shared_pool, ends_with_statements_under_way) {
  run([] {
    connection blocker = connect();
    blocker.script("create table if not exists held (n int)");
    blocker.script("begin; lock table held");
    {
      shared_pool db{{.where = where()}};
      EXPECT_THROW(with_timeout(20ms, [&] { db.query("select count(*) from held"); }), timeout_error);
    }
    blocker.script("rollback");
    blocker.script("drop table held");
    EXPECT_THROW((shared_pool{{.where = where(), .most = 0}}), invalid_argument);
    shared_pool nowhere{{.where = "host=/no/such/folder"}};
    EXPECT_THROW(nowhere.query("select 1"), connection_error);
    EXPECT_EQ(nowhere.statistics().under_way, 0u);
  });
}

}  // namespace
}  // namespace ramie::postgres
