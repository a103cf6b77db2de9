// Base64 (RFC 4648), the wire form of bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace permit {

// Standard alphabet, padded.
void append_base64(std::string_view bytes, std::string& out);
std::string to_base64(std::string_view bytes);

// Standard or URL-safe alphabet, padded or not. Empty if it is anything else: white space, both
// alphabets mixed, wrong padding, bits left over that are not zero.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace permit
