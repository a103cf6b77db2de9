// Loaded in front of libc (LD_PRELOAD), it makes the n-th call of a kind fail, slow, or the last
// one of the process. So the server that is tested is the one that is shipped.
//
//   PERMIT_SHIM_DATABASE=/tmp/x/permit.db     whose files are meant, with -wal, -redo*, .lock, ...
//   PERMIT_SHIM_STATE=/tmp/x/shim             a file of State, which the test may map as well
//   PERMIT_SHIM="sync wal 3 before kill"      rules, separated by ";" :
//
//   <call> <file> <n>[+] <before|after|half> <kill | eio | enospc | emfile | enomem | sleep:<ms>>
//
//   call   open read write sync truncate unlink rename send receive accept allocate, or
//          reply: the first send after a sync of the log, which is the answer to a commit
//   file   db wal redo shm lock key more socket memory, or any
//   n      counted from 1 since State::armed was set, over the calls that match; with + also all
//          later ones; 0+ : all
//   half   of a write: half of the bytes are written first
//   eio…   instead of the call; `after` lets the call happen, and then says that it failed
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

namespace {

enum class Call {
  open,
  read,
  write,
  sync,
  truncate,
  unlink,
  rename,
  send,
  receive,
  accept,
  reply,
  allocate
};
enum class File { none, db, wal, redo, shm, lock, key, more, socket, memory, any };
enum class When { before, after, half };

constexpr std::array<std::string_view, 12> call_names = {
    "open",   "read", "write",   "sync",   "truncate", "unlink",
    "rename", "send", "receive", "accept", "reply",    "allocate"};
constexpr std::array<std::string_view, 11> file_names = {
    "none", "db", "wal", "redo", "shm", "lock", "key", "more", "socket", "memory", "any"};
constexpr std::size_t files = file_names.size();
constexpr int errno_kill = -1;
constexpr int errno_none = 0;

// What the test may see and set. 8 bytes each, in this order.
struct State {
  std::atomic<std::uint64_t> armed;
  std::atomic<std::uint64_t> fired;     // how often a rule has done something
  std::atomic<std::uint64_t> fired_at;  // the first time; microseconds of CLOCK_MONOTONIC
  std::array<std::atomic<std::uint64_t>, call_names.size() * files> calls;  // since it was armed
};

struct Rule {
  Call call = Call::open;
  File file = File::any;
  std::uint64_t first = 1;
  bool and_later = false;
  When when = When::before;
  int error = errno_kill;  // what the call fails with
  long sleep_ms = 0;
  std::atomic<std::uint64_t> seen = 0;
};

constexpr std::size_t rules_max = 4;
std::array<Rule, rules_max> rules;
std::size_t rule_count = 0;
State own_state;  // if there is no file for it
State* state = &own_state;
const char* database = nullptr;
std::array<std::atomic<std::uint8_t>, 65'536> file_of;  // by descriptor
std::atomic<bool> synced = false;                       // the log, since the last send

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

[[noreturn]] void give_up(const char* what, const char* rule) {
  std::fprintf(stderr, "shim: %s: %s\n", what, rule);
  std::abort();
}

template <class Names>
std::size_t index_of(const Names& names, const char* word, const char* rule) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == word) return i;
  }
  give_up("no such word", rule);
}

void read_action(Rule& rule, const char* word, const char* text) {
  const std::string_view action = word;
  if (action == "kill") {
    rule.error = errno_kill;
  } else if (action == "eio") {
    rule.error = EIO;
  } else if (action == "enospc") {
    rule.error = ENOSPC;
  } else if (action == "emfile") {
    rule.error = EMFILE;
  } else if (action == "enomem") {
    rule.error = ENOMEM;
  } else if (action.starts_with("sleep:")) {
    rule.error = errno_none;
    rule.sleep_ms = std::atol(word + 6);
  } else {
    give_up("no such action", text);
  }
}

void read_rule(const char* text) {
  static constexpr std::array<std::string_view, 3> whens = {"before", "after", "half"};
  std::array<char, 16> call{}, file{}, count{}, when{}, action{};
  if (rule_count == rules_max) give_up("too many rules", text);
  if (std::sscanf(text, " %15s %15s %15s %15s %15[^; ]", call.data(), file.data(), count.data(),
                  when.data(), action.data()) != 5) {
    give_up("not a rule", text);
  }
  Rule& rule = rules[rule_count++];
  rule.call = static_cast<Call>(index_of(call_names, call.data(), text));
  rule.file = static_cast<File>(index_of(file_names, file.data(), text));
  rule.when = static_cast<When>(index_of(whens, when.data(), text));
  rule.first = std::strtoull(count.data(), nullptr, 10);
  rule.and_later = std::strchr(count.data(), '+') != nullptr;
  read_action(rule, action.data(), text);
}

void map_state(const char* path) {
  const int file =
      next<int(const char*, int, ...)>("open")(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || next<int(int, off_t)>("ftruncate")(file, sizeof(State)) != 0) {
    give_up("cannot open", path);
  }
  void* const at = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) give_up("cannot map", path);
  state = static_cast<State*>(at);
}

// The programs that this one starts are none of our business.
__attribute__((constructor)) void begin() {
  database = std::getenv("PERMIT_SHIM_DATABASE");
  if (const char* path = std::getenv("PERMIT_SHIM_STATE")) map_state(path);
  const char* text = std::getenv("PERMIT_SHIM");
  while (text != nullptr && *text != '\0') {
    read_rule(text);
    text = std::strchr(text, ';');
    if (text != nullptr) ++text;
  }
  if (state == &own_state) state->armed = 1;
  unsetenv("LD_PRELOAD");
}

File kind_of(const char* path) {
  if (database == nullptr || path == nullptr) return File::none;
  const std::size_t size = std::strlen(database);
  if (std::strncmp(path, database, size) != 0) return File::none;
  const std::string_view rest = path + size;
  if (rest.empty()) return File::db;
  if (rest == "-wal") return File::wal;
  if (rest.starts_with("-redo")) return File::redo;
  if (rest == "-shm") return File::shm;
  if (rest == ".lock") return File::lock;
  if (rest == ".key") return File::key;
  return File::more;
}

File kind_of(int descriptor) {
  const auto index = static_cast<std::size_t>(descriptor);
  return descriptor < 0 || index >= file_of.size() ? File::none
                                                   : static_cast<File>(file_of[index].load());
}

int note_opened(int descriptor, File file) {
  const auto index = static_cast<std::size_t>(descriptor);
  if (descriptor >= 0 && index < file_of.size()) {
    file_of[index] = static_cast<std::uint8_t>(file);
  }
  return descriptor;
}

void note_fired() {
  if (state->fired++ > 0) return;
  timespec at{};
  clock_gettime(CLOCK_MONOTONIC, &at);
  state->fired_at = static_cast<std::uint64_t>(at.tv_sec) * 1'000'000 +
                    static_cast<std::uint64_t>(at.tv_nsec) / 1'000;
}

[[noreturn]] void die() {
  ::kill(getpid(), SIGKILL);
  for (;;) pause();
}

// One call of libc: what is to become of it.
class Fate {
 public:
  Fate(Call call, File file) {
    if (file == File::none || state->armed == 0) return;
    ++state->calls[static_cast<std::size_t>(call) * files + static_cast<std::size_t>(file)];
    for (std::size_t i = 0; i < rule_count; ++i) {
      Rule& rule = rules[i];
      if (rule.call != call || (rule.file != file && rule.file != File::any)) continue;
      const std::uint64_t seen = ++rule.seen;
      if (seen == rule.first || (rule.and_later && seen > rule.first)) rule_ = &rule;
    }
    if (rule_ == nullptr) return;
    note_fired();
    if (rule_->sleep_ms > 0) usleep(static_cast<useconds_t>(rule_->sleep_ms) * 1'000);
    if (rule_->when == When::before && rule_->error == errno_kill) die();
  }

  bool fails() const { return rule_ != nullptr && rule_->when == When::before && rule_->error > 0; }
  bool is_half() const { return rule_ != nullptr && rule_->when == When::half; }
  int fail() const {
    errno = rule_->error;
    return -1;
  }
  // After the call.
  template <class Result>
  Result done(Result result) const {
    if (rule_ == nullptr || rule_->when == When::before || rule_->error == errno_none)
      return result;
    if (rule_->error == errno_kill) die();
    return static_cast<Result>(fail());
  }

 private:
  const Rule* rule_ = nullptr;
};

template <class Do>
auto call(Call kind, File file, const Do& action) -> decltype(action()) {
  const Fate fate(kind, file);
  if (fate.fails()) return fate.fail();
  return fate.done(action());
}

template <class Do>
ssize_t write_call(File file, std::size_t size, const Do& action) {
  const Fate fate(Call::write, file);
  if (fate.fails()) return fate.fail();
  if (fate.is_half()) return fate.done(action(size / 2));
  return fate.done(action(size));
}

template <class Do>
ssize_t send_call(const Do& action) {
  if (synced.exchange(false)) {
    return call(Call::reply, File::socket, [&] { return call(Call::send, File::socket, action); });
  }
  return call(Call::send, File::socket, action);
}

int open_call(const char* path, int flags, mode_t mode) {
  static auto* const real = next<int(const char*, int, ...)>("open64");
  const File file = kind_of(path);
  return call(Call::open, file, [&] { return note_opened(real(path, flags, mode), file); });
}

int sync_call(const char* name, int descriptor) {
  const File file = kind_of(descriptor);
  const int result = call(Call::sync, file, [&] { return next<int(int)>(name)(descriptor); });
  if (result == 0 && file == File::redo) synced = true;
  return result;
}

template <class Do>
void* allocate_call(const Do& action) {
  const Fate fate(Call::allocate, File::memory);
  if (!fate.fails()) return action();
  fate.fail();
  return nullptr;
}

}  // namespace

// The parameters have names of ours, not those of libc's headers.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" {

#define OPEN(name)                                                              \
  int name(const char* path, int flags, ...) {                                  \
    va_list arguments;                                                          \
    va_start(arguments, flags);                                                 \
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0; \
    va_end(arguments);                                                          \
    return open_call(path, flags, mode);                                        \
  }
OPEN(open)
OPEN(open64)
#undef OPEN

int close(int descriptor) {
  static auto* const real = next<int(int)>("close");
  note_opened(descriptor, File::none);
  return real(descriptor);
}

ssize_t read(int descriptor, void* bytes, size_t size) {
  static auto* const real = next<ssize_t(int, void*, size_t)>("read");
  return call(Call::read, kind_of(descriptor), [&] { return real(descriptor, bytes, size); });
}

ssize_t pread64(int descriptor, void* bytes, size_t size, off64_t at) {
  static auto* const real = next<ssize_t(int, void*, size_t, off64_t)>("pread64");
  return call(Call::read, kind_of(descriptor), [&] { return real(descriptor, bytes, size, at); });
}
ssize_t pread(int descriptor, void* bytes, size_t size, off_t at) {
  return pread64(descriptor, bytes, size, at);
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  static auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  return write_call(kind_of(descriptor), size,
                    [&](size_t part) { return real(descriptor, bytes, part); });
}

ssize_t pwrite64(int descriptor, const void* bytes, size_t size, off64_t at) {
  static auto* const real = next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return write_call(kind_of(descriptor), size,
                    [&](size_t part) { return real(descriptor, bytes, part, at); });
}
ssize_t pwrite(int descriptor, const void* bytes, size_t size, off_t at) {
  return pwrite64(descriptor, bytes, size, at);
}

int fsync(int descriptor) { return sync_call("fsync", descriptor); }
int fdatasync(int descriptor) { return sync_call("fdatasync", descriptor); }

int ftruncate64(int descriptor, off64_t size) noexcept {
  static auto* const real = next<int(int, off64_t)>("ftruncate64");
  return call(Call::truncate, kind_of(descriptor), [&] { return real(descriptor, size); });
}
int ftruncate(int descriptor, off_t size) noexcept { return ftruncate64(descriptor, size); }

int unlink(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("unlink");
  return call(Call::unlink, kind_of(path), [&] { return real(path); });
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = next<int(const char*, const char*)>("rename");
  return call(Call::rename, kind_of(to), [&] { return real(from, to); });
}

ssize_t send(int descriptor, const void* bytes, size_t size, int flags) {
  static auto* const real = next<ssize_t(int, const void*, size_t, int)>("send");
  return send_call([&] { return real(descriptor, bytes, size, flags); });
}
ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  static auto* const real = next<ssize_t(int, const msghdr*, int)>("sendmsg");
  return send_call([&] { return real(descriptor, message, flags); });
}

ssize_t recv(int descriptor, void* bytes, size_t size, int flags) {
  static auto* const real = next<ssize_t(int, void*, size_t, int)>("recv");
  return call(Call::receive, File::socket, [&] { return real(descriptor, bytes, size, flags); });
}
ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  static auto* const real = next<ssize_t(int, msghdr*, int)>("recvmsg");
  return call(Call::receive, File::socket, [&] { return real(descriptor, message, flags); });
}

int accept(int descriptor, sockaddr* address, socklen_t* size) {
  static auto* const real = next<int(int, sockaddr*, socklen_t*)>("accept");
  return call(Call::accept, File::socket, [&] { return real(descriptor, address, size); });
}
int accept4(int descriptor, sockaddr* address, socklen_t* size, int flags) {
  static auto* const real = next<int(int, sockaddr*, socklen_t*, int)>("accept4");
  return call(Call::accept, File::socket, [&] { return real(descriptor, address, size, flags); });
}

// What is behind libc's own: to look for it by name would allocate.
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* at, size_t size);

void* malloc(size_t size) noexcept {
  return allocate_call([&] { return __libc_malloc(size); });
}
void* calloc(size_t count, size_t size) noexcept {
  return allocate_call([&] { return __libc_calloc(count, size); });
}
void* realloc(void* at, size_t size) noexcept {
  return allocate_call([&] { return __libc_realloc(at, size); });
}

}  // extern "C"
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
