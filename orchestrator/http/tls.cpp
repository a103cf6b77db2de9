#include "orchestrator/http/tls.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/time_text.h"

namespace permit::http {

namespace {

using SystemTime = std::chrono::system_clock::time_point;

template <auto function>
struct FreeWith {
  template <class T>
  void operator()(T* object) const {
    function(object);
  }
};
using Bio = std::unique_ptr<BIO, FreeWith<BIO_free>>;
using Certificate = std::unique_ptr<X509, FreeWith<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;

constexpr std::size_t file_bytes_max = 1 << 20;

// What OpenSSL has to say; forgets it.
std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "it is not in the form that is wanted";
}

// Owned by whoever reads it, and overwritten at the end: it may hold a key.
class Contents {
 public:
  Contents() = default;
  ~Contents() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  // 0, or what errno says.
  int read(int file) {
    bytes_.resize(file_bytes_max);
    std::size_t size = 0;
    while (size < bytes_.size()) {
      const ssize_t got = ::read(file, bytes_.data() + size, bytes_.size() - size);
      if (got < 0) return errno;
      if (got == 0) break;
      size += static_cast<std::size_t>(got);
    }
    size_ = size;
    return size == bytes_.size() ? EFBIG : 0;
  }
  Bio bio() const { return Bio(BIO_new_mem_buf(bytes_.data(), static_cast<int>(size_))); }

 private:
  std::vector<char> bytes_;
  std::size_t size_ = 0;
};

struct FileDescriptor {
  explicit FileDescriptor(const std::string& path)
      : number(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~FileDescriptor() {
    if (number >= 0) ::close(number);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  const int number;
};

Error unreadable(const char* reason, const std::string& what, const std::string& path, int error) {
  return failed_precondition(
      reason, "cannot read the " + what + " " + path + ": " + std::strerror(error) + ".");
}

// What systemd has put there is for this service alone, whatever its mode looks like.
bool is_credential(const std::string& path) {
  const char* directory = std::getenv("CREDENTIALS_DIRECTORY");
  return directory != nullptr && *directory != '\0' && path.starts_with(directory) &&
         path.substr(std::strlen(directory)).starts_with('/') &&
         path.find("/../") == std::string::npos;
}

// A key that needs a passphrase would have OpenSSL ask for it on the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

Key read_key(const std::string& path) {
  const FileDescriptor file(path);
  struct stat status{};
  if (file.number < 0 || ::fstat(file.number, &status) != 0) {
    throw unreadable("TLS_KEY_INVALID", "key", path, errno);
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0 && !is_credential(path)) {
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", status.st_mode & 07777U);
    throw failed_precondition("TLS_KEY_EXPOSED", "the key " + path + " has mode " + mode.data() +
                                                     ": others may read it. Say: chmod 600 " +
                                                     path);
  }
  Contents contents;
  if (const int error = contents.read(file.number)) {
    throw unreadable("TLS_KEY_INVALID", "key", path, error);
  }
  Key key(PEM_read_bio_PrivateKey(contents.bio().get(), nullptr, no_passphrase, nullptr));
  if (!key) {
    throw failed_precondition("TLS_KEY_INVALID", "the key " + path +
                                                     " is no private key in PEM form without a "
                                                     "passphrase: " +
                                                     openssl_reason() + ".");
  }
  return key;
}

// All certificates of the file; at least one.
std::vector<Certificate> read_certificates(const char* reason, const std::string& what,
                                           const std::string& path) {
  const FileDescriptor file(path);
  if (file.number < 0) throw unreadable(reason, what, path, errno);
  Contents contents;
  if (const int error = contents.read(file.number)) throw unreadable(reason, what, path, error);
  const Bio bio = contents.bio();
  std::vector<Certificate> certificates;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)) {
    certificates.emplace_back(certificate);
  }
  const bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string why = openssl_reason();
  if (certificates.empty() || !ended) {
    throw failed_precondition(reason,
                              "the " + what + " " + path + " is not in PEM form: " + why + ".");
  }
  return certificates;
}

Time time_of(const ASN1_TIME* time) {
  std::tm split{};
  ASN1_TIME_to_tm(time, &split);
  return Time(std::chrono::seconds(timegm(&split)));
}

std::string subject_of(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  const std::string subject(text, static_cast<std::size_t>(size));
  return subject.empty() ? "a certificate without a subject" : subject;
}

void check_dates(X509* certificate, const std::string& path, SystemTime now) {
  const Time begin = time_of(X509_get0_notBefore(certificate));
  const Time end = time_of(X509_get0_notAfter(certificate));
  const auto here = std::chrono::time_point_cast<Duration>(now);
  if (here < begin) {
    throw failed_precondition(
        "TLS_CERTIFICATE_EXPIRED",
        "the certificate " + path + " is not valid before " + format_time(begin) + ".");
  }
  if (here >= end) {
    throw failed_precondition(
        "TLS_CERTIFICATE_EXPIRED",
        "the certificate " + path + " has expired at " + format_time(end) + ". Renew it.");
  }
}

void set_rules(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // Of 1.2, only what has forward secrecy and is authenticated. All of 1.3 is.
  SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20");
  // A peer that ends without the closing words is one that has closed: HTTP says itself where a
  // message ends.
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF);
  // A parked connection holds no buffer; what is sent may be sent piece by piece, and move.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // One record a call, so that a flood of empty ones does not keep the loop.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  // Sessions are resumed by tickets, of which nothing is kept here.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

void use_certificate(SSL_CTX* context, const TlsFiles& files, std::vector<Certificate> chain,
                     const Key& key) {
  const auto refuse = [&](const std::string& why) {
    throw failed_precondition("TLS_CERTIFICATE_INVALID", "the certificate " + files.certificate +
                                                             " cannot be used: " + why + ".");
  };
  if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
    ERR_clear_error();
    throw failed_precondition(
        "TLS_KEY_MISMATCH",
        "the key " + files.key + " is not that of the certificate " + files.certificate + ".");
  }
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1) refuse(openssl_reason());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) refuse(openssl_reason());
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) refuse(openssl_reason());
  }
}

// A session that is resumed is not verified again, so there are none.
void require_clients_of(SSL_CTX* context, const std::string& path) {
  STACK_OF(X509_NAME)* names = sk_X509_NAME_new_null();
  for (const Certificate& authority :
       read_certificates("TLS_CLIENT_CA_INVALID", "certificates of clients' authorities", path)) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get());
    sk_X509_NAME_push(names, X509_NAME_dup(X509_get_subject_name(authority.get())));
  }
  // Whoever is in the file is trusted, also one whose own authority is not.
  X509_STORE_set_flags(SSL_CTX_get_cert_store(context), X509_V_FLAG_PARTIAL_CHAIN);
  SSL_CTX_set_client_CA_list(context, names);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
}

}  // namespace

TlsContext::TlsContext(const TlsFiles& files, SystemTime now) {
  if (files.certificate.empty() || files.key.empty()) {
    throw failed_precondition(
        "TLS_INCOMPLETE",
        files.certificate.empty() && files.key.empty()
            ? "tls_client_ca is set, but not the server's own tls_cert and tls_key."
            : "tls_cert and tls_key go together; one of them is not set.");
  }
  ERR_clear_error();
  std::vector<Certificate> chain =
      read_certificates("TLS_CERTIFICATE_INVALID", "certificate", files.certificate);
  X509* own = chain.front().get();
  summary_ = subject_of(own) + ", valid until " + format_time(time_of(X509_get0_notAfter(own)));
  check_dates(own, files.certificate, now);
  const Key key = read_key(files.key);

  context_.reset(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context_) throw std::bad_alloc();
  set_rules(native());
  use_certificate(native(), files, std::move(chain), key);
  if (files.client_ca.empty()) return;
  require_clients_of(native(), files.client_ca);
  summary_ += "; clients need a certificate of " + files.client_ca;
}

}  // namespace permit::http
