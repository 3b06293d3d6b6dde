// The carrier on libnats (Debian's 3.4).
//
// A node listens on r1.<cluster>.n.<node>.<incarnation>.>, and a frame for it is published with the sender's name and
// incarnation behind that. So the server's permissions, which are about subjects, decide for which nodes one may speak.
// A probe has a reply address, r1.<cluster>.p.<sender>.<its incarnation>.<node>.<incarnation>: where nobody listens the
// server answers there itself, with 503. What nodes say to all is on r1.<cluster>.all.<sender>.<incarnation>, and all
// answers to a node come to r1.<cluster>.i.<node>.>. Names and nodes are keys in the buckets r1_<cluster>_<bucket>.
//
// Without SendAsap libnats gathers what is published for up to a millisecond, and each hop takes as much longer. While
// the connection is away nothing is handed to it: what it would keep it would send before the other side is back.
//
// Callbacks run on libnats' threads, some of them after this object is gone: they have a reference of their own to what
// they need, given up when libnats says that it is done with them.
#include "nats_help.hpp"
#include "node.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace ramie::detail {

namespace {

/// What callbacks need.
struct ears {
  std::mutex lock;
  carrier_events events;
  bool open = false;
  std::atomic<bool> connected{true};
  // As the server says at each connection: libnats' own number is behind a lock that it holds while it connects.
  std::atomic<std::size_t> frame_most{0};

  void ask_limit(natsConnection* nc) {
    frame_most = static_cast<std::size_t>(std::max<std::int64_t>(natsConnection_GetMaxPayload(nc), 0));
  }
};
using ears_ref = std::shared_ptr<ears>;

void let_go(void* closure) { delete static_cast<ears_ref*>(closure); }

constexpr char question[] = "?";

/// nats://user:password@host: exceptions end in logs.
std::string without_secrets(std::string url) {
  for (std::size_t at = url.find('@'); at != url.npos; at = url.find('@', at + 1)) {
    std::size_t begin = url.find_last_of("/,", at);
    begin = begin == url.npos ? 0 : begin + 1;
    url.replace(begin, at - begin, "...");
    at = begin + 3;
  }
  return url;
}

std::string text_of(const node_address& a) { return a.name + "." + std::to_string(a.incarnation); }

std::optional<node_address> address_of(std::string_view name, std::string_view incarnation) {
  node_address a{std::string{name}, 0};
  if (!is_word(name, node_name_most) || incarnation.empty() || incarnation.size() > 19) return std::nullopt;
  for (const char c : incarnation) {
    if (c < '0' || c > '9') return std::nullopt;
    a.incarnation = a.incarnation * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return a;
}

/// Of the last two words of a subject.
std::optional<node_address> address_at_end(std::string_view subject) {
  const std::size_t last = subject.rfind('.');
  if (last == subject.npos || last == 0) return std::nullopt;
  const std::size_t before = subject.rfind('.', last - 1);
  if (before == subject.npos) return std::nullopt;
  return address_of(subject.substr(before + 1, last - before - 1), subject.substr(last + 1));
}

std::string_view bytes_of(natsMsg* msg) {
  return {natsMsg_GetData(msg), static_cast<std::size_t>(std::max(natsMsg_GetDataLength(msg), 0))};
}

void on_message(natsConnection* /*nc*/, natsSubscription* /*sub*/, natsMsg* msg, void* closure) {
  const owned<natsMsg, natsMsg_Destroy> guard{msg};
  const std::string_view data = bytes_of(msg);
  if (data == std::string_view{question}) return;  // that it came is the answer: see may_live
  const auto from = address_at_end(natsMsg_GetSubject(msg));
  const ears_ref& e = *static_cast<ears_ref*>(closure);
  const std::lock_guard ears_guard{e->lock};
  if (e->open && from) e->events.received(*from, std::string{data});
}

void on_broadcast(natsConnection* /*nc*/, natsSubscription* /*sub*/, natsMsg* msg, void* closure) {
  const owned<natsMsg, natsMsg_Destroy> guard{msg};
  const auto from = address_at_end(natsMsg_GetSubject(msg));
  const ears_ref& e = *static_cast<ears_ref*>(closure);
  const std::lock_guard ears_guard{e->lock};
  if (e->open && from) e->events.heard(*from, std::string{bytes_of(msg)});
}

void on_refusal(natsConnection* /*nc*/, natsSubscription* /*sub*/, natsMsg* msg, void* closure) {
  const owned<natsMsg, natsMsg_Destroy> guard{msg};
  if (!natsMsg_IsNoResponders(msg)) return;
  const auto to = address_at_end(natsMsg_GetSubject(msg));
  const ears_ref& e = *static_cast<ears_ref*>(closure);
  const std::lock_guard ears_guard{e->lock};
  if (e->open && to) e->events.refused(*to);
}

void on_disconnected(natsConnection* /*nc*/, void* closure) { (*static_cast<ears_ref*>(closure))->connected = false; }
void on_reconnected(natsConnection* nc, void* closure) {
  const ears_ref& e = *static_cast<ears_ref*>(closure);
  e->ask_limit(nc);
  e->connected = true;
  const std::lock_guard guard{e->lock};
  if (e->open) e->events.reconnected();
}
void on_closed(natsConnection* /*nc*/, void* closure) { let_go(closure); }

class nats_carrier final : public carrier {
 public:
  explicit nats_carrier(const cluster_options& o)
      : subject_{"r1." + o.name + "."}, bucket_{"r1_" + o.name + "_"}, asker_{o.node + ".0"} {
    natsOptions* raw = nullptr;
    nats_check("options", natsOptions_Create(&raw));
    const owned<natsOptions, natsOptions_Destroy> options{raw};
    set_servers(raw, o);
    set_identity(raw, o);
    natsOptions_SetName(raw, o.node.c_str());
    natsOptions_SetSendAsap(raw, true);
    natsOptions_SetNoEcho(raw, true);
    natsOptions_SetMaxReconnect(raw, -1);
    natsOptions_SetReconnectWait(raw, 20);  // ms; the default of 2 s is most of what a restart of the server costs
    natsOptions_SetReconnectJitter(raw, 10, 10);
    natsOptions_SetPingInterval(raw, 5000);
    // What is answered to this node comes to a subject that no other node has to be allowed to read.
    natsOptions_SetCustomInboxPrefix(raw, (subject_ + "i." + o.node).c_str());
    auto* closure = new ears_ref{ears_};
    natsOptions_SetDisconnectedCB(raw, &on_disconnected, closure);
    natsOptions_SetReconnectedCB(raw, &on_reconnected, closure);
    natsOptions_SetClosedCB(raw, &on_closed, closure);
    natsConnection* connection = nullptr;
    std::string why;
    // A server says "PING" by itself to a client that is slow to introduce itself, and libnats takes that for a
    // mistake.
    natsStatus status = NATS_PROTOCOL_ERROR;
    for (int tries = 0; tries < 10 && status == NATS_PROTOCOL_ERROR; ++tries)
      status = blocking([&] {
        const natsStatus s = natsConnection_Connect(&connection, raw);
        if (s != NATS_OK) why = nats_detail(s);  // it is this thread's
        return s;
      });
    if (status != NATS_OK) {
      let_go(closure);
      throw cluster_error{"ramie: cluster: cannot connect to nats-server at " + without_secrets(o.url) + ": " +
                          natsStatus_GetText(status) + why};
    }
    connection_.reset(connection);
    // Before OpenSSL's end of the process, which frees what libnats' last threads may still use.
    static const int registered = std::atexit([] { nats_CloseAndWait(1000); });
    static_cast<void>(registered);
    ears_->ask_limit(connection);
    if (frame_most() < frame_least)
      throw cluster_error{"ramie: cluster: nats-server at " + without_secrets(o.url) + " takes messages of " +
                          std::to_string(frame_most()) + " bytes (max_payload); nodes need at least " +
                          std::to_string(frame_least)};
    jsCtx* js = nullptr;
    nats_check("JetStream", natsConnection_JetStream(&js, connection, nullptr));
    js_.reset(js);
    for (const char* bucket : {"nodes", "names", "shards", "once", "snapshots"}) {
      kvConfig config;
      kvConfig_Init(&config);
      const std::string name = bucket_ + bucket;
      config.Bucket = name.c_str();
      kvStore* kv = nullptr;
      const natsStatus made = blocking([&] { return js_CreateKeyValue(&kv, js, &config); });
      if (made != NATS_OK) nats_fails("bucket " + name + " (is JetStream enabled at the server?)" + refusal(), made);
      stores_[bucket].reset(kv);
    }
  }
  ~nats_carrier() override { stop(); }

  void start(const node_address& me, carrier_events events) override {
    asker_ = text_of(me);
    probe_ = subject_ + "p." + text_of(me) + ".";
    {
      const std::lock_guard guard{ears_->lock};
      ears_->events = std::move(events);
      ears_->open = true;
    }
    frames_.reset(subscribe(subject_ + "n." + asker_ + ".>", &on_message));
    refusals_.reset(subscribe(probe_ + ">", &on_refusal));
    broadcasts_.reset(subscribe(subject_ + "all.>", &on_broadcast));
    // The server has them before anybody hears of this node, or has refused them.
    nats_check("flush", blocking([&] { return natsConnection_FlushTimeout(connection_.get(), 5000); }));
    if (const std::string why = refusal(); !why.empty()) throw cluster_error{"ramie: cluster: node " + me.name + why};
  }

  void stop() noexcept override {
    {
      const std::lock_guard guard{ears_->lock};
      ears_->open = false;
    }
    frames_.reset();
    refusals_.reset();
    broadcasts_.reset();
    stores_.clear();
    js_.reset();
    connection_.reset();
  }

  [[nodiscard]] std::size_t frame_most() const noexcept override {
    return ears_->frame_most.load(std::memory_order_relaxed);
  }
  void send(const node_address& to, std::string_view frame, bool probe) noexcept override {
    if (!ears_->connected.load(std::memory_order_relaxed)) return;
    try {
      const std::string address = text_of(to);
      const std::string subject = subject_ + "n." + address + "." + asker_;
      const int size = static_cast<int>(frame.size());
      if (!probe) natsConnection_Publish(connection_.get(), subject.c_str(), frame.data(), size);
      else
        natsConnection_PublishRequest(connection_.get(), subject.c_str(), (probe_ + address).c_str(), frame.data(),
                                      size);
    } catch (const std::bad_alloc&) {
      // As if the network had lost it.
    }
  }

  void broadcast(std::string_view word) noexcept override {
    if (!ears_->connected.load(std::memory_order_relaxed)) return;
    try {
      natsConnection_Publish(connection_.get(), (subject_ + "all." + asker_).c_str(), word.data(),
                             static_cast<int>(word.size()));
    } catch (const std::bad_alloc&) {
      // As if the network had lost it.
    }
  }

  std::uint64_t create(const std::string& bucket, const std::string& key, const std::string& value) override {
    return changed("create " + key, [&](std::uint64_t* revision) {
      return kvStore_Create(revision, store(bucket), key.c_str(), value.data(), static_cast<int>(value.size()));
    });
  }
  std::uint64_t update(const std::string& bucket, const std::string& key, const std::string& value,
                       std::uint64_t last) override {
    return changed("update " + key, [&](std::uint64_t* revision) {
      return kvStore_Update(revision, store(bucket), key.c_str(), value.data(), static_cast<int>(value.size()), last);
    });
  }
  std::optional<entry> get(const std::string& bucket, const std::string& key) override {
    kvEntry* raw = nullptr;
    const natsStatus status = blocking([&] { return kvStore_Get(&raw, store(bucket), key.c_str()); });
    const owned<kvEntry, kvEntry_Destroy> found{raw};
    if (status == NATS_NOT_FOUND) return std::nullopt;
    nats_check("get " + key + refusal(), status);
    return entry{
        std::string{static_cast<const char*>(kvEntry_Value(raw)), static_cast<std::size_t>(kvEntry_ValueLen(raw))},
        kvEntry_Revision(raw)};
  }
  void remove(const std::string& bucket, const std::string& key) override {
    const natsStatus status = blocking([&] { return kvStore_Delete(store(bucket), key.c_str()); });
    nats_check("delete " + key + refusal(), status);
  }
  bool remove(const std::string& bucket, const std::string& key, std::uint64_t last) override {
    const std::string subject = "$KV." + bucket_ + bucket + "." + key;
    return changed("delete " + key, [&](std::uint64_t* revision) {
             // What kvStore_Delete does, which knows no revision.
             natsMsg* raw = nullptr;
             natsStatus status = natsMsg_Create(&raw, subject.c_str(), nullptr, nullptr, 0);
             const owned<natsMsg, natsMsg_Destroy> msg{raw};
             if (status == NATS_OK) status = natsMsgHeader_Set(raw, "KV-Operation", "DEL");
             if (status != NATS_OK) return status;
             jsPubOptions options;
             jsPubOptions_Init(&options);
             options.ExpectLastSubjectSeq = last;
             jsPubAck* ack = nullptr;
             status = js_PublishMsg(&ack, js_.get(), raw, &options, nullptr);
             if (status == NATS_OK) *revision = ack->Sequence;
             jsPubAck_Destroy(ack);
             return status;
           }) != 0;
  }
  std::vector<std::string> keys(const std::string& bucket) override {
    kvKeysList list{};
    const natsStatus status = blocking([&] { return kvStore_Keys(&list, store(bucket), nullptr); });
    std::vector<std::string> all;
    if (status == NATS_OK) all.assign(list.Keys, list.Keys + list.Count);
    kvKeysList_Destroy(&list);
    if (status != NATS_NOT_FOUND) nats_check("keys", status);
    return all;
  }
  void* native() noexcept override { return connection_.get(); }
  bool may_live(const node_address& who) override {
    // The server says at once that nobody listens, and answers what one connection sends in order: when it has answered
    // the ping of `flush`, a refusal is here. So no limit of time takes a slow machine for a node that lives.
    const std::string subject = subject_ + "n." + text_of(who) + "." + asker_;
    return blocking([&] {
      natsInbox* inbox = nullptr;
      if (natsInbox_Create(&inbox) != NATS_OK) return true;
      const owned<natsInbox, natsInbox_Destroy> inbox_guard{inbox};
      natsSubscription* refusal = nullptr;
      if (natsConnection_SubscribeSync(&refusal, connection_.get(), inbox) != NATS_OK) return true;
      const owned<natsSubscription, natsSubscription_Destroy> refusal_guard{refusal};
      if (natsConnection_PublishRequestString(connection_.get(), subject.c_str(), inbox, question) != NATS_OK ||
          natsConnection_FlushTimeout(connection_.get(), 5000) != NATS_OK)
        return true;
      natsMsg* said = nullptr;
      const natsStatus status = natsSubscription_NextMsg(&said, refusal, 1);
      const owned<natsMsg, natsMsg_Destroy> said_guard{said};
      return status != NATS_NO_RESPONDERS && (status != NATS_OK || !natsMsg_IsNoResponders(said));
    });
  }

 private:
  static constexpr std::size_t frame_least = 2 * node_link::frame_bytes;

  static void set_servers(natsOptions* to, const cluster_options& o) {
    std::vector<std::string> urls;
    for (std::size_t at = 0; at <= o.url.size();) {
      const std::size_t end = std::min(o.url.find(',', at), o.url.size());
      urls.push_back(o.url.substr(at, end - at));
      at = end + 1;
    }
    std::vector<const char*> servers;
    servers.reserve(urls.size());
    for (const std::string& u : urls) servers.push_back(u.c_str());
    nats_check("options.url", natsOptions_SetServers(to, servers.data(), static_cast<int>(servers.size())));
    // One that asks for TLS means it for all: else the name and password would go to another in clear text.
    const bool secure = !o.trusted.empty() || !o.certificate.empty() || !o.server_name.empty() ||
                        std::any_of(urls.begin(), urls.end(), [](const auto& u) { return u.starts_with("tls://"); });
    if (secure) nats_check("tls", natsOptions_SetSecure(to, true));
    if (!o.trusted.empty()) nats_check("options.trusted", natsOptions_LoadCATrustedCertificates(to, o.trusted.c_str()));
    if (!o.certificate.empty())
      nats_check("options.certificate " + o.certificate + " and key",
                 natsOptions_LoadCertificatesChain(to, o.certificate.c_str(), o.key.c_str()));
    if (!o.server_name.empty())
      nats_check("options.server_name", natsOptions_SetExpectedHostname(to, o.server_name.c_str()));
  }
  static void set_identity(natsOptions* to, const cluster_options& o) {
    if (!o.user.empty()) nats_check("options.user", natsOptions_SetUserInfo(to, o.user.c_str(), o.password.c_str()));
    if (!o.token.empty()) nats_check("options.token", natsOptions_SetToken(to, o.token.c_str()));
    if (!o.credentials.empty())
      nats_check("options.credentials " + o.credentials,
                 natsOptions_SetUserCredentialsFromFiles(to, o.credentials.c_str(), nullptr));
  }

  /// What the server did not permit, if anything: it says so apart from answers, which do not come then.
  [[nodiscard]] std::string refusal() const {
    const char* said = nullptr;
    if (natsConnection_GetLastError(connection_.get(), &said) != NATS_NOT_PERMITTED) return {};
    return std::string{": the server does not permit it: "} + said;
  }

  natsSubscription* subscribe(const std::string& subject, natsMsgHandler handler) {
    natsSubscription* sub = nullptr;
    auto* closure = new ears_ref{ears_};
    const natsStatus status = natsConnection_Subscribe(&sub, connection_.get(), subject.c_str(), handler, closure);
    if (status != NATS_OK) {
      let_go(closure);
      nats_fails("subscribe " + subject, status);
    }
    natsSubscription_SetOnCompleteCB(sub, &let_go, closure);
    natsSubscription_SetPendingLimits(sub, -1, -1);  // links bound what is under way
    return sub;
  }
  kvStore* store(const std::string& bucket) { return stores_.at(bucket).get(); }

  template <class Change>
  std::uint64_t changed(const std::string& what, Change change) {
    std::uint64_t revision = 0;
    std::string said;
    const natsStatus status = blocking([&] {
      const natsStatus s = change(&revision);
      if (s != NATS_OK) said = nats_detail(s);  // it is this thread's
      return s;
    });
    if (status == NATS_OK) return revision;
    if (said.find("wrong last sequence") != std::string::npos) return 0;
    throw cluster_error{"ramie: cluster: " + what + ": " + natsStatus_GetText(status) + said + refusal()};
  }

  std::string subject_, bucket_, probe_;
  std::string asker_;  // this node, with the incarnation that it has

  ears_ref ears_ = std::make_shared<ears>();
  owned<natsConnection, natsConnection_Destroy> connection_;
  owned<jsCtx, jsCtx_Destroy> js_;
  std::map<std::string, owned<kvStore, kvStore_Destroy>> stores_;
  owned<natsSubscription, natsSubscription_Destroy> frames_, refusals_, broadcasts_;
};

}  // namespace

std::unique_ptr<carrier> make_nats_carrier(const cluster_options& options) {
  return std::make_unique<nats_carrier>(options);
}

}  // namespace ramie::detail
