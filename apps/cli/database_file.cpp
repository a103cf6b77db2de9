#include "apps/cli/database_file.h"

#include <filesystem>

#include "orchestrator/protocol/error.h"
#include "orchestrator/service/api_keys.h"
#include "orchestrator/service/clock.h"
#include "orchestrator/store/lock_file.h"
#include "orchestrator/store/store.h"

namespace permit::cli {

namespace {

store::Database::Options options_of(const std::string& path) {
  store::Database::Options options;
  options.path = path;
  return options;
}

// The file, for as long as this lives.
class KeyFile {
 public:
  explicit KeyFile(const std::string& path)
      : lock_(path, std::chrono::system_clock::now()),
        store_(options_of(path)),
        now_(service::SystemClock(store_.counters().time_max).now()),
        keys_(store_) {}

  const service::ApiKeys& keys() const { return keys_; }
  Time now() const { return now_; }

  void write(const store::ApiKeyRow& row, std::int64_t forgotten = 0) {
    store_.begin();
    if (forgotten != 0) store_.remove_api_key(forgotten);
    store_.put_api_key(row);
    store_.commit(now_);
    keys_.load();
  }

 private:
  store::LockFile lock_;
  store::Store store_;
  const Time now_;
  service::ApiKeys keys_;
};

void check_namespace(const std::string& name) {
  if (name == "default") return;
  throw not_found("NAMESPACE_NOT_FOUND", "there is no such namespace; only \"default\" exists");
}

void require_file(const std::string& path) {
  if (std::filesystem::exists(path)) return;
  throw not_found("DATABASE_NOT_FOUND", "there is no database " + path);
}

}  // namespace

CreateApiKeyResponse create_api_key_in(const std::string& database,
                                       const CreateApiKeyRequest& request) {
  check_namespace(request.namespace_);
  KeyFile file(database);
  const service::ApiKeys::Made made = file.keys().make(request, file.now());
  file.write(made.row, made.forgotten);
  return {file.keys().describe(made.row, file.now()), made.secret};
}

ListApiKeysResponse list_api_keys_in(const std::string& database) {
  require_file(database);
  const KeyFile file(database);
  return file.keys().list(file.now());
}

ApiKeyInfo revoke_api_key_in(const std::string& database, const RevokeApiKeyRequest& request) {
  require_file(database);
  KeyFile file(database);
  const store::ApiKeyRow row = file.keys().revoked(request, file.now());
  file.write(row);
  return file.keys().describe(row, file.now());
}

}  // namespace permit::cli
