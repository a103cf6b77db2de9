// Where programs find the API key that they send.
#pragma once

#include <string>

namespace permit::worker {

// PERMIT_API_KEY, else what is in the file that PERMIT_API_KEY_FILE names; empty: none. Throws
// Error API_KEY_INVALID, or what read_api_key() throws.
std::string default_api_key();

// The first line of the file. Throws Error API_KEY_FILE_OPEN if others than its owner may read it,
// API_KEY_INVALID if it cannot be read or what is in it cannot be sent.
std::string read_api_key(const std::string& path);

// Without the newline that secrets often end in. `origin` is for the sentence.
std::string clean_api_key(std::string key, const std::string& origin);

}  // namespace permit::worker
