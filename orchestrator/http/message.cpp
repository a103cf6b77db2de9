#include "orchestrator/http/message.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "orchestrator/http/url.h"

namespace permit::http {
namespace {

struct StatusPhrase {
  int status;
  std::string_view phrase;
};

constexpr StatusPhrase status_phrases[] = {
    {100, "Continue"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

std::string_view status_phrase(int status) {
  for (const StatusPhrase& known : status_phrases) {
    if (known.status == status) return known.phrase;
  }
  return "Status";
}

template <class Integer>
void append_number(std::string& out, Integer number, int base = 10) {
  std::array<char, 24> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), number, base);
  out.append(digits.data(), static_cast<std::size_t>(result.ptr - digits.data()));
}

void append_json_byte(std::string& out, char byte) {
  constexpr std::string_view hex = "0123456789abcdef";
  const auto value = static_cast<unsigned char>(byte);
  if (byte == '"' || byte == '\\') {
    out += '\\';
    out += byte;
  } else if (value < 0x20 || value == 0x7f) {
    out += "\\u00";
    out += hex[value >> 4];
    out += hex[value & 15];
  } else {
    out += byte;
  }
}

// What is not UTF-8 is shown byte by byte as U+FFFD, so that the body is always valid JSON.
void append_json_string(std::string& out, std::string_view text) {
  const bool utf8 = is_utf8(text);
  out += '"';
  for (const char byte : text) {
    if (!utf8 && static_cast<unsigned char>(byte) >= 0x80) {
      out += "\\ufffd";
    } else {
      append_json_byte(out, byte);
    }
  }
  out += '"';
}

bool may_stand_in_header(char byte) {
  const auto code = static_cast<unsigned char>(byte);
  return code == '\t' || (code >= 0x20 && code != 0x7f);
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  if (std::all_of(value.begin(), value.end(), may_stand_in_header)) {
    out += value;
  } else {
    std::copy_if(value.begin(), value.end(), std::back_inserter(out), may_stand_in_header);
  }
  out += "\r\n";
}

void append_status(std::string& out, int status) {
  out += "HTTP/1.1 ";
  append_number(out, status);
  out += ' ';
  out += status_phrase(status);
  out += "\r\nServer: permit\r\nX-Content-Type-Options: nosniff\r\n";
}

}  // namespace

const std::string* Request::header(std::string_view lower_name) const {
  for (const Header& header : headers) {
    if (header.name == lower_name) return &header.value;
  }
  return nullptr;
}

Response error_response(int status, int rpc_code, std::string_view reason,
                        std::string_view message) {
  Response response;
  response.status = status;
  std::string& body = response.body;
  body = "{\"code\":";
  append_number(body, rpc_code);
  body += ",\"message\":";
  append_json_string(body, message);
  body += ",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":";
  append_json_string(body, reason);
  body += ",\"domain\":\"permit\"}]}";
  return response;
}

void append_stream_head(std::string& out, const Response& response) {
  append_status(out, response.status);
  out += "Content-Type: ";
  out += response.content_type;
  out += "\r\nTransfer-Encoding: chunked\r\nCache-Control: no-store\r\n";
  for (const Header& header : response.headers) append_header(out, header.name, header.value);
  out += "Connection: close\r\n\r\n";
}

std::shared_ptr<const std::string> make_chunk(std::string_view bytes) {
  auto chunk = std::make_shared<std::string>();
  chunk->reserve(bytes.size() + 16);
  append_number(*chunk, bytes.size(), 16);
  *chunk += "\r\n";
  *chunk += bytes;
  *chunk += "\r\n";
  return chunk;
}

std::unique_ptr<Stream> Exchange::stream(Response) {
  reply(error_response(501, 12, "STREAM_UNAVAILABLE", "This way in has no streams."));
  return nullptr;
}

bool status_has_body(int status) { return status != 204 && status != 304; }

void append_response_head(std::string& out, const Response& response, After after) {
  constexpr std::size_t usual_size = 256;  // which saves most heads from growing step by step
  out.reserve(out.size() + usual_size);
  append_status(out, response.status);
  if (status_has_body(response.status)) {
    out += "Content-Type: ";
    out += response.content_type;
    out += "\r\nContent-Length: ";
    append_number(out, response.body.size());
    out += "\r\n";
  }
  if (response.content_type.starts_with("application/json")) out += "Cache-Control: no-store\r\n";
  for (const Header& header : response.headers) append_header(out, header.name, header.value);
  if (after == After::close) out += "Connection: close\r\n";
  out += "\r\n";
}

}  // namespace permit::http
