#include "apps/cli/database_commands.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <iostream>
#include <thread>

#include "apps/cli/exit_codes.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json_codec.h"
#include "orchestrator/service/file_check.h"

namespace permit::cli {

struct DatabaseFault {
  std::string table;
  std::string row;
  std::string what;
};
BOOST_DESCRIBE_STRUCT(DatabaseFault, (), (table, row, what))

// With -o json.
struct DatabaseReport {
  std::string database;
  bool sound = false;
  std::int32_t schema = 0;
  Count commit;
  std::int32_t fence_epoch = 0;
  Count fence;
  Count runs;
  Count events;
  Count permits_held;
  Count fault_count;
  std::vector<DatabaseFault> faults;  // the first of them
};
BOOST_DESCRIBE_STRUCT(DatabaseReport, (),
                      (database, sound, schema, commit, fence_epoch, fence, runs, events,
                       permits_held, fault_count, faults))

struct BackupReport {
  std::string file;
  Count bytes;
  Count commit;
  std::int32_t fence_epoch = 0;
  std::int32_t seconds = 0;
};
BOOST_DESCRIBE_STRUCT(BackupReport, (), (file, bytes, commit, fence_epoch, seconds))

}  // namespace permit::cli

namespace permit {
PERMIT_JSON(cli::DatabaseFault)
PERMIT_JSON(cli::DatabaseReport)
PERMIT_JSON(cli::BackupReport)
}  // namespace permit

namespace permit::cli {

namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

// How far it is, on a terminal and if it takes longer than this.
constexpr auto silence = 2s;

class Progress {
 public:
  Progress() : shown_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (written_) std::cerr << "\r\033[K" << std::flush;
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& what, std::int64_t done, std::int64_t all) {
    const auto now = SteadyClock::now();
    if (!shown_ || now - began_ < silence || now - last_ < 100ms) return;
    last_ = now;
    written_ = true;
    std::cerr << "\r\033[K" << what;
    if (all > 0) std::cerr << ": " << done << " of " << all;
    std::cerr << std::flush;
  }

 private:
  const bool shown_;
  const SteadyClock::time_point began_ = SteadyClock::now();
  SteadyClock::time_point last_{};
  bool written_ = false;
};

store::Database::Options reading(const std::string& file) {
  store::Database::Options options;
  options.path = file;
  options.mode = store::Database::Mode::read_only;
  return options;
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return text;
}

std::string count_of(std::int64_t number, const std::string& noun) {
  return grouped(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string megabytes(std::int64_t bytes) {
  const std::int64_t tenths = (bytes * 10 + (1 << 19)) >> 20;
  return grouped(tenths / 10) + "." + std::to_string(tenths % 10) + " MiB";
}

int cannot_read(const std::string& why) {
  std::cerr << "permit: " << why << "\n";
  return exit_no_input;
}

service::FileReport report_on(const std::string& file) {
  Progress progress;
  return service::check_file(reading(file),
                             [&](const std::string& what, std::int64_t done, std::int64_t all) {
                               progress.show("looking at " + what, done, all);
                             });
}

DatabaseReport document_of(const std::string& file, const service::FileReport& report) {
  DatabaseReport document;
  document.database = file;
  document.sound = report.fault_count == 0;
  document.schema = report.schema;
  document.commit = Count{report.commit};
  document.fence_epoch = static_cast<std::int32_t>(report.fence_epoch);
  document.fence = Count{report.fence};
  document.runs = Count{report.runs};
  document.events = Count{report.events};
  document.permits_held = Count{report.permits_held};
  document.fault_count = Count{report.fault_count};
  for (const store::Fault& fault : report.faults) {
    document.faults.push_back({fault.table, fault.row, fault.what});
  }
  return document;
}

void show(const Output& out, const std::string& file, const service::FileReport& report) {
  if (report.fault_count == 0) {
    out.text(file + " is sound: commit " + grouped(report.commit) + ", " +
             count_of(report.runs, "run") + " with " + count_of(report.events, "event") + ", " +
             count_of(report.permits_held, "permit") + " held, fence epoch " +
             std::to_string(report.fence_epoch));
    return;
  }
  out.text(file + " has " + count_of(report.fault_count, "fault") + ", at commit " +
           grouped(report.commit) + ":");
  Table table({{"WHERE"}, {"ROW"}, {"WHAT"}});
  for (const store::Fault& fault : report.faults) {
    table.add({{fault.table}, {printable(fault.row, 60)}, {printable(fault.what, 400)}});
  }
  out.table(table);
  const auto shown = static_cast<std::int64_t>(report.faults.size());
  if (report.fault_count > shown) {
    out.text("and " + grouped(report.fault_count - shown) + " more");
  }
}

void print(const Output& out, const std::string& file, const service::FileReport& report) {
  std::string json;
  write_json(document_of(file, report), json);
  out.json(json);
  show(out, file, report);
}

// --- Backup ---

// A file that is gone again unless it was finished. What a killed backup has left is begun anew.
class NewFile {
 public:
  explicit NewFile(std::string path) : path_(std::move(path)), partial_(path_ + ".partial") {
    if (std::filesystem::exists(path_)) {
      throw Error(ErrorCode::already_exists, "FILE_EXISTS",
                  path_ + " exists, and a backup overwrites nothing: name another file");
    }
    lock_ = open(partial_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (lock_ < 0) fail("cannot make " + partial_);
    struct stat found{};
    if (flock(lock_, LOCK_EX | LOCK_NB) != 0 || fstat(lock_, &found) != 0 || found.st_nlink != 1) {
      close(lock_);
      throw Error(ErrorCode::failed_precondition, "FILE_NOT_WRITTEN",
                  "another backup to " + path_ + " is under way, or has just ended");
    }
    remove_beside();
    if (ftruncate(lock_, 0) == 0 && fchmod(lock_, S_IRUSR | S_IWUSR) == 0) return;
    close(lock_);
    fail("cannot empty " + partial_);
  }
  ~NewFile() {
    if (!finished_) unlink(partial_.c_str());
    remove_beside();
    close(lock_);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::string& partial() const { return partial_; }

  // The kernel begins to write what there is, so that not all of it is left for the end.
  void write_out() const {
    const int file = open(partial_.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE);
    close(file);
  }

  void sync() const {
    const int file = open(partial_.c_str(), O_RDWR | O_CLOEXEC);
    const bool synced = file >= 0 && fdatasync(file) == 0;
    if (file >= 0) close(file);
    if (!synced) fail("cannot sync " + partial_);
  }

  // Under its name only now, and only if nobody has taken that meanwhile.
  void finish() {
    if (link(partial_.c_str(), path_.c_str()) != 0) fail("cannot make " + path_);
    finished_ = true;
    unlink(partial_.c_str());
    std::string directory = std::filesystem::path(path_).parent_path().string();
    if (directory.empty()) directory = ".";
    const int entry = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = entry >= 0 && fsync(entry) == 0;
    if (entry >= 0) close(entry);
    if (!synced) fail("cannot sync " + directory);
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw Error(ErrorCode::failed_precondition, "FILE_NOT_WRITTEN",
                what + ": " + std::strerror(errno));
  }

  void remove_beside() const {
    for (const char* beside : {"-journal", "-wal", "-shm"}) unlink((partial_ + beside).c_str());
  }

  const std::string path_;
  const std::string partial_;
  int lock_ = -1;
  bool finished_ = false;
};

// Half a megabyte a step, with a pause in between: a server's commits do not wait behind it.
void copy_tables(const std::string& file, const NewFile& copy) {
  store::Database database(reading(file));
  store::Transaction snapshot(database);
  Progress progress;
  database.copy_to(copy.partial(), [&](int left, int all) {
    progress.show("copying pages", all - left, all);
    copy.write_out();
    if (left > 0) std::this_thread::sleep_for(1ms);
  });
}

// With all that was acknowledged before this began: also what was only in the redo log then.
void copy_database(const std::string& file, const NewFile& copy) {
  setpriority(PRIO_PROCESS, 0, 10);
  const std::vector<store::LoggedCommit> logged = store::Store::logged_beside(reading(file));
  copy_tables(file, copy);
  store::Database::Options writing;
  writing.path = copy.partial();
  store::Store::bring_up(writing, logged);
}

}  // namespace

std::string default_database() {
  if (const auto directory = environment_variable("STATE_DIRECTORY")) {
    return *directory + "/permit.db";
  }
  std::string state = environment_variable("HOME").value_or("") + "/.local/state";
  state = environment_variable("XDG_STATE_HOME").value_or(state) + "/permit";
  return state + "/permit.db";
}

int check_database(Session& session, const std::string& file) {
  service::FileReport report;
  try {
    report = report_on(file);
  } catch (const store::Damaged& damaged) {
    report.faults.push_back({"the file", "", damaged.what()});
    report.fault_count = 1;
  } catch (const store::StoreFailed& failed) {
    return cannot_read(failed.what());
  } catch (const store::StartRefused& refused) {
    return cannot_read(refused.what());
  }
  print(session.out(), file, report);
  return report.fault_count == 0 ? exit_ok : exit_failed;
}

int back_up_database(Session& session, const std::string& file, const std::string& to) {
  const auto began = SteadyClock::now();
  NewFile copy(to);
  service::FileReport report;
  try {
    copy_database(file, copy);
    report = report_on(copy.partial());
  } catch (const store::Damaged& damaged) {
    std::cerr << "permit: " << damaged.what() << "\n";
    return exit_failed;
  } catch (const store::StoreFailed& failed) {
    return cannot_read(failed.what());
  } catch (const store::StartRefused& refused) {
    return cannot_read(refused.what());
  }
  if (report.fault_count > 0) {
    print(session.out(), file, report);
    std::cerr << "permit: no backup was made, since the copy would not be sound\n";
    return exit_failed;
  }
  copy.sync();
  copy.finish();
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(to));
  const auto took = std::chrono::duration_cast<std::chrono::seconds>(SteadyClock::now() - began);
  std::string json;
  write_json(BackupReport{to, Count{bytes}, Count{report.commit},
                          static_cast<std::int32_t>(report.fence_epoch),
                          static_cast<std::int32_t>(took.count())},
             json);
  session.out().json(json);
  session.out().text(to + ": " + megabytes(bytes) + ", as of commit " + grouped(report.commit) +
                     ", fence epoch " + std::to_string(report.fence_epoch) + "; checked, sound");
  return exit_ok;
}

}  // namespace permit::cli
