#include "session.hpp"

#include <fcntl.h>

#include <cerrno>
#include <system_error>

namespace ramie::postgres {

namespace {

/// libpq ends its messages with a line break.
std::string trimmed(const char* text) {
  std::string_view t = text;
  while (!t.empty() && (t.back() == '\n' || t.back() == ' ')) t.remove_suffix(1);
  return std::string{t};
}

/// Before the server is asked again to stop. A guess: longer than a command is on its way, and not felt beside a query
/// that has run into its deadline.
constexpr std::chrono::milliseconds first_pause{50};

void keep_quiet(void*, const PGresult*) {}

}  // namespace

bool is_failure(const PGresult* r) noexcept {
  const ExecStatusType s = PQresultStatus(r);
  return s == PGRES_FATAL_ERROR || s == PGRES_BAD_RESPONSE;
}

query_error error_of(const PGresult* failed) {
  const char* state = PQresultErrorField(failed, PG_DIAG_SQLSTATE);
  return {trimmed(PQresultErrorMessage(failed)), state == nullptr ? "" : state};
}

connection::state::state(const connection_options& options) : cancel_time{options.cancel_time} {
  try {
    with_timeout(options.connect_time, [&] { connect(options); });
  } catch (const timeout_error&) {
    close();
    throw connection_error{"no connection in the time that connect_time allows"};
  } catch (...) {
    close();
    throw;
  }
}

void connection::state::connect(const connection_options& options) {
  // Resolving names and hashing passwords take milliseconds; the latter is part of PQconnectPoll.
  pq = blocking([&] { return PQconnectStart(options.where.c_str()); });
  if (pq == nullptr) throw std::bad_alloc{};
  for (PostgresPollingStatusType wanted = PGRES_POLLING_WRITING; wanted != PGRES_POLLING_OK;) {
    if (PQstatus(pq) == CONNECTION_BAD) fail();
    // A new socket for each address, so nothing is kept registered.
    if (wanted == PGRES_POLLING_READING) net::wait_readable(PQsocket(pq));
    else net::wait_writable(PQsocket(pq));
    wanted = blocking([&] { return PQconnectPoll(pq); });
    if (wanted == PGRES_POLLING_FAILED) fail();
  }
  PQsetNoticeReceiver(pq, &keep_quiet, nullptr);
  cancel = {PQgetCancel(pq), &PQfreeCancel};
  const int copy = ::fcntl(PQsocket(pq), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) throw connection_error{"no descriptor for the socket: " + std::system_category().message(errno)};
  socket = net::unix_stream::adopt(copy);
  if (!cancel || PQsetnonblocking(pq, 1) != 0) throw std::bad_alloc{};
}

void connection::state::close() noexcept {
  socket = {};
  cancel.reset();
  names.clear();
  in_flight = false;
  if (pq != nullptr) PQfinish(std::exchange(pq, nullptr));
}

void connection::state::fail() {
  std::string message = trimmed(PQerrorMessage(pq));
  if (message.empty()) message = "the connection broke";
  close();
  throw connection_error{message};
}

void connection::state::flush() {
  for (;;) {
    const int left = PQflush(pq);
    if (left < 0) fail();
    if (left == 0) return;
    select(net::on_readable(socket), net::on_writable(socket));
    check(PQconsumeInput(pq));
  }
}

void connection::state::take() {
  socket.wait_readable();
  check(PQconsumeInput(pq));
}

result connection::state::next() {
  while (PQisBusy(pq) != 0) take();
  return result{PQgetResult(pq)};
}

result connection::state::finish(result last) {
  std::optional<query_error> failure;
  if (last && is_failure(last.get())) failure = error_of(last.get());
  for (;;) {
    result r = next();
    if (!r) break;
    if (is_failure(r.get()) && !failure) failure = error_of(r.get());
    last = std::move(r);
  }
  in_flight = false;
  if (PQstatus(pq) != CONNECTION_OK) fail();
  if (failure) throw std::move(*failure);
  return last;
}

void connection::state::give_up() noexcept {
  try {
    shield([&] {
      with_timeout(cancel_time, [&] {
        for (auto pause = first_pause; in_flight; pause *= 2) {
          cancel_at_server();
          try {
            with_timeout(pause, [&] { drain(); });
          } catch (const timeout_error&) {
            // Q4: perhaps the command was not there yet.
          }
        }
      });
    });
    if (!is_open()) close();
  } catch (...) {
    // Why it was given up is what the caller throws.
    close();
  }
}

/// Q3. Without a runtime PQcancel blocks this thread, which is the caller's.
void connection::state::cancel_at_server() {
  struct request {
    std::shared_ptr<PGcancel> cancel;
    event done{};
  };
  const auto r = std::make_shared<request>(cancel);
  const auto send = [r] {
    char why[256];
    blocking([&] { return PQcancel(r->cancel.get(), why, sizeof why); });  // what fails, drain() will run into
    r->done.set();
  };
  try {
    spawn(send).detach();  // it may take longer than anybody waits
  } catch (const usage_error&) {
    return send();
  }
  r->done.wait();
}

void connection::state::drain() {
  flush();
  for (;;) {
    const result r = next();
    if (!r) {
      if (PQpipelineStatus(pq) == PQ_PIPELINE_OFF) break;
      continue;  // between the commands of a pipeline
    }
    const ExecStatusType status = PQresultStatus(r.get());
    if (status == PGRES_PIPELINE_SYNC) {
      check(PQexitPipelineMode(pq));
      break;
    }
    if (status == PGRES_COPY_IN) {
      if (PQputCopyEnd(pq, "given up") < 0) fail();
      flush();
    } else if (status == PGRES_COPY_OUT) {
      char* row = nullptr;
      for (int n = 0; (n = PQgetCopyData(pq, &row, 1)) >= 0; PQfreemem(std::exchange(row, nullptr)))
        if (n == 0) take();
    }
  }
  in_flight = false;
}

}  // namespace ramie::postgres
