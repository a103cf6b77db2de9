// The Transport over HTTP: one connection per call under way, kept for the next. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/client.h"
#include "worker/tls.h"

namespace permit::worker {

// PERMIT_ADDRESS, else 127.0.0.1:7376.
std::string default_address();

// How long a call may take before it counts as unanswered.
struct Patience {
  std::chrono::milliseconds connect{5'000};
  std::chrono::milliseconds answer{75'000};  // above the longest poll, 60 s
};

// The messages of one event stream, one after the other.
class EventReader {
 public:
  struct Event {
    std::string name;
    std::string id;  // "" if it has none
    std::string data;
  };
  virtual ~EventReader() = default;
  // Waits for it. Throws Error ANSWER_LOST when the stream has ended, or was silent for longer than
  // any server is that is still there.
  virtual Event next() = 0;
};

class HttpTransport : public Transport {
 public:
  // "host:port", "http://host:port", "https://host:port". Throws Error ADDRESS_INVALID.
  explicit HttpTransport(const std::string& address, Patience patience = {},
                         TlsOptions tls = tls_from_environment());
  ~HttpTransport() override;

  // Throws what the server answers; Error SERVER_UNREACHABLE (unavailable) if it could not be
  // asked, TLS_UNTRUSTED, TLS_NAME_MISMATCH, TLS_CERTIFICATE_REQUIRED, TLS_NOT_SPOKEN,
  // TLS_FILE_INVALID or TLS_FAILED (unavailable) if it is asked in safety only, which could not be
  // had; ANSWER_LOST (unavailable) if it did not answer: the request may or may not have been done.
  std::string call(std::string_view rpc, const std::string& text) override;

  // Sent with every call; "" is none. Before the first call. Without it, default_api_key() is.
  void set_api_key(std::string key) { api_key_ = std::move(key); }

  // The server's event stream, GET `target`, from the one after `last_id` on; "" begins anew.
  // Throws like call().
  std::unique_ptr<EventReader> events(const std::string& target, const std::string& last_id) const;

  const std::string& host() const { return host_; }
  const std::string& port() const { return port_; }

 private:
  class Connection;
  class Events;
  struct Idle {
    std::unique_ptr<Connection> connection;
    std::chrono::steady_clock::time_point since;
  };

  std::string api_key() const;
  std::unique_ptr<Connection> take();
  void put_back(std::unique_ptr<Connection> connection);

  const Patience patience_;
  const TlsOptions tls_;
  bool is_tls_ = false;
  std::string host_;
  std::string port_;
  mutable std::mutex mutex_;
  mutable std::optional<std::string> api_key_;  // that it is, once it is known
  std::vector<Idle> idle_;                      // most recent last
};

}  // namespace permit::worker
