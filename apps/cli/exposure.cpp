#include "apps/cli/exposure.h"

#include <arpa/inet.h>

namespace permit::cli {

bool is_loopback(const std::string& address) {
  if (address == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24U) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

bool needs_key(const Exposure& exposure) {
  return exposure.auth == "keys" || !is_loopback(exposure.address);
}

std::optional<std::string> refusal_of(const Exposure& exposure) {
  const bool is_open = !is_loopback(exposure.address);
  const std::string where = "listening on " + exposure.address;
  if (is_open && exposure.auth == "none") {
    return where + " without API keys would let everybody in; leave out auth = \"none\"";
  }
  if (is_open && !exposure.has_tls && !exposure.allows_plain) {
    return where +
           " without TLS would send API keys in the clear; give it a certificate (--tls-cert, "
           "--tls-key), or say --insecure if the network is private";
  }
  if (!needs_key(exposure) || exposure.admin_keys > 0) return std::nullopt;
  if (exposure.database.empty()) {
    return "API keys are needed, and a database in memory has none; keep the data in a file "
           "(--db-filename) and make a key for it first: permit api-key create admin --role admin "
           "--database FILE";
  }
  return "API keys are needed, and the database has none with the role admin; make one first: "
         "permit api-key create admin --role admin --database " +
         exposure.database;
}

}  // namespace permit::cli
