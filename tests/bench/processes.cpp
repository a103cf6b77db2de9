#include "tests/bench/processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "orchestrator/http/server.h"

namespace permit::bench {

namespace {

// A pipe whose reading end the parent keeps.
struct Pipe {
  std::array<int, 2> ends{-1, -1};

  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_end(std::size_t i) {
    if (ends[i] >= 0) close(ends[i]);
    ends[i] = -1;
  }

  // Reads until `text` has a complete line with ":<port>\n" in it.
  std::uint16_t read_port() {
    close_end(1);
    std::string text;
    for (char byte = 0; read(ends[0], &byte, 1) == 1;) {
      text += byte;
      const std::size_t colon = text.rfind(':');
      if (byte != '\n' || colon == std::string::npos) continue;
      return static_cast<std::uint16_t>(std::stoi(text.substr(colon + 1)));
    }
    throw std::runtime_error("the server did not start: " + text);
  }
};

}  // namespace

Process::~Process() {
  if (pid_ > 0) kill();
}

void Process::kill() {
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

ServerProcess::ServerProcess(const std::string& binary, const std::string& database) {
  Pipe output;
  const std::string log_path = database + ".log";  // a line for each acquire: no terminal's work
  const int log = open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(output.ends[1], STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execl(binary.c_str(), binary.c_str(), "server", "start", "--port", "0", "--db-filename",
          database.c_str(), nullptr);
    _exit(127);
  }
  close(log);
  port_ = output.read_port();
}

void ServerProcess::stop() {
  ::kill(pid_, SIGTERM);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  if (status != 0) throw std::runtime_error("the server ended badly");
}

double ServerProcess::resident_bytes() const {
  std::ifstream statm("/proc/" + std::to_string(pid_) + "/statm");
  double total = 0;
  double resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double ServerProcess::cpu_seconds() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

EchoProcess::EchoProcess() {
  Pipe output;
  pid_ = fork();
  if (pid_ == 0) {
    boost::asio::io_context io{1};
    http::Server server(io, {}, [](const std::shared_ptr<http::Exchange>& exchange) {
      http::Response response;
      response.body = exchange->request().body;
      exchange->reply(std::move(response));
    });
    const std::string line = ":" + std::to_string(server.port()) + "\n";
    if (write(output.ends[1], line.data(), line.size()) > 0) io.run();
    _exit(1);
  }
  port_ = output.read_port();
}

}  // namespace permit::bench
