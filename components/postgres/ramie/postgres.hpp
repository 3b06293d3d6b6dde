// PostgreSQL for fibers, by libpq: link ramie::postgres.
//
//   namespace pg = ramie::postgres;
//   pg::pool db{{.where = "host=/run/postgresql dbname=shop"}};
//   for (const pg::row r : db.query("select name, price from fruit where price < $1", 100))
//     std::printf("%s %d\n", r.get<std::string>("name").c_str(), r.get<int>("price"));
#pragma once

#include <ramie/postgres/connection.hpp>
#include <ramie/postgres/pool.hpp>
#include <ramie/postgres/shared_pool.hpp>
#include <ramie/postgres/value.hpp>
