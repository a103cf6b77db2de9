// Writes JSON straight into a string. Valid whatever it is given: bytes in a string that are not
// UTF-8, and U+0000, which our reader refuses, come out as U+FFFD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "orchestrator/protocol/json.h"
#include "orchestrator/protocol/text_buffer.h"

namespace permit {

// In quotes. Escapes what JSON demands, and U+2028 and U+2029 for the sake of JavaScript.
void append_json_string(std::string_view text, std::string& out);
void append_json_string(std::string_view text, TextBuffer& out);

struct JsonWriter {
  TextBuffer& out;
  PayloadForm form;

  // Begins a member; `key` is `,"name":`, and the comma is dropped behind a '{'.
  void begin_member(std::string_view key) {
    if (out.back() == '{') key.remove_prefix(1);
    out += key;
  }
};

}  // namespace permit
