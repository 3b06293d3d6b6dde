// For tests: what `nsc` makes. Keys as NATS writes them (github.com/nats-io/nkeys: a prefix, the key, its CRC-16, in
// base 32), tokens signed by them (nats-io/jwt, version 2), a server's configuration that trusts these, and a file of
// credentials.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace cluster_tests {

inline void run_command(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error{"failed: " + command};
}
inline std::string contents_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// `bits` of each digit; what is left over at the end is filled with zeros.
inline std::string in_base(std::string_view digits, unsigned bits, std::string_view bytes) {
  std::string text;
  unsigned held = 0, buffer = 0;
  for (const char c : bytes) {
    buffer = (buffer << 8 | static_cast<unsigned char>(c)) & 0xFFFFU;
    for (held += 8; held >= bits; held -= bits) text += digits[buffer >> (held - bits) & ((1U << bits) - 1)];
  }
  if (held != 0) text += digits[buffer << (bits - held) & ((1U << bits) - 1)];
  return text;
}
inline std::string base_64(std::string_view bytes) {
  return in_base("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", 6, bytes);
}
inline std::string nats_text(std::string bytes) {
  unsigned crc = 0;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8;
    for (int i = 0; i < 8; ++i) crc = ((crc & 0x8000U) != 0 ? crc << 1 ^ 0x1021U : crc << 1) & 0xFFFFU;
  }
  bytes += static_cast<char>(crc & 0xFFU);
  bytes += static_cast<char>(crc >> 8);
  return in_base("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 5, bytes);
}

class nats_key {
 public:
  enum kind : unsigned { account = 0, nats_operator = 14U << 3, user = 20U << 3 };

  nats_key(std::string file, kind k) : file_{std::move(file)} {
    run_command("openssl genpkey -algorithm ed25519 -outform DER -out " + file_ + " && openssl pkey -in " + file_ +
                " -inform DER -pubout -outform DER -out " + file_ + ".pub");
    constexpr std::size_t size = 32;  // the last bytes of both
    const std::string secret = contents_of(file_), known = contents_of(file_ + ".pub");
    public_ = nats_text(static_cast<char>(k) + known.substr(known.size() - size));
    seed_ = nats_text(std::string{static_cast<char>(18U << 3 | k >> 5), static_cast<char>((k & 31U) << 3)} +
                      secret.substr(secret.size() - size));
  }
  [[nodiscard]] const std::string& name() const noexcept { return public_; }
  [[nodiscard]] const std::string& seed() const noexcept { return seed_; }

  /// A token by which this key says `what` of `about`.
  [[nodiscard]] std::string says(const nats_key& about, const std::string& what) const {
    const std::string text = base_64(R"({"typ":"JWT","alg":"ed25519-nkey"})") + "." +
                             base_64(R"({"jti":"1","iat":1,"iss":")" + public_ + R"(","name":"test","sub":")" +
                                     about.public_ + R"(","nats":)" + what + "}");
    std::ofstream{file_ + ".text", std::ios::binary} << text;
    run_command("openssl pkeyutl -sign -rawin -keyform DER -inkey " + file_ + " -in " + file_ + ".text -out " + file_ +
                ".signed");
    return text + "." + base_64(contents_of(file_ + ".signed"));
  }

 private:
  std::string file_, public_, seed_;
};

/// Writes server.conf and node.creds; `false.creds` has a user that another account's key has signed.
inline void make_credentials(const std::string& folder) {
  const nats_key op{folder + "/operator", nats_key::nats_operator}, system{folder + "/system", nats_key::account},
      shop{folder + "/shop", nats_key::account}, stranger{folder + "/stranger", nats_key::account},
      node{folder + "/node", nats_key::user};
  const std::string limits =
      R"("subs":-1,"data":-1,"payload":-1,"imports":-1,"exports":-1,"wildcards":true,"conn":-1,"leaf":-1)";
  const std::string storage = R"(,"mem_storage":-1,"disk_storage":-1,"streams":-1,"consumer":-1)";
  const auto account = [&](const std::string& may) {
    return R"({"type":"account","version":2,"limits":{)" + may + "}}";
  };
  std::ofstream{folder + "/server.conf"} << "operator: \"" << op.says(op, R"({"type":"operator","version":2})")
                                         << "\"\nsystem_account: " << system.name()
                                         << "\nresolver: MEMORY\nresolver_preload: {\n  " << system.name() << ": \""
                                         << op.says(system, account(limits)) << "\"\n  " << shop.name() << ": \""
                                         << op.says(shop, account(limits + storage)) << "\"\n}\n";
  const std::string user = R"({"type":"user","version":2,"subs":-1,"data":-1,"payload":-1})";
  for (const auto& [name, by] : {std::pair{"node", &shop}, std::pair{"false", &stranger}})
    std::ofstream{folder + "/" + name + ".creds"} << "-----BEGIN NATS USER JWT-----\n"
                                                  << by->says(node, user) << "\n------END NATS USER JWT------\n\n"
                                                  << "-----BEGIN USER NKEY SEED-----\n"
                                                  << node.seed() << "\n------END USER NKEY SEED------\n";
}

}  // namespace cluster_tests
