// The network of level 2: connections on which requests and answers are bytes, cut and merged at
// random. On the server's side the real gate reads them and the real routes serve them; on the
// client's side the answers are read back.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "orchestrator/http/gate.h"
#include "orchestrator/http/routes.h"
#include "orchestrator/service/reads.h"
#include "tests/simulation/chance.h"

namespace permit::simulation {

class Wire {
 public:
  struct Caller {
    std::function<void(int status, const std::string& body)> answered;
    std::function<void()> lost;  // the connection broke first
  };

  explicit Wire(Chance& chance) : chance_(chance) {}
  ~Wire();

  // The server is there, or is gone, and every connection with it.
  void serve(service::Service& service, store::Store& store);
  void stop();

  enum class Way { shared, own };  // which connection: who waits has its own
  // Returns the number of the call's connection.
  std::int64_t call(std::string_view rpc, const std::string& body, Way way, Caller caller);
  // The peer closes its connection.
  void hang_up(std::int64_t connection);
  // A connection breaks, perhaps in the middle of a request.
  void cut_one();
  // Delivers what is on its way. Returns whether anything was.
  bool pump();

 private:
  class Exchange;
  struct Link {
    std::int64_t number = 0;
    Way way = Way::shared;
    std::string out;       // sent by the client, on its way
    std::string received;  // by the server, not used yet
    std::unique_ptr<http::HeadReader> reader;
    std::optional<http::Head> head;
    Exchange* serving = nullptr;
    std::string in;  // received by the client, not used yet
    std::deque<Caller> callers;
  };

  Link* find(std::int64_t number);
  Link& link_for(Way way);
  bool move(std::int64_t number);
  bool serve_next(std::int64_t number);
  void answer(Link& link, http::Response response);
  void read_answers(Link& link);
  void drop(std::int64_t number, bool server_is_there);
  std::string request_text(std::string_view rpc, const std::string& body);

  Chance& chance_;
  http::Limits limits_;
  service::Service* service_ = nullptr;
  std::unique_ptr<service::Reads> reads_;
  std::unique_ptr<http::Routes> routes_;
  std::map<std::int64_t, Link> links_;
  std::int64_t last_number_ = 0;
  std::string complaint_;  // what an exchange cannot throw
};

}  // namespace permit::simulation
