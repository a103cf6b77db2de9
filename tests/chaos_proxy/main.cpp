// permit_chaos_proxy --target PORT [OPTIONS]: passes bytes on to a loopback port, badly. Prints
// where it listens. Each chunk that it has read may be late, cut into single bytes, held back,
// delivered twice, or be the last: the connection is reset, or closed in one direction only.
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

struct Options {
  std::uint16_t target = 0;
  int delay_ms = 0;
  int jitter_ms = 0;
  double reset_percent = 0;  // of chunks, as the next three
  double half_close_percent = 0;
  double split_percent = 0;      // into single bytes
  double duplicate_percent = 0;  // of what clients send
  int throttle_bytes = 0;        // a second, in each direction; 0: as fast as it goes
  std::uint32_t seed = 1;
};

struct Counts {
  std::uint64_t connections = 0, chunks = 0, resets = 0, half_closes = 0, duplicates = 0;
};

class Chance {
 public:
  explicit Chance(std::uint32_t seed) : dice_(seed) {}
  bool percent(double share) { return std::uniform_real_distribution<>(0, 100)(dice_) < share; }
  int up_to(int most) { return std::uniform_int_distribution<>(0, most)(dice_); }

 private:
  std::mt19937 dice_;
};

struct Proxy {
  asio::io_context io{1};
  Options options;
  Chance chance{1};
  Counts counts;
};

// What a client has sent, sent again over a connection of its own. Nobody reads the answer.
class Duplicate : public std::enable_shared_from_this<Duplicate> {
 public:
  Duplicate(Proxy& proxy, std::string bytes)
      : socket_(proxy.io), timer_(proxy.io), bytes_(std::move(bytes)) {}

  void start(std::uint16_t target, milliseconds late) {
    timer_.expires_after(late);
    timer_.async_wait([self = shared_from_this(), target](const error_code&) {
      self->socket_.async_connect({asio::ip::address_v4::loopback(), target},
                                  [self](const error_code& error) {
                                    if (!error) self->send();
                                  });
    });
  }

 private:
  void send() {
    asio::async_write(socket_, asio::buffer(bytes_),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        if (!error) self->listen();
                      });
  }
  void listen() {
    timer_.expires_after(milliseconds(2'000));
    timer_.async_wait([self = shared_from_this()](const error_code&) {
      error_code ignored;
      self->socket_.close(ignored);
    });
  }

  tcp::socket socket_;
  asio::steady_timer timer_;
  std::string bytes_;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Proxy& proxy, tcp::socket client)
      : proxy_(proxy),
        client_(std::move(client)),
        server_(proxy.io),
        up_(proxy.io, Way::up),
        down_(proxy.io, Way::down) {}

  void start() {
    ++proxy_.counts.connections;
    server_.async_connect({asio::ip::address_v4::loopback(), proxy_.options.target},
                          [self = shared_from_this()](const error_code& error) {
                            if (error) return self->reset();
                            self->read(self->up_);
                            self->read(self->down_);
                          });
  }

 private:
  enum class Way { up, down };
  // One direction: a chunk is read, waits, and is written, before the next is read.
  struct Pipe {
    Pipe(asio::io_context& io, Way direction) : timer(io), way(direction) {}
    asio::steady_timer timer;
    Way way;
    std::array<char, 16 * 1024> bytes{};
    std::size_t size = 0;
    std::size_t sent = 0;
    bool single_bytes = false;
  };

  tcp::socket& from(const Pipe& pipe) { return pipe.way == Way::up ? client_ : server_; }
  tcp::socket& to(const Pipe& pipe) { return pipe.way == Way::up ? server_ : client_; }

  void read(Pipe& pipe) {
    from(pipe).async_read_some(
        asio::buffer(pipe.bytes),
        [self = shared_from_this(), &pipe](const error_code& error, std::size_t size) {
          if (error == asio::error::eof) return self->end(pipe);
          if (error) return self->reset();
          pipe.size = size;
          pipe.sent = 0;
          self->decide(pipe);
        });
  }

  void decide(Pipe& pipe) {
    const Options& options = proxy_.options;
    Chance& chance = proxy_.chance;
    ++proxy_.counts.chunks;
    if (chance.percent(options.reset_percent)) {
      ++proxy_.counts.resets;
      return reset();
    }
    if (chance.percent(options.half_close_percent)) {
      ++proxy_.counts.half_closes;
      return end(pipe);
    }
    if (pipe.way == Way::up && chance.percent(options.duplicate_percent)) {
      ++proxy_.counts.duplicates;
      std::make_shared<Duplicate>(proxy_, std::string(pipe.bytes.data(), pipe.size))
          ->start(options.target, milliseconds(chance.up_to(50)));
    }
    pipe.single_bytes = chance.percent(options.split_percent);
    wait(pipe, milliseconds(options.delay_ms + chance.up_to(options.jitter_ms)));
  }

  void wait(Pipe& pipe, milliseconds time) {
    if (time.count() == 0) return write(pipe);
    pipe.timer.expires_after(time);
    pipe.timer.async_wait([self = shared_from_this(), &pipe](const error_code& error) {
      if (!error) self->write(pipe);
    });
  }

  void write(Pipe& pipe) {
    std::size_t size = pipe.size - pipe.sent;
    if (pipe.single_bytes) size = 1;
    constexpr int turns_a_second = 20;
    const int throttle = proxy_.options.throttle_bytes;
    if (throttle > 0) {
      size = std::min(size, static_cast<std::size_t>(1 + throttle / turns_a_second));
    }
    asio::async_write(
        to(pipe), asio::buffer(pipe.bytes.data() + pipe.sent, size),
        [self = shared_from_this(), &pipe, throttle](const error_code& error, std::size_t sent) {
          if (error) return self->reset();
          pipe.sent += sent;
          if (pipe.sent == pipe.size) return self->read(pipe);
          self->wait(pipe, milliseconds(throttle > 0 ? 1'000 / turns_a_second : 0));
        });
  }

  // No more in this direction; the other goes on.
  void end(Pipe& pipe) {
    error_code ignored;
    to(pipe).shutdown(tcp::socket::shutdown_send, ignored);
  }

  void reset() {
    error_code ignored;
    for (tcp::socket* socket : {&client_, &server_}) {
      socket->set_option(asio::socket_base::linger(true, 0), ignored);
      socket->close(ignored);
    }
    up_.timer.cancel();
    down_.timer.cancel();
  }

  Proxy& proxy_;
  tcp::socket client_;
  tcp::socket server_;
  Pipe up_;
  Pipe down_;
};

class Listener {
 public:
  explicit Listener(Proxy& proxy)
      : proxy_(proxy), acceptor_(proxy.io, {asio::ip::address_v4::loopback(), 0}) {}

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  void accept() {
    acceptor_.async_accept([this](const error_code& error, tcp::socket client) {
      if (!error) {
        error_code ignored;
        client.set_option(tcp::no_delay(true), ignored);
        std::make_shared<Connection>(proxy_, std::move(client))->start();
      }
      accept();
    });
  }

 private:
  Proxy& proxy_;
  tcp::acceptor acceptor_;
};

// The end of its input ends it, as it does when whoever started it has died.
void wait_for_end(Proxy& proxy) {
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  proxy.io.stop();
}

}  // namespace

int main(int argc, char** argv) {
  Proxy proxy;
  Options& options = proxy.options;
  CLI::App app("permit_chaos_proxy: passes bytes on, badly");
  app.add_option("--target", options.target)->required();
  app.add_option("--delay-ms", options.delay_ms);
  app.add_option("--jitter-ms", options.jitter_ms);
  app.add_option("--reset-percent", options.reset_percent);
  app.add_option("--half-close-percent", options.half_close_percent);
  app.add_option("--split-percent", options.split_percent);
  app.add_option("--duplicate-percent", options.duplicate_percent);
  app.add_option("--throttle-bytes", options.throttle_bytes);
  app.add_option("--seed", options.seed);
  CLI11_PARSE(app, argc, argv);
  try {
    proxy.chance = Chance(options.seed);
    Listener listener(proxy);
    listener.accept();
    std::cout << "listening on 127.0.0.1:" << listener.port() << std::endl;
    std::thread input([&proxy] { wait_for_end(proxy); });
    proxy.io.run();
    input.join();
    const Counts& counts = proxy.counts;
    std::cout << counts.connections << " connections, " << counts.chunks << " chunks, "
              << counts.resets << " resets, " << counts.half_closes << " half-closes, "
              << counts.duplicates << " duplicates" << std::endl;
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "permit_chaos_proxy: " << error.what() << "\n";
    return 1;
  }
}
