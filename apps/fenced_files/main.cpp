// A file server that a paused client cannot harm. Its clients hold a permit while they write, and
// send the permit's fence along with each write; a fence below the highest one seen of that permit
// is refused, since its holder's lease has ended and a later holder has written.
//
//   fenced_files DIR [PORT]           on 127.0.0.1; port 0: any free one. One server a directory.
//
//   PUT <permit id> <fence> <name> <bytes>\n<data>     OK | STALE <highest> | ERROR <why>
//   GET <name>                                         OK <bytes>\n<data> | ERROR <why>
#include <boost/asio/ip/tcp.hpp>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "permits/fence_guard.h"

namespace {

using boost::asio::ip::tcp;
namespace fs = std::filesystem;

constexpr std::size_t file_bytes_max = 1 << 20;

struct BadCommand : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Files {
 public:
  explicit Files(fs::path directory)
      : directory_(std::move(directory)), guard_(directory_ / ".fences") {}

  std::string put(const std::string& slot, permit::Fence fence, const std::string& name,
                  const std::string& data) {
    const fs::path file = path_of(name);
    // Held over both: whoever was admitted has written before the next is asked.
    const std::lock_guard lock(mutex_);
    if (!guard_.admit(slot, fence)) {
      return "STALE " + std::to_string(guard_.highest(slot).value) + "\n";
    }
    const fs::path part = directory_ / ".part";
    std::ofstream out(part, std::ios::binary);
    out << data;
    out.close();
    if (!out) throw std::runtime_error("cannot write " + name);
    fs::rename(part, file);
    return "OK\n";
  }

  std::string get(const std::string& name) {
    const fs::path file = path_of(name);
    const std::lock_guard lock(mutex_);
    std::ifstream in(file, std::ios::binary);
    if (!in) throw BadCommand("there is no file of this name");
    const std::string data{std::istreambuf_iterator<char>(in), {}};
    return "OK " + std::to_string(data.size()) + "\n" + data;
  }

 private:
  fs::path path_of(const std::string& name) const {
    for (const char c : name) {
      if (c == '/' || c == '\0') throw BadCommand("a name is one without a directory");
    }
    if (name.empty() || name[0] == '.') throw BadCommand("a name does not begin with a dot");
    return directory_ / name;
  }

  const fs::path directory_;
  std::mutex mutex_;  // guards the directory's files
  permit::permits::FenceGuard guard_;
};

std::string answer(Files& files, const std::string& line, std::istream& data) {
  std::istringstream words(line);
  std::string verb;
  std::string slot;
  std::string name;
  permit::Fence fence;
  std::size_t bytes = 0;
  words >> verb;
  if (verb == "GET" && words >> name) return files.get(name);
  if (verb != "PUT" || !(words >> slot >> fence.value >> name >> bytes)) {
    throw BadCommand("the commands are PUT <permit> <fence> <name> <bytes>, and GET <name>");
  }
  if (bytes > file_bytes_max) throw BadCommand("a file has at most 1 MiB");
  std::string text(bytes, '\0');
  data.read(text.data(), static_cast<std::streamsize>(bytes));
  if (!data) throw BadCommand("the data ended early");
  return files.put(slot, fence, name, text);
}

// One client, until it hangs up or what it sends makes no sense.
void serve(Files& files, tcp::socket socket) {
  tcp::iostream stream(std::move(socket));
  try {
    for (std::string line; std::getline(stream, line);) {
      stream << answer(files, line, stream) << std::flush;
    }
  } catch (const std::exception& error) {
    stream.clear();  // of the end of what it sent
    stream << "ERROR " << error.what() << "\n" << std::flush;
  }
}

[[noreturn]] void run(const fs::path& directory, std::uint16_t port) {
  fs::create_directories(directory);
  Files files(directory);
  boost::asio::io_context io;
  tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), port});
  std::cout << "listening on 127.0.0.1:" << acceptor.local_endpoint().port() << "\n" << std::flush;
  for (;;) {
    std::thread([&files, client = acceptor.accept()]() mutable {
      serve(files, std::move(client));
    }).detach();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string text = argc == 3 ? argv[2] : "7377";
  std::uint16_t port = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (argc < 2 || argc > 3 || error != std::errc() || stop != text.data() + text.size()) {
    std::cerr << "usage: fenced_files DIR [PORT]\n";
    return 2;
  }
  try {
    run(argv[1], port);
  } catch (const std::exception& failure) {
    std::cerr << "fenced_files: " << failure.what() << "\n";
    return 1;
  }
}
