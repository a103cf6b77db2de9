#include "orchestrator/http/assets.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "orchestrator/protocol/siphash.h"

namespace permit::http {

namespace {

// Nothing but the server's own files runs in the page, and nothing else may frame it or post to it.
constexpr const char* content_security_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

constexpr std::int64_t file_bytes_max = 16 * 1024 * 1024;

std::string_view content_type_of(std::string_view path) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> types = {{
      {".html", "text/html; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".json", "application/json"},
      {".webmanifest", "application/manifest+json"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".ico", "image/x-icon"},
      {".woff2", "font/woff2"},
      {".txt", "text/plain; charset=utf-8"},
  }};
  for (const auto& [ending, type] : types) {
    if (path.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Calls `found` with each part of a comma-separated list until it says true.
template <class Found>
bool any_of_list(std::string_view list, Found found) {
  while (true) {
    const std::size_t comma = list.find(',');
    if (found(trimmed(list.substr(0, comma)))) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

bool is_zero_weight(std::string_view parameters) {
  const std::size_t weight = parameters.find("q=0");
  return weight != std::string_view::npos &&
         parameters.find_first_not_of("0.", weight + 2) == std::string_view::npos;
}

bool takes_gzip(const Request& request) {
  const std::string* accepted = request.header("accept-encoding");
  return accepted != nullptr && any_of_list(*accepted, [](std::string_view coding) {
           const std::size_t name_end = coding.find(';');
           if (trimmed(coding.substr(0, name_end)) != "gzip") return false;
           return name_end == std::string_view::npos ||
                  !is_zero_weight(trimmed(coding.substr(name_end)));
         });
}

bool has_already(const Request& request, std::string_view tag) {
  const std::string* known = request.header("if-none-match");
  return known != nullptr && any_of_list(*known, [tag](std::string_view one) {
           if (one.starts_with("W/")) one.remove_prefix(2);
           return one == "*" || one == tag;
         });
}

Response response_of(const Asset& asset, const Request& request) {
  const bool zipped = !asset.gzip.empty() && takes_gzip(request);
  const std::string tag = '"' + std::string(asset.hash) + (zipped ? "-gzip\"" : "\"");
  Response response;
  response.content_type = content_type_of(asset.path);
  response.headers = {{"ETag", tag},
                      {"Vary", "Accept-Encoding"},
                      {"Content-Security-Policy", content_security_policy},
                      {"X-Frame-Options", "DENY"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cross-Origin-Resource-Policy", "same-origin"}};
  // To be asked for each time, so that a new version of the server is a new version of the page.
  // JSON is marked no-store with all other JSON.
  if (response.content_type != "application/json") {
    response.headers.push_back({"Cache-Control", "no-cache"});
  }
  if (has_already(request, tag)) {
    response.status = 304;
    return response;
  }
  if (zipped) response.headers.push_back({"Content-Encoding", "gzip"});
  response.body = zipped ? asset.gzip : asset.bytes;
  return response;
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return descriptor_; }
  void become(int descriptor) { close(std::exchange(descriptor_, descriptor)); }

 private:
  int descriptor_;
};

bool is_plain_name(const std::string& segment) {
  return !segment.empty() && segment[0] != '.' && segment.find('/') == std::string::npos &&
         segment.find('\0') == std::string::npos;
}

// Goes down one name at a time and through no symbolic link, so nothing leads out.
std::optional<std::string> read_below(const std::string& directory,
                                      const std::vector<std::string>& segments) {
  File file(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (std::size_t i = 0; i < segments.size() && file.descriptor() >= 0; ++i) {
    if (!is_plain_name(segments[i])) return std::nullopt;
    const bool last = i + 1 == segments.size();
    const int kind = last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY;
    file.become(openat(file.descriptor(), segments[i].c_str(), kind | O_NOFOLLOW | O_CLOEXEC));
  }
  struct stat status{};
  if (file.descriptor() < 0 || fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size > file_bytes_max) {
    return std::nullopt;
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t count = read(file.descriptor(), bytes.data() + size, bytes.size() - size);
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  bytes.resize(size);
  return bytes;
}

std::string joined(const std::vector<std::string>& segments) {
  std::string path;
  for (const std::string& segment : segments) path += (path.empty() ? "" : "/") + segment;
  return path;
}

}  // namespace

Assets::Assets(std::string directory) : directory_(std::move(directory)) {
  struct stat status{};
  if (directory_.empty()) return;
  if (stat(directory_.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return;
  throw std::runtime_error("--ui-asset-path: there is no directory " + directory_);
}

std::optional<Response> Assets::answer(const Request& request,
                                       const std::vector<std::string>& segments) const {
  const std::string path = joined(segments);
  if (directory_.empty()) {
    for (const Asset& asset : built_in_assets()) {
      if (asset.path == path) return response_of(asset, request);
    }
    return std::nullopt;
  }
  const std::optional<std::string> bytes = read_below(directory_, segments);
  if (!bytes) return std::nullopt;
  const std::string hash = siphash_hex("", *bytes);
  return response_of({path, *bytes, {}, hash}, request);
}

}  // namespace permit::http
