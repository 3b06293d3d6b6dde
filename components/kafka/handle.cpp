#include "handle.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace ramie::kafka {

kafka_error::kafka_error(const std::string& what, int code, bool is_fatal)
    : error{"ramie: kafka: " + what}, code_{code}, is_fatal_{is_fatal} {}

std::string kafka_error::name() const { return rd_kafka_err2name(static_cast<rd_kafka_resp_err_t>(code_)); }

kafka_error error_of(rd_kafka_resp_err_t code, const std::string& more, bool is_fatal) {
  std::string text = std::string{rd_kafka_err2str(code)} + " (" + rd_kafka_err2name(code) + ")";
  if (!more.empty()) text += ": " + more;
  return {text, code, is_fatal};
}

void throw_if(rd_kafka_error_t* failed) {
  const failure_ptr f{failed};
  if (f) throw error_of(rd_kafka_error_code(f.get()), rd_kafka_error_string(f.get()), rd_kafka_error_is_fatal(f.get()));
}

void throw_if(rd_kafka_resp_err_t code) {
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) throw error_of(code);
}

std::string problem_of(rd_kafka_event_t* e) {
  const char* const text = rd_kafka_event_error_string(e);
  return text != nullptr ? text : rd_kafka_err2str(rd_kafka_event_error(e));
}

configuration::configuration(const options& o) : all_{rd_kafka_conf_new()} {
  if (!all_) throw std::bad_alloc{};
  rd_kafka_conf_set_log_cb(all_.get(), nullptr);  // it would write to standard error; `problem` tells
  if (!o.brokers.empty()) set("bootstrap.servers", o.brokers);
}

void configuration::set(const std::string& name, const std::string& value) {
  std::array<char, 512> why{};
  if (rd_kafka_conf_set(all_.get(), name.c_str(), value.c_str(), why.data(), why.size()) != RD_KAFKA_CONF_OK)
    throw kafka_error{"the setting \"" + name + "\": " + why.data(), RD_KAFKA_RESP_ERR__INVALID_ARG};
}

std::string configuration::get(const char* name) const {
  std::array<char, 512> value{};
  std::size_t size = value.size();
  if (rd_kafka_conf_get(all_.get(), name, value.data(), &size) != RD_KAFKA_CONF_OK) return {};
  return value.data();
}

rd_kafka_t* configuration::make(rd_kafka_type_t type, int events) {
  rd_kafka_conf_set_events(all_.get(), events);
  std::array<char, 512> why{};
  rd_kafka_t* const made = shield([&] {  // not to lose one that was made
    return blocking([&] { return rd_kafka_new(type, all_.get(), why.data(), why.size()); });
  });
  if (made == nullptr) throw kafka_error{why.data(), RD_KAFKA_RESP_ERR__INVALID_ARG};
  static_cast<void>(all_.release());  // NOLINT(bugprone-unused-return-value): it is the client's
  return made;
}

watched_queue::watched_queue(queue_ptr q) : queue_{std::move(q)}, fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  if (!queue_) throw std::bad_alloc{};
  if (fd_ < 0) throw net::io_error{"eventfd", {errno, std::system_category()}};
  const std::uint64_t one = 1;
  rd_kafka_queue_io_event_enable(queue_.get(), fd_, &one, sizeof one);
}

watched_queue::~watched_queue() {
  rd_kafka_queue_io_event_enable(queue_.get(), -1, nullptr, 0);
  ::close(fd_);
}

void watched_queue::wait() {
  net::wait_readable(fd_);
  std::uint64_t count = 0;
  static_cast<void>(::read(fd_, &count, sizeof count));
}

}  // namespace ramie::kafka
