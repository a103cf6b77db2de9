// Who asks: keys, the limit on wrong ones, sessions. The routes are in tests/end_to_end/auth.py.
#include "orchestrator/http/auth.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "orchestrator/store/store.h"

namespace permit::http {

namespace {

using service::ApiKeys;

constexpr Time noon = Time(std::chrono::hours(12));

struct World {
  World() : store(in_memory()), keys(store) {}

  static store::Database::Options in_memory() {
    store::Database::Options options;
    options.mode = store::Database::Mode::in_memory;
    return options;
  }

  std::string make(const std::string& name, Role role, Duration lifetime = {}) {
    CreateApiKeyRequest request;
    request.namespace_ = "default";
    request.name = name;
    request.role = role;
    request.lifetime = lifetime;
    const ApiKeys::Made made = keys.make(request, noon);
    write(made.row);
    return made.secret;
  }
  void revoke(const std::string& name) { write(keys.revoked({"default", name, "ana"}, noon)); }
  void write(const store::ApiKeyRow& row) {
    store.begin();
    store.put_api_key(row);
    store.commit(noon);
    keys.load();
  }

  store::Store store;
  ApiKeys keys;
};

Request request_with(const std::string& name, const std::string& value,
                     const std::string& peer = "127.0.0.1:5000") {
  Request request;
  request.method = "GET";
  request.peer = peer;
  request.headers = {{"host", "127.0.0.1:7376"}, {name, value}};
  return request;
}

Request with_key(const std::string& secret, const std::string& peer = "127.0.0.1:5000") {
  return request_with("authorization", "Bearer " + secret, peer);
}

std::string reason_of(Auth& auth, const Request& request, Time now = noon) {
  try {
    const Caller caller = auth.caller_of(request, now);
    return caller.key_name.empty() ? access_name(caller.access)
                                   : caller.key_name + " " + access_name(caller.access);
  } catch (const Error& error) {
    return error.reason();
  }
}

const std::string wrong = "permit_" + std::string(43, 'w');

// --- Time ---

// Whether to look for secrets that begin like the right one takes another time than for any others:
// Welch's t of so many of each, in random order, without the slowest twentieth.
double time_apart(const std::string& secret, const std::function<bool(const std::string&)>& look) {
  constexpr std::size_t of_each = 100'000;
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::mt19937 dice(20261119);
  std::array<std::vector<double>, 2> took;
  std::vector<double> all;
  int found = 0;
  while (took[0].size() < of_each || took[1].size() < of_each) {
    const std::size_t kind = dice() % 2;
    std::array<std::string, 2> guesses;  // both, so that as much is done before each
    for (std::string& guess : guesses) {
      guess.resize(secret.size());
      for (char& letter : guess) letter = letters[dice() % letters.size()];
    }
    guesses[1].replace(0, secret.size() - 8, secret, 0, secret.size() - 8);
    const std::string& guess = guesses[kind];
    const auto begin = std::chrono::steady_clock::now();
    found += look(guess) ? 1 : 0;
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    took[kind].push_back(time.count());
    all.push_back(time.count());
  }
  CHECK(found == 0);
  const auto limit = all.begin() + static_cast<std::ptrdiff_t>(all.size() * 19 / 20);
  std::nth_element(all.begin(), limit, all.end());
  std::array<double, 2> means{}, errors{};
  for (std::size_t kind = 0; kind < 2; ++kind) {
    double sum = 0, squares = 0, count = 0;
    for (const double time : took[kind]) {
      if (time > *limit) continue;
      sum += time;
      squares += time * time;
      ++count;
    }
    means[kind] = sum / count;
    errors[kind] = (squares / count - means[kind] * means[kind]) / count;
  }
  return (means[0] - means[1]) / std::sqrt(errors[0] + errors[1]);
}

TEST_CASE("the time for a wrong key does not tell how much of it is right (case 62)") {
  World world;
  std::string secret;
  for (int i = 0; i < 50; ++i) secret = world.make("k" + std::to_string(i), Role::worker);
  constexpr double separable = 4.5;
  // The measure would notice a comparison that ends at the first difference.
  CHECK(std::abs(time_apart(secret, [&](const std::string& guess) {
          for (std::size_t i = 0; i < secret.size(); ++i) {
            if (static_cast<volatile const char&>(guess[i]) != secret[i]) return false;
          }
          return true;
        })) > separable);
  // A busy machine may be uneven once.
  std::vector<double> apart;
  do {
    apart.push_back(time_apart(
        secret, [&](const std::string& guess) { return world.keys.find(guess) != nullptr; }));
  } while (std::abs(apart.back()) >= separable && apart.size() < 3);
  CAPTURE(apart.front());
  CHECK(std::abs(apart.back()) < separable);
}

}  // namespace

// Case 62: hashes are compared, by CRYPTO_memcmp, so time tells nothing of the secret.
TEST_CASE("a hash is equal to itself and to none that differs in one bit") {
  const service::Digest digest = service::digest_of("abc");
  CHECK(service::is_equal(digest, service::digest_of("abc")));
  for (std::size_t bit = 0; bit < 8 * digest.size(); ++bit) {
    service::Digest other = digest;
    other.at(bit / 8) ^= static_cast<unsigned char>(1U << (bit % 8));
    CHECK_FALSE(service::is_equal(digest, other));
  }
  // FIPS 180-2, so that it is this hash and no other.
  CHECK(digest.at(0) == 0xba);
  CHECK(digest.at(31) == 0xad);
}

TEST_CASE("a secret is 256 bits of letters and digits, and never the same") {
  std::set<std::string> seen;
  std::map<char, int> letters;
  for (int i = 0; i < 2'000; ++i) {
    const std::string key = service::new_api_key();
    CHECK(service::looks_like_api_key(key));
    CHECK(seen.insert(key).second);
    for (const char letter : key.substr(7)) ++letters[letter];
  }
  CHECK(letters.size() == 62);
  for (const auto& [letter, count] : letters) {  // 1,387 each on average, 37 more or less
    CHECK_MESSAGE((count > 1'387 - 260 && count < 1'387 + 260), letter, " ", count);
  }
}

TEST_CASE("a key in a text is hidden, and a name that only begins like one is not") {
  const std::string key = service::new_api_key();
  CHECK(service::without_api_keys("/a/" + key + "/b?x=" + key) ==
        "/a/permit_(hidden)/b?x=permit_(hidden)");
  CHECK(service::without_api_keys("/permit_worker/permit_") == "/permit_worker/permit_");
  CHECK(service::without_api_keys(key.substr(0, 40)) == "permit_(hidden)");
}

TEST_CASE("a key is found by its secret, and refused by its state") {
  World world;
  Auth auth(world.keys, {true, false});
  const std::string reader = world.make("reader", Role::read);
  const std::string gone = world.make("gone", Role::admin);
  const std::string brief = world.make("brief", Role::worker, std::chrono::seconds(60));
  world.revoke("gone");
  CHECK(reason_of(auth, with_key(reader)) == "reader read");
  CHECK(reason_of(auth, with_key(brief)) == "brief worker");
  CHECK(reason_of(auth, with_key(brief), noon + std::chrono::seconds(60)) == "API_KEY_EXPIRED");
  CHECK(reason_of(auth, with_key(gone)) == "API_KEY_REVOKED");
  CHECK(reason_of(auth, with_key(wrong)) == "API_KEY_WRONG");
  CHECK(reason_of(auth, with_key("")) == "API_KEY_WRONG");
  CHECK(reason_of(auth, request_with("authorization", "Basic " + reader)) == "API_KEY_WRONG");
  CHECK(reason_of(auth, request_with("accept", "*/*")) == "open");
  CHECK(world.keys.admins(noon) == 0);
}

TEST_CASE("where no key is needed, one counts all the same, and others' credentials do not") {
  World world;
  Auth auth(world.keys, {false, false});
  const std::string reader = world.make("reader", Role::read);
  CHECK(reason_of(auth, request_with("accept", "*/*")) == "admin");
  CHECK(reason_of(auth, with_key(reader)) == "reader read");
  CHECK(reason_of(auth, with_key(wrong)) == "API_KEY_WRONG");
  CHECK(reason_of(auth, with_key("of-a-proxy")) == "admin");
  CHECK(reason_of(auth, request_with("authorization", "Basic abc")) == "admin");
}

TEST_CASE("twenty wrong keys a second are told so, and the others of that peer to wait") {
  World world;
  Auth auth(world.keys, {true, false});
  const std::string good = world.make("good", Role::read);
  int refused = 0;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 60; ++i) {
    const std::string peer = "10.0.0.1:" + std::to_string(1000 + i);
    refused += reason_of(auth, with_key(wrong, peer)) == "API_KEYS_WRONG" ? 1 : 0;
    CHECK(reason_of(auth, with_key(good, peer)) == "good read");
  }
  // A machine that takes seconds for this begins to count anew.
  if (std::chrono::steady_clock::now() - began < std::chrono::seconds(1)) CHECK(refused >= 20);
  CHECK(reason_of(auth, with_key(wrong, "10.0.0.2:1")) == "API_KEY_WRONG");
  CHECK(auth.take_noisy_peer() == std::optional<std::string>("10.0.0.1"));
  CHECK(auth.take_noisy_peer() == std::nullopt);
}

TEST_CASE("a hundred sessions a key and a thousand of all at most, the oldest goes") {
  World world;
  Auth auth(world.keys, {true, true});
  const std::string key = world.make("key", Role::worker);
  const Request request = request_with("accept", "*/*");
  const std::string other = world.make("other", Role::read);
  const auto cookie_of = [&](const std::string& of) {
    const Header header = auth.log_in(request, of, noon).cookie;
    CHECK(header.name == "Set-Cookie");
    CHECK(header.value.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"));
    return header.value.substr(0, header.value.find(';'));
  };
  const std::string first = cookie_of(key);
  CHECK(first.starts_with("permit_session_7376="));
  CHECK(reason_of(auth, request_with("cookie", "a=b; " + first)) == "key worker");
  // Whoever logs in again and again harms nobody else.
  for (std::size_t i = 0; i < Auth::sessions_max + 1; ++i) (void)cookie_of(other);
  CHECK(reason_of(auth, request_with("cookie", first)) == "key worker");
  for (std::size_t i = 0; i < Auth::sessions_of_key_max - 1; ++i) (void)cookie_of(key);
  CHECK(reason_of(auth, request_with("cookie", first)) == "key worker");
  (void)cookie_of(key);
  CHECK(reason_of(auth, request_with("cookie", first)) == "open");

  const std::string second = cookie_of(key);
  const std::size_t keys = Auth::sessions_max / Auth::sessions_of_key_max;
  for (std::size_t i = 2; i <= keys; ++i) {
    const std::string more = world.make("key" + std::to_string(i), Role::read);
    for (std::size_t j = 0; j < Auth::sessions_of_key_max; ++j) (void)cookie_of(more);
  }
  CHECK(reason_of(auth, request_with("cookie", second)) == "key worker");
  for (int i = 0; i < 200; ++i) (void)cookie_of(world.make("one" + std::to_string(i), Role::read));
  CHECK(reason_of(auth, request_with("cookie", second)) == "open");
}

TEST_CASE("the oldest dead key makes room for a new one, and a name is free once it is revoked") {
  World world;
  world.make("name", Role::read);
  CHECK_THROWS_WITH_AS(world.make("name", Role::read), doctest::Contains("already"), Error);
  world.revoke("name");
  world.make("name", Role::read);
  CHECK(world.keys.list(noon).keys.size() == 2);
}

}  // namespace permit::http
