#include "orchestrator/service/secrets.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <stdexcept>

namespace permit::service {

namespace {

constexpr std::string_view letters =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::size_t secret_size = 43;  // 62^43 > 2^256
constexpr std::string_view key_prefix = "permit_";
constexpr std::size_t key_size = key_prefix.size() + secret_size;

bool is_letter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

}  // namespace

Digest digest_of(std::string_view text) {
  Digest digest{};
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  SHA256(bytes, text.size(), digest.data());
  return digest;
}

bool is_equal(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string random_secret() {
  std::string secret;
  std::array<unsigned char, 64> bytes{};
  while (secret.size() < secret_size) {
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
      throw std::runtime_error("the system has no randomness to make a secret of");
    }
    for (const unsigned char byte : bytes) {
      const std::size_t number = byte & 63U;  // 62 and 63 are left out, so that all are as likely
      if (number < letters.size() && secret.size() < secret_size) secret += letters[number];
    }
  }
  return secret;
}

std::string new_api_key() { return std::string(key_prefix) + random_secret(); }

bool looks_like_api_key(std::string_view text) {
  return text.size() == key_size && text.starts_with(key_prefix) &&
         std::all_of(text.begin() + key_prefix.size(), text.end(), is_letter);
}

std::string without_api_keys(std::string text) {
  std::size_t at = 0;
  while ((at = text.find(key_prefix, at)) != std::string::npos) {
    at += key_prefix.size();
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = std::find_if_not(begin, text.end(), is_letter);
    // A part of one is worth hiding, too; a name such as permit_worker is not.
    if (end - begin >= 24) text.replace(begin, end, "(hidden)");
  }
  return text;
}

}  // namespace permit::service
