// Certificates made by the tests themselves.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

namespace ramie::tls {

/// A folder that is removed at the end.
class scratch_folder {
 public:
  scratch_folder() {
    static std::atomic<int> number{0};
    path_ = std::filesystem::temp_directory_path() /
            ("ramie_tls_" + std::to_string(::getpid()) + "_" + std::to_string(number.fetch_add(1)));
    std::filesystem::create_directory(path_);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

struct certificate_request {
  std::string subject = "localhost";
  std::string names = "DNS:localhost,IP:127.0.0.1";  // as openssl.cnf has them; empty: none
  long from_s = -60, until_s = 3600;                 // from now
};

/// An authority, or somebody whose certificate is by one.
class identity {
 public:
  /// `issuer` null: signs itself.
  explicit identity(const certificate_request& request, const identity* issuer = nullptr, bool authority = false)
      : key_{EVP_EC_gen("P-256"), &EVP_PKEY_free}, x_{X509_new(), &X509_free} {
    static std::atomic<long> serial{1000};
    X509* x = x_.get();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial.fetch_add(1));
    X509_gmtime_adj(X509_getm_notBefore(x), request.from_s);
    X509_gmtime_adj(X509_getm_notAfter(x), request.until_s);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(request.subject.c_str()), -1, -1, 0);
    const identity& by = issuer == nullptr ? *this : *issuer;
    X509_set_issuer_name(x, X509_get_subject_name(by.x_.get()));
    X509_set_pubkey(x, key_.get());
    X509V3_CTX c;
    X509V3_set_ctx_nodb(&c);
    X509V3_set_ctx(&c, by.x_.get(), x, nullptr, nullptr, 0);
    const auto add = [&](int kind, const std::string& value) {
      X509_EXTENSION* e = X509V3_EXT_conf_nid(nullptr, &c, kind, value.c_str());
      X509_add_ext(x, e, -1);
      X509_EXTENSION_free(e);
    };
    if (authority) {
      add(NID_basic_constraints, "critical,CA:TRUE");
      add(NID_key_usage, "critical,keyCertSign,cRLSign");
    } else if (!request.names.empty()) {
      add(NID_subject_alt_name, request.names);
    }
    X509_sign(x, by.key_.get(), EVP_sha256());
  }

  void write(const std::string& chain, const std::string& key) const {
    write_pem(chain, [&](FILE* f) { PEM_write_X509(f, x_.get()); });
    write_pem(key, [&](FILE* f) { PEM_write_PrivateKey(f, key_.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  }
  void write_certificate(const std::string& path) const {
    write_pem(path, [&](FILE* f) { PEM_write_X509(f, x_.get()); });
  }
  /// As its authority: a file that says that `revoked` is.
  void write_revocation(const std::string& path, const identity& revoked) const {
    const std::unique_ptr<X509_CRL, decltype(&X509_CRL_free)> list{X509_CRL_new(), &X509_CRL_free};
    X509_CRL_set_version(list.get(), 1);
    X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(x_.get()));
    const std::unique_ptr<ASN1_TIME, decltype(&ASN1_TIME_free)> now{ASN1_TIME_new(), &ASN1_TIME_free};
    X509_gmtime_adj(now.get(), -10);
    X509_CRL_set1_lastUpdate(list.get(), now.get());
    X509_REVOKED* one = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(one, X509_get_serialNumber(revoked.x_.get()));
    X509_REVOKED_set_revocationDate(one, now.get());
    X509_CRL_add0_revoked(list.get(), one);
    X509_gmtime_adj(now.get(), 3600);
    X509_CRL_set1_nextUpdate(list.get(), now.get());
    X509_CRL_sort(list.get());
    X509_CRL_sign(list.get(), key_.get(), EVP_sha256());
    write_pem(path, [&](FILE* f) { PEM_write_X509_CRL(f, list.get()); });
  }

 private:
  template <class F>
  static void write_pem(const std::string& path, F write) {
    FILE* f = std::fopen(path.c_str(), "w");
    write(f);
    std::fclose(f);
  }

  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key_;
  std::unique_ptr<X509, decltype(&X509_free)> x_;
};

/// An authority, and a server "localhost" with a certificate by it, as files.
struct certificates {
  explicit certificates(const certificate_request& request = {}) : server{request, &authority} {
    authority.write_certificate(folder / "roots.pem");
    server.write(folder / "server.pem", folder / "server.key");
  }
  scratch_folder folder;
  identity authority{{.subject = "an authority", .names = ""}, nullptr, true};
  identity server;
  [[nodiscard]] std::string roots() const { return folder / "roots.pem"; }
  [[nodiscard]] std::string chain() const { return folder / "server.pem"; }
  [[nodiscard]] std::string key() const { return folder / "server.key"; }
};

}  // namespace ramie::tls
