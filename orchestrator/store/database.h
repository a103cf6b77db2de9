// SQLite, thinly: a connection, prepared statements, a transaction. A connection and its statements
// belong to one thread. Exactly one connection of a file writes and checkpoints (SQLite 3.40 has a
// WAL-reset race between two); all others are read_only. store/lock_file keeps other processes out.
// Every page of a file has a checksum: store/page_guard.
//
//   Statement insert_{database_, "INSERT INTO run (id, name, parent) VALUES (?, ?, ?)"};
//   Statement runs_{database_, "SELECT id, name, parent FROM run WHERE id > ?"};
//   Transaction transaction(database_);
//   insert_.run(id, "train", std::optional<std::int64_t>());
//   transaction.commit();
//   for (auto row = runs_.bind(last_id); row.step();) use(row.i64(0), row.text(1));
//
// Errors: store/errors.h. After any but ConstraintViolated in a transaction, SQLite may have rolled
// back already, and a further statement would commit on its own. So run(), bind() and commit() then
// throw BadStatement until the Transaction is destroyed.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/store/errors.h"
#include "orchestrator/store/page_guard.h"
struct sqlite3;
struct sqlite3_file;
struct sqlite3_stmt;

namespace permit::store {

// Bytes to bind as a BLOB; a plain string binds as TEXT.
struct Blob {
  std::string_view bytes;
};
class Statement;

class Database {
 public:
  enum class Mode {
    read_write_create,  // the writer
    read_only,          // never writes, never checkpoints; the file must exist
    in_memory,          // a private, empty database; `path` and `vfs` are not used
  };

  struct Options {
    std::string path = {};
    std::string vfs = {};  // a registered SQLite VFS; empty: the default one
    Mode mode = Mode::read_write_create;
    bool expects_seals = false;           // all pages are known to have checksums
    int user_version_max = INT32_MAX;     // a file from a newer schema is refused
    int autocheckpoint_pages_min = 1000;  // WAL pages after which a commit checkpoints; 0: never
  };

  // Throws StoreFailed if the file is no database, is damaged where opening looks, is of a newer
  // schema, or is empty beside a log that is not: what cannot be read is never taken for new.
  explicit Database(Options options);
  ~Database();  // after every Statement and Transaction on it
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs a script of statements without parameters; rows are dropped. For schema and pragmas.
  void execute(const char* sql);

  int user_version();
  void set_user_version(int version);  // inside the transaction of the migration it numbers
  std::string quick_check();           // "ok", or what is wrong, a line each
  std::string integrity_check();       // the same, of indexes too

  // --- Checksums; of a file ---
  bool is_sealed();       // its pages have room for checksums, as those of every new file
  void require_sealed();  // throws Damaged
  // Makes room: writes the whole file anew, for which it must be sound. Not in a transaction.
  void rebuild_sealed();
  // Brings the log into the file and looks at all pages, until `give_up`; at none (not complete) if
  // somebody reads the file. Throws Damaged. Before pages that have no checksum get one, `judge`
  // may throw. Once it was complete, a page without one is damaged.
  PageGuard::Scan check_pages(
      const std::function<bool()>& give_up, const std::function<void()>& judge = [] {});
  const std::vector<std::int64_t>& damaged_pages() const { return guard_->damaged_pages(); }
  // Closing writes nothing: what is to be looked at stays as it is.
  void leave_as_it_is() noexcept;
  // A copy of what is committed, made in steps while others write; `step` is told how many pages
  // are left, and of how many. `path` is made, and not synced.
  void copy_to(const std::string& path, const std::function<void(int left, int all)>& step);

  std::int64_t last_insert_rowid() const;
  bool in_transaction() const { return in_transaction_; }

  // Copies what it can from the WAL into the file, without waiting for readers; a commit does so by
  // itself (Options). Reports a failed sync, but not a full disk: the WAL has it all.
  void checkpoint();
  int wal_pages() const { return wal_pages_; }  // after the last commit
  // For long reads: `expired` is asked about every 10 µs of work; once true, the running statement
  // throws Interrupted. An empty function lifts the limit.
  void interrupt_when(std::function<bool()> expired);

 private:
  friend class Statement;
  friend class Transaction;

  void open();
  void configure();
  void configure_writer();
  void refuse_unknown_version();
  std::string check_integrity(const char* pragma);
  sqlite3_file* file();
  std::string explain(int code, std::string_view action) const;
  void require_usable() const;  // the file has not failed
  void require_ready() const;   // and the open transaction, if any, can still commit
  [[noreturn]] void fail(int code, std::string_view sql);
  void remember_failure(int code, std::string_view action) noexcept;
  int checkpoint_now();
  void begin();
  void commit();
  void rollback() noexcept;

  Options options_;
  std::unique_ptr<PageGuard> guard_;  // none in memory; goes after the connection
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> connection_;
  std::unique_ptr<Statement> begin_, commit_, rollback_;
  std::function<bool()> expired_;
  int wal_pages_ = 0;
  bool in_transaction_ = false;
  bool must_roll_back_ = false;  // a statement of the open transaction failed
  int failed_code_ = 0;          // once set, stays; see StoreFailed
  std::string failed_;
};

// One prepared statement. One use at a time: not run or bound again while a cursor on it has rows.
class Statement {
 public:
  // The rows of one bind(). Views from text() and blob() hold until the next step(). Another type
  // than asked for, or an unexpected NULL, throws InvariantViolated. Let a cursor go once its rows
  // are read: until it is destroyed, or step() said false, it keeps the WAL from being reused.
  class [[nodiscard]] Cursor {
   public:
    ~Cursor();
    Cursor(const Cursor&) = delete;

    bool step();  // to the next row; false: there is none
    bool is_null(int column) const;
    std::int64_t i64(int column) const;
    int i32(int column) const;
    bool boolean(int column) const;
    double real(int column) const;
    std::string_view text(int column) const;
    std::string_view blob(int column) const;
    std::optional<std::int64_t> optional_i64(int column) const;
    std::optional<std::string_view> optional_text(int column) const;
    std::optional<std::string_view> optional_blob(int column) const;

   private:
    friend class Statement;
    explicit Cursor(Statement& statement) : statement_(statement) { statement_.in_use_ = true; }

    int type(int column) const;
    void require(int column, int expected) const;
    void finish();
    Statement& statement_;
    bool done_ = false;
  };

  Statement(Database& database, std::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;

  // Runs to the end and returns how many rows an INSERT, UPDATE or DELETE changed. A value for each
  // parameter: bool, an integer that fits 64 signed bits, double, text (what converts to
  // string_view), Blob, std::nullopt, or an optional of these.
  template <typename... Values>
  std::int64_t run(const Values&... values) {
    bind_all(Lifetime::outlives_use, values...);
    return run_bound();
  }

  // The same, for the rows. The values are copied, so they may be temporaries.
  template <typename... Values>
  Cursor bind(const Values&... values) {
    bind_all(Lifetime::ends_now, values...);
    return Cursor(*this);
  }

 private:
  friend class Database;
  enum class Lifetime { outlives_use, ends_now };
  template <typename Value>
  static constexpr bool is_integer =
      std::integral<Value> && !std::same_as<Value, char> &&
      (std::signed_integral<Value> || sizeof(Value) < sizeof(std::int64_t));

  template <typename... Values>
  void bind_all([[maybe_unused]] Lifetime lifetime, const Values&... values) {
    require_ready(static_cast<int>(sizeof...(Values)));
    [[maybe_unused]] int parameter = 0;
    (bind_value(++parameter, lifetime, values), ...);
  }

  template <typename Value>
  void bind_value(int parameter, Lifetime lifetime, const Value& value) {
    if constexpr (requires { value.has_value(); }) {  // an optional
      value ? bind_value(parameter, lifetime, *value) : bind_null(parameter);
    } else if constexpr (std::same_as<Value, std::nullopt_t>) {
      bind_null(parameter);
    } else if constexpr (std::same_as<Value, Blob>) {
      bind_blob(parameter, lifetime, value.bytes);
    } else if constexpr (std::same_as<Value, double>) {
      bind_real(parameter, value);
    } else if constexpr (is_integer<Value>) {
      bind_i64(parameter, std::int64_t{value});
    } else {
      static_assert(!std::same_as<Value, std::nullptr_t>, "bind std::nullopt");
      bind_text(parameter, lifetime, value);
    }
  }

  void require_ready(int values);
  void bind_null(int parameter);
  void bind_i64(int parameter, std::int64_t value);
  void bind_real(int parameter, double value);
  void bind_text(int parameter, Lifetime lifetime, std::string_view text);
  void bind_blob(int parameter, Lifetime lifetime, std::string_view bytes);
  void check_bound(int code);
  std::int64_t run_bound();
  bool step();  // on an error: resets, then throws
  void reset() noexcept;
  std::string_view sql() const;
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  bool in_use_ = false;  // by a cursor
};

// BEGIN IMMEDIATE to commit(); the destructor rolls back what was not committed. On a read_only
// connection it is one snapshot for several reads. What commit() returned from is durable; if it
// throws, the transaction is over and, on DiskFull, undone.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace permit::store
