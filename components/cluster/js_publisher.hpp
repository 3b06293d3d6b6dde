// Messages that JetStream acknowledges.
#pragma once

#include "nats_help.hpp"
#include "node.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ramie::detail {

constexpr std::chrono::milliseconds js_duplicates{120'000};  // for so long the server knows an id

inline std::string data_of(natsMsg* m) {
  return {natsMsg_GetData(m), static_cast<std::size_t>(std::max(natsMsg_GetDataLength(m), 0))};
}
inline std::string header_of(natsMsg* m, const char* key) {
  const char* value = nullptr;
  return natsMsgHeader_Get(m, key, &value) == NATS_OK && value != nullptr ? value : "";
}

/// Answers of the server to what was published with a reply address here: by number.
struct answers {
  std::mutex lock;
  std::uint64_t last = 0;
  std::unordered_map<std::uint64_t, promise<std::optional<std::string>>> waiting;

  static void came(natsConnection* /*nc*/, natsSubscription* /*sub*/, natsMsg* raw, void* closure) {
    const owned<natsMsg, natsMsg_Destroy> msg{raw};
    const std::string_view subject = natsMsg_GetSubject(raw);
    const std::string_view digits = subject.substr(subject.rfind('.') + 1);
    std::uint64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    answers& me = **static_cast<std::shared_ptr<answers>*>(closure);
    std::optional<promise<std::optional<std::string>>> to;
    {
      const std::lock_guard guard{me.lock};
      const auto at = me.waiting.find(number);
      if (at == me.waiting.end()) return;
      to.emplace(std::move(at->second));
      me.waiting.erase(at);
    }
    // Nobody there: the server has no JetStream yet, just after its start.
    to->set_value(natsMsg_IsNoResponders(raw) ? std::nullopt : std::optional{data_of(raw)});
  }
};

template <class Closure>
natsSubscription* subscribe(natsConnection* nc, const std::string& subject, natsMsgHandler handler,
                            const std::shared_ptr<Closure>& closure) {
  auto* kept = new std::shared_ptr<Closure>{closure};
  const auto let_go = [](void* c) { delete static_cast<std::shared_ptr<Closure>*>(c); };
  natsSubscription* sub = nullptr;
  const natsStatus status = natsConnection_Subscribe(&sub, nc, subject.c_str(), handler, kept);
  if (status != NATS_OK) {
    let_go(kept);
    nats_fails("subscribe " + subject, status);
  }
  natsSubscription_SetOnCompleteCB(sub, let_go, kept);
  return sub;
}

/// Publishes with reply addresses of its own, and hands on what the server says.
class js_publisher {
 public:
  using headers = std::vector<std::pair<const char*, std::string>>;

  /// `what`: for messages of exceptions. `inbox` ends in a dot.
  js_publisher(natsConnection* nc, std::string what, std::string inbox)
      : nc_{nc}, what_{std::move(what)}, inbox_{std::move(inbox)} {
    replies_.reset(subscribe(nc_, inbox_ + "r.*", &answers::came, answers_));
  }
  void close() {
    closed_ = true;
    replies_.reset();
  }
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }

  /// A null answer: nobody there.
  future<std::optional<std::string>> request(const std::string& subject, std::string_view bytes, const headers& with,
                                             std::uint64_t& number);
  void forget(std::uint64_t number) {
    const std::lock_guard guard{answers_->lock};
    answers_->waiting.erase(number);
  }
  /// Until it is stored, under an id that is in `with` as Nats-Msg-Id: again and again for half the time for which the
  /// server knows ids. What the server says: an acknowledgement, or an error. Suspends. Throws cluster_error if the
  /// outcome is not known.
  std::string store(const std::string& subject, std::string_view bytes, const headers& with);

 private:
  natsConnection* nc_;
  std::string what_, inbox_;
  std::shared_ptr<answers> answers_ = std::make_shared<answers>();
  owned<natsSubscription, natsSubscription_Destroy> replies_;
  std::atomic<bool> closed_{false};
};

inline bool js_refused(std::string_view said) { return said.find("\"error\"") != std::string_view::npos; }

}  // namespace ramie::detail
