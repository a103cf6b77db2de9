// Whom to trust and who we are, when the server's address is https://.
#pragma once

#include <string>

struct ssl_ctx_st;

namespace permit::worker {

// All files are PEM. They are read for each new connection, so that renewed ones are taken without
// a restart.
struct TlsOptions {
  std::string ca;           // the authorities to trust; empty: those that this system trusts
  std::string certificate;  // ours, with what leads to its authority; empty: we have none
  std::string key;          // of the certificate; empty: it is in the same file
  std::string server_name;  // whom the server's certificate must be for; empty: the address's host
};

// PERMIT_TLS_CA, PERMIT_TLS_CERT, PERMIT_TLS_KEY and PERMIT_TLS_SERVER_NAME.
TlsOptions tls_from_environment();

// What a connection with them begins with; for the caller to free. Throws Error TLS_FILE_INVALID
// (unavailable, for the file may be about to be renewed).
ssl_ctx_st* new_tls_context(const TlsOptions& options);

}  // namespace permit::worker
