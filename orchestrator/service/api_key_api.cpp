// API keys: what admins ask for.
#include "orchestrator/core/validate.h"
#include "orchestrator/service/service.h"

namespace permit::service {

void Service::create_api_key(CreateApiKeyRequest request, Done<CreateApiKeyResponse> done) {
  submit(done, [this, request = std::move(request), done] {
    core::check_namespace(request.namespace_);
    core::check_optional_name(request.identity, "identity", options_.limits);
    const ApiKeys::Made made = api_keys_.make(request, now_);
    write_api_keys([&](store::Store& store) {
      if (made.forgotten != 0) store.remove_api_key(made.forgotten);
      store.put_api_key(made.row);
    });
    note_key(made.row);
    reply(done, CreateApiKeyResponse{api_keys_.describe(made.row, now_), made.secret});
  });
}

void Service::list_api_keys(ListApiKeysRequest request, Done<ListApiKeysResponse> done) {
  submit_read(done, [this, request = std::move(request), done] {
    core::check_namespace(request.namespace_);
    reply(done, api_keys_.list(now_));
  });
}

void Service::revoke_api_key(RevokeApiKeyRequest request, Done<ApiKeyInfo> done) {
  submit(done, [this, request = std::move(request), done] {
    core::check_namespace(request.namespace_);
    core::check_optional_name(request.identity, "identity", options_.limits);
    const store::ApiKeyRow row = api_keys_.revoked(request, now_);
    write_api_keys([&](store::Store& store) { store.put_api_key(row); });
    note_key(row);
    reply(done, api_keys_.describe(row, now_));
  });
}

void Service::note_key(const store::ApiKeyRow& key) {
  const bool revoked = is_set(key.revoked_at);
  news_.keys.push_back(
      {revoked, key.name, role_name(key.role), revoked ? key.revoked_by : key.created_by});
}

// Memory is what the open batch says; if that comes to nothing, recover() reads again.
void Service::write_api_keys(const std::function<void(store::Store&)>& write) {
  Change change(parts_, now_);
  change.also_write(write);
  finish(change);
  api_keys_.load();
}

}  // namespace permit::service
