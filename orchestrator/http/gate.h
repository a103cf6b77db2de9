// The only HTTP/1.1 request-head parser of the server, and a strict one: raw bytes go in, and out
// comes a head in which every doubtful form has been refused, so that no second parser can read
// the same bytes otherwise. Pure: no socket, no clock.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orchestrator/http/message.h"

namespace permit::http {

// Every limit of the HTTP side. The gate enforces the sizes of a head, the server the rest.
struct Limits {
  std::size_t head_bytes_max = 8 * 1024;  // request line to blank line
  std::size_t line_bytes_max = 4 * 1024;  // one line of it
  std::size_t header_count_max = 64;
  std::size_t target_bytes_max = 2 * 1024;
  std::size_t body_bytes_max = 4 * 1024 * 1024;
  // Read ahead while an answer is outstanding; beyond it the peer's bytes stay in the kernel.
  std::size_t pipelined_bytes_max = 64 * 1024;
  // Discarded after an answer that closes, so that the peer gets to read it.
  std::size_t drain_bytes_max = 8 * 1024 * 1024;
  std::size_t connections_max = 16'384;

  std::chrono::milliseconds handshake_time_max{5'000};  // of TLS
  std::chrono::milliseconds head_time_max{5'000};
  std::chrono::milliseconds body_time_max{15'000};
  // A body slower than body_rate_min (bytes/s) on average is given up after this long.
  std::chrono::milliseconds body_grace_time{5'000};
  std::size_t body_rate_min = 1'024;
  std::chrono::milliseconds write_time_max{15'000};
  std::chrono::milliseconds idle_time_max{75'000};
  std::chrono::milliseconds drain_time_max{2'000};
  std::chrono::milliseconds sweep_interval{500};  // how late a deadline may be noticed

  // Host names besides localhost, 127.0.0.1 and [::1]; without port.
  std::vector<std::string> allowed_hosts;
  // Whether any IP address will do. No other site's name leads to one, so a page cannot use it.
  bool addresses_are_hosts = false;
};

struct Head {
  Request request;  // all but body and peer
  std::uint64_t content_length = 0;
  std::size_t size = 0;  // bytes of the head, blank line included
  bool keep_alive = true;
  bool expects_continue = false;
};

// Why a request is not served. The connection closes after it, whatever it is: past a refused head
// nobody knows where the next request begins.
struct Refusal {
  int status = 400;
  std::string reason;    // stable, UPPER_SNAKE
  std::string sentence;  // for a person
};

Response refusal_response(const Refusal& refusal);

using HeadResult = std::variant<Head, Refusal>;

// Reads one head from a stream. The verdict depends on the bytes alone, not on how they were cut:
// the first violation in stream order decides, then finish()'s checks in their fixed order.
class HeadReader {
 public:
  // `limits` must outlive the reader.
  explicit HeadReader(const Limits& limits) : limits_(limits) {}

  // `bytes` is everything since the head began: each call repeats the last one's bytes and may add
  // more. nullopt while the verdict is open; not to be called again after one.
  std::optional<HeadResult> read(std::string_view bytes);

 private:
  // Headers whose meaning the gate itself has to settle.
  enum Known : std::size_t {
    authorization,
    connection,
    content_encoding,
    content_length,
    content_type,
    expect,
    host,
    origin,
    sec_fetch_dest,
    sec_fetch_mode,
    sec_fetch_site,
    te,
    trailer,
    transfer_encoding,
    upgrade,
    known_count
  };
  static Known known_header(std::string_view lower_name);

  void skip_text(std::string_view bytes);

  // All of these return false after refuse(). The take_ ones see each part as soon as it is
  // complete, the check_ ones the finished head.
  bool refuse(int status, std::string_view reason, std::string_view sentence);
  bool take_byte(std::string_view bytes);
  bool take_line(std::string_view line);
  bool take_request_line(std::string_view line);
  bool take_method(std::string_view method);
  bool take_target(std::string_view target);
  bool take_header(std::string_view line);
  bool note_known(Known known, std::string_view value);
  bool refuse_long_line();

  bool finish();
  bool check_framing();
  bool check_host();
  bool check_browser();
  bool follows_link() const;
  bool check_body();
  bool check_expectation();
  const std::string* value_of(Known known) const;

  const Limits& limits_;
  std::size_t position_ = 0;    // first byte not looked at
  std::size_t line_start_ = 0;  // where the current line began
  bool after_cr_ = false;
  bool complete_ = false;
  Head head_;
  std::array<std::uint16_t, known_count> known_at_{};  // 1 + index in head_.request.headers
  Refusal refusal_;
};

// The whole head at once; an unfinished one is refused.
HeadResult parse_head(std::string_view bytes, const Limits& limits);

}  // namespace permit::http
