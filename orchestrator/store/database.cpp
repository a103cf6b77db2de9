#include "orchestrator/store/database.h"

#include <sqlite3.h>

#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include "orchestrator/protocol/ensure.h"

namespace permit::store {

namespace {

constexpr int busy_timeout_ms = 5000;
constexpr int instructions_between_deadline_checks = 1000;

// SQLITE_TRANSIENT without its C cast: SQLite copies the value. Null, SQLITE_STATIC: it does not.
sqlite3_destructor_type copied() {
  return reinterpret_cast<sqlite3_destructor_type>(std::intptr_t{-1});
}

std::string describe(sqlite3* connection, int code, std::string_view action) {
  const char* text = connection != nullptr && sqlite3_errcode(connection) != SQLITE_OK
                         ? sqlite3_errmsg(connection)
                         : sqlite3_errstr(code);
  const char* path = connection != nullptr ? sqlite3_db_filename(connection, "main") : nullptr;
  std::string message =
      std::string(action) + ": " + text + " (SQLite " + std::to_string(code) + ")";
  if (path != nullptr && *path != '\0') message += std::string(" in ") + path;
  return message;
}

// Debian's SQLite reads a name that starts with "file:" as a URI, options included.
std::string plain_path(const std::string& path) {
  return path.starts_with("file:") ? "./" + path : path;
}

// SQLite's memory statistics take a mutex at every allocation, and nobody asks for them. Counts
// before SQLite's first use in the process only; later it is refused, and all goes on as it was.
void keep_no_statistics() { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

bool harmless_to_checkpoint(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_OK || primary == SQLITE_BUSY || primary == SQLITE_LOCKED ||
         primary == SQLITE_FULL;
}

bool is_damage(int code) {
  const int primary = code & 0xff;
  return code == SQLITE_IOERR_DATA || primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB;
}

sqlite3_file* file_of(sqlite3* connection) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  ENSURE(file != nullptr && file->pMethods != nullptr);
  return file;
}

// SQLite takes an empty file for a new database and deletes the log beside it. But a log is only
// ever written next to a file of at least one page, so this file has been lost, not created.
void refuse_lost_file(sqlite3* connection) {
  sqlite3_file* file = file_of(connection);
  sqlite3_vfs* vfs = nullptr;
  sqlite3_int64 size = 0;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_VFS_POINTER, &vfs);
  ENSURE(vfs != nullptr);
  int code = file->pMethods->xFileSize(file, &size);
  if (code != SQLITE_OK) throw StoreFailed(code, describe(connection, code, "open"));
  if (size > 0) return;

  const std::string path = sqlite3_db_filename(connection, "main");
  const std::string log = path + "-wal";
  int log_exists = 0;
  code = vfs->xAccess(vfs, log.c_str(), SQLITE_ACCESS_EXISTS, &log_exists);
  if (code != SQLITE_OK) throw StoreFailed(code, describe(connection, code, "open"));
  if (log_exists != 0) {
    throw Damaged(SQLITE_CORRUPT, path + " is empty or missing, but its write-ahead log " + log +
                                      " is not: the database file was lost. Restore it, or "
                                      "move the log away to start with an empty database");
  }
}

}  // namespace

// Database

Database::Database(Options options)
    : options_(std::move(options)), connection_(nullptr, sqlite3_close_v2) {
  try {
    open();
    configure();
  } catch (const BadStatement& error) {  // a file so odd that SQLite blames the SQL
    throw StoreFailed(SQLITE_ERROR, error.what());
  }
}

Database::~Database() = default;

void Database::open() {
  std::string path = plain_path(options_.path);
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  switch (options_.mode) {
    case Mode::read_write_create:
      flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      break;
    case Mode::read_only:
      flags |= SQLITE_OPEN_READONLY;
      break;
    case Mode::in_memory:
      path = ":memory:";
      flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      break;
  }
  if (options_.mode != Mode::in_memory && (path.empty() || path == ":memory:")) {
    throw StoreFailed(SQLITE_CANTOPEN, "the database needs a file; its path is '" + path + "'");
  }
  keep_no_statistics();
  if (options_.mode != Mode::in_memory) guard_ = std::make_unique<PageGuard>(options_.vfs);
  if (guard_ && options_.expects_seals) guard_->expect_seals();
  sqlite3* connection = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &connection, flags, guard_ ? guard_->name().c_str() : nullptr);
  connection_.reset(connection);
  if (code != SQLITE_OK) throw StoreFailed(code, describe(connection, code, "open " + path));
}

void Database::configure() {
  sqlite3* connection = connection_.get();
  // Until the file has proved to be ours, closing it must not checkpoint into it.
  sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(connection, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
  sqlite3_busy_timeout(connection, busy_timeout_ms);
  if (options_.mode != Mode::in_memory) refuse_lost_file(connection);

  execute(
      "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON;"
      "PRAGMA temp_store = MEMORY;");
  refuse_unknown_version();
  if (options_.mode == Mode::read_only) {
    execute("PRAGMA query_only = ON; PRAGMA wal_autocheckpoint = 0;");
  } else {
    configure_writer();
  }
  execute("SELECT count(*) FROM sqlite_schema;");  // parses it: a damaged one fails here
  execute("PRAGMA cache_size = -16384;");  // 16 MiB; twice that if the page size is not known yet

  const bool writes = options_.mode != Mode::read_only;
  begin_ = std::make_unique<Statement>(*this, writes ? "BEGIN IMMEDIATE" : "BEGIN");
  commit_ = std::make_unique<Statement>(*this, "COMMIT");
  rollback_ = std::make_unique<Statement>(*this, "ROLLBACK");
}

void Database::configure_writer() {
  execute("PRAGMA page_size = 8192;");  // counts in a new file only, before the WAL
  int room = seal_bytes;                // the same
  if (guard_) sqlite3_file_control(connection_.get(), "main", SQLITE_FCNTL_RESERVE_BYTES, &room);
  Statement journal_mode(*this, "PRAGMA journal_mode = WAL");
  {
    auto row = journal_mode.bind();
    const bool answered = row.step();
    const std::string_view expected = options_.mode == Mode::in_memory ? "memory" : "wal";
    if (!answered || row.text(0) != expected) {
      throw StoreFailed(SQLITE_CANTOPEN, "cannot keep a write-ahead log for " + options_.path);
    }
  }
  // Nothing of an open transaction goes to the log: the guard could not check what it reads there.
  execute("PRAGMA synchronous = FULL; PRAGMA cache_spill = OFF;");

  // As sqlite3_wal_autocheckpoint(), whose own hook drops the error of a failed sync.
  const auto on_commit = [](void* self, sqlite3*, const char*, int wal_pages) {
    auto* database = static_cast<Database*>(self);
    database->wal_pages_ = wal_pages;
    const int pages_min = database->options_.autocheckpoint_pages_min;
    if (pages_min <= 0 || wal_pages < pages_min) return SQLITE_OK;
    const int code = database->checkpoint_now();
    if (code != SQLITE_OK) database->remember_failure(code, "checkpoint after a commit");
    return code;  // of which SQLite makes a plain SQLITE_ERROR of the COMMIT; fail() knows better
  };
  sqlite3_wal_hook(connection_.get(), on_commit, this);
  sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
}

void Database::refuse_unknown_version() {
  const int version = user_version();
  if (version >= 0 && version <= options_.user_version_max) return;
  throw StoreFailed(SQLITE_SCHEMA, options_.path + " has schema version " +
                                       std::to_string(version) +
                                       ", and this program knows versions up to " +
                                       std::to_string(options_.user_version_max) +
                                       ": run the program that wrote it, or a later one");
}

void Database::execute(const char* sql) {
  require_ready();
  const int code = sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code, sql);
}

int Database::user_version() {
  Statement statement(*this, "PRAGMA user_version");
  auto row = statement.bind();
  ENSURE(row.step());
  return row.i32(0);
}

void Database::set_user_version(int version) {
  execute(("PRAGMA user_version = " + std::to_string(version)).c_str());
}

std::string Database::quick_check() { return check_integrity("PRAGMA quick_check"); }
std::string Database::integrity_check() { return check_integrity("PRAGMA integrity_check"); }

std::string Database::check_integrity(const char* pragma) {
  Statement statement(*this, pragma);
  std::string report;
  for (auto row = statement.bind(); row.step();) {
    if (!report.empty()) report += '\n';
    report += row.text(0);
  }
  return report;
}

std::int64_t Database::last_insert_rowid() const {
  return sqlite3_last_insert_rowid(connection_.get());
}

void Database::checkpoint() {
  require_ready();
  const int code = checkpoint_now();
  if (code != SQLITE_OK) fail(code, "checkpoint");
}

int Database::checkpoint_now() {
  const int code = sqlite3_wal_checkpoint_v2(connection_.get(), "main", SQLITE_CHECKPOINT_PASSIVE,
                                             nullptr, nullptr);
  return harmless_to_checkpoint(code) ? SQLITE_OK : code;
}

void Database::interrupt_when(std::function<bool()> expired) {
  expired_ = std::move(expired);
  const auto ask = [](void* self) noexcept -> int {
    return static_cast<Database*>(self)->expired_();
  };
  sqlite3_progress_handler(connection_.get(), instructions_between_deadline_checks,
                           expired_ ? +ask : nullptr, this);
}

void Database::require_usable() const {
  if (failed_code_ != 0) throw StoreFailed(failed_code_, "the store has failed before: " + failed_);
}

void Database::require_ready() const {
  require_usable();
  if (must_roll_back_)
    throw BadStatement("the transaction has failed and must be rolled back first");
}

std::string Database::explain(int code, std::string_view action) const {
  std::string text = describe(connection_.get(), code, action);
  if (!is_damage(code)) return text;
  if (guard_ && !guard_->damage().empty()) text += ": " + guard_->damage();
  return text + ". See what is wrong with: permit server check --database " + options_.path;
}

void Database::fail(int code, std::string_view sql) {
  require_usable();  // throws if the checkpoint after this very commit failed
  const std::string message = explain(code, sql);
  const int primary = code & 0xff;
  if (primary == SQLITE_CONSTRAINT) throw ConstraintViolated(message);
  must_roll_back_ = in_transaction_;

  const bool write_to_reader = code == SQLITE_READONLY && options_.mode == Mode::read_only;
  if (write_to_reader) throw BadStatement(message);
  switch (primary) {
    case SQLITE_FULL:
      throw DiskFull(message);
    case SQLITE_INTERRUPT:
      throw Interrupted(message);
    case SQLITE_NOMEM:
      throw std::bad_alloc();
    case SQLITE_ERROR:
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_LOCKED:
    case SQLITE_ABORT:
      throw BadStatement(message);
    case SQLITE_BUSY:
      throw StoreFailed(code, message);
    default:
      remember_failure(code, sql);
      if (is_damage(code)) throw Damaged(code, message);
      throw StoreFailed(code, message);
  }
}

void Database::remember_failure(int code, std::string_view action) noexcept {
  try {
    failed_ = explain(code, action);
  } catch (const std::bad_alloc&) {
    failed_.clear();
  }
  failed_code_ = code;
  leave_as_it_is();  // after a failed sync nobody knows what is on disk: nothing more on top
}

void Database::leave_as_it_is() noexcept {
  sqlite3_db_config(connection_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

void Database::begin() {
  if (in_transaction_) throw BadStatement("BEGIN: a transaction is open already");
  begin_->run();
  in_transaction_ = true;
}

void Database::commit() {
  try {
    commit_->run();
  } catch (...) {
    rollback();
    throw;
  }
  in_transaction_ = false;
}

// Not by run(), which a failed transaction refuses. SQLite may have rolled back by itself.
void Database::rollback() noexcept {
  in_transaction_ = false;
  must_roll_back_ = false;
  if (sqlite3_get_autocommit(connection_.get()) != 0) return;
  const int code = sqlite3_step(rollback_->statement_);
  if (code != SQLITE_DONE) remember_failure(code, "ROLLBACK");
  rollback_->reset();
}

// Statement

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  database_.require_usable();
  ENSURE(sql.size() < static_cast<std::size_t>(std::numeric_limits<int>::max()));
  const char* tail = nullptr;
  const int code =
      sqlite3_prepare_v3(database_.connection_.get(), sql.data(), static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT, &statement_, &tail);
  if (code != SQLITE_OK) database_.fail(code, sql);
  const std::string_view rest(tail, static_cast<std::size_t>(sql.data() + sql.size() - tail));
  if (statement_ == nullptr || rest.find_first_not_of(" \t\n;") != rest.npos) {
    sqlite3_finalize(statement_);
    throw BadStatement("not one statement: " + std::string(sql));
  }
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::require_ready(int values) {
  database_.require_ready();
  if (in_use_) throw BadStatement("a cursor still reads from " + std::string(sql()));
  if (values != sqlite3_bind_parameter_count(statement_)) {
    throw BadStatement(std::to_string(values) + " values for " + std::string(sql()));
  }
}

void Statement::bind_null(int parameter) { check_bound(sqlite3_bind_null(statement_, parameter)); }

void Statement::bind_i64(int parameter, std::int64_t value) {
  check_bound(sqlite3_bind_int64(statement_, parameter, value));
}

void Statement::bind_real(int parameter, double value) {
  if (std::isnan(value))
    throw BadStatement("NaN, which SQLite stores as NULL, for " + std::string(sql()));
  check_bound(sqlite3_bind_double(statement_, parameter, value));
}

// In both: a null pointer would bind NULL, and an empty view may have one.
void Statement::bind_text(int parameter, Lifetime lifetime, std::string_view text) {
  const char* data = text.empty() ? "" : text.data();
  check_bound(sqlite3_bind_text64(statement_, parameter, data, text.size(),
                                  lifetime == Lifetime::outlives_use ? nullptr : copied(),
                                  SQLITE_UTF8));
}

void Statement::bind_blob(int parameter, Lifetime lifetime, std::string_view bytes) {
  const char* data = bytes.empty() ? "" : bytes.data();
  check_bound(sqlite3_bind_blob64(statement_, parameter, data, bytes.size(),
                                  lifetime == Lifetime::outlives_use ? nullptr : copied()));
}

void Statement::check_bound(int code) {
  if (code != SQLITE_OK) database_.fail(code, sql());
}

std::int64_t Statement::run_bound() {
  while (step()) {
  }
  const std::int64_t changed = sqlite3_changes64(database_.connection_.get());
  reset();
  return changed;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  struct ResetAfterThrow {  // not before: it would take SQLite's message along
    Statement& statement;
    ~ResetAfterThrow() { statement.reset(); }
  } reset_after_throw{*this};
  database_.fail(code, sql());
}

void Statement::reset() noexcept { sqlite3_reset(statement_); }

std::string_view Statement::sql() const { return sqlite3_sql(statement_); }

// Statement::Cursor

Statement::Cursor::~Cursor() { finish(); }

bool Statement::Cursor::step() {
  if (done_) return false;
  if (statement_.step()) return true;
  finish();
  return false;
}

void Statement::Cursor::finish() {
  if (done_) return;
  done_ = true;
  statement_.reset();
  statement_.in_use_ = false;
}

int Statement::Cursor::type(int column) const {
  const bool has_value =
      !done_ && column >= 0 && column < sqlite3_data_count(statement_.statement_);
  if (!has_value) {
    throw InvariantViolated("no row, or no column " + std::to_string(column) + ", in " +
                            std::string(statement_.sql()));
  }
  return sqlite3_column_type(statement_.statement_, column);
}

void Statement::Cursor::require(int column, int expected) const {
  const int actual = type(column);
  if (actual == expected) return;
  throw InvariantViolated("column " + std::to_string(column) + " of " +
                          std::string(statement_.sql()) + " has type " + std::to_string(actual) +
                          ", not " + std::to_string(expected));
}

bool Statement::Cursor::is_null(int column) const { return type(column) == SQLITE_NULL; }

std::int64_t Statement::Cursor::i64(int column) const {
  require(column, SQLITE_INTEGER);
  return sqlite3_column_int64(statement_.statement_, column);
}

int Statement::Cursor::i32(int column) const {
  const std::int64_t value = i64(column);
  ENSURE(value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max());
  return static_cast<int>(value);
}

bool Statement::Cursor::boolean(int column) const {
  const std::int64_t value = i64(column);
  ENSURE(value == 0 || value == 1);
  return value == 1;
}

double Statement::Cursor::real(int column) const {
  if (type(column) == SQLITE_INTEGER) return static_cast<double>(i64(column));
  require(column, SQLITE_FLOAT);
  return sqlite3_column_double(statement_.statement_, column);
}

std::string_view Statement::Cursor::text(int column) const {
  require(column, SQLITE_TEXT);
  const unsigned char* data = sqlite3_column_text(statement_.statement_, column);
  if (data == nullptr) throw std::bad_alloc();
  const int size = sqlite3_column_bytes(statement_.statement_, column);
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(size)};
}

std::string_view Statement::Cursor::blob(int column) const {
  require(column, SQLITE_BLOB);
  const void* data = sqlite3_column_blob(statement_.statement_, column);
  const int size = sqlite3_column_bytes(statement_.statement_, column);
  if (size == 0) return {};  // SQLite has no pointer to nothing
  if (data == nullptr) throw std::bad_alloc();
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

std::optional<std::int64_t> Statement::Cursor::optional_i64(int column) const {
  return is_null(column) ? std::nullopt : std::optional(i64(column));
}

std::optional<std::string_view> Statement::Cursor::optional_text(int column) const {
  return is_null(column) ? std::nullopt : std::optional(text(column));
}

std::optional<std::string_view> Statement::Cursor::optional_blob(int column) const {
  return is_null(column) ? std::nullopt : std::optional(blob(column));
}

// Transaction

Transaction::Transaction(Database& database) : database_(database) { database_.begin(); }

Transaction::~Transaction() {
  if (open_) database_.rollback();
}

void Transaction::commit() {
  ENSURE(open_);
  open_ = false;
  database_.commit();
}

}  // namespace permit::store
