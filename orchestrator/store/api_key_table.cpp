#include "orchestrator/store/api_key_table.h"

#include "orchestrator/protocol/ensure.h"

namespace permit::store {

namespace {

std::optional<std::int64_t> optional_us(Time time) {
  if (!is_set(time) || time == never) return std::nullopt;
  return time.time_since_epoch().count();
}

Time from_us(std::optional<std::int64_t> us, Time otherwise) {
  return us ? Time(Duration(*us)) : otherwise;
}

Role role_of(std::int32_t number) {
  ENSURE(number >= static_cast<int>(Role::read) && number <= static_cast<int>(Role::admin));
  return static_cast<Role>(number);
}

}  // namespace

std::vector<ApiKeyRow> ApiKeyTable::all() {
  std::vector<ApiKeyRow> rows;
  for (auto row = all_.bind(); row.step();) {
    rows.push_back({row.i64(0), std::string(row.text(1)), std::string(row.blob(2)),
                    role_of(row.i32(3)), std::string(row.text(4)), from_us(row.i64(5), {}),
                    std::string(row.text(6)), from_us(row.optional_i64(7), never),
                    from_us(row.optional_i64(8), {}), std::string(row.text(9))});
  }
  return rows;
}

void ApiKeyTable::put(const ApiKeyRow& row) {
  put_.run(row.id, row.name, Blob{row.digest}, static_cast<std::int32_t>(row.role), row.namespace_,
           row.created_at.time_since_epoch().count(), row.created_by, optional_us(row.expires_at),
           optional_us(row.revoked_at), row.revoked_by);
}

void ApiKeyTable::remove(std::int64_t id) { remove_.run(id); }

}  // namespace permit::store
