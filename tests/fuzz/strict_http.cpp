#include "tests/fuzz/strict_http.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <regex>
#include <set>

namespace permit::fuzz {

namespace {

// What a rule throws that is not kept.
struct Refused {
  int status;
};
struct Unfinished {};

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return text;
}

bool in_ascii(char c, const char* extra) {
  const auto u = static_cast<unsigned char>(c);
  if (u >= 128) return false;
  return (u >= '0' && u <= '9') || (u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z') ||
         (c != '\0' && std::string_view(extra).find(c) != std::string_view::npos);
}

bool all_of(const std::string& text, const char* extra) {
  for (const char c : text) {
    if (!in_ascii(c, extra)) return false;
  }
  return true;
}

bool is_token(const std::string& text) { return !text.empty() && all_of(text, "!#$%&'*+-.^_`|~"); }

bool only_digits(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

std::string strip(const std::string& text) {
  std::size_t from = 0;
  std::size_t to = text.size();
  while (from < to && (text[from] == ' ' || text[from] == '\t')) ++from;
  while (to > from && (text[to - 1] == ' ' || text[to - 1] == '\t')) --to;
  return text.substr(from, to - from);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// One line, from `start`; moves it behind the line's end. RFC 9112, 2.2: a sender must not generate
// a bare CR; we take a bare LF no better, and no control or non-ASCII byte anywhere.
std::string take_line(std::string_view bytes, std::size_t& start, const http::Limits& limits) {
  const bool first = start == 0;
  for (std::size_t at = start;; ++at) {
    if (at == bytes.size()) throw Unfinished{};
    if (at >= limits.head_bytes_max) throw Refused{431};
    const char c = bytes[at];
    if (c == '\r') {
      if (at + 1 == bytes.size()) throw Unfinished{};
      if (at + 1 >= limits.head_bytes_max) throw Refused{431};
      if (bytes[at + 1] != '\n') throw Refused{400};
      std::string line(bytes.substr(start, at - start));
      start = at + 2;
      return line;
    }
    const bool printable = c == '\t' || (c >= 0x20 && c < 0x7f);
    if (!printable) throw Refused{400};
    if (at - start >= limits.line_bytes_max) throw Refused{first ? 414 : 431};
  }
}

void judge_request_line(const std::string& line, const http::Limits& limits, StrictHead& head) {
  const std::vector<std::string> parts = split(line, ' ');
  if (parts.size() != 3 || !is_token(parts[0])) throw Refused{400};
  const std::string& version = parts[2];
  if (version != "HTTP/1.1") {
    const bool is_other = version.size() == 8 && version.substr(0, 5) == "HTTP/" &&
                          std::isdigit(version[5]) != 0 && version[6] == '.' &&
                          std::isdigit(version[7]) != 0;
    throw Refused{is_other ? 505 : 400};
  }
  static const std::set<std::string> served = {"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"};
  if (parts[0] == "CONNECT" || parts[0] == "TRACE") throw Refused{405};
  if (!served.contains(parts[0])) throw Refused{501};
  if (parts[1].size() > limits.target_bytes_max) throw Refused{414};
  if (parts[1].empty() || parts[1][0] != '/') throw Refused{400};  // origin-form only
  if (!all_of(parts[1], "-._~!$&'()*+,;=:@%/?")) throw Refused{400};
  head.method = parts[0];
  head.target = parts[1];
}

void judge_header(const std::string& line, const http::Limits& limits, StrictHead& head) {
  if (line[0] == ' ' || line[0] == '\t') throw Refused{400};  // folded
  if (head.headers.size() == limits.header_count_max) throw Refused{431};
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos || !is_token(line.substr(0, colon))) throw Refused{400};
  const std::string name = lower_case(line.substr(0, colon));
  if (name == "te" || name == "trailer" || name == "upgrade") throw Refused{400};
  static const std::set<std::string> only_once = {
      "authorization", "content-encoding", "content-length", "content-type",   "expect",
      "host",          "origin",           "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site"};
  for (const auto& [other, value] : head.headers) {
    if (other == name && only_once.contains(name)) throw Refused{400};
  }
  head.headers.emplace_back(name, strip(line.substr(colon + 1)));
}

std::optional<std::string> value_of(const StrictHead& head, const std::string& name) {
  for (const auto& [other, value] : head.headers) {
    if (other == name) return value;
  }
  return std::nullopt;
}

void judge_framing(StrictHead& head) {
  const auto length = value_of(head, "content-length");
  if (value_of(head, "transfer-encoding")) throw Refused{length ? 400 : 411};
  if (!length) return;
  if (length->empty() || length->size() > 19 || !only_digits(*length)) throw Refused{400};
  head.content_length = std::stoull(*length);
}

void judge_host(const StrictHead& head, const http::Limits& limits) {
  const auto host = value_of(head, "host");
  if (!host) throw Refused{400};
  static const std::regex form(R"((\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(:[0-9]{1,5})?)");
  std::smatch parts;
  if (!std::regex_match(*host, parts, form)) throw Refused{400};
  const std::string name = lower_case(parts[1]);
  if (name == "localhost" || name == "127.0.0.1" || name == "[::1]") return;
  for (const std::string& allowed : limits.allowed_hosts) {
    if (lower_case(allowed) == name) return;
  }
  throw Refused{421};
}

// The host and port that a page of this origin came from, without the port that its scheme implies.
std::string bare(std::string authority, const std::string& port) {
  authority = lower_case(authority);
  const std::size_t keep = authority.size() - std::min(authority.size(), port.size());
  return authority.substr(keep) == port ? authority.substr(0, keep) : authority;
}

void judge_browser(const StrictHead& head) {
  const auto origin = value_of(head, "origin");
  const auto site = value_of(head, "sec-fetch-site");
  const auto is = [&](const char* name, const char* value) {
    const auto given = value_of(head, name);
    return given && lower_case(*given) == value;
  };
  const bool reads = head.method == "GET" || head.method == "HEAD";
  const bool link = reads && is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document");
  const bool same = is("sec-fetch-site", "same-origin");
  if (site && !same && !is("sec-fetch-site", "none") && !link) throw Refused{403};
  if (!origin) return;
  if (same && lower_case(*origin) == "null") return;
  const std::string host = *value_of(head, "host");
  static const std::map<std::string, std::string> schemes = {{"http://", ":80"},
                                                             {"https://", ":443"}};
  for (const auto& [scheme, port] : schemes) {
    if (origin->substr(0, scheme.size()) != scheme) continue;
    if (bare(origin->substr(scheme.size()), port) == bare(host, port)) return;
  }
  throw Refused{403};
}

void judge_body(const StrictHead& head) {
  const bool may_have_one =
      head.method == "POST" || head.method == "PUT" || head.method == "DELETE";
  if (!may_have_one) {
    if (head.content_length > 0) throw Refused{400};
    return;
  }
  const auto encoding = value_of(head, "content-encoding");
  if (encoding && lower_case(*encoding) != "identity") throw Refused{415};
  const auto type = value_of(head, "content-type");
  if (!type && head.content_length == 0) return;
  if (!type || lower_case(strip(split(*type, ';')[0])) != "application/json") throw Refused{415};
}

void judge_expectation(StrictHead& head, const http::Limits& limits) {
  const auto expected = value_of(head, "expect");
  if (expected && lower_case(*expected) != "100-continue") throw Refused{417};
  if (head.content_length > limits.body_bytes_max) throw Refused{413};
  head.expects_continue = expected && head.content_length > 0;
}

void note_connection(StrictHead& head) {
  for (const auto& [name, value] : head.headers) {
    if (name != "connection") continue;
    for (const std::string& option : split(value, ',')) {
      if (lower_case(strip(option)) == "close") head.keep_alive = false;
    }
  }
}

}  // namespace

StrictHead read_strictly(std::string_view bytes, const http::Limits& limits) {
  StrictHead head;
  try {
    judge_request_line(take_line(bytes, head.size, limits), limits, head);
    while (true) {
      const std::string line = take_line(bytes, head.size, limits);
      if (line.empty()) break;
      judge_header(line, limits, head);
    }
    judge_framing(head);
    judge_host(head, limits);
    judge_browser(head);
    judge_body(head);
    judge_expectation(head, limits);
    note_connection(head);
    head.verdict = StrictHead::Verdict::accepted;
  } catch (const Refused& refused) {
    head.verdict = StrictHead::Verdict::refused;
    head.status = refused.status;
  } catch (const Unfinished&) {
    head.verdict = StrictHead::Verdict::unfinished;
  }
  return head;
}

}  // namespace permit::fuzz
