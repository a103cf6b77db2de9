#include "orchestrator/http/gate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orchestrator/http/url.h"

namespace permit::http {
namespace {

using namespace std::string_literals;

Limits test_limits() {
  Limits limits;
  limits.allowed_hosts = {"permit.example"};
  return limits;
}

// "200" or "400 REASON": what the tables below compare.
std::string verdict(const HeadResult& result) {
  if (std::holds_alternative<Head>(result)) return "200";
  const Refusal& refusal = std::get<Refusal>(result);
  return std::to_string(refusal.status) + " " + refusal.reason;
}

// Everything a result says, as text.
std::string described(const HeadResult& result) {
  if (const Refusal* refusal = std::get_if<Refusal>(&result)) {
    return verdict(result) + " " + refusal->sentence;
  }
  const Head& head = std::get<Head>(result);
  const Request& request = head.request;
  std::string text = request.method + " " + request.target + " " + request.path + "?" +
                     request.query + " length " + std::to_string(head.content_length) + " size " +
                     std::to_string(head.size);
  for (const Header& header : request.headers) text += "\n" + header.name + "=" + header.value;
  if (!head.keep_alive) text += "\nclose";
  if (head.expects_continue) text += "\ncontinue";
  return text;
}

// Feeds growing prefixes, cut at `cuts`, as a connection would.
HeadResult read_in_pieces(std::string_view bytes, const std::vector<std::size_t>& cuts) {
  const Limits limits = test_limits();
  HeadReader reader(limits);
  for (const std::size_t cut : cuts) {
    if (std::optional<HeadResult> result = reader.read(bytes.substr(0, cut))) return *result;
  }
  if (std::optional<HeadResult> result = reader.read(bytes)) return *result;
  return parse_head("", limits);  // incomplete
}

std::string verdict_on(std::string_view bytes) {
  const std::string whole = described(parse_head(bytes, test_limits()));
  std::vector<std::size_t> every_byte;
  for (std::size_t i = 0; i < bytes.size(); ++i) every_byte.push_back(i);
  CHECK(described(read_in_pieces(bytes, every_byte)) == whole);
  return verdict(parse_head(bytes, test_limits()));
}

std::string verdict_on_request(const std::string& line, const std::string& headers) {
  return verdict_on(line + "\r\nHost: localhost\r\n" + headers + "\r\n");
}

std::string get(const std::string& headers) {
  return verdict_on_request("GET / HTTP/1.1", headers);
}
std::string post(const std::string& headers) {
  return verdict_on_request("POST /x HTTP/1.1", "Content-Type: application/json\r\n" + headers);
}

struct Case {
  std::string input;
  std::string expected;
};

template <class Verdict>
void check_all(const std::vector<Case>& cases, Verdict verdict_of) {
  for (const Case& one : cases) {
    INFO(one.input.substr(0, 200));
    CHECK(verdict_of(one.input) == one.expected);
  }
}

TEST_CASE("a plain request becomes a head with every part in its place") {
  const HeadResult result = parse_head(
      "POST /v1/a%20b?x=1&y=2 HTTP/1.1\r\nHoSt: LocalHost:7171\r\nContent-Type: "
      "Application/JSON; charset=utf-8\r\ncontent-length: 12\r\nX-Empty:\r\nX-Tabs: \t a b "
      "\t\r\n\r\n"
      "the body",
      test_limits());
  CHECK(described(result) ==
        "POST /v1/a%20b?x=1&y=2 /v1/a%20b?x=1&y=2 length 12 size 151\n"
        "host=LocalHost:7171\ncontent-type=Application/JSON; charset=utf-8\ncontent-length=12\n"
        "x-empty=\nx-tabs=a b");
}

TEST_CASE("two ways to say where a body ends are never both believed") {
  check_all({{"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "400 LENGTH_AMBIGUOUS"},
             {"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "400 LENGTH_AMBIGUOUS"},
             {"Content-Length: 4\r\nContent-Length: 5\r\n", "400 HEADER_REPEATED"},
             {"Content-Length: 4\r\ncontent-length: 4\r\n", "400 HEADER_REPEATED"},
             {"Content-Length: 4, 4\r\n", "400 LENGTH_INVALID"},
             {"Content-Length: +4\r\n", "400 LENGTH_INVALID"},
             {"Content-Length: -1\r\n", "400 LENGTH_INVALID"},
             {"Content-Length: 0x4\r\n", "400 LENGTH_INVALID"},
             {"Content-Length: 4 4\r\n", "400 LENGTH_INVALID"},
             {"Content-Length:\r\n", "400 LENGTH_INVALID"},
             {"Content-Length: 18446744073709551616\r\n", "400 LENGTH_INVALID"},
             {"Content-Length: 9999999999999999999\r\n", "413 BODY_TOO_LARGE"},
             {"Content-Length: 0004\r\n", "200"},
             {"Content-Length: 0\r\n", "200"},
             {"", "200"}},
            post);
}

TEST_CASE("no transfer coding is accepted, whatever it is called") {
  check_all(
      {{"Transfer-Encoding: chunked\r\n", "411 LENGTH_REQUIRED"},
       {"Transfer-Encoding: xchunked\r\n", "411 LENGTH_REQUIRED"},
       {"Transfer-Encoding: gzip, chunked\r\n", "411 LENGTH_REQUIRED"},
       {"Transfer-Encoding: chunked, identity\r\n", "411 LENGTH_REQUIRED"},
       {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "411 LENGTH_REQUIRED"},
       {"Transfer-Encoding:\r\n", "411 LENGTH_REQUIRED"},
       {"tRANSFER-eNCODING: identity\r\n", "411 LENGTH_REQUIRED"},
       {"Transfer-Encoding : chunked\r\n", "400 HEADER_INVALID"},
       {"Transfer-Encoding:\r\n chunked\r\n", "400 HEADER_FOLDED"},
       {"Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n", "400 HEADER_NOT_SUPPORTED"}},
      post);
  CHECK(verdict_on("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n") ==
        "505 VERSION_UNSUPPORTED");
}

TEST_CASE("a header block with a doubtful byte is refused") {
  check_all({{"A: b\n", "400 BARE_LF"},
             {"A: b\rC: d\r\n", "400 BARE_CR"},
             {"A: b\r\r\n", "400 BARE_CR"},
             {"A: b\rC\n", "400 BARE_CR"},
             {"A: b\0c\r\n"s, "400 HEAD_BYTE_INVALID"},
             {"A: \xff\r\n", "400 HEAD_BYTE_INVALID"},
             {"A: \xc3\xa9\r\n", "400 HEAD_BYTE_INVALID"},
             {"A: \x7f\r\n", "400 HEAD_BYTE_INVALID"},
             {"A: \x1b[31m\r\n", "400 HEAD_BYTE_INVALID"},
             {" A: b\r\n", "400 HEADER_FOLDED"},
             {"\tA: b\r\n", "400 HEADER_FOLDED"},
             {"A : b\r\n", "400 HEADER_INVALID"},
             {": b\r\n", "400 HEADER_INVALID"},
             {"A\r\n", "400 HEADER_INVALID"},
             {"A(b): c\r\n", "400 HEADER_INVALID"}},
            get);
}

TEST_CASE("only HTTP/1.1 with a known method is served") {
  check_all({{"GET / HTTP/1.0", "505 VERSION_UNSUPPORTED"},
             {"GET / HTTP/1.2", "505 VERSION_UNSUPPORTED"},
             {"GET / HTTP/2.0", "505 VERSION_UNSUPPORTED"},
             {"PRI * HTTP/2.0", "505 VERSION_UNSUPPORTED"},
             {"GET / HTTP/1.1x", "400 VERSION_INVALID"},
             {"GET / http/1.1", "400 VERSION_INVALID"},
             {"GET / HTTP/11", "400 VERSION_INVALID"},
             {"GET /", "400 REQUEST_LINE_INVALID"},
             {"GET", "400 REQUEST_LINE_INVALID"},
             {"", "400 REQUEST_LINE_INVALID"},
             {" GET / HTTP/1.1", "400 REQUEST_LINE_INVALID"},
             {"GET  / HTTP/1.1", "400 REQUEST_LINE_INVALID"},
             {"GET / HTTP/1.1 ", "400 REQUEST_LINE_INVALID"},
             {"G(T / HTTP/1.1", "400 REQUEST_LINE_INVALID"},
             {"get / HTTP/1.1", "501 METHOD_UNKNOWN"},
             {"PATCH / HTTP/1.1", "501 METHOD_UNKNOWN"},
             {"BREW / HTTP/1.1", "501 METHOD_UNKNOWN"},
             {"TRACE / HTTP/1.1", "405 METHOD_NOT_ALLOWED"},
             {"CONNECT evil:443 HTTP/1.1", "405 METHOD_NOT_ALLOWED"},
             {"GET / HTTP/1.1", "200"},
             {"HEAD / HTTP/1.1", "200"},
             {"POST / HTTP/1.1", "200"},
             {"PUT / HTTP/1.1", "200"},
             {"DELETE / HTTP/1.1", "200"},
             {"OPTIONS / HTTP/1.1", "200"}},
            [](const std::string& line) { return verdict_on_request(line, ""); });
}

TEST_CASE("a target is a path in plain ASCII") {
  check_all({{"/a b", "400 REQUEST_LINE_INVALID"},
             {"/a\tb", "400 TARGET_INVALID"},
             {"/a\0b"s, "400 HEAD_BYTE_INVALID"},
             {"/\xc3\xa9", "400 HEAD_BYTE_INVALID"},
             {"http://evil/", "400 TARGET_FORM_INVALID"},
             {"*", "400 TARGET_FORM_INVALID"},
             {"a", "400 TARGET_FORM_INVALID"},
             {"/a#b", "400 TARGET_INVALID"},
             {"/a\\b", "400 TARGET_INVALID"},
             {"/?q=\"x\"", "400 TARGET_INVALID"},
             {"/a%20b?q=%22x%22&r=a+b", "200"},
             {"/" + std::string(2047, 'a'), "200"},
             {"/" + std::string(2048, 'a'), "414 TARGET_TOO_LONG"},
             {"/" + std::string(9000, 'a'), "414 TARGET_TOO_LONG"}},
            [](const std::string& target) {
              return verdict_on_request("GET " + target + " HTTP/1.1", "");
            });
}

TEST_CASE("what is not HTTP at all is refused by its first bytes") {
  check_all({{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s, "400 HEAD_BYTE_INVALID"},
             {"GET /\r\n", "400 REQUEST_LINE_INVALID"},
             {"\r\nGET / HTTP/1.1\r\n", "400 REQUEST_LINE_INVALID"},
             {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 VERSION_UNSUPPORTED"},
             {"SSH-2.0-OpenSSH_9.2\r\n", "400 REQUEST_LINE_INVALID"},
             {"*1\r\n$4\r\nPING\r\n", "400 REQUEST_LINE_INVALID"},
             {std::string(5000, 'x'), "414 TARGET_TOO_LONG"},
             {"GET / HTTP/1.1\r\nHost: localhost\r\n", "400 HEAD_INCOMPLETE"}},
            [](const std::string& bytes) { return verdict_on(bytes); });
}

std::string many_headers(int count) {
  std::string headers;
  for (int i = 0; i < count; ++i) headers += "a:b\r\n";
  return headers;
}

TEST_CASE("a head has a size, and so have its parts") {
  const std::string kilobytes = "A: " + std::string(3000, 'a') + "\r\n";
  check_all({{many_headers(63), "200"},
             {many_headers(64), "431 HEADERS_TOO_MANY"},
             {many_headers(1500), "431 HEADERS_TOO_MANY"},
             {"A:" + std::string(4094, 'a') + "\r\n", "200"},
             {"A:" + std::string(4095, 'a') + "\r\n", "431 HEADER_TOO_LONG"},
             {"A: " + std::string(9000, 'a') + "\r\n", "431 HEADER_TOO_LONG"},
             {kilobytes + kilobytes, "200"},
             {kilobytes + kilobytes + kilobytes, "431 HEAD_TOO_LARGE"}},
            get);
}

TEST_CASE("the last byte that fits is accepted and the next is not") {
  const std::string start =
      "GET / HTTP/1.1\r\nHost: localhost\r\nA: " + std::string(4080, 'a') + "\r\nB: ";
  const std::string fits = start + std::string(8192 - start.size() - 4, 'b') + "\r\n\r\n";
  CHECK(verdict_on(fits) == "200");
  CHECK(verdict_on(start + "b" + fits.substr(start.size())) == "431 HEAD_TOO_LARGE");
}

TEST_CASE("exactly one host, and one of ours") {
  check_all({{"", "400 HOST_INVALID"},
             {"Host: localhost\r\nHost: localhost\r\n", "400 HEADER_REPEATED"},
             {"Host:\r\n", "400 HOST_INVALID"},
             {"Host: localhost, evil\r\n", "400 HOST_INVALID"},
             {"Host: user@localhost\r\n", "400 HOST_INVALID"},
             {"Host: localhost:\r\n", "400 HOST_INVALID"},
             {"Host: localhost:80x\r\n", "400 HOST_INVALID"},
             {"Host: localhost:123456\r\n", "400 HOST_INVALID"},
             {"Host: [::1\r\n", "400 HOST_INVALID"},
             {"Host: []\r\n", "400 HOST_INVALID"},
             {"Host: [::1]x\r\n", "400 HOST_INVALID"},
             {"Host: ::1\r\n", "400 HOST_INVALID"},
             {"Host: evil.example\r\n", "421 HOST_NOT_ALLOWED"},
             {"Host: localhost.evil.example\r\n", "421 HOST_NOT_ALLOWED"},
             {"Host: 127.0.0.1.nip.io\r\n", "421 HOST_NOT_ALLOWED"},
             {"Host: [::2]\r\n", "421 HOST_NOT_ALLOWED"},
             {"Host: localhost\r\n", "200"},
             {"Host: LOCALHOST:7171\r\n", "200"},
             {"Host: 127.0.0.1:1\r\n", "200"},
             {"Host: [::1]\r\n", "200"},
             {"Host: [::1]:7171\r\n", "200"},
             {"Host: permit.example\r\n", "200"},
             {"Host: Permit.Example:443\r\n", "200"}},
            [](const std::string& headers) {
              return verdict_on("GET / HTTP/1.1\r\n" + headers + "\r\n");
            });
}

TEST_CASE("headers that change how a message is read are refused or understood") {
  check_all({{"TE: trailers\r\n", "400 HEADER_NOT_SUPPORTED"},
             {"Trailer: Host\r\n", "400 HEADER_NOT_SUPPORTED"},
             {"Upgrade: h2c\r\n", "400 HEADER_NOT_SUPPORTED"},
             {"Upgrade-Insecure-Requests: 1\r\n", "200"},
             {"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", "400 HEADER_REPEATED"},
             {"Authorization: Bearer a\r\n", "200"},
             {"Expect: 100-Continue\r\n", "200"},
             {"Expect: 200-ok\r\n", "417 EXPECTATION_UNKNOWN"}},
            get);
}

TEST_CASE("a body comes with POST, PUT and DELETE only") {
  const auto with_body = [](const std::string& method) {
    return verdict_on_request(method + " / HTTP/1.1",
                              "Content-Type: application/json\r\nContent-Length: 2\r\n");
  };
  check_all({{"GET", "400 BODY_NOT_ALLOWED"},
             {"HEAD", "400 BODY_NOT_ALLOWED"},
             {"OPTIONS", "400 BODY_NOT_ALLOWED"},
             {"DELETE", "200"},
             {"POST", "200"},
             {"PUT", "200"}},
            with_body);
  CHECK(get("Content-Length: 0\r\n") == "200");
}

TEST_CASE("a body is JSON, not encoded and not too large") {
  check_all(
      {{"Content-Length: 2\r\n", "415 CONTENT_TYPE_UNSUPPORTED"},
       {"", "200"},
       {"Content-Type: text/plain\r\n", "415 CONTENT_TYPE_UNSUPPORTED"},
       {"Content-Type: text/plain\r\nContent-Length: 2\r\n", "415 CONTENT_TYPE_UNSUPPORTED"},
       {"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 2\r\n",
        "415 CONTENT_TYPE_UNSUPPORTED"},
       {"Content-Type: application/jsonx\r\n", "415 CONTENT_TYPE_UNSUPPORTED"},
       {"Content-Type: application/json ;charset=utf-8\r\n", "200"},
       {"Content-Encoding: gzip\r\n", "415 CONTENT_ENCODING_UNSUPPORTED"},
       {"Content-Encoding: Identity\r\n", "200"}},
      [](const std::string& headers) { return verdict_on_request("POST / HTTP/1.1", headers); });
  CHECK(post("Content-Length: 4194304\r\n") == "200");
  CHECK(post("Content-Length: 4194305\r\n") == "413 BODY_TOO_LARGE");
  CHECK(post("Expect: 100-continue\r\nContent-Length: 4194305\r\n") == "413 BODY_TOO_LARGE");
}

// What a browser says of a request by itself; no page can change it.
std::string fetched(const std::string& site, const std::string& mode = "cors",
                    const std::string& destination = "empty") {
  return "Sec-Fetch-Site: " + site + "\r\nSec-Fetch-Mode: " + mode +
         "\r\nSec-Fetch-Dest: " + destination + "\r\n";
}

std::string verdict_at(const std::string& method, const std::string& host,
                       const std::string& headers) {
  const std::string type = method == "POST" || method == "PUT" || method == "DELETE"
                               ? "Content-Type: application/json\r\n"
                               : "";
  return verdict_on(method + " / HTTP/1.1\r\nHost: " + host + "\r\n" + type + headers + "\r\n");
}

constexpr const char* methods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"};
const std::string refused = "403 ORIGIN_NOT_ALLOWED";

TEST_CASE("a page of another origin is refused, whatever it asks") {
  for (const std::string method : methods) {
    CAPTURE(method);
    check_all(
        {{"Origin: https://evil\r\n", refused},
         {"Origin: http://evil:7171\r\n", refused},
         {"Origin: null\r\n", refused},
         {"Origin: \r\n", refused},
         {"Origin: file://\r\n", refused},
         {"Origin: ftp://localhost:7171\r\n", refused},
         {"Origin: HTTP://localhost:7171\r\n", refused},
         {"Origin: localhost:7171\r\n", refused},
         {"Origin: http://localhost:7171@evil\r\n", refused},
         {"Origin: http://evil@localhost:7171\r\n", refused},
         {"Origin: http://localhost:7171/\r\n", refused},
         {"Origin: http://localhost:7171 http://evil\r\n", refused},
         {"Origin: http://localhost:7171.evil\r\n", refused},
         {"Origin: chrome-extension://localhost:7171\r\n", refused},
         // Another program's page on this very machine.
         {"Origin: http://localhost:3000\r\n", refused},
         {"Origin: http://localhost\r\n", refused},
         {"Origin: https://localhost\r\n", refused},
         {"Origin: http://localhost:71710\r\n", refused},
         {"Origin: http://127.0.0.1:7171\r\n", refused},
         {"Origin: http://[::1]:7171\r\n", refused},
         {"Origin: http://permit.example:7171\r\n", refused},
         {fetched("cross-site"), refused},
         {fetched("same-site"), refused},
         {fetched("cross-site", "no-cors", "image"), refused},
         {fetched("cross-site", "no-cors", "script"), refused},
         {fetched("cross-site", "navigate", "iframe"), refused},
         {fetched("same-site", "navigate", "embed"), refused},
         {fetched("never-heard-of"), refused},
         {"Sec-Fetch-Site: cross-site\r\n", refused},
         {"Sec-Fetch-Site: \r\n", refused},
         // What the two headers say must agree.
         {"Origin: http://evil\r\n" + fetched("same-origin"), refused},
         {"Origin: http://evil\r\n" + fetched("none"), refused},
         {"Origin: null\r\n" + fetched("none"), refused},
         {"Origin: null\r\n" + fetched("cross-site"), refused},
         {"Origin: http://localhost:7171\r\n" + fetched("cross-site"), refused},
         {fetched("same-origin") + fetched("cross-site"), "400 HEADER_REPEATED"}},
        [&](const std::string& headers) { return verdict_at(method, "localhost:7171", headers); });
  }
}

TEST_CASE("the server's own page may ask everything, through a tunnel or a proxy too") {
  for (const std::string method : methods) {
    CAPTURE(method);
    check_all(
        {{"", "200"},
         {"Origin: http://localhost:7171\r\n", "200"},
         {"Origin: https://localhost:7171\r\n", "200"},
         {"Origin: http://LOCALHOST:7171\r\n", "200"},
         {fetched("same-origin"), "200"},
         {fetched("Same-Origin"), "200"},
         {fetched("none"), "200"},
         {fetched("same-origin", "same-origin", "sharedworker"), "200"},
         {"Origin: http://localhost:7171\r\n" + fetched("same-origin"), "200"},
         {"Origin: null\r\n" + fetched("same-origin"), "200"}},  // it sends no referrer
        [&](const std::string& headers) { return verdict_at(method, "localhost:7171", headers); });
  }
  check_all({{"localhost:7400|http://localhost:7400", "200"},
             {"127.0.0.1:7376|http://127.0.0.1:7376", "200"},
             {"[::1]:7376|http://[::1]:7376", "200"},
             {"localhost|http://localhost", "200"},
             {"localhost:80|http://localhost", "200"},
             {"permit.example|https://permit.example", "200"},
             {"permit.example:443|https://permit.example", "200"},
             {"permit.example:443|http://permit.example", refused},
             {"permit.example:80|https://permit.example", refused},
             {"127.0.0.1:7376|https://permit.example", refused},  // a proxy that hides its name
             {"evil|http://evil", "421 HOST_NOT_ALLOWED"},  // a name that leads here: rebinding
             {"evil:7376|http://localhost:7376", "421 HOST_NOT_ALLOWED"}},
            [](const std::string& text) {
              const std::size_t bar = text.find('|');
              return verdict_at("POST", text.substr(0, bar),
                                "Origin: " + text.substr(bar + 1) + "\r\n");
            });
}

TEST_CASE("a link on another site leads here, and does nothing else") {
  for (const std::string site : {"cross-site", "same-site"}) {
    const std::string followed = fetched(site, "navigate", "document");
    for (const std::string method : {"GET", "HEAD"}) {
      CHECK(verdict_at(method, "localhost:7171", followed) == "200");
      CHECK(verdict_at(method, "localhost:7171", "Origin: http://evil\r\n" + followed) == refused);
      CHECK(verdict_at(method, "localhost:7171", "Origin: null\r\n" + followed) == refused);
    }
    for (const std::string method : {"POST", "PUT", "DELETE"}) {  // a form
      CHECK(verdict_at(method, "localhost:7171", followed) == refused);
    }
  }
  CHECK(verdict_at("GET", "localhost:7171", "Sec-Fetch-Site: cross-site\r\n") == refused);
  CHECK(verdict_at("TRACE", "localhost:7171", "") == "405 METHOD_NOT_ALLOWED");
}

TEST_CASE("what a form can send is refused even if a browser says nothing of its page") {
  for (const std::string type :
       {"application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "text/plain",
        "text/plain; application/json", "application/json, text/plain", ""}) {
    for (const std::string length : {"0", "2"}) {
      CAPTURE(type);
      CHECK(verdict_on_request("POST / HTTP/1.1", "Content-Type: " + type +
                                                      "\r\nContent-Length: " + length + "\r\n") ==
            "415 CONTENT_TYPE_UNSUPPORTED");
    }
  }
}

TEST_CASE("Connection: close and Expect are told to the server") {
  const auto head = [](const std::string& headers) {
    return std::get<Head>(
        parse_head("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                   "application/json\r\n" +
                       headers + "\r\n",
                   test_limits()));
  };
  CHECK(head("").keep_alive);
  CHECK(head("Connection: keep-alive\r\n").keep_alive);
  CHECK_FALSE(head("Connection: foo, Close\r\n").keep_alive);
  CHECK_FALSE(head("Connection: foo\r\nConnection: close\r\n").keep_alive);
  CHECK(head("Expect: 100-continue\r\nContent-Length: 1\r\n").expects_continue);
  CHECK_FALSE(head("Expect: 100-continue\r\nContent-Length: 0\r\n").expects_continue);
}

const std::vector<std::string> valid_requests = {
    "GET /v1/workflows?query=a%20b HTTP/1.1\r\nHost: localhost:7171\r\nAccept: */*\r\n\r\n",
    "POST /v1/workflows/x HTTP/1.1\r\nHost: [::1]:80\r\nContent-Type: application/json\r\n"
    "Content-Length: 17\r\nAuthorization: Bearer abc\r\nConnection: keep-alive\r\n\r\n",
    "DELETE /a HTTP/1.1\r\nHost: permit.example\r\nOrigin: http://permit.example\r\n"
    "Sec-Fetch-Site: same-origin\r\nExpect: 100-continue\r\n\r\n",
};

std::string mutated(std::string bytes, std::mt19937& random) {
  static const std::vector<std::string> inserts = {"\r\n",
                                                   "\n",
                                                   "\r",
                                                   " ",
                                                   "\t",
                                                   ":",
                                                   "\0"s,
                                                   "\xff",
                                                   "Content-Length: 4\r\n",
                                                   "Host: evil\r\n",
                                                   "Transfer-Encoding: chunked\r\n",
                                                   "\r\n\r\n",
                                                   "HTTP/1.0",
                                                   "%",
                                                   "4, 4"};
  const std::size_t count = 1 + random() % 4;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = random() % (bytes.size() + 1);
    const std::size_t length = random() % 8;
    switch (random() % 5) {
      case 0:
        bytes.insert(at, inserts[random() % inserts.size()]);
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(at, bytes.substr(random() % (bytes.size() + 1), length * 8));
        break;
      case 3:
        bytes.insert(at, 1, static_cast<char>(random() % 256));
        break;
      default:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random() % 256);
    }
  }
  return bytes;
}

std::vector<std::size_t> random_cuts(std::size_t size, std::mt19937& random) {
  std::vector<std::size_t> cuts(random() % 8);
  for (std::size_t& cut : cuts) cut = random() % (size + 1);
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

TEST_CASE("20,000 mutated requests get the same verdict however they are cut") {
  const unsigned seed = 20'260'101;
  MESSAGE("SEED=" << seed);
  std::mt19937 random(seed);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string bytes = mutated(valid_requests[random() % valid_requests.size()], random);
    const HeadResult whole = parse_head(bytes, test_limits());
    const HeadResult pieces = read_in_pieces(bytes, random_cuts(bytes.size(), random));
    REQUIRE(described(pieces) == described(whole));
    if (std::holds_alternative<Head>(whole)) ++accepted;
  }
  CHECK(accepted > 500);
  CHECK(accepted < 15'000);
}

TEST_CASE("an error body is one JSON shape, whatever its message holds") {
  const Response response = error_response(400, 3, "A_REASON", "say \"no\"\n\\ <b> \x1b \xff");
  CHECK(response.body ==
        "{\"code\":3,\"message\":\"say \\\"no\\\"\\u000a\\\\ <b> \\u001b \\ufffd\",\"details\":[{"
        "\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":\"A_REASON\","
        "\"domain\":\"permit\"}]}");
  CHECK(response.content_type == "application/json");
  CHECK(error_response(400, 3, "R", "\xe2\x82\xac").body.find("\xe2\x82\xac") != std::string::npos);
}

TEST_CASE("a refusal names a stable code and the methods that would do") {
  const Response response = refusal_response({405, "METHOD_NOT_ALLOWED", "No."});
  CHECK(response.status == 405);
  CHECK(response.headers.at(0).name == "Allow");
  CHECK(response.body.find("\"code\":12") != std::string::npos);
}

TEST_CASE("a header value cannot end its line") {
  Response response;
  response.headers.push_back({"Location", "/a\r\nSet-Cookie: b"});
  std::string head;
  append_response_head(head, response, After::close);
  CHECK(head ==
        "HTTP/1.1 200 OK\r\nServer: permit\r\nX-Content-Type-Options: nosniff\r\n"
        "Content-Type: application/json\r\nContent-Length: 0\r\nCache-Control: no-store\r\n"
        "Location: /aSet-Cookie: b\r\nConnection: close\r\n\r\n");
}

TEST_CASE("percent-encoding is decoded once and strictly") {
  CHECK(percent_decode("a%20b%2Fc+") == "a b/c+");
  CHECK(percent_decode("%e2%82%AC") == "\xe2\x82\xac");
  CHECK(percent_decode("%2541") == "%41");
  CHECK(percent_decode("") == "");
  for (const char* bad : {"%", "%4", "%zz", "a%0", "%00", "%ff", "%c0%af", "%e0%80%af", "%ed%a0%80",
                          "%f4%90%80%80", "%f8%88%80%80%80", "%e2%82", "%80"}) {
    INFO(bad);
    CHECK_FALSE(percent_decode(bad).has_value());
  }
  CHECK(is_utf8("\xf4\x8f\xbf\xbf"));
  CHECK_FALSE(is_utf8("\xf4\x90\x80\x80"));
}

TEST_CASE("a path splits into decoded segments") {
  using Segments = std::vector<std::string>;
  CHECK(split_path("/") == Segments{});
  CHECK(split_path("/v1/work%2Fflow/..") == Segments{"v1", "work/flow", ".."});
  CHECK(split_path("//a/") == Segments{"", "a", ""});
  CHECK_FALSE(split_path("").has_value());
  CHECK_FALSE(split_path("a").has_value());
  CHECK_FALSE(split_path("/a/%zz").has_value());
}

TEST_CASE("a query splits into decoded pairs") {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(parse_query("") == Pairs{});
  CHECK(parse_query("a=1&b=x+y%2B&a=2&c&&d==") ==
        Pairs{{"a", "1"}, {"b", "x y+"}, {"a", "2"}, {"c", ""}, {"d", "="}});
  CHECK_FALSE(parse_query("a=%").has_value());
  CHECK_FALSE(parse_query("%00=1").has_value());
}

}  // namespace
}  // namespace permit::http
