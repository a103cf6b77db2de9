#include "apps/cli/server_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "orchestrator/service/file_check.h"
#include "orchestrator/service/secrets.h"

namespace permit::cli {

namespace {

// What is kept beside a database: where the file is, whatever links lead to it.
std::string beside(const std::string& database, const char* suffix) {
  return std::filesystem::weakly_canonical(std::filesystem::absolute(database)).string() + suffix;
}

void refuse_exposed(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0 || (status.st_mode & (S_IRWXG | S_IRWXO)) == 0) return;
  throw StartRefused("others may read " + path +
                     ", the secret that holders' tokens are made with. Say: chmod 600 " + path);
}

// Pages without a checksum are there after another program has opened the database of a server that
// crashed, and after a disk has lost them. Only what they come to tells which.
void require_sound(const store::Database::Options& database) {
  const auto unseen = [](const std::string&, std::int64_t, std::int64_t) {};
  const service::FileReport report = service::check_file(database, unseen, false);
  if (report.fault_count == 0) return;
  const store::Fault& first = report.faults.front();
  throw store::StartRefused(
      database.path + " has pages without a checksum, and is not sound: " + first.table + ", " +
      first.row + ": " + first.what + ". See what is wrong with: permit server check --database " +
      database.path);
}

}  // namespace

std::string token_secret(const std::string& database) {
  if (database.empty()) return "";
  const std::string path = beside(database, ".key");
  refuse_exposed(path);
  std::string secret;
  std::ifstream(path) >> secret;
  if (secret.size() >= 16) return secret;
  secret = service::random_secret();
  const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, S_IRUSR | S_IWUSR);
  const bool written =
      file >= 0 &&
      write(file, secret.data(), secret.size()) == static_cast<ssize_t>(secret.size()) &&
      fsync(file) == 0;
  if (file >= 0) close(file);
  if (!written) throw std::runtime_error("cannot write " + path);
  return secret;
}

store::Database::Options database_options(const ServerOptions& options) {
  store::Database::Options database;
  database.path = options.database;
  if (options.database.empty()) database.mode = store::Database::Mode::in_memory;
  return database;
}

store::Opening opening(const ServerOptions& options, store::Settler::Post post) {
  store::Opening opening;
  opening.fence_epoch = options.fence_epoch;
  opening.page_check_max = std::chrono::seconds(2);
  opening.judge = [database = database_options(options)] { require_sound(database); };
  if (options.database.empty()) return opening;
  opening.mark = beside(options.database, ".commit");
  opening.ballast = beside(options.database, ".ballast");
  opening.logs = true;
  opening.post = std::move(post);
  return opening;
}

store::Database::Options reader_options(const ServerOptions& options, store::Store& store) {
  store::Database::Options database = database_options(options);
  database.expects_seals = store.has_all_seals();
  return database;
}

}  // namespace permit::cli
