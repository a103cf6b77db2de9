// What libcrypto does for API keys and sessions: 256 bits that nobody can guess, their hash, and a
// comparison whose time tells nothing.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace permit::service {

using Digest = std::array<unsigned char, 32>;  // SHA-256

Digest digest_of(std::string_view text);
// Takes as long wherever they differ.
bool is_equal(const Digest& a, const Digest& b);

// 43 letters and digits, from the kernel's randomness and not from a seed: 256 bits.
std::string random_secret();

// "permit_" and 43 letters and digits: so that scanners of secrets know one when they see it.
std::string new_api_key();
bool looks_like_api_key(std::string_view text);
// The same text, with "permit_(hidden)" for each key in it: for the log.
std::string without_api_keys(std::string text);

}  // namespace permit::service
