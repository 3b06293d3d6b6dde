#include <ramie/postgres/connection.hpp>

#include "session.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace ramie::postgres {

namespace {

using state = connection::state;

/// The name of the statement, prepared now if it is not; "" if there are too many.
std::string prepare(state& s, const std::string& sql) {
  std::string name = s.names.find(sql);
  if (!name.empty()) return name;
  name = s.names.next();
  if (name.empty()) return name;
  s.in_flight = true;
  s.check(PQsendPrepare(s.pq, name.c_str(), sql.c_str(), 0, nullptr));
  s.flush();
  static_cast<void>(s.finish());
  s.names.add(sql, name);
  return name;
}

template <class Values>
void send(state& s, const std::string& sql, const std::string& name, const Values& values) {
  parameter_list list{values};
  s.in_flight = true;
  s.check(name.empty() ? PQsendQueryParams(s.pq, sql.c_str(), list.size(), nullptr, list.data(), nullptr, nullptr, 0)
                       : PQsendQueryPrepared(s.pq, name.c_str(), list.size(), list.data(), nullptr, nullptr, 0));
}

void send(state& s, const std::string& sql) {
  s.in_flight = true;
  s.check(PQsendQuery(s.pq, sql.c_str()));
  s.flush();
}

/// What one command of a pipeline was for.
struct expected {
  const batch::entry* statement;
  std::string prepares;  // the name; "" for the statement itself
};

std::vector<expected> send_all(state& s, std::span<const batch::entry> entries) {
  std::vector<expected> all;
  all.reserve(2 * entries.size());
  std::unordered_map<std::string_view, std::string> fresh;
  for (const batch::entry& e : entries) {
    std::string name;
    if (e.is_prepared) {
      name = s.names.find(e.sql);
      if (const auto here = fresh.find(e.sql); name.empty() && here != fresh.end()) name = here->second;
      if (name.empty() && !(name = s.names.next(fresh.size())).empty()) {
        s.check(PQsendPrepare(s.pq, name.c_str(), e.sql.c_str(), 0, nullptr));
        fresh.emplace(e.sql, name);
        all.push_back({&e, name});
      }
    }
    send(s, e.sql, name, e.values);
    all.push_back({&e, {}});
  }
  return all;
}

/// The results of a pipeline, up to its mark. Afterwards nothing is in flight.
std::vector<result> take_all(state& s, const std::vector<expected>& all) {
  std::vector<result> results;
  results.reserve(all.size());
  std::optional<query_error> failure;
  for (const expected& e : all) {
    result r = s.next();
    if (r && s.next()) throw connection_error{"a statement of a batch has more than one result"};  // never: one each
    if (!r) s.fail();
    const bool failed = PQresultStatus(r.get()) == PGRES_PIPELINE_ABORTED || is_failure(r.get());
    if (is_failure(r.get()) && !failure) failure = error_of(r.get());
    if (e.prepares.empty()) results.push_back(std::move(r));
    else if (!failed) s.names.add(e.statement->sql, e.prepares);
  }
  const result mark = s.next();
  if (!mark || PQresultStatus(mark.get()) != PGRES_PIPELINE_SYNC || PQexitPipelineMode(s.pq) != 1) s.fail();
  s.in_flight = false;
  if (failure) throw std::move(*failure);
  return results;
}

std::string quoted(state& s, std::string_view name) {
  const std::unique_ptr<char, void (*)(void*)> q{PQescapeIdentifier(s.pq, name.data(), name.size()), &PQfreemem};
  if (!q) throw invalid_argument{"ramie: postgres: the name of the channel is not in the encoding of the connection"};
  return q.get();
}

class writer final : public copy_writer {
 public:
  explicit writer(state& s) noexcept : s_{s} {}
  void write(std::string_view bytes) override {
    constexpr std::size_t most = 1 << 20;  // libpq counts in int
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), most))) {
      const std::string_view part = bytes.substr(0, most);
      while (true) {
        const int code = PQputCopyData(s_.pq, part.data(), static_cast<int>(part.size()));
        if (code < 0) s_.fail();
        if (code == 1) break;
        s_.flush();
      }
      unsent_ += part.size();
      // A guess: large enough to make few calls, and small beside the socket's buffers.
      if (unsent_ < std::size_t{64} << 10) continue;
      s_.flush();
      unsent_ = 0;
    }
  }

 private:
  state& s_;
  std::size_t unsent_ = 0;
};

}  // namespace

connection::connection() noexcept = default;
connection::connection(const connection_options& options) : state_{std::make_unique<state>(options)} {}
connection::connection(connection&&) noexcept = default;
connection& connection::operator=(connection&&) noexcept = default;
connection::~connection() = default;

result connection::run(std::string_view sql, bool is_prepared, std::initializer_list<parameter> values) {
  state& s = *state_;
  return use(state_.get(), [&] {
    const std::string text{sql};
    const std::string name = is_prepared ? prepare(s, text) : std::string{};
    send(s, text, name, values);
    s.flush();
    return s.finish();
  });
}

result connection::script(const std::string& sql) {
  state& s = *state_;
  return use(state_.get(), [&] {
    send(s, sql);
    return s.finish();
  });
}

std::vector<result> connection::run(const batch& statements) {
  if (statements.empty()) return {};
  state& s = *state_;
  return use(state_.get(), [&] {
    if (in_transaction()) throw usage_error{"ramie: postgres: a batch is a transaction of its own, and one is open"};
    s.in_flight = true;
    s.check(PQenterPipelineMode(s.pq));
    std::vector<expected> all;
    try {
      all = send_all(s, statements.entries());
      s.check(PQpipelineSync(s.pq));
    } catch (...) {
      s.close();  // without its mark nothing could be read to an end
      throw;
    }
    s.flush();
    return take_all(s, all);
  });
}

// The server may have carried out one that is cut off; without this nobody would end the transaction.
void connection::begin() {
  const bool was_open = in_transaction();
  try {
    static_cast<void>(script("begin"));
  } catch (...) {
    if (!was_open && in_transaction()) roll_back();
    throw;
  }
}

void connection::commit() {
  // After a failed statement that was ignored, the server answers a commit with a rollback.
  if (state_ && is_open() && PQtransactionStatus(state_->pq) == PQTRANS_INERROR) {
    roll_back();
    throw query_error{"the transaction cannot be committed: a statement in it has failed", "25P02"};
  }
  try {
    static_cast<void>(script("commit"));
  } catch (...) {
    if (in_transaction()) roll_back();
    throw;
  }
}

void connection::roll_back() noexcept {
  if (!is_open()) return;
  try {
    shield([&] { with_timeout(state_->cancel_time, [&] { static_cast<void>(script("rollback")); }); });
  } catch (...) {
    close();  // the server rolls back then
  }
}

std::uint64_t connection::copy_in(const std::string& sql, const std::function<void(copy_writer&)>& source) {
  state& s = *state_;
  return use(state_.get(), [&] {
    send(s, sql);
    result first = s.next();
    if (!first || PQresultStatus(first.get()) != PGRES_COPY_IN) {
      static_cast<void>(s.finish(std::move(first)));
      throw invalid_argument{"ramie: postgres: copy_in: the statement is no COPY ... FROM STDIN"};
    }
    writer w{s};
    source(w);
    int code = 0;
    while ((code = PQputCopyEnd(s.pq, nullptr)) == 0) s.flush();
    if (code < 0) s.fail();
    s.flush();
    return s.finish().affected();
  });
}

std::uint64_t connection::copy_out(const std::string& sql, const std::function<void(std::string_view)>& sink) {
  state& s = *state_;
  return use(state_.get(), [&] {
    send(s, sql);
    result first = s.next();
    if (!first || PQresultStatus(first.get()) != PGRES_COPY_OUT) {
      static_cast<void>(s.finish(std::move(first)));
      throw invalid_argument{"ramie: postgres: copy_out: the statement is no COPY ... TO STDOUT"};
    }
    for (;;) {
      char* row = nullptr;
      const int n = PQgetCopyData(s.pq, &row, 1);
      if (n == -1) return s.finish().affected();
      if (n < -1) return s.finish(result{PQmakeEmptyPGresult(s.pq, PGRES_FATAL_ERROR)}).affected();
      if (n == 0) {
        s.take();
        continue;
      }
      const std::unique_ptr<char, void (*)(void*)> owned{row, &PQfreemem};
      sink({row, static_cast<std::size_t>(n)});
    }
  });
}

void connection::listen(std::string_view channel) {
  static_cast<void>(script("listen " + use(state_.get(), [&] { return quoted(*state_, channel); })));
}
void connection::unlisten(std::string_view channel) {
  static_cast<void>(script("unlisten " + use(state_.get(), [&] { return quoted(*state_, channel); })));
}

notification connection::next_notification() {
  state& s = *state_;
  return use(state_.get(), [&] {
    for (;;) {
      if (const std::unique_ptr<PGnotify, void (*)(void*)> n{PQnotifies(s.pq), &PQfreemem})
        return notification{n->relname, n->extra, n->be_pid};
      s.take();
      if (!s.is_open()) s.fail();
    }
  });
}

bool connection::is_open() const noexcept { return state_ && state_->is_open(); }
bool connection::in_transaction() const noexcept {
  return is_open() && PQtransactionStatus(state_->pq) != PQTRANS_IDLE;
}
bool connection::has_news() const noexcept {
  if (!is_open()) return true;
  pollfd one{PQsocket(state_->pq), POLLIN | POLLRDHUP, 0};
  return ::poll(&one, 1, 0) != 0;
}
int connection::server_process() const noexcept { return is_open() ? PQbackendPID(state_->pq) : 0; }
void connection::close() noexcept {
  if (state_) state_->close();
}

void copy_writer::write_row(std::initializer_list<parameter> values) {
  std::string line;
  for (const parameter& p : values) {
    if (!line.empty() || &p != values.begin()) line += '\t';
    if (!p.text()) {
      line += "\\N";
      continue;
    }
    for (const char c : *p.text()) {
      switch (c) {
        case '\\': line += "\\\\"; break;
        case '\t': line += "\\t"; break;
        case '\n': line += "\\n"; break;
        case '\r': line += "\\r"; break;
        default: line += c;
      }
    }
  }
  write(line += '\n');
}

}  // namespace ramie::postgres
