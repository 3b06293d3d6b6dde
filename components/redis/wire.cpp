#include "wire.hpp"

#include <array>
#include <charconv>

namespace ramie::redis {

namespace {

reply converted(const redisReply& r) {
  switch (r.type) {
    case REDIS_REPLY_INTEGER: return reply{r.integer};
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS: return {reply::kind::text, std::string{r.str, r.len}};
    case REDIS_REPLY_ERROR: return {reply::kind::error, std::string{r.str, r.len}};
    case REDIS_REPLY_ARRAY: {
      std::vector<reply> parts;  // nested a few deep at most: hiredis' own limit
      parts.reserve(r.elements);
      for (std::size_t i = 0; i < r.elements; ++i) parts.push_back(converted(*r.element[i]));
      return reply{std::move(parts)};
    }
    default: return {};
  }
}

[[noreturn]] void throw_other_kind(const char* wanted) {
  throw invalid_argument{std::string{"ramie: redis: the reply is no "} + wanted};
}

net::any_stream stream_to(const std::string& where) {
  if (where.starts_with('/')) return net::unix_stream::connect(net::endpoint::local(where));
  const std::size_t colon = where.rfind(':');
  if (colon == std::string::npos)
    throw invalid_argument{"ramie: redis: options::where is \"" + where + "\"; it is host:port, or an absolute path"};
  std::string host = where.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  std::exception_ptr failure;
  for (const net::endpoint& at : net::resolve(host, where.substr(colon + 1))) try {
      return net::tcp_stream::connect(at);
    } catch (const net::io_error&) {
      failure = std::current_exception();
    }
  if (failure) std::rethrow_exception(failure);
  throw connection_error{"no address of " + host};
}

}  // namespace

const std::string& reply::text() const {
  if (is_ != kind::text) throw_other_kind("text");
  return text_;
}
const std::string& reply::error() const {
  if (is_ != kind::error) throw_other_kind("error");
  return text_;
}
const std::vector<reply>& reply::array() const {
  if (is_ != kind::array) throw_other_kind("array");
  return parts_;
}
std::int64_t reply::integer() const {
  if (is_ == kind::integer) return number_;
  std::int64_t number = 0;
  const char* const end = text_.data() + text_.size();
  if (is_ != kind::text || std::from_chars(text_.data(), end, number).ptr != end || text_.empty())
    throw_other_kind("integer");
  return number;
}

std::string word::exact(double number) {
  std::array<char, 64> digits;
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

void commands::add_words(std::initializer_list<word> words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const word& w : words) {
    texts.push_back(w.text().data());
    sizes.push_back(w.text().size());
  }
  char* made = nullptr;
  const int n = redisFormatCommandArgv(&made, static_cast<int>(words.size()), texts.data(), sizes.data());
  if (n < 0) throw std::bad_alloc{};
  const std::unique_ptr<char, void (*)(char*)> owned{made, &redisFreeCommand};
  bytes_.append(made, static_cast<std::size_t>(n));
  ++count_;
}

parser::parser(std::size_t reply_most) : reader_{redisReaderCreate()}, most_{reply_most} {
  if (!reader_) throw std::bad_alloc{};
}

void parser::feed(std::span<const std::byte> bytes) {
  unused_ += bytes.size();
  if (unused_ > most_) throw connection_error{"a reply is longer than reply_most, " + std::to_string(most_) + " bytes"};
  if (redisReaderFeed(reader_.get(), reinterpret_cast<const char*>(bytes.data()), bytes.size()) != REDIS_OK)
    throw connection_error{reader_->errstr};
}

std::optional<reply> parser::next() {
  void* made = nullptr;
  if (redisReaderGetReply(reader_.get(), &made) != REDIS_OK) throw connection_error{reader_->errstr};
  if (made == nullptr) return std::nullopt;
  const std::unique_ptr<void, void (*)(void*)> owned{made, &freeReplyObject};
  unused_ = reader_->len - reader_->pos;
  return converted(*static_cast<const redisReply*>(made));
}

reply read_reply(net::any_stream& from, parser& p) {
  try {
    for (;;) {
      if (std::optional<reply> r = p.next()) return *std::move(r);
      std::array<std::byte, 4096> part;
      const std::size_t n = from.read_some(part);
      if (n == 0) throw connection_error{"the server has closed the connection"};
      p.feed(std::span{part}.first(n));
    }
  } catch (const net::io_error& e) {
    throw connection_error{e.what()};
  }
}

net::any_stream connect(const options& o, parser& p) {
  try {
    return with_timeout(o.connect_time, [&] {
      net::any_stream s = stream_to(o.where);
      commands first;
      if (!o.user.empty()) first.add("AUTH", o.user, o.password);
      else if (!o.password.empty()) first.add("AUTH", o.password);
      if (o.database != 0) first.add("SELECT", o.database);
      if (first.size() != 0) s.write_all(first.bytes());
      for (std::size_t i = 0; i < first.size(); ++i) {
        const reply r = read_reply(s, p);
        if (r.is() == reply::kind::error) throw command_error{r.error()};
      }
      return s;
    });
  } catch (const net::io_error& e) {
    throw connection_error{e.what()};
  } catch (const timeout_error&) {
    throw connection_error{"no connection in the time that connect_time allows"};
  }
}

}  // namespace ramie::redis
