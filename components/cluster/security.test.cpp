// With a server that asks who one is: the sample configuration, certificates, passwords, permissions.
// Mostly waits.
#include "nats_help.hpp"
#include "test_credentials.hpp"
#include "test_nodes.hpp"

#include <ramie/base/config.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using cluster_tests::keeper;
using cluster_tests::number;
using cluster_tests::order_kept;
using cluster_tests::run_command;

constexpr char sample[] = RAMIE_CLUSTER_EXAMPLES "/nats-server.conf";

/// An authority, and certificates by it: the server's (for 127.0.0.1, `elsewhere` for another host) and a node's.
void make_certificates(const std::string& folder) {
  const std::string in = "cd " + folder + " && exec 2>/dev/null; ";
  const auto authority = [&](const std::string& name) {
    run_command(in + "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=" + name +
                " -keyout " + name + "-key.pem -out " + name + ".pem");
  };
  const auto signed_by = [&](const std::string& by, const std::string& name, const std::string& names) {
    run_command(in + "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name + " -keyout " +
                name + "-key.pem -out " + name + ".csr && printf 'subjectAltName=" + names + "' > " + name +
                ".ext && openssl x509 -req -days 2 -in " + name + ".csr -CA " + by + ".pem -CAkey " + by +
                "-key.pem -CAcreateserial -extfile " + name + ".ext -out " + name + ".pem");
  };
  authority("ca");
  authority("stranger");
  signed_by("ca", "server", "IP:127.0.0.1");
  signed_by("ca", "elsewhere", "DNS:nats.example.org");
  signed_by("ca", "node", "DNS:node");
  signed_by("stranger", "false-node", "DNS:node");
}

/// The sample's server; `certificate` in place of its own. By the file: arguments would replace all it says of TLS.
struct guarded_server {
  explicit guarded_server(const std::string& certificate = "server")
      : it{[&](const std::string& folder) {
          make_certificates(folder);
          if (certificate != "server")
            for (const char* end : {".pem", "-key.pem"})
              run_command("cp " + folder + "/" + certificate + end + " " + folder + "/server" + end);
          ::setenv("N1_PASSWORD", "one", 1);
          ::setenv("N2_PASSWORD", "two", 1);
          return std::vector<std::string>{"--config", sample};
        }} {}

  [[nodiscard]] ramie::cluster_options options(const std::string& node, const std::string& password) const {
    return {.url = "tls://127.0.0.1:" + std::to_string(it.port()),
            .name = "shop",
            .node = node,
            .user = node,
            .password = password,
            .trusted = it.folder() + "/ca.pem",
            .certificate = it.folder() + "/node.pem",
            .key = it.folder() + "/node-key.pem"};
  }
  cluster_tests::nats_server it;
};

guarded_server& guarded() {
  static guarded_server the_server;
  return the_server;
}

/// What the exception says by which a node is refused; "" if it is not.
std::string refusal_of(const ramie::cluster_options& o) {
  std::string said;
  ramie::run([&] {
    try {
      const ramie::cluster c{o};
    } catch (const ramie::cluster_error& e) {
      said = e.what();
    }
  });
  return said;
}

/// A connection of somebody who has n2's password and certificate, and does not care what ramie would do.
class intruder {
 public:
  explicit intruder(const guarded_server& s) {
    const ramie::cluster_options o = s.options("n2", "two");
    natsOptions* raw = nullptr;
    natsConnection* nc = nullptr;
    natsOptions_Create(&raw);
    natsOptions_SetURL(raw, o.url.c_str());
    natsOptions_SetSecure(raw, true);
    natsOptions_LoadCATrustedCertificates(raw, o.trusted.c_str());
    natsOptions_LoadCertificatesChain(raw, o.certificate.c_str(), o.key.c_str());
    natsOptions_SetUserInfo(raw, o.user.c_str(), o.password.c_str());
    if (natsConnection_Connect(&nc, raw) != NATS_OK) throw std::runtime_error{"the intruder cannot connect"};
    natsOptions_Destroy(raw);
    nc_.reset(nc);
  }
  /// Whether the server takes it.
  bool publish(const std::string& subject, const std::string& bytes) {
    natsConnection_Publish(nc_.get(), subject.c_str(), bytes.data(), static_cast<int>(bytes.size()));
    return allowed();
  }
  bool listen(const std::string& subject) {
    natsSubscription* sub = nullptr;
    natsConnection_SubscribeSync(&sub, nc_.get(), subject.c_str());
    const bool may = allowed();
    natsSubscription_Destroy(sub);
    return may;
  }

 private:
  bool allowed() {
    natsConnection_Flush(nc_.get());
    const char* said = nullptr;
    if (natsConnection_GetLastError(nc_.get(), &said) != NATS_NOT_PERMITTED) return true;
    // It stays: the next question is for another connection.
    return false;
  }
  ramie::detail::owned<natsConnection, natsConnection_Destroy> nc_;
};

class guarded_nodes : public testing::Test {
 protected:
  void SetUp() override {
    if (RAMIE_TSAN) GTEST_SKIP() << "TSan does not see how OpenSSL's objects pass between libnats' threads";
  }
};

TEST_F(guarded_nodes, do_all_they_do_by_the_sample_configuration) {
  ramie::run([] {
    ramie::cluster n1{guarded().options("n1", "one")}, n2{guarded().options("n2", "two")};
    n1.knows<keeper>();
    n2.knows<keeper>();
    const auto local = ramie::spawn_actor<keeper>();
    ASSERT_TRUE(n1.register_name("guarded", local));
    const auto there = n2.whereis<keeper>("guarded");
    ASSERT_TRUE(there);
    for (std::uint64_t i = 0; i < 100; ++i) there->tell(number{i});
    EXPECT_EQ(there->ask(order_kept{}), 100);
    EXPECT_EQ(n2.nodes().size(), 2U);
    const auto rival = ramie::spawn_actor<keeper>();
    EXPECT_FALSE(n2.register_name("guarded", rival));  // n1 is asked whether its holder lives
    rival.stop();

    auto jobs = n1.queue<number>("guarded");
    jobs.put(number{0}, "first");
    const auto worker = ramie::spawn_actor<keeper>();
    auto serving = n2.queue<number>("guarded").serve(worker);
    while (worker.ask(order_kept{}) != 1) ramie::this_fiber::yield();
    serving.stop();

    auto counters = n1.shards<cluster_tests::counter>("guarded", {.count = 4, .lease = std::chrono::seconds{1}});
    counters.of("a").tell(cluster_tests::add{7});
    EXPECT_EQ(counters.of("a").ask_for(60s, cluster_tests::total{}).value, 7);
    auto logs = n2.logs<number>("guarded");
    logs.of("key").append(number{1});

    worker.stop();
    local.stop();
  });
}

TEST_F(guarded_nodes, with_a_wrong_password_are_refused_and_do_not_repeat_it) {
  const std::string said = refusal_of(guarded().options("n1", "guessed"));
  EXPECT_NE(said.find("cannot connect"), said.npos) << said;
  EXPECT_EQ(said.find("guessed"), said.npos) << said;
  ramie::cluster_options in_url = guarded().options("n1", "");
  in_url.user.clear();
  in_url.url = "tls://n1:guessed@127.0.0.1:" + std::to_string(guarded().it.port());
  const std::string also = refusal_of(in_url);
  EXPECT_NE(also.find("cannot connect"), also.npos) << also;
  EXPECT_EQ(also.find("guessed"), also.npos) << also;
}

TEST_F(guarded_nodes, with_a_certificate_of_a_stranger_or_none_are_refused) {
  ramie::cluster_options o = guarded().options("n1", "one");
  o.certificate = guarded().it.folder() + "/false-node.pem";
  o.key = guarded().it.folder() + "/false-node-key.pem";
  EXPECT_NE(refusal_of(o), "");
  o = guarded().options("n1", "one");
  o.certificate.clear();
  o.key.clear();
  EXPECT_NE(refusal_of(o), "");
}

TEST_F(guarded_nodes, trust_no_server_of_another_authority_or_name) {
  ramie::cluster_options o = guarded().options("n1", "one");
  o.trusted = guarded().it.folder() + "/stranger.pem";
  std::string said = refusal_of(o);
  EXPECT_NE(said.find("certificate"), said.npos) << said;
  o.trusted.clear();  // the system's authorities do not know it either
  EXPECT_NE(refusal_of(o), "");

  const guarded_server misnamed{"elsewhere"};
  said = refusal_of(misnamed.options("n1", "one"));
  EXPECT_NE(said.find("mismatch"), said.npos) << said;
  o = misnamed.options("n1", "one");
  o.server_name = "nats.example.org";
  EXPECT_EQ(refusal_of(o), "");
}

TEST_F(guarded_nodes, say_which_file_they_cannot_read) {
  for (const auto& [which, set] :
       {std::pair<std::string, std::string ramie::cluster_options::*>{"trusted", &ramie::cluster_options::trusted},
        {"certificate", &ramie::cluster_options::certificate},
        {"credentials", &ramie::cluster_options::credentials}}) {
    ramie::cluster_options o = guarded().options("n1", "one");
    o.*set = "/nonexistent/" + which;
    const std::string said = refusal_of(o);
    EXPECT_NE(said.find("/nonexistent/" + which), said.npos) << which << ": " << said;
  }
}

TEST_F(guarded_nodes, with_credentials_are_who_they_are_signed_to_be) {
  const cluster_tests::nats_server server{[](const std::string& folder) {
    cluster_tests::make_credentials(folder);
    std::vector<std::string> more = cluster_tests::nats_server::stored_in(folder);
    more.insert(more.end(), {"--config", folder + "/server.conf", "--debug", "--log", folder + "/log"});
    return more;
  }};
  ramie::cluster_options o{.url = server.url(), .name = "shop", .node = "n1"};
  EXPECT_NE(refusal_of(o), "");
  o.credentials = server.folder() + "/false.creds";
  EXPECT_NE(refusal_of(o), "");
  o.credentials = server.folder() + "/node.creds";
  EXPECT_EQ(refusal_of(o), "") << cluster_tests::contents_of(server.folder() + "/log");
}

TEST_F(guarded_nodes, with_a_token_are_let_in) {
  const cluster_tests::nats_server server{[](const std::string& folder) {
    std::vector<std::string> more = cluster_tests::nats_server::stored_in(folder);
    more.insert(more.end(), {"--auth", "a-long-secret"});
    return more;
  }};
  ramie::cluster_options o{.url = server.url(), .name = "shop", .node = "n1"};
  EXPECT_NE(refusal_of(o), "");
  o.token = "a-long-guess";
  EXPECT_NE(refusal_of(o), "");
  o.token = "a-long-secret";
  EXPECT_EQ(refusal_of(o), "");
}

TEST_F(guarded_nodes, without_permission_say_what_was_refused) {
  // n2's user, under n1's name.
  ramie::cluster_options o = guarded().options("n1", "two");
  o.user = "n2";
  const std::string said = refusal_of(o);
  EXPECT_NE(said.find("does not permit"), said.npos) << said;
  EXPECT_NE(said.find("r1.shop"), said.npos) << said;
  o = guarded().options("n1", "one");
  o.name = "bank";  // another cluster than its account is for
  EXPECT_NE(refusal_of(o), "");
}

TEST_F(guarded_nodes, cannot_speak_for_another) {
  const auto may = [](const std::function<bool(intruder&)>& f) {
    intruder one{guarded()};
    return f(one);
  };
  EXPECT_TRUE(may([](intruder& i) { return i.publish("r1.shop.n.n1.1.n2.1", "not a frame"); }));
  EXPECT_FALSE(may([](intruder& i) { return i.publish("r1.shop.n.n2.1.n1.1", "as n1"); }));
  EXPECT_FALSE(may([](intruder& i) { return i.publish("r1.shop.all.n1.1", "here"); }));
  EXPECT_FALSE(may([](intruder& i) { return i.publish("$KV.r1_shop_nodes.n1", ""); }));
  EXPECT_FALSE(may([](intruder& i) { return i.publish("r1.shop.i.n1.x", "a false answer"); }));
  EXPECT_FALSE(may([](intruder& i) { return i.publish("$JS.API.STREAM.DELETE.KV_r1_shop_names", ""); }));
  EXPECT_FALSE(may([](intruder& i) { return i.listen("r1.shop.n.n1.>"); }));
  EXPECT_FALSE(may([](intruder& i) { return i.listen("r1.shop.i.n1.>"); }));
  EXPECT_FALSE(may([](intruder& i) { return i.listen(">"); }));
}

TEST_F(guarded_nodes, survive_what_an_intruder_sends) {
  ramie::run([] {
    ramie::cluster n1{guarded().options("n1", "one")};
    n1.knows<keeper>();
    const auto local = ramie::spawn_actor<keeper>();
    ASSERT_TRUE(n1.register_name("attacked", local));
    ramie::blocking([&] {
      intruder one{guarded()};
      const std::string to = "r1.shop.n.n1." + std::to_string(n1.self().incarnation) + ".n2.";
      std::string frame{"ramie\1\1", 7};
      frame.resize(48, '\1');
      for (const std::string& bytes : {std::string{}, std::string{"?"}, std::string(48, '\0'), frame,
                                       frame + std::string(1000, '\xFF'), std::string(1 << 19, 'x')})
        for (const char* as : {"1", "0", "18446744073709551615", "x"}) EXPECT_TRUE(one.publish(to + as, bytes));
    });
    local.tell(number{0});
    EXPECT_EQ(local.ask(order_kept{}), 1);
    const auto found = n1.whereis<keeper>("attacked");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->ask(order_kept{}), 1);
    local.stop();
  });
}

}  // namespace
