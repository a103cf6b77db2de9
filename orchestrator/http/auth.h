// Who asks: finds out by the API key of a request, or by the session that a browser has for one.
// And whether they may. Belongs to the engine thread; a check is a hash and a look into memory.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/http/message.h"
#include "orchestrator/protocol/api_keys.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/service/api_keys.h"

namespace permit::http {

// What a route takes at least. Each is good for what stands before it, too.
enum class Access { open, read, worker, admin };
const char* access_name(Access access);

struct AuthOptions {
  bool needs_key = false;  // else whoever comes without one may do everything
  bool has_tls = false;    // the cookie goes over TLS only
};

// Who made a request.
struct Caller {
  Access access = Access::open;  // what they may use
  std::int64_t key = 0;          // 0: they have none
  std::string key_name;
  std::string namespace_;              // that of the key; empty: any
  std::optional<std::string> session;  // by which they come, if not with the key itself
};

class Auth {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  static constexpr int wrong_keys_max = 20;  // a second, from one peer
  static constexpr std::size_t peers_max = 4'096;
  static constexpr std::size_t sessions_max = 1'000;
  static constexpr std::size_t sessions_of_key_max = 100;
  static constexpr std::chrono::hours session_time{12};

  Auth(service::ApiKeys& keys, AuthOptions options) : keys_(keys), options_(options) {}

  // Throws Error for a key that is not good, whatever is asked; none at all is no error yet.
  Caller caller_of(const Request& request, Time now);

  // Throws Error unless they may use what takes this access: 401 if they have no key, 403 if it is
  // not good enough.
  static void require(const Caller& caller, Access access);

  // Whether a request that this caller made may go on: for those that last.
  bool is_good(const Caller& caller, Time now);

  // The header that gives a browser its session for a key. Throws Error for one that is not good.
  struct Login {
    LoginResponse response;
    Header cookie;
  };
  Login log_in(const Request& request, const std::string& secret, Time now);
  Header log_out(const Request& request);

  // Told once for each peer and second that brings more wrong keys than that; for the log.
  std::optional<std::string> take_noisy_peer();

 private:
  struct Session {
    std::int64_t key = 0;
    SteadyTime ends;
  };

  Caller with_key(const store::ApiKeyRow& key, Time now);
  const store::ApiKeyRow& key_of(const Request& request, std::string_view secret, Time now);
  std::optional<Caller> by_session(const Request& request, Time now);
  void make_room_for(std::int64_t key);
  [[noreturn]] void refuse_wrong(const std::string& peer);
  Header cookie(const Request& request, const std::string& value) const;

  service::ApiKeys& keys_;
  const AuthOptions options_;
  std::map<service::Digest, Session> sessions_;  // by the hash of the cookie's value
  std::map<std::string, int> wrong_keys_;        // by address, within the second at hand
  SteadyTime second_{};
  std::optional<std::string> noisy_;
};

// Throws Error if there is a key in what would be written to logs: paths and queries.
void refuse_key_in_target(const Request& request);

}  // namespace permit::http
