#include "orchestrator/service/api_keys.h"

#include <algorithm>
#include <cstring>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/protocol/error.h"

namespace permit::service {

namespace {

constexpr std::size_t keys_max = 10'000;
constexpr Duration lifetime_max = std::chrono::hours(24) * 366 * 10;

std::uint64_t begin_of(const Digest& digest) {
  std::uint64_t begin = 0;
  std::memcpy(&begin, digest.data(), sizeof begin);
  return begin;
}

Digest digest_in(const store::ApiKeyRow& key) {
  Digest digest{};
  ENSURE(key.digest.size() == digest.size());
  std::memcpy(digest.data(), key.digest.data(), digest.size());
  return digest;
}

bool is_name(std::string_view name) {
  const auto is_alpha = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto may_follow = [&](char c) {
    return is_alpha(c) || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 64 && is_alpha(name[0]) &&
         std::all_of(name.begin(), name.end(), may_follow);
}

const char* word_of(ApiKeys::State state) {
  switch (state) {
    case ApiKeys::State::valid:
      return "valid";
    case ApiKeys::State::expired:
      return "expired";
    case ApiKeys::State::revoked:
      return "revoked";
  }
  return "";
}

}  // namespace

void ApiKeys::load() {
  keys_.clear();
  by_digest_.clear();
  for (store::ApiKeyRow& key : store_.api_keys()) {
    by_digest_.emplace(begin_of(digest_in(key)), key.id);
    keys_.emplace(key.id, std::move(key));
  }
}

const store::ApiKeyRow* ApiKeys::find(std::string_view secret) const {
  const Digest digest = digest_of(secret);
  const auto [first, last] = by_digest_.equal_range(begin_of(digest));
  const store::ApiKeyRow* found = nullptr;
  for (auto candidate = first; candidate != last; ++candidate) {
    const store::ApiKeyRow& key = keys_.at(candidate->second);
    if (is_equal(digest_in(key), digest)) found = &key;
  }
  return found;
}

const store::ApiKeyRow* ApiKeys::find(std::int64_t id) const {
  const auto found = keys_.find(id);
  return found == keys_.end() ? nullptr : &found->second;
}

ApiKeys::State ApiKeys::state_of(const store::ApiKeyRow& key, Time now) {
  if (is_set(key.revoked_at)) return State::revoked;
  return key.expires_at <= now ? State::expired : State::valid;
}

bool ApiKeys::is_valid(std::int64_t id, Time now) const {
  const store::ApiKeyRow* key = find(id);
  return key != nullptr && state_of(*key, now) == State::valid;
}

int ApiKeys::admins(Time now) const {
  return static_cast<int>(std::count_if(keys_.begin(), keys_.end(), [&](const auto& entry) {
    return entry.second.role == Role::admin && state_of(entry.second, now) == State::valid;
  }));
}

ApiKeyInfo ApiKeys::describe(const store::ApiKeyRow& key, Time now) const {
  ApiKeyInfo info;
  info.id = Count{key.id};
  info.name = key.name;
  info.role = key.role;
  info.namespace_ = key.namespace_;
  info.state = word_of(state_of(key, now));
  info.created_at = key.created_at;
  info.created_by = key.created_by;
  if (key.expires_at != never) info.expires_at = key.expires_at;
  info.revoked_at = key.revoked_at;
  info.revoked_by = key.revoked_by;
  const auto used = used_at_.find(key.id);
  if (used != used_at_.end()) info.last_used_at = used->second;
  return info;
}

ListApiKeysResponse ApiKeys::list(Time now) const {
  ListApiKeysResponse response;
  for (const auto& [id, key] : keys_) response.keys.push_back(describe(key, now));
  return response;
}

// --- Changes ---

// The oldest key that opens nothing any more, if the table is full.
std::int64_t ApiKeys::room_for_one(Time now) const {
  if (keys_.size() < keys_max) return 0;
  for (const auto& [id, key] : keys_) {
    const bool is_newest = id == keys_.rbegin()->first;  // whose id must not come again
    if (state_of(key, now) != State::valid && !is_newest) return id;
  }
  throw resource_exhausted("API_KEYS_LIMIT", "there are " + std::to_string(keys_max) +
                                                 " API keys already; revoke some of them");
}

ApiKeys::Made ApiKeys::make(const CreateApiKeyRequest& request, Time now) const {
  if (!is_name(request.name)) {
    throw invalid_argument("API_KEY_NAME_INVALID",
                           "the name of an API key is a letter and then up to 63 characters of "
                           "A-Z a-z 0-9 . _ -");
  }
  if (request.role == Role::unspecified) {
    throw invalid_argument("API_KEY_ROLE_INVALID",
                           "say which role the key has: read, worker or admin");
  }
  if (request.lifetime.count() < 0 || request.lifetime > lifetime_max) {
    throw invalid_argument("API_KEY_LIFETIME_INVALID",
                           "the lifetime of an API key is above 0s and at most 10 years");
  }
  for (const auto& [id, key] : keys_) {
    if (key.name != request.name || is_set(key.revoked_at)) continue;
    throw Error(ErrorCode::already_exists, "API_KEY_EXISTS",
                "there is an API key " + request.name +
                    " already; choose another name, or revoke that one first");
  }
  Made made;
  made.forgotten = room_for_one(now);
  made.secret = new_api_key();
  const Digest digest = digest_of(made.secret);
  store::ApiKeyRow& row = made.row;
  row.id = keys_.empty() ? 1 : keys_.rbegin()->first + 1;
  row.name = request.name;
  row.digest.assign(digest.begin(), digest.end());
  row.role = request.role;
  row.namespace_ = request.namespace_;
  row.created_at = now;
  row.created_by = request.identity;
  if (request.lifetime.count() > 0) row.expires_at = now + request.lifetime;
  return made;
}

store::ApiKeyRow ApiKeys::revoked(const RevokeApiKeyRequest& request, Time now) const {
  const store::ApiKeyRow* found = nullptr;
  for (const auto& [id, key] : keys_) {
    const bool by_name = key.name == request.key && !is_set(key.revoked_at);
    if (by_name || std::to_string(id) == request.key) found = &key;
  }
  if (found == nullptr) {
    throw not_found("API_KEY_NOT_FOUND",
                    "no API key in use has this name, and none this id; see permit api-key list");
  }
  store::ApiKeyRow row = *found;
  if (is_set(row.revoked_at)) return row;  // as it was
  row.revoked_at = now;
  row.revoked_by = request.identity;
  return row;
}

}  // namespace permit::service
