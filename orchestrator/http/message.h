// What the rest of the orchestrator sees of HTTP: plain structs, and the Exchange through which a
// request is answered, now or much later. No sockets here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace permit::http {

struct Header {
  std::string name;  // lower case in a Request; written as it is in a Response
  std::string value;
};

struct Request {
  std::string method;
  std::string target;  // path and query as sent
  std::string path;    // still percent-encoded: see split_path() in url.h
  std::string query;   // still percent-encoded, without the '?'
  std::vector<Header> headers;
  std::string body;
  std::string peer;  // "address:port"

  // The first header of that name, or nullptr. The pointer lives as long as `headers` is unchanged.
  const std::string* header(std::string_view lower_name) const;
};

struct Response {
  int status = 200;
  std::string_view content_type = "application/json";  // a literal
  std::string body;
  std::vector<Header> headers;
  std::string error;  // of a refusal: its reason and sentence, for the log; not sent
  std::string key{};  // the name of the API key of the request, for the log; not sent
};

// An answer that goes on until one of the sides ends it, in chunks. Belongs to the server's thread.
// Destroying it breaks the connection.
class Stream {
 public:
  virtual ~Stream() = default;

  virtual bool is_open() const = 0;   // the peer is there, as far as we know
  virtual bool is_clear() const = 0;  // the kernel has taken all that was sent

  // A chunk made by make_chunk(), which many streams may share; only while clear. A peer that takes
  // nothing of it for long is given up.
  virtual void send(std::shared_ptr<const std::string> chunk) = 0;

  // The last chunk.
  virtual void end() = 0;

 protected:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

std::shared_ptr<const std::string> make_chunk(std::string_view bytes);

// One request and its one answer. Whoever holds the shared_ptr owes the answer: if the last one is
// dropped without it, the peer gets a 500. Belongs to the server's thread.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual Request& request() = 0;

  // The number of the connection that it came by, among all that this process has had; 0: none.
  virtual std::uint64_t connection() const = 0;

  // Answers, exactly once. After the peer has gone, or the server was destroyed, it does nothing.
  virtual void reply(Response response) = 0;

  // Answers with a stream, whose head is that of `response`. nullptr: this peer takes none and has
  // been told so, or it has gone.
  virtual std::unique_ptr<Stream> stream(Response response);

  // `callback` runs at most once, from the event loop and never from inside this call, if the peer
  // closes or resets before the reply. Without a callback a peer that only closed its sending side
  // still gets its answer; with one it counts as gone.
  virtual void on_gone(std::function<void()> callback) = 0;

  // Frees what the request holds, for a reply that will come much later: request() is empty after.
  virtual void park() = 0;

 protected:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
};

// The one shape of an error body: a google.rpc.Status with one ErrorInfo. `reason` is the stable
// code that programs branch on, `message` a sentence for a person; both are escaped.
Response error_response(int status, int rpc_code, std::string_view reason,
                        std::string_view message);

enum class After : std::uint8_t { keep_alive, close };

// Appends the status line and headers of `response`, to the blank line. Bytes that would break out
// of a header value are left out.
void append_response_head(std::string& out, const Response& response, After after);
// The same for an answer in chunks.
void append_stream_head(std::string& out, const Response& response);

// 204 and 304 carry neither a body nor its length.
bool status_has_body(int status);

}  // namespace permit::http
