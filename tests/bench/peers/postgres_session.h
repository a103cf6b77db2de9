// PostgreSQL: a row for each lock, there from the beginning; taken and given back by an update
// that says whose it is and until when. libpq's asynchronous calls, prepared statements.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace permit::bench {

class LockSession;

// Whether this program was built with libpq.
bool has_postgres_client();
void make_postgres_table(std::uint16_t port);
std::unique_ptr<LockSession> postgres_session(std::uint16_t port, const std::string& key);

}  // namespace permit::bench
