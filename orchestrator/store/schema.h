// The version of schema.sql, and the way there from earlier ones.
#pragma once

#include "orchestrator/store/database.h"

namespace permit::store {

inline constexpr int schema_version = 7;

// Makes the tables, or changes those of an earlier version. `is_file`: its pages get seals, too.
void migrate(Database& database, bool is_file);

}  // namespace permit::store
