// See js_publisher.hpp.
#include "js_publisher.hpp"

namespace ramie::detail {

future<std::optional<std::string>> js_publisher::request(const std::string& subject, std::string_view bytes,
                                                         const headers& with, std::uint64_t& number) {
  future<std::optional<std::string>> answer;
  {
    const std::lock_guard guard{answers_->lock};
    number = ++answers_->last;
    promise<std::optional<std::string>> fresh;
    answer = fresh.get_future();
    answers_->waiting.emplace(number, std::move(fresh));
  }
  natsMsg* raw = nullptr;
  const std::string reply = inbox_ + "r." + std::to_string(number);
  nats_check("a message",
             natsMsg_Create(&raw, subject.c_str(), reply.c_str(), bytes.data(), static_cast<int>(bytes.size())));
  const owned<natsMsg, natsMsg_Destroy> msg{raw};
  for (const auto& [key, value] : with) natsMsgHeader_Set(raw, key, value.c_str());
  // What else is not taken is not answered.
  if (natsConnection_PublishMsg(nc_, raw) == NATS_MAX_PAYLOAD)
    throw cluster_error{"ramie: cluster: " + what_ + ": " + std::to_string(bytes.size()) +
                        " bytes are more than the server takes (max_payload)"};
  return answer;
}

std::string js_publisher::store(const std::string& subject, std::string_view bytes, const headers& with) {
  using std::chrono::milliseconds;
  const auto until = std::chrono::steady_clock::now() + js_duplicates / 2;
  for (milliseconds wait{500};; wait = std::min(wait * 2, milliseconds{4000})) {
    if (closed_) throw usage_error{"ramie: cluster: " + what_ + ": the cluster is gone"};
    std::uint64_t number = 0;
    const auto last = at_end([&] { forget(number); });
    future<std::optional<std::string>> answer = request(subject, bytes, with, number);
    if (answer.wait_for(wait) == std::future_status::ready) {
      std::optional<std::string> said = answer.get();
      if (said && js_refused(*said) && said->find("\"code\":503") == std::string::npos) return *std::move(said);
      if (said && said->find("\"seq\"") != std::string::npos) return *std::move(said);
      this_fiber::sleep_for(milliseconds{20});
    }
    if (std::chrono::steady_clock::now() > until)
      throw cluster_error{"ramie: cluster: " + what_ + ": outcome unknown: it may be stored or not"};
  }
}

}  // namespace ramie::detail
