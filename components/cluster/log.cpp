// Logs: a stream for each set of them, a subject for each key.
//
// An event is stored only if the last one of its subject is the one that its writer knows
// (Nats-Expected-Last-Subject-Sequence): of two nodes that take a key for theirs one is refused, even if it was frozen
// between its look at the lease and this. A store without an answer is sent again under the same id, which the server
// looks at first, so that a writer is not fenced out by its own event.
#include "js_publisher.hpp"

#include <ramie/cluster/log.hpp>

namespace ramie::detail {

class log_core final : public closable {
 public:
  log_core(cluster_core& c, const std::string& name)
      : name_{name}, net_{*c.net}, nc_{static_cast<natsConnection*>(c.net->native())} {
    if (nc_ == nullptr) throw cluster_error{"ramie: cluster: logs " + name + ": logs need NATS"};
    subject_ = "r1." + c.options.name + ".log." + name + ".";
    stream_ = "r1_" + c.options.name + "_log_" + name;
    me_ = c.me.name + "." + std::to_string(c.me.incarnation);
    jsCtx* js = nullptr;
    nats_check("JetStream", natsConnection_JetStream(&js, nc_, nullptr));
    js_.reset(js);
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = stream_.c_str();
    const std::string all = subject_ + "*";
    const char* subjects[] = {all.c_str()};
    config.Subjects = subjects;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    config.AllowDirect = true;
    config.Duplicates = std::chrono::nanoseconds{js_duplicates}.count();
    nats_check("stream " + stream_, blocking([&] { return js_AddStream(nullptr, js, &config, nullptr, nullptr); }));
    static std::atomic<std::uint64_t> cores{0};
    publisher_.emplace(nc_, "logs " + name_,
                       "r1." + c.options.name + ".i." + me_ + ".log" + std::to_string(++cores) + ".");
  }
  void close() override {
    publisher_->close();
    js_.reset();
  }

  std::uint64_t append(const std::string& key, std::string_view bytes, std::uint64_t last) {
    const std::string said = publisher_->store(subject_ + key, bytes,
                                               {{"Nats-Msg-Id", me_ + "." + std::to_string(++appends_)},
                                                {"Nats-Expected-Last-Subject-Sequence", std::to_string(last)}});
    if (said.find("wrong last sequence") != std::string::npos)
      throw fenced_out{"ramie: cluster: logs " + name_ + ": another node has stored events of this key"};
    const std::size_t at = said.find("\"seq\":");
    std::uint64_t number = 0;
    if (js_refused(said) || at == std::string::npos)
      throw cluster_error{"ramie: cluster: logs " + name_ + ": the server does not take an event: " + said};
    const std::size_t first = said.find_first_of("0123456789", at);
    std::from_chars(said.data() + first, said.data() + said.size(), number);
    return number;
  }

  std::uint64_t replay(const std::string& key, std::uint64_t after,
                       const std::function<void(std::string_view bytes)>& f) {
    const std::string subject = subject_ + key;
    for (;;) {
      jsDirectGetMsgOptions options;
      jsDirectGetMsgOptions_Init(&options);
      options.Sequence = after + 1;
      options.NextBySubject = subject.c_str();
      natsMsg* raw = nullptr;
      const natsStatus status =
          blocking([&] { return js_DirectGetMsg(&raw, js_.get(), stream_.c_str(), nullptr, &options); });
      if (status == NATS_NOT_FOUND) return after;
      nats_check("logs " + name_, status);
      const owned<natsMsg, natsMsg_Destroy> msg{raw};
      after = natsMsg_GetSequence(raw);
      f(data_of(raw));
    }
  }

  /// "number bytes"
  void save(const std::string& key, std::string_view bytes, std::uint64_t at) {
    const std::string where = name_ + "." + key;
    const std::string value = std::to_string(at) + " " + std::string{bytes};
    for (;;) {
      const auto old = net_.get("snapshots", where);
      if (old && number_of(old->value) >= at) return;  // a later owner's
      if ((old ? net_.update("snapshots", where, value, old->revision) : net_.create("snapshots", where, value)) != 0)
        return;
    }
  }
  std::optional<std::string> load(const std::string& key, std::uint64_t& at) {
    const auto found = net_.get("snapshots", name_ + "." + key);
    if (!found) return std::nullopt;
    at = number_of(found->value);
    return found->value.substr(found->value.find(' ') + 1);
  }

 private:
  static std::uint64_t number_of(const std::string& value) {
    std::uint64_t n = 0;
    std::from_chars(value.data(), value.data() + value.size(), n);
    return n;
  }
  std::string name_, subject_, stream_, me_;
  carrier& net_;
  natsConnection* nc_;
  owned<jsCtx, jsCtx_Destroy> js_;
  std::optional<js_publisher> publisher_;
  static inline std::atomic<std::uint64_t> appends_{0};
};

std::uint64_t log_calls::append(log_core& l, const std::string& key, std::string_view bytes, std::uint64_t last) {
  return l.append(key, bytes, last);
}
std::uint64_t log_calls::replay(log_core& l, const std::string& key, std::uint64_t after,
                                const std::function<void(std::string_view bytes)>& f) {
  return l.replay(key, after, f);
}
void log_calls::save(log_core& l, const std::string& key, std::string_view bytes, std::uint64_t at) {
  l.save(key, bytes, at);
}
std::optional<std::string> log_calls::load(log_core& l, const std::string& key, std::uint64_t& at) {
  return l.load(key, at);
}

std::shared_ptr<log_core> make_log(cluster_core& core, const std::string& name) {
  auto made = std::make_shared<log_core>(core, name);
  const std::lock_guard guard{core.lock};
  core.to_close.emplace_back(made);
  return made;
}

}  // namespace ramie::detail
