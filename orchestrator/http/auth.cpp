#include "orchestrator/http/auth.h"

#include <algorithm>

#include "orchestrator/http/url.h"

namespace permit::http {

namespace {

Error unauthenticated(std::string reason, std::string message) {
  return Error(ErrorCode::unauthenticated, std::move(reason), std::move(message));
}

// Without the port: connections of one peer count together.
std::string address_of(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

bool is_bearer(std::string_view scheme) {
  constexpr std::string_view bearer = "bearer";
  return std::equal(scheme.begin(), scheme.end(), bearer.begin(), bearer.end(),
                    [](char a, char b) { return (a | 0x20) == b; });
}

// Cookies are of a host, whatever its port, and two servers on one host must not share theirs.
std::string cookie_name(const Request& request) {
  const std::string* host = request.header("host");
  const std::size_t colon =
      host == nullptr ? std::string::npos : host->find(':', host->rfind(']') + 1);
  return colon == std::string::npos ? "permit_session"
                                    : "permit_session_" + host->substr(colon + 1);
}

std::optional<std::string> session_of(const Request& request) {
  const std::string* cookies = request.header("cookie");
  if (cookies == nullptr) return std::nullopt;
  const std::string wanted = cookie_name(request) + "=";
  std::string_view rest = *cookies;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find(';'));
    if (pair.starts_with(wanted)) return std::string(pair.substr(wanted.size()));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    while (rest.starts_with(' ')) rest.remove_prefix(1);
  }
  return std::nullopt;
}

// A cookie comes with whatever a browser asks, so what changes anything must come from our page.
// The gate has refused pages of other origins; here the browser has to have said that it is ours.
void require_own_page(const Request& request) {
  if (request.method == "GET" || request.method == "HEAD") return;
  if (request.header("origin") != nullptr || request.header("sec-fetch-site") != nullptr) return;
  throw Error(ErrorCode::permission_denied, "ORIGIN_MISSING",
              "a session's cookie is for the page; programs send Authorization: Bearer and a key");
}

Access access_of(Role role) { return static_cast<Access>(static_cast<int>(role)); }
static_assert(static_cast<int>(Access::admin) == static_cast<int>(Role::admin));
static_assert(static_cast<int>(Access::read) == static_cast<int>(Role::read));

}  // namespace

const char* access_name(Access access) {
  return access == Access::open ? "open" : role_name(static_cast<Role>(static_cast<int>(access)));
}

// --- Who ---

Caller Auth::caller_of(const Request& request, Time now) {
  refuse_key_in_target(request);
  const std::string* header = request.header("authorization");
  if (header != nullptr) {
    const std::size_t space = header->find(' ');
    const std::string_view scheme = std::string_view(*header).substr(0, space);
    std::string_view secret;
    if (space != std::string::npos) secret = std::string_view(*header).substr(space + 1);
    const bool bearer = is_bearer(scheme);
    // Where no key is needed, what is not one of ours was meant for a proxy in front.
    if (options_.needs_key || (bearer && secret.starts_with("permit_"))) {
      if (!bearer) refuse_wrong(request.peer);
      return with_key(key_of(request, secret, now), now);
    }
  }
  if (auto caller = by_session(request, now)) return std::move(*caller);
  Caller nobody;
  if (!options_.needs_key) nobody.access = Access::admin;
  return nobody;
}

const store::ApiKeyRow& Auth::key_of(const Request& request, std::string_view secret, Time now) {
  using State = service::ApiKeys::State;
  const store::ApiKeyRow* key = service::looks_like_api_key(secret) ? keys_.find(secret) : nullptr;
  if (key == nullptr) refuse_wrong(request.peer);
  const State state = service::ApiKeys::state_of(*key, now);
  if (state == State::valid) return *key;
  if (state == State::revoked) {
    throw unauthenticated("API_KEY_REVOKED", "the API key " + key->name + " has been revoked");
  }
  throw unauthenticated("API_KEY_EXPIRED", "the API key " + key->name + " has expired");
}

Caller Auth::with_key(const store::ApiKeyRow& key, Time now) {
  keys_.note_use(key.id, now);
  return {access_of(key.role), key.id, key.name, key.namespace_, std::nullopt};
}

// None, if what it says is no session that we know: it may be one of a process before.
std::optional<Caller> Auth::by_session(const Request& request, Time now) {
  const auto value = session_of(request);
  if (!value) return std::nullopt;
  const auto session = sessions_.find(service::digest_of(*value));
  if (session == sessions_.end()) return std::nullopt;
  const store::ApiKeyRow* key = keys_.find(session->second.key);
  const bool is_over = session->second.ends <= std::chrono::steady_clock::now() || key == nullptr ||
                       service::ApiKeys::state_of(*key, now) != service::ApiKeys::State::valid;
  if (is_over) {
    sessions_.erase(session);
    return std::nullopt;
  }
  require_own_page(request);
  Caller caller = with_key(*key, now);
  caller.session = *value;
  return caller;
}

void Auth::refuse_wrong(const std::string& peer) {
  const auto now = std::chrono::steady_clock::now();
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    wrong_keys_.clear();
  }
  // When there are too many peers to tell apart, the others count as one.
  std::string address = address_of(peer);
  if (wrong_keys_.size() >= peers_max && !wrong_keys_.contains(address)) address = "others";
  const int wrong = ++wrong_keys_[address];
  if (wrong <= wrong_keys_max) {
    throw unauthenticated("API_KEY_WRONG",
                          "this is no API key of this server; send Authorization: Bearer and a "
                          "key that permit api-key create has made");
  }
  if (wrong == wrong_keys_max + 1) noisy_ = address;
  throw resource_exhausted("API_KEYS_WRONG", "too many wrong API keys have come from there; wait");
}

std::optional<std::string> Auth::take_noisy_peer() { return std::exchange(noisy_, std::nullopt); }

// --- What they may ---

void Auth::require(const Caller& caller, Access access) {
  if (caller.access >= access) return;
  const std::string needed = access_name(access);
  if (caller.key == 0) {
    throw unauthenticated("API_KEY_MISSING", "this takes an API key with the role " + needed +
                                                 "; send it as Authorization: Bearer permit_…");
  }
  throw Error(ErrorCode::permission_denied, "ROLE_TOO_LOW",
              "this takes an API key with the role " + needed + "; " + caller.key_name +
                  " has the role " + access_name(caller.access));
}

bool Auth::is_good(const Caller& caller, Time now) {
  if (caller.key == 0) return true;
  if (!keys_.is_valid(caller.key, now)) return false;
  if (!caller.session) return true;
  const auto session = sessions_.find(service::digest_of(*caller.session));
  return session != sessions_.end() && session->second.ends > std::chrono::steady_clock::now();
}

// --- Sessions ---

// Who logs in often puts an end to sessions of the same key first.
void Auth::make_room_for(std::int64_t key) {
  auto oldest = sessions_.end();
  auto oldest_own = sessions_.end();
  std::size_t own = 0;
  const auto keep_older = [&](auto& kept, auto session) {
    if (kept == sessions_.end() || session->second.ends < kept->second.ends) kept = session;
  };
  for (auto session = sessions_.begin(); session != sessions_.end(); ++session) {
    keep_older(oldest, session);
    if (session->second.key != key) continue;
    keep_older(oldest_own, session);
    ++own;
  }
  if (own >= sessions_of_key_max) {
    sessions_.erase(oldest_own);
  } else if (sessions_.size() >= sessions_max) {
    sessions_.erase(oldest);
  }
}

Auth::Login Auth::log_in(const Request& request, const std::string& secret, Time now) {
  const store::ApiKeyRow& key = key_of(request, secret, now);
  const auto steady_now = std::chrono::steady_clock::now();
  std::erase_if(sessions_, [&](const auto& entry) { return entry.second.ends <= steady_now; });
  make_room_for(key.id);
  const std::string value = service::random_secret();
  sessions_[service::digest_of(value)] = {key.id, steady_now + session_time};
  keys_.note_use(key.id, now);
  return {{key.name, key.role}, cookie(request, value)};
}

Header Auth::log_out(const Request& request) {
  if (const auto value = session_of(request)) sessions_.erase(service::digest_of(*value));
  Header gone = cookie(request, "");
  gone.value += "; Max-Age=0";
  return gone;
}

// A proxy in front may speak TLS though we do not.
Header Auth::cookie(const Request& request, const std::string& value) const {
  const std::string* origin = request.header("origin");
  const bool secure = options_.has_tls || (origin != nullptr && origin->starts_with("https://"));
  return {"Set-Cookie", cookie_name(request) + "=" + value + "; Path=/; HttpOnly; SameSite=Strict" +
                            (secure ? "; Secure" : "")};
}

void refuse_key_in_target(const Request& request) {
  std::optional<std::string> decoded;
  if (request.target.find('%') != std::string::npos) decoded = percent_decode(request.target);
  const std::string& target = decoded ? *decoded : request.target;
  const bool may_have = target.find("permit_") != std::string::npos;
  const bool has_key = (may_have && service::without_api_keys(target) != target) ||
                       request.query.find("access_token=") != std::string::npos ||
                       request.query.find("api_key=") != std::string::npos;
  if (!has_key) return;
  throw invalid_argument("API_KEY_IN_TARGET",
                         "an API key must not be in a path or query, where proxies and browsers "
                         "write it down; send it as Authorization: Bearer, and revoke this one");
}

}  // namespace permit::http
