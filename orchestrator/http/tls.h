// The server's side of TLS: the certificate that it shows, and whose certificates it asks of its
// clients. Made once from files; a connection keeps the one that it began with.
#pragma once

#include <chrono>
#include <memory>
#include <string>

struct ssl_ctx_st;

namespace permit::http {

struct TlsFiles {
  std::string certificate;  // PEM: the server's own first, then what leads to its authority
  std::string key;          // PEM; nobody but its owner may read it
  std::string client_ca;    // PEM; empty: clients need no certificate
};

class TlsContext {
 public:
  // Throws Error: TLS_INCOMPLETE, TLS_CERTIFICATE_INVALID, TLS_CERTIFICATE_EXPIRED,
  // TLS_KEY_INVALID, TLS_KEY_EXPOSED, TLS_KEY_MISMATCH, TLS_CLIENT_CA_INVALID.
  TlsContext(const TlsFiles& files, std::chrono::system_clock::time_point now);

  ssl_ctx_st* native() const { return context_.get(); }

  // Whose certificate it is and until when, and whether clients need one, for the log.
  const std::string& summary() const { return summary_; }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
  std::string summary_;
};

}  // namespace permit::http
