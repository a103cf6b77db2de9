// The API keys, in memory: found by their hash with each request, made, revoked. The table in the
// store is the truth. Engine thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "orchestrator/service/secrets.h"
#include "orchestrator/store/store.h"

namespace permit::service {

class ApiKeys {
 public:
  enum class State { valid, expired, revoked };

  explicit ApiKeys(store::Store& store) : store_(store) { load(); }

  // What the store says, as far as it is known; when each was used last stays.
  void load();

  // The key with this secret, whatever its state; nullptr: none. One hash, and then comparisons
  // that take as long for any secret.
  const store::ApiKeyRow* find(std::string_view secret) const;
  const store::ApiKeyRow* find(std::int64_t id) const;
  static State state_of(const store::ApiKeyRow& key, Time now);
  bool is_valid(std::int64_t id, Time now) const;
  void note_use(std::int64_t id, Time now) { used_at_[id] = now; }

  // How many could be used now to make others.
  int admins(Time now) const;

  ListApiKeysResponse list(Time now) const;
  ApiKeyInfo describe(const store::ApiKeyRow& key, Time now) const;

  // The rows to write for a request; nothing is changed by them here. All throw Error.
  struct Made {
    store::ApiKeyRow row;
    std::string secret;
    std::int64_t forgotten = 0;  // a dead key that makes room; 0: none
  };
  Made make(const CreateApiKeyRequest& request, Time now) const;
  store::ApiKeyRow revoked(const RevokeApiKeyRequest& request, Time now) const;

 private:
  std::int64_t room_for_one(Time now) const;

  store::Store& store_;
  std::map<std::int64_t, store::ApiKeyRow> keys_;  // by id
  // By the first eight bytes of the hash. They lead nobody to the secret.
  std::multimap<std::uint64_t, std::int64_t> by_digest_;
  std::map<std::int64_t, Time> used_at_;
};

}  // namespace permit::service
