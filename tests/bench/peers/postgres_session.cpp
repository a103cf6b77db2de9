#include "tests/bench/peers/postgres_session.h"

#include <stdexcept>

#include "tests/bench/peers/lock_session.h"

#ifdef PERMIT_BENCH_LIBPQ

#include <libpq-fe.h>

#include <array>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

namespace permit::bench {

namespace {

constexpr const char* acquire_sql =
    "UPDATE locks SET owner = $2, until = now() + interval '60 s' "
    "WHERE name = $1 AND (owner IS NULL OR until < now())";
constexpr const char* release_sql = "UPDATE locks SET owner = NULL WHERE name = $1 AND owner = $2";
// With room in each page for the next version of a row, so that no index changes.
constexpr const char* table_sql =
    "CREATE TABLE locks (name text PRIMARY KEY, owner text, until timestamptz) "
    "WITH (fillfactor = 50)";

struct Finish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Connection = std::unique_ptr<PGconn, Finish>;
using Result = std::unique_ptr<PGresult, Clear>;

Connection connect(std::uint16_t port) {
  const std::string where =
      "host=127.0.0.1 user=bench dbname=postgres sslmode=disable port=" + std::to_string(port);
  Connection connection(PQconnectdb(where.c_str()));
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    throw std::runtime_error(PQerrorMessage(connection.get()));
  }
  return connection;
}

void check(const Connection& connection, const Result& result) {
  if (PQresultStatus(result.get()) != PGRES_COMMAND_OK) {
    throw std::runtime_error(PQerrorMessage(connection.get()));
  }
}

class PostgresSession : public LockSession {
 public:
  PostgresSession(std::uint16_t port, std::string key)
      : connection_(connect(port)), key_(std::move(key)) {
    check(connection_, Result(PQprepare(connection_.get(), "acquire", acquire_sql, 2, nullptr)));
    check(connection_, Result(PQprepare(connection_.get(), "release", release_sql, 2, nullptr)));
    const std::array<const char*, 1> values{key_.c_str()};
    check(connection_, Result(PQexecParams(connection_.get(),
                                           "INSERT INTO locks VALUES ($1) ON CONFLICT DO NOTHING",
                                           1, nullptr, values.data(), nullptr, nullptr, 0)));
    if (PQsetnonblocking(connection_.get(), 1) != 0) throw std::runtime_error("libpq would wait");
  }

  int socket() const override { return PQsocket(connection_.get()); }

  void acquire() override {
    acquiring_ = true;
    owner_ = std::to_string(socket()) + "-" + std::to_string(++last_owner_);
    send("acquire");
  }

  void release() override {
    acquiring_ = false;
    send("release");
  }

  Answer receive() override {
    if (PQconsumeInput(connection_.get()) == 0) fail();
    while (PQisBusy(connection_.get()) == 0) {
      const Result result(PQgetResult(connection_.get()));
      if (!result) return std::exchange(answer_, Answer::none);  // the server awaits the next
      check(connection_, result);
      answer_ = meaning(PQcmdTuples(result.get()));
    }
    return Answer::none;
  }

 private:
  [[noreturn]] void fail() const { throw std::runtime_error(PQerrorMessage(connection_.get())); }

  // `rows` that the update has changed.
  Answer meaning(std::string_view rows) const {
    if (acquiring_ && rows == "0") return Answer::refused;
    if (rows != "1") throw std::runtime_error("PostgreSQL: " + std::string(rows) + " rows");
    return acquiring_ ? Answer::granted : Answer::released;
  }

  void send(const char* statement) {
    const std::array<const char*, 2> values{key_.c_str(), owner_.c_str()};
    if (PQsendQueryPrepared(connection_.get(), statement, 2, values.data(), nullptr, nullptr, 0) ==
            0 ||
        PQflush(connection_.get()) != 0) {
      fail();
    }
  }

  Connection connection_;
  std::string key_;
  std::string owner_;
  std::uint64_t last_owner_ = 0;
  bool acquiring_ = false;
  Answer answer_ = Answer::none;  // that came, and is not yet complete
};

}  // namespace

bool has_postgres_client() { return true; }

void make_postgres_table(std::uint16_t port) {
  const std::string where =
      "host=127.0.0.1 user=bench dbname=postgres port=" + std::to_string(port);
  for (int tries = 0; PQping(where.c_str()) != PQPING_OK && tries < 500; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it listens before it is ready
  }
  const Connection connection = connect(port);
  check(connection, Result(PQexec(connection.get(), table_sql)));
}

std::unique_ptr<LockSession> postgres_session(std::uint16_t port, const std::string& key) {
  return std::make_unique<PostgresSession>(port, key);
}

}  // namespace permit::bench

#else

namespace permit::bench {

bool has_postgres_client() { return false; }
void make_postgres_table(std::uint16_t) { throw std::logic_error("built without libpq"); }
std::unique_ptr<LockSession> postgres_session(std::uint16_t, const std::string&) {
  throw std::logic_error("built without libpq");
}

}  // namespace permit::bench

#endif
