#include "orchestrator/protocol/base64.h"

#include <doctest/doctest.h>

#include <string>

namespace permit {

TEST_CASE("bytes become base64 and come back, whatever alphabet and padding they come in") {
  const struct {
    std::string bytes;
    std::string text;
    std::string other_text;  // URL-safe, not padded
  } rows[] = {
      {"", "", ""},
      {"f", "Zg==", "Zg"},
      {"fo", "Zm8=", "Zm8"},
      {"foo", "Zm9v", "Zm9v"},
      {"foob", "Zm9vYg==", "Zm9vYg"},
      {"\xFB\xEF\xBE", "++++", "----"},
      {"\xFF\xFF\xFF\xFE", "/////g==", "_____g"},
      {std::string("\0\0", 2), "AAA=", "AAA"},
  };
  for (const auto& row : rows) {
    CHECK(to_base64(row.bytes) == row.text);
    CHECK(from_base64(row.text) == row.bytes);
    CHECK(from_base64(row.other_text) == row.bytes);
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  for (std::size_t size = 0; size <= all.size(); ++size) {
    const std::string bytes = all.substr(all.size() - size);
    CHECK(from_base64(to_base64(bytes)) == bytes);
  }
}

TEST_CASE("what is not quite base64 is refused") {
  for (const std::string text :
       {"A",     "AAAAA",    "=",        "==",   "====",         "Zg=",     "Zg===", "Zm8==",
        "Zm9v=", "Zm9v====", "Zg==Zg==", "Z=g=", "Zh==",         "Zm9=",    "Zm 9v", "Zm9v\n",
        " Zm9v", "+-AA",     "/_AA",     "Zm9*", "Zm9v\xC3\xA4", "Zm9\x80", ".",     "Zg=a"}) {
    CAPTURE(text);
    CHECK(!from_base64(text));
  }
  CHECK(!from_base64(std::string_view("Zm9\0", 4)));
}

}  // namespace permit
