// The files of a server: its database, and what lies beside that.
#pragma once

#include <stdexcept>
#include <string>

#include "apps/cli/server_command.h"
#include "orchestrator/store/store.h"

namespace permit::cli {

// It may not run as it is set up.
class StartRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The secret behind holders' tokens: beside the database, not in it, so that a copy of the database
// holds no token. Made if there is none yet. Throws StartRefused if others may read it.
std::string token_secret(const std::string& database);

store::Database::Options database_options(const ServerOptions& options);
// `post` runs something on the engine thread.
store::Opening opening(const ServerOptions& options, store::Settler::Post post);
// Of one more connection, that reads what the store writes.
store::Database::Options reader_options(const ServerOptions& options, store::Store& store);

}  // namespace permit::cli
