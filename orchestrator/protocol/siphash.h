// SipHash (Aumasson and Bernstein), in the two forms that we use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace permit {

// SipHash-2-4 with 128 bits of output, a keyed hash for short secrets: 32 hexadecimal digits. The
// key is the first 16 bytes of `key`, padded with zeros.
std::string siphash_hex(std::string_view key, std::string_view text);

// For what was computed with a secret: takes as long wherever the two differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

// SipHash-1-3 with a zero key: a hash that spreads well and never changes.
std::uint64_t siphash13(std::string_view text);

}  // namespace permit
