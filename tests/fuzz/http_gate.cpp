// The bytes of a connection: the gate's verdict on each head must not depend on how they were cut,
// and must be the one that a second, slower reader comes to. Past a head comes its body, then the
// next head: both must find the same requests in the same bytes.
//
//   byte 0: how often it is cut (3 bits), tiny limits or the real ones, byte by byte or not
//   2 bytes for each cut, then the stream
#include <algorithm>
#include <optional>
#include <vector>

#include "orchestrator/http/gate.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/strict_http.h"
#include "tests/fuzz/targets.h"

namespace permit::fuzz {

namespace {

http::Limits real_limits() {
  http::Limits limits;
  limits.allowed_hosts = {"permit.example"};
  return limits;
}

// So that short inputs reach them.
http::Limits tiny_limits() {
  http::Limits limits = real_limits();
  limits.head_bytes_max = 200;
  limits.line_bytes_max = 60;
  limits.header_count_max = 4;
  limits.target_bytes_max = 24;
  limits.body_bytes_max = 40;
  return limits;
}

using Verdict = std::optional<http::HeadResult>;

Verdict read_in_pieces(std::string_view bytes, const std::vector<std::size_t>& cuts,
                       const http::Limits& limits) {
  http::HeadReader reader(limits);
  for (const std::size_t cut : cuts) {
    Verdict verdict = reader.read(bytes.substr(0, cut));
    if (verdict) return verdict;
  }
  return reader.read(bytes);
}

bool same(const http::Request& a, const http::Request& b) {
  const auto same_header = [](const http::Header& x, const http::Header& y) {
    return x.name == y.name && x.value == y.value;
  };
  return a.method == b.method && a.target == b.target && a.path == b.path && a.query == b.query &&
         std::equal(a.headers.begin(), a.headers.end(), b.headers.begin(), b.headers.end(),
                    same_header);
}

void check_same(const Verdict& a, const Verdict& b) {
  promise(a.has_value() == b.has_value(), "a verdict does not depend on how the bytes were cut");
  if (!a) return;
  promise(a->index() == b->index(), "the same bytes are accepted or refused, however cut");
  if (const auto* refusal = std::get_if<http::Refusal>(&*a)) {
    const auto& other = std::get<http::Refusal>(*b);
    promise(refusal->status == other.status && refusal->reason == other.reason,
            "the same bytes are refused for the same reason, however cut");
    return;
  }
  const auto& head = std::get<http::Head>(*a);
  const auto& other = std::get<http::Head>(*b);
  promise(same(head.request, other.request) && head.content_length == other.content_length &&
              head.size == other.size && head.keep_alive == other.keep_alive &&
              head.expects_continue == other.expects_continue,
          "the same bytes are the same request, however cut");
}

void check_against(const StrictHead& strict, const Verdict& verdict) {
  if (!verdict) {
    promise(strict.verdict == StrictHead::Verdict::unfinished, "an open verdict: more is needed");
    return;
  }
  if (const auto* refusal = std::get_if<http::Refusal>(&*verdict)) {
    promise(strict.verdict == StrictHead::Verdict::refused, "only what breaks a rule is refused");
    promise(strict.status == refusal->status, "the first broken rule names the status");
    promise(!refusal->reason.empty() && !refusal->sentence.empty(), "a refusal says why");
    return;
  }
  const auto& head = std::get<http::Head>(*verdict);
  promise(strict.verdict == StrictHead::Verdict::accepted, "what breaks a rule is refused");
  promise(head.size == strict.size && head.content_length == strict.content_length,
          "a request ends where the strict reader says");
  promise(head.request.method == strict.method && head.request.target == strict.target,
          "method and target are those of the strict reader");
  promise(head.keep_alive == strict.keep_alive && head.expects_continue == strict.expects_continue,
          "what is said of the connection is understood alike");
  const bool same_headers =
      std::equal(head.request.headers.begin(), head.request.headers.end(), strict.headers.begin(),
                 strict.headers.end(), [](const http::Header& x, const auto& y) {
                   return x.name == y.first && x.value == y.second;
                 });
  promise(same_headers, "headers are those of the strict reader");
}

std::vector<std::size_t> every_byte(std::size_t size) {
  std::vector<std::size_t> cuts(std::min<std::size_t>(size, 9'000));
  for (std::size_t i = 0; i < cuts.size(); ++i) cuts[i] = i;
  return cuts;
}

}  // namespace

void http_gate(std::string_view input) {
  static const http::Limits real = real_limits();
  static const http::Limits tiny = tiny_limits();
  Choices choices(input);
  const std::uint8_t how = choices.byte();
  const http::Limits& limits = (how & 8U) != 0 ? tiny : real;
  std::vector<std::size_t> cuts(how % 8U);
  for (std::size_t& cut : cuts) cut = choices.byte() * 256U + choices.byte();
  std::string_view stream = choices.rest();
  for (int requests = 0; requests < 8 && !stream.empty(); ++requests) {
    std::vector<std::size_t> here;
    for (const std::size_t cut : cuts) here.push_back(cut % (stream.size() + 1));
    std::sort(here.begin(), here.end());
    if ((how & 16U) != 0) here = every_byte(stream.size());
    const Verdict whole = read_in_pieces(stream, {}, limits);
    check_same(whole, read_in_pieces(stream, here, limits));
    check_against(read_strictly(stream, limits), whole);
    const auto* head = whole ? std::get_if<http::Head>(&*whole) : nullptr;
    if (head == nullptr) return;
    stream.remove_prefix(head->size);
    stream.remove_prefix(std::min<std::size_t>(stream.size(), head->content_length));
  }
}

}  // namespace permit::fuzz
