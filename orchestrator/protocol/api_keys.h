// API keys: who may ask what of the server. A key's secret is told once, when it is made.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/protocol/common.h"

namespace permit {

// Each may do what those before it may.
enum class Role { unspecified = 0, read = 1, worker = 2, admin = 3 };
BOOST_DESCRIBE_ENUM(Role, unspecified, read, worker, admin)
template <>
inline constexpr EnumStyle enum_style<Role> = EnumStyle::lower;

inline const char* role_name(Role role) {
  switch (role) {
    case Role::read:
      return "read";
    case Role::worker:
      return "worker";
    case Role::admin:
      return "admin";
    case Role::unspecified:
      break;
  }
  return "none";
}

struct ApiKeyInfo {
  Count id;
  std::string name;
  Role role = Role::unspecified;
  std::string namespace_;
  std::string state;  // valid, expired or revoked
  Time created_at{};
  std::string created_by;
  Time expires_at{};  // absent: never
  Time revoked_at{};
  std::string revoked_by;
  Time last_used_at{};  // since the server was started
};
BOOST_DESCRIBE_STRUCT(ApiKeyInfo, (),
                      (id, name, role, namespace_, state, created_at, created_by, expires_at,
                       revoked_at, revoked_by, last_used_at))

struct CreateApiKeyRequest {
  std::string namespace_;
  std::string name;
  Role role = Role::unspecified;
  Duration lifetime{};  // absent: for ever
  std::string identity;
};
BOOST_DESCRIBE_STRUCT(CreateApiKeyRequest, (), (namespace_, name, role, lifetime, identity))

struct CreateApiKeyResponse {
  ApiKeyInfo key;
  std::string secret;  // permit_…: what goes into the Authorization header
};
BOOST_DESCRIBE_STRUCT(CreateApiKeyResponse, (), (key, secret))

struct ListApiKeysRequest {
  std::string namespace_;
};
BOOST_DESCRIBE_STRUCT(ListApiKeysRequest, (), (namespace_))

struct ListApiKeysResponse {
  std::vector<ApiKeyInfo> keys;
};
BOOST_DESCRIBE_STRUCT(ListApiKeysResponse, (), (keys))

struct RevokeApiKeyRequest {
  std::string namespace_;
  std::string key;  // its name, or its id
  std::string identity;
};
BOOST_DESCRIBE_STRUCT(RevokeApiKeyRequest, (), (namespace_, key, identity))

// For a browser: the key is exchanged for a cookie.
struct LoginRequest {
  std::string key;  // the secret
};
BOOST_DESCRIBE_STRUCT(LoginRequest, (), (key))

struct LogoutRequest {};
BOOST_DESCRIBE_STRUCT(LogoutRequest, (), ())

struct LoginResponse {
  std::string name;
  Role role = Role::unspecified;
};
BOOST_DESCRIBE_STRUCT(LoginResponse, (), (name, role))

}  // namespace permit
