#include "orchestrator/http/gate.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

namespace permit::http {
namespace {

constexpr std::string_view alphanumerics =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// A set of bytes with a constant-time test.
class ByteSet {
 public:
  constexpr ByteSet(std::string_view some, std::string_view more) {
    for (const char byte : some) has_[static_cast<unsigned char>(byte)] = true;
    for (const char byte : more) has_[static_cast<unsigned char>(byte)] = true;
  }
  constexpr ByteSet(char first, char last, char also) {
    for (char byte = first; byte <= last; ++byte) has_[static_cast<unsigned char>(byte)] = true;
    has_[static_cast<unsigned char>(also)] = true;
  }
  constexpr bool has(char byte) const { return has_[static_cast<unsigned char>(byte)]; }
  bool has_all(std::string_view bytes) const {
    return std::all_of(bytes.begin(), bytes.end(), [this](char byte) { return has(byte); });
  }

 private:
  std::array<bool, 256> has_{};
};

constexpr ByteSet text_bytes(' ', '~', '\t');  // no control, no obs-text
constexpr ByteSet token_bytes(alphanumerics, "!#$%&'*+-.^_`|~");
constexpr ByteSet target_bytes(alphanumerics, "-._~!$&'()*+,;=:@%/?");  // RFC 3986, no fragment
constexpr ByteSet host_bytes(alphanumerics, "-._");
constexpr ByteSet address_bytes("0123456789abcdefABCDEF", ":.");
constexpr ByteSet digit_bytes("0123456789", "");
constexpr ByteSet digit_and_dot_bytes("0123456789", ".");

// Whether the eight bytes at `at` are all text, and none a tab.
bool are_text(const char* at) {
  constexpr std::uint64_t ones = 0x0101010101010101u;
  std::uint64_t word = 0;
  std::memcpy(&word, at, 8);
  // A byte has its high bit here if it is above 0x7F, below 0x20, or 0x7F.
  const std::uint64_t others = word | (word - ones * 0x20) | (word + ones);
  return (others & (ones * 0x80)) == 0;
}

bool is_token(std::string_view text) { return !text.empty() && token_bytes.has_all(text); }

constexpr char lower(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a == b ||  // as most write it
         std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

// Of each byte of a token that in lower case, of any other 0.
constexpr std::array<char, 256> make_lower_token_bytes() {
  std::array<char, 256> lowers{};
  for (std::size_t i = 0; i < lowers.size(); ++i) {
    const char byte = static_cast<char>(i);
    if (token_bytes.has(byte)) lowers[i] = lower(byte);
  }
  return lowers;
}
constexpr std::array<char, 256> lower_token_bytes = make_lower_token_bytes();

// Appends it to the empty `out` in lower case; false if it is no token.
bool lower_token(std::string_view text, std::string& out) {
  out.append(text);
  bool ok = !text.empty();
  for (char& byte : out) {
    byte = lower_token_bytes[static_cast<unsigned char>(byte)];
    ok = ok && byte != 0;
  }
  return ok;
}

bool is_blank(char byte) { return byte == ' ' || byte == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool list_has(std::string_view list, std::string_view token) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (equals_ignoring_case(trimmed(list.substr(0, comma)), token)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

bool is_port_suffix(std::string_view text) {
  if (text.empty()) return true;
  return text[0] == ':' && text.size() >= 2 && text.size() <= 6 &&
         digit_bytes.has_all(text.substr(1));
}

// The host of "host", "host:port", "[v6]" or "[v6]:port"; nullopt if it is none of them.
std::optional<std::string_view> host_of(std::string_view authority) {
  const bool bracketed = authority.starts_with('[');
  const std::size_t end = authority.find(bracketed ? ']' : ':');
  if (bracketed && end == std::string_view::npos) return std::nullopt;
  const std::string_view host = authority.substr(0, bracketed ? end + 1 : end);
  const std::string_view inner = bracketed ? host.substr(1, host.size() - 2) : host;
  if (inner.empty()) return std::nullopt;
  if (!(bracketed ? address_bytes : host_bytes).has_all(inner)) return std::nullopt;
  if (!is_port_suffix(authority.substr(host.size()))) return std::nullopt;
  return host;
}

bool is_address(std::string_view host) {
  return host.starts_with('[') ||
         (digit_and_dot_bytes.has_all(host) && host.find('.') != host.npos);
}

bool is_allowed_host(std::string_view host, const Limits& limits) {
  if (limits.addresses_are_hosts && is_address(host)) return true;
  for (const std::string_view local : {"localhost", "127.0.0.1", "[::1]"}) {
    if (equals_ignoring_case(host, local)) return true;
  }
  return std::any_of(limits.allowed_hosts.begin(), limits.allowed_hosts.end(),
                     [host](const std::string& name) { return equals_ignoring_case(host, name); });
}

std::string_view without_port(std::string_view authority, std::string_view port) {
  if (authority.ends_with(port)) authority.remove_suffix(port.size());
  return authority;
}

// Whether a page of that origin came from the very host and port that it asks now. Another port of
// this machine is another program's page. Over https a proxy is in front.
bool is_own_origin(std::string_view page, std::string_view host) {
  for (const auto& [scheme, port] : {std::pair("http://", ":80"), std::pair("https://", ":443")}) {
    if (!page.starts_with(scheme)) continue;
    page.remove_prefix(std::string_view(scheme).size());
    return equals_ignoring_case(without_port(page, port), without_port(host, port));
  }
  return false;
}

bool is_json(std::string_view content_type) {
  return equals_ignoring_case(trimmed(content_type.substr(0, content_type.find(';'))),
                              "application/json");
}

// google.rpc.Code for a refusal.
int rpc_code(int status) {
  if (status == 403) return 7;                                     // permission_denied
  if (status == 408) return 4;                                     // deadline_exceeded
  if (status == 405 || status == 501 || status == 505) return 12;  // unimplemented
  if (status == 503) return 14;                                    // unavailable
  return 3;                                                        // invalid_argument
}

}  // namespace

Response refusal_response(const Refusal& refusal) {
  Response response =
      error_response(refusal.status, rpc_code(refusal.status), refusal.reason, refusal.sentence);
  if (refusal.status == 405) {
    response.headers.push_back({"Allow", "GET, POST, PUT, DELETE, HEAD, OPTIONS"});
  }
  return response;
}

std::optional<HeadResult> HeadReader::read(std::string_view bytes) {
  while (true) {
    skip_text(bytes);
    if (position_ == bytes.size()) return std::nullopt;
    if (!take_byte(bytes)) return std::move(refusal_);
    ++position_;
    if (!complete_) continue;
    head_.size = position_;
    if (!finish()) return std::move(refusal_);
    return std::move(head_);
  }
}

// Goes over ordinary bytes, up to one that take_byte() must judge.
void HeadReader::skip_text(std::string_view bytes) {
  if (after_cr_) return;
  const std::size_t end =
      std::min({bytes.size(), line_start_ + limits_.line_bytes_max, limits_.head_bytes_max});
  while (end - position_ >= 8 && are_text(bytes.data() + position_)) position_ += 8;
  while (position_ < end && text_bytes.has(bytes[position_])) ++position_;
}

bool HeadReader::refuse(int status, std::string_view reason, std::string_view sentence) {
  refusal_ = Refusal{status, std::string(reason), std::string(sentence)};
  return false;
}

bool HeadReader::take_byte(std::string_view bytes) {
  const char byte = bytes[position_];
  if (position_ >= limits_.head_bytes_max) {
    return refuse(431, "HEAD_TOO_LARGE",
                  "The request's headers are larger than this server reads.");
  }
  if (byte == '\n') {
    if (!after_cr_) return refuse(400, "BARE_LF", "A header line must end with CR LF, not LF.");
    after_cr_ = false;
    const std::size_t start = std::exchange(line_start_, position_ + 1);
    return take_line(bytes.substr(start, position_ - 1 - start));
  }
  if (after_cr_) return refuse(400, "BARE_CR", "A CR in the headers must be followed by LF.");
  if (byte == '\r') {
    after_cr_ = true;
    return true;
  }
  if (!text_bytes.has(byte)) {
    return refuse(400, "HEAD_BYTE_INVALID",
                  "The request's headers hold a control or non-ASCII byte. Is the client speaking "
                  "plain HTTP/1.1?");
  }
  return refuse_long_line();
}

bool HeadReader::refuse_long_line() {
  if (line_start_ == 0) {
    return refuse(414, "TARGET_TOO_LONG", "The request line is longer than this server reads.");
  }
  return refuse(431, "HEADER_TOO_LONG", "A header line is longer than this server reads.");
}

bool HeadReader::take_line(std::string_view line) {
  if (head_.request.method.empty()) return take_request_line(line);
  if (!line.empty()) return take_header(line);
  complete_ = true;
  return true;
}

bool HeadReader::take_request_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == last || line.find(' ', first + 1) != last || !is_token(line.substr(0, first))) {
    return refuse(
        400, "REQUEST_LINE_INVALID",
        "The request line must be a method, a target and HTTP/1.1, with one space between "
        "them.");
  }
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1") {
    const bool other = version.size() == 8 && version.starts_with("HTTP/") && version[6] == '.' &&
                       digit_bytes.has(version[5]) && digit_bytes.has(version[7]);
    if (other) return refuse(505, "VERSION_UNSUPPORTED", "This server speaks HTTP/1.1 only.");
    return refuse(400, "VERSION_INVALID", "The request line must end with HTTP/1.1.");
  }
  return take_method(line.substr(0, first)) &&
         take_target(line.substr(first + 1, last - first - 1));
}

bool HeadReader::take_method(std::string_view method) {
  for (const std::string_view known : {"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"}) {
    if (method != known) continue;
    head_.request.method = method;
    return true;
  }
  if (method == "CONNECT" || method == "TRACE") {
    return refuse(405, "METHOD_NOT_ALLOWED", "This method is never allowed here.");
  }
  return refuse(501, "METHOD_UNKNOWN", "This server does not know that method; case matters.");
}

bool HeadReader::take_target(std::string_view target) {
  if (target.size() > limits_.target_bytes_max) {
    return refuse(414, "TARGET_TOO_LONG", "The request target is longer than this server reads.");
  }
  if (!target.starts_with('/')) {
    return refuse(400, "TARGET_FORM_INVALID",
                  "The request target must be a path that begins with /.");
  }
  if (!target_bytes.has_all(target)) {
    return refuse(400, "TARGET_INVALID",
                  "The request target holds a character that must be percent-encoded.");
  }
  Request& request = head_.request;
  request.target.append(target);
  const std::size_t mark = target.find('?');
  request.path.append(target.substr(0, mark));
  if (mark != std::string_view::npos) request.query = target.substr(mark + 1);
  return true;
}

bool HeadReader::take_header(std::string_view line) {
  if (line[0] == ' ' || line[0] == '\t') {
    return refuse(400, "HEADER_FOLDED", "A header may not continue on a second line.");
  }
  std::vector<Header>& headers = head_.request.headers;
  if (headers.size() >= limits_.header_count_max) {
    return refuse(431, "HEADERS_TOO_MANY", "The request has more headers than this server reads.");
  }
  const std::size_t colon = line.find(':');
  if (headers.empty()) headers.reserve(8);
  Header& header = headers.emplace_back();
  if (colon == std::string_view::npos || !lower_token(line.substr(0, colon), header.name)) {
    return refuse(400, "HEADER_INVALID",
                  "A header line must be a name, a colon right after it, and a value.");
  }
  header.value.append(trimmed(line.substr(colon + 1)));
  return note_known(known_header(header.name), header.value);
}

HeadReader::Known HeadReader::known_header(std::string_view lower_name) {
  static constexpr std::array<std::string_view, known_count> names = {
      "authorization",  "connection", "content-encoding", "content-length",    "content-type",
      "expect",         "host",       "origin",           "sec-fetch-dest",    "sec-fetch-mode",
      "sec-fetch-site", "te",         "trailer",          "transfer-encoding", "upgrade"};
  const auto* found = std::find(names.begin(), names.end(), lower_name);
  return static_cast<Known>(found - names.begin());
}

bool HeadReader::note_known(Known known, std::string_view value) {
  if (known == known_count) return true;
  if (known == te || known == trailer || known == upgrade) {
    return refuse(400, "HEADER_NOT_SUPPORTED",
                  "TE, Trailer and Upgrade are not supported; send plain HTTP/1.1.");
  }
  if (known == connection) {
    if (list_has(value, "close")) head_.keep_alive = false;
    return true;
  }
  const bool again = known_at_[known] != 0;
  if (again && known != transfer_encoding) {
    return refuse(400, "HEADER_REPEATED",
                  "The header " + head_.request.headers.back().name + " may appear only once.");
  }
  known_at_[known] = static_cast<std::uint16_t>(head_.request.headers.size());
  return true;
}

const std::string* HeadReader::value_of(Known known) const {
  const std::size_t at = known_at_[known];
  return at == 0 ? nullptr : &head_.request.headers[at - 1].value;
}

bool HeadReader::finish() {
  return check_framing() && check_host() && check_browser() && check_body() && check_expectation();
}

bool HeadReader::check_framing() {
  const std::string* length = value_of(content_length);
  if (value_of(transfer_encoding) != nullptr) {
    if (length == nullptr) {
      return refuse(411, "LENGTH_REQUIRED", "Send Content-Length instead of Transfer-Encoding.");
    }
    return refuse(400, "LENGTH_AMBIGUOUS",
                  "A request may not have both Content-Length and Transfer-Encoding.");
  }
  if (length == nullptr) return true;
  if (length->empty() || length->size() > 19 || !digit_bytes.has_all(*length)) {
    return refuse(400, "LENGTH_INVALID", "Content-Length must be 1 to 19 decimal digits.");
  }
  std::from_chars(length->data(), length->data() + length->size(), head_.content_length);
  return true;
}

bool HeadReader::check_host() {
  const std::string* authority = value_of(host);
  const std::optional<std::string_view> name = authority ? host_of(*authority) : std::nullopt;
  if (!name) return refuse(400, "HOST_INVALID", "Exactly one Host header with a host is needed.");
  if (is_allowed_host(*name, limits_)) return true;
  return refuse(421, "HOST_NOT_ALLOWED",
                "This server does not answer for that host; allow the name with allowed_hosts in "
                "its configuration.");
}

// Another site's page may be open in a browser on this machine: it can send, so it must not write,
// hold a poll open, or learn from how long an answer takes. Programs send none of these headers.
bool HeadReader::check_browser() {
  const std::string* page = value_of(origin);
  const std::string* site = value_of(sec_fetch_site);
  const bool own_site = site != nullptr && equals_ignoring_case(*site, "same-origin");
  // "none" is somebody at the address bar. A page that sends no referrer may have to call itself
  // null; then only the browser's own word on the site says that it is ours.
  const bool site_ok =
      site == nullptr || own_site || equals_ignoring_case(*site, "none") || follows_link();
  const bool page_ok = page == nullptr || is_own_origin(*page, *value_of(host)) ||
                       (own_site && equals_ignoring_case(*page, "null"));
  if (site_ok && page_ok) return true;
  return refuse(
      403, "ORIGIN_NOT_ALLOWED",
      "A page of another origin may not use this server (a proxy must pass Host on as it came).");
}

// Whether somebody opens this in a window of its own: the page that had the link sees nothing of
// it.
bool HeadReader::follows_link() const {
  const std::string& method = head_.request.method;
  const std::string* mode = value_of(sec_fetch_mode);
  const std::string* destination = value_of(sec_fetch_dest);
  return (method == "GET" || method == "HEAD") && mode != nullptr &&
         equals_ignoring_case(*mode, "navigate") && destination != nullptr &&
         equals_ignoring_case(*destination, "document");
}

bool HeadReader::check_body() {
  const std::string& method = head_.request.method;
  const std::string* encoding = value_of(content_encoding);
  const std::string* type = value_of(content_type);
  if (method != "POST" && method != "PUT" && method != "DELETE") {
    if (head_.content_length == 0) return true;
    return refuse(400, "BODY_NOT_ALLOWED", "A " + method + " request may not have a body.");
  }
  if (encoding != nullptr && !equals_ignoring_case(*encoding, "identity")) {
    return refuse(415, "CONTENT_ENCODING_UNSUPPORTED", "Send the body without Content-Encoding.");
  }
  const bool typed = type != nullptr ? is_json(*type) : head_.content_length == 0;
  if (typed) return true;
  return refuse(415, "CONTENT_TYPE_UNSUPPORTED",
                "Send the body as Content-Type: application/json.");
}

bool HeadReader::check_expectation() {
  const std::string* expectation = value_of(expect);
  if (expectation != nullptr && !equals_ignoring_case(*expectation, "100-continue")) {
    return refuse(417, "EXPECTATION_UNKNOWN", "Only Expect: 100-continue is known.");
  }
  if (head_.content_length > limits_.body_bytes_max) {
    return refuse(413, "BODY_TOO_LARGE",
                  "The body is larger than the limit of " + std::to_string(limits_.body_bytes_max) +
                      " bytes.");
  }
  head_.expects_continue = expectation != nullptr && head_.content_length > 0;
  return true;
}

HeadResult parse_head(std::string_view bytes, const Limits& limits) {
  HeadReader reader(limits);
  std::optional<HeadResult> result = reader.read(bytes);
  if (result) return std::move(*result);
  return Refusal{400, "HEAD_INCOMPLETE", "The request's headers end before their blank line."};
}

}  // namespace permit::http
