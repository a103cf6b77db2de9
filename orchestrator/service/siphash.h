// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein): a keyed hash for short secrets.
#pragma once

#include <string>
#include <string_view>

namespace permit::service {

// 32 hexadecimal digits. The key is the first 16 bytes of `key`, padded with zeros.
std::string siphash_hex(std::string_view key, std::string_view text);

}  // namespace permit::service
