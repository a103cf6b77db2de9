// Which servers may start: every combination of who can reach it and what keeps them out.
#include "apps/cli/exposure.h"

#include <doctest/doctest.h>

#include <string>

namespace permit::cli {

TEST_CASE("loopback is told from everything else") {
  for (const char* inside : {"localhost", "127.0.0.1", "127.255.0.9", "::1"}) {
    CHECK_MESSAGE(is_loopback(inside), inside);
  }
  for (const char* outside : {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "126.255.255.255", "::2",
                              "::ffff:127.0.0.1", "fe80::1", "", "localhost.example", "127.1"}) {
    CHECK_MESSAGE(!is_loopback(outside), outside);
  }
}

TEST_CASE("a server that others can reach has keys, and TLS or somebody's word") {
  int started = 0;
  for (const char* address : {"127.0.0.1", "10.0.0.1"}) {
    for (const char* auth : {"", "none", "keys"}) {
      for (const bool tls : {false, true}) {
        for (const bool insecure : {false, true}) {
          for (const int admins : {0, 1}) {
            const Exposure exposure{address, "a.db", auth, tls, insecure, admins};
            const bool outside = std::string(address) == "10.0.0.1";
            const bool keys = std::string(auth) == "keys" || outside;
            CHECK(needs_key(exposure) == keys);
            const bool may = (!keys || admins > 0) &&
                             (!outside || (std::string(auth) != "none" && (tls || insecure)));
            const auto why = refusal_of(exposure);
            CHECK_MESSAGE(!why.has_value() == may, address, " ", auth, " ", why.value_or("-"));
            started += may ? 1 : 0;
          }
        }
      }
    }
  }
  CHECK(started == 26);
}

TEST_CASE("a refusal says what to do") {
  const auto why = [](const Exposure& exposure) { return refusal_of(exposure).value_or(""); };
  CHECK(why({"::", "", "", false, false, 1}).find("--insecure") != std::string::npos);
  CHECK(why({"::", "/a b.db", "", true, false, 0}).find("--database /a b.db") != std::string::npos);
  CHECK(why({"::1", "", "keys", false, false, 0}).find("--db-filename") != std::string::npos);
}

}  // namespace permit::cli
