#include "worker/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "orchestrator/protocol/error.h"

namespace permit::worker {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// A key that needs a passphrase would have OpenSSL ask for it on the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

Error file_invalid(const std::string& what, const std::string& path) {
  const unsigned long code = ERR_peek_error();
  const char* reason =
      ERR_SYSTEM_ERROR(code) ? std::strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
  const std::string why = reason != nullptr ? reason : "it is not in PEM form";
  ERR_clear_error();
  return Error(ErrorCode::unavailable, "TLS_FILE_INVALID",
               "cannot use " + path + " as " + what + ": " + why);
}

}  // namespace

TlsOptions tls_from_environment() {
  TlsOptions options;
  options.ca = variable("PERMIT_TLS_CA");
  options.certificate = variable("PERMIT_TLS_CERT");
  options.key = variable("PERMIT_TLS_KEY");
  options.server_name = variable("PERMIT_TLS_SERVER_NAME");
  return options;
}

ssl_ctx_st* new_tls_context(const TlsOptions& options) {
  ERR_clear_error();
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> owner(SSL_CTX_new(TLS_client_method()),
                                                     SSL_CTX_free);
  SSL_CTX* context = owner.get();
  if (context == nullptr) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
  if (options.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_file(context, options.ca.c_str()) != 1) {
    throw file_invalid("the authorities to trust (tls_ca)", options.ca);
  }
  if (options.certificate.empty()) {
    if (options.key.empty()) return owner.release();
    throw Error(ErrorCode::unavailable, "TLS_FILE_INVALID",
                "there is a key (tls_key) and no certificate that it belongs to (tls_cert)");
  }
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate.c_str()) != 1) {
    throw file_invalid("your certificate (tls_cert)", options.certificate);
  }
  const std::string& key = options.key.empty() ? options.certificate : options.key;
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    throw file_invalid("the key of your certificate (tls_key)", key);
  }
  return owner.release();
}

}  // namespace permit::worker
