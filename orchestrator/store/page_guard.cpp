#include "orchestrator/store/page_guard.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/store/checksum.h"
#include "orchestrator/store/courtesy.h"
#include "orchestrator/store/errors.h"

namespace permit::store {

struct PageGuard::State {
  sqlite3_vfs* below = nullptr;
  sqlite3_vfs vfs = {};
  std::string name = {};
  std::string damage = {};
  std::vector<std::int64_t> damaged = {};
  bool checks_log = true;
  bool expects_seals = false;
  std::size_t copy_page_size = 0;  // of new files; 0: not known
};

namespace {

constexpr std::size_t page_size_max = 65536;
constexpr std::size_t damaged_max = 1000;
// SQLite's own VFS reads and writes less than 128 KiB at once.
constexpr std::size_t scan_read_bytes = 65536;
constexpr std::size_t gathered_max = 131071;
constexpr int header_bytes = 100;   // of the file
constexpr int log_head_bytes = 32;  // of the log; then frames, each with a head and a page
constexpr int frame_head_bytes = 24;

using FrameHead = std::array<Byte, frame_head_bytes>;

// What this connection has written to the log. SQLite writes the head and the page of each frame on
// their own; here they gather until they are needed in the file, at a sync or a read.
struct LogWriter {
  std::vector<Byte> gathered = {};
  sqlite3_int64 gathered_at = 0;
  // Of the frames, so that reading them back takes one read; a log that starts over overwrites it.
  std::vector<FrameHead> heads = {};
};

struct GuardedFile : sqlite3_file {
  PageGuard::State* guard;
  const char* name;
  LogWriter* log;  // null: this is the database
  bool sealed;
  std::size_t page_size;  // 0: not known yet
};

GuardedFile& own(sqlite3_file* file) { return *static_cast<GuardedFile*>(file); }
// The file of the VFS below lies behind ours.
sqlite3_file* below(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(static_cast<GuardedFile*>(file) + 1);
}

// --- Seals ---

// What a backup by another program changes in the first page, and SQLite with every commit that is
// not in a log: versions of format and library, and counters by which caches are told to look
// again.
void leave_out_counters(Byte* header) {
  std::memset(header + 18, 0, 2);
  std::memset(header + 24, 0, 4);
  std::memset(header + 40, 0, 4);
  std::memset(header + 92, 0, 8);
}

bool is_whole_page(int size) {
  return size >= 512 && std::has_single_bit(static_cast<unsigned>(size));
}

// A database's page, not a part of one or of something else.
bool is_page(int size, sqlite3_int64 at) { return is_whole_page(size) && at % size == 0; }

void learn_header(GuardedFile& file, const Byte* header) {
  const std::size_t size = (std::size_t{header[16]} << 8U) | header[17];
  file.page_size = size == 1 ? page_size_max : size;
  file.sealed = header[20] == seal_bytes;
}

int damaged(GuardedFile& file, const std::string& what, std::int64_t page) {
  PageGuard::State& state = *file.guard;
  if (state.damage.empty()) {
    state.damage = what + " of " + file.name +
                   " is not as it was written: the disk has changed it, or another program";
  }
  if (page > 0 && state.damaged.size() < damaged_max) state.damaged.push_back(page);
  return SQLITE_IOERR_DATA;
}

enum class Seal { right, none, wrong };

Seal look_at(const Byte* bytes, std::size_t size, std::int64_t page) {
  const std::uint64_t seal = word_at(bytes + size - seal_bytes);
  if (seal == 0) return Seal::none;
  return seal == seal_of(bytes, size, page) ? Seal::right : Seal::wrong;
}

bool is_empty(const Byte* bytes, std::size_t size) {
  return std::all_of(bytes, bytes + size, [](Byte byte) { return byte == 0; });
}

// Where SQLite puts its locks on some systems; no page is ever there.
bool is_lock_page(std::int64_t page, std::size_t page_bytes) {
  constexpr std::int64_t lock_byte = 0x4000'0000;
  return page == lock_byte / static_cast<std::int64_t>(page_bytes) + 1;
}

// An empty page without a seal may be one that was never written, as a free one.
int check_page(GuardedFile& file, Byte* bytes, std::size_t size, sqlite3_int64 at) {
  if (at == 0 && !file.sealed) learn_header(file, bytes);  // a changed one does not end the guard
  if (!file.sealed || size != file.page_size) return SQLITE_OK;
  const std::int64_t page = at / static_cast<sqlite3_int64>(size) + 1;
  const Seal seal = look_at(bytes, size, page);
  const bool is_lost = seal == Seal::none && file.guard->expects_seals && !is_empty(bytes, size);
  if (seal == Seal::wrong || is_lost) return damaged(file, "page " + std::to_string(page), page);
  std::memset(bytes + size - seal_bytes, 0, seal_bytes);
  return SQLITE_OK;
}

// SQLite takes what is missing of the last page for zeros.
bool is_cut(GuardedFile& file, int size, sqlite3_int64 at) {
  sqlite3_int64 end = 0;
  return file.log == nullptr && file.sealed && is_page(size, at) && at > 0 &&
         below(&file)->pMethods->xFileSize(below(&file), &end) == SQLITE_OK && at < end;
}

int cut(GuardedFile& file, sqlite3_int64 at) {
  const std::int64_t page = at / static_cast<sqlite3_int64>(file.page_size) + 1;
  return damaged(file, "page " + std::to_string(page) + ", the last one,", page);
}

// --- The log ---

struct LogSum {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  bool operator==(const LogSum&) const = default;
};

std::uint32_t number_at(const Byte* bytes, bool big_endian) {
  if (!big_endian) {
    std::uint32_t number = 0;
    std::memcpy(&number, bytes, sizeof number);
    if constexpr (std::endian::native == std::endian::big) number = __builtin_bswap32(number);
    return number;
  }
  return (std::uint32_t{bytes[0]} << 24U) | (std::uint32_t{bytes[1]} << 16U) |
         (std::uint32_t{bytes[2]} << 8U) | bytes[3];
}

// SQLite's own: sqlite.org/fileformat.html, "Checksum Algorithm".
void add_up(LogSum& sum, const Byte* bytes, std::size_t size, bool big_endian) {
  for (std::size_t at = 0; at < size; at += 8) {
    sum.first += number_at(bytes + at, big_endian) + sum.second;
    sum.second += number_at(bytes + at + 4, big_endian) + sum.first;
  }
}

LogSum stored_sum(const Byte* bytes) {
  return {number_at(bytes, true), number_at(bytes + 4, true)};
}

LogSum sum_of_frame(LogSum before, const Byte* head, const Byte* page, std::size_t size,
                    bool big_endian) {
  add_up(before, head, 8, big_endian);
  add_up(before, page, size, big_endian);
  return before;
}

// Where a page of this size lies in the log if it is that of a frame.
struct FramePlace {
  sqlite3_int64 head_at;
  sqlite3_int64 frame;  // from 0
};

std::optional<FramePlace> place_of_frame(sqlite3_int64 page_at, int size) {
  const sqlite3_int64 head_at = page_at - frame_head_bytes;
  const sqlite3_int64 frame_bytes = frame_head_bytes + size;
  if (head_at < log_head_bytes || (head_at - log_head_bytes) % frame_bytes != 0) return {};
  return FramePlace{head_at, (head_at - log_head_bytes) / frame_bytes};
}

// As this connection has written it; false if that is not known.
bool is_as_written(const LogWriter& log, const Byte* page, int size, sqlite3_int64 frame) {
  constexpr bool big_endian = std::endian::native == std::endian::big;
  const auto number = static_cast<std::size_t>(frame);
  if (number == 0 || number >= log.heads.size()) return false;
  const FrameHead& head = log.heads[number];
  const LogSum before = stored_sum(log.heads[number - 1].data() + 16);
  const auto page_bytes = static_cast<std::size_t>(size);
  return stored_sum(head.data() + 16) ==
         sum_of_frame(before, head.data(), page, page_bytes, big_endian);
}

// A frame's checksum goes on from that of the frame before it.
int check_frame(GuardedFile& file, const Byte* page, int size, sqlite3_int64 at) {
  const auto place = place_of_frame(at, size);
  if (!place || is_as_written(*file.log, page, size, place->frame)) return SQLITE_OK;
  sqlite3_file* log = below(&file);
  std::array<Byte, 4> magic{};
  std::array<Byte, 8> before{};
  FrameHead head{};
  const sqlite3_int64 before_at = (place->frame == 0 ? log_head_bytes : place->head_at - size) - 8;
  const auto get = [&](auto& bytes, sqlite3_int64 from) {
    return log->pMethods->xRead(log, bytes.data(), static_cast<int>(bytes.size()), from);
  };
  for (const int code : {get(magic, 0), get(before, before_at), get(head, place->head_at)}) {
    if (code != SQLITE_OK) return code;
  }
  const bool big_endian = (magic[3] & 1U) != 0;
  const LogSum sum = sum_of_frame(stored_sum(before.data()), head.data(), page,
                                  static_cast<std::size_t>(size), big_endian);
  if (sum == stored_sum(head.data() + 16)) return SQLITE_OK;
  return damaged(file, "frame " + std::to_string(place->frame + 1), 0);
}

// After an error nothing is left of it: SQLite takes the commit back, and writes there again.
int write_gathered(sqlite3_file* file) {
  LogWriter* log = own(file).log;
  if (log == nullptr || log->gathered.empty()) return SQLITE_OK;
  const int code = below(file)->pMethods->xWrite(
      below(file), log->gathered.data(), static_cast<int>(log->gathered.size()), log->gathered_at);
  log->gathered.clear();
  return code;
}

// The page of a frame, whose head came right before it.
void remember_head(LogWriter& log, int size, sqlite3_int64 at) {
  const auto place = place_of_frame(at, size);
  if (!place || log.gathered.size() < frame_head_bytes) return;
  const auto number = static_cast<std::size_t>(place->frame);
  if (number > log.heads.size()) return;
  if (number == log.heads.size()) log.heads.emplace_back();
  std::copy(log.gathered.end() - frame_head_bytes, log.gathered.end(), log.heads[number].begin());
}

int write_log(sqlite3_file* file, const Byte* bytes, int size, sqlite3_int64 at) {
  LogWriter& log = *own(file).log;
  const bool goes_on = at == log.gathered_at + static_cast<sqlite3_int64>(log.gathered.size());
  if (goes_on && is_whole_page(size)) remember_head(log, size, at);
  if (!goes_on || log.gathered.size() + static_cast<std::size_t>(size) > gathered_max) {
    const int code = write_gathered(file);
    if (code != SQLITE_OK) return code;
    log.gathered_at = at;
  }
  log.gathered.insert(log.gathered.end(), bytes, bytes + size);
  return SQLITE_OK;
}

// --- Files ---

int close(sqlite3_file* file) {
  const int code = write_gathered(file);
  delete std::exchange(own(file).log, nullptr);
  const int closed = below(file)->pMethods->xClose(below(file));
  return code != SQLITE_OK ? code : closed;
}

int read(sqlite3_file* file, void* bytes, int size, sqlite3_int64 at) {
  const int written = write_gathered(file);
  if (written != SQLITE_OK) return written;
  const int code = below(file)->pMethods->xRead(below(file), bytes, size, at);
  GuardedFile& guarded = own(file);
  if (code == SQLITE_IOERR_SHORT_READ) return is_cut(guarded, size, at) ? cut(guarded, at) : code;
  if (code != SQLITE_OK) return code;
  if (guarded.log != nullptr) {
    if (!is_whole_page(size) || !guarded.guard->checks_log) return SQLITE_OK;
    return check_frame(guarded, static_cast<const Byte*>(bytes), size, at);
  }
  if (!is_page(size, at)) return SQLITE_OK;
  return check_page(guarded, static_cast<Byte*>(bytes), static_cast<std::size_t>(size), at);
}

int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
  GuardedFile& guarded = own(file);
  const auto* page = static_cast<const Byte*>(bytes);
  const auto page_bytes = static_cast<std::size_t>(size);
  if (guarded.log != nullptr) return write_log(file, page, size, at);
  if (is_page(size, at)) {
    if (at == 0) learn_header(guarded, page);
    if (guarded.sealed && page_bytes == guarded.page_size) {
      static thread_local Courtesy courtesy;  // of a checkpoint, which writes all pages at once
      courtesy.step();
      alignas(8) std::array<Byte, page_size_max> sealed;
      std::memcpy(sealed.data(), page, page_bytes);
      put_word(sealed.data() + page_bytes - seal_bytes, seal_of(page, page_bytes, at / size + 1));
      return below(file)->pMethods->xWrite(below(file), sealed.data(), size, at);
    }
  }
  return below(file)->pMethods->xWrite(below(file), bytes, size, at);
}

int truncate(sqlite3_file* file, sqlite3_int64 size) {
  const int code = write_gathered(file);
  if (own(file).log != nullptr) own(file).log->heads.clear();
  return code != SQLITE_OK ? code : below(file)->pMethods->xTruncate(below(file), size);
}
int sync(sqlite3_file* file, int flags) {
  const int code = write_gathered(file);
  return code != SQLITE_OK ? code : below(file)->pMethods->xSync(below(file), flags);
}
int file_size(sqlite3_file* file, sqlite3_int64* size) {
  const int code = write_gathered(file);
  return code != SQLITE_OK ? code : below(file)->pMethods->xFileSize(below(file), size);
}
int lock(sqlite3_file* file, int level) { return below(file)->pMethods->xLock(below(file), level); }
int unlock(sqlite3_file* file, int level) {
  return below(file)->pMethods->xUnlock(below(file), level);
}
int check_reserved_lock(sqlite3_file* file, int* reserved) {
  return below(file)->pMethods->xCheckReservedLock(below(file), reserved);
}
int file_control(sqlite3_file* file, int operation, void* argument) {
  return below(file)->pMethods->xFileControl(below(file), operation, argument);
}
int sector_size(sqlite3_file* file) { return below(file)->pMethods->xSectorSize(below(file)); }
int device_characteristics(sqlite3_file* file) {
  return below(file)->pMethods->xDeviceCharacteristics(below(file));
}
int shm_map(sqlite3_file* file, int region, int size, int extend, void volatile** address) {
  return below(file)->pMethods->xShmMap(below(file), region, size, extend, address);
}
int shm_lock(sqlite3_file* file, int offset, int n, int flags) {
  return below(file)->pMethods->xShmLock(below(file), offset, n, flags);
}
void shm_barrier(sqlite3_file* file) { below(file)->pMethods->xShmBarrier(below(file)); }
int shm_unmap(sqlite3_file* file, int remove) {
  return below(file)->pMethods->xShmUnmap(below(file), remove);
}

// Of version 2: SQLite then reads and never maps the file, past the guard.
constexpr sqlite3_io_methods guarded_methods = {
    .iVersion = 2,
    .xClose = close,
    .xRead = read,
    .xWrite = write,
    .xTruncate = truncate,
    .xSync = sync,
    .xFileSize = file_size,
    .xLock = lock,
    .xUnlock = unlock,
    .xCheckReservedLock = check_reserved_lock,
    .xFileControl = file_control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = device_characteristics,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

// --- The VFS ---

sqlite3_vfs* below(sqlite3_vfs* vfs) {
  return static_cast<PageGuard::State*>(vfs->pAppData)->below;
}

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  if ((flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) == 0) {
    return below(vfs)->xOpen(below(vfs), name, file, flags, flags_out);
  }
  GuardedFile& guarded = own(file);
  guarded.pMethods = nullptr;
  guarded.guard = static_cast<PageGuard::State*>(vfs->pAppData);
  guarded.name = name == nullptr ? "" : name;
  guarded.log = nullptr;
  guarded.page_size = guarded.guard->copy_page_size;
  guarded.sealed = guarded.page_size > 0;
  const int code = below(vfs)->xOpen(below(vfs), name, below(file), flags, flags_out);
  // As the interface has it: with methods, a file is closed also if it could not be opened.
  if (below(file)->pMethods != nullptr) guarded.pMethods = &guarded_methods;
  if (code != SQLITE_OK) return code;
  if ((flags & SQLITE_OPEN_WAL) != 0) {
    guarded.log = new (std::nothrow) LogWriter;
    return guarded.log == nullptr ? SQLITE_NOMEM : SQLITE_OK;
  }
  std::array<Byte, header_bytes> header{};
  const int read_code = below(file)->pMethods->xRead(below(file), header.data(), header_bytes, 0);
  if (read_code == SQLITE_OK) learn_header(guarded, header.data());
  return read_code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : read_code;  // short: a new file
}

int remove(sqlite3_vfs* vfs, const char* name, int sync_directory) {
  return below(vfs)->xDelete(below(vfs), name, sync_directory);
}
int access(sqlite3_vfs* vfs, const char* name, int flags, int* result) {
  return below(vfs)->xAccess(below(vfs), name, flags, result);
}
int full_pathname(sqlite3_vfs* vfs, const char* name, int size, char* out) {
  return below(vfs)->xFullPathname(below(vfs), name, size, out);
}
int randomness(sqlite3_vfs* vfs, int size, char* out) {
  return below(vfs)->xRandomness(below(vfs), size, out);
}
int sleep(sqlite3_vfs* vfs, int microseconds) {
  return below(vfs)->xSleep(below(vfs), microseconds);
}
int current_time(sqlite3_vfs* vfs, double* now) {
  return below(vfs)->xCurrentTime(below(vfs), now);
}
int last_error(sqlite3_vfs* vfs, int size, char* out) {
  return below(vfs)->xGetLastError(below(vfs), size, out);
}
int current_time_int64(sqlite3_vfs* vfs, sqlite3_int64* now) {
  return below(vfs)->xCurrentTimeInt64(below(vfs), now);
}

std::string unique_name() {
  static std::atomic<unsigned> count = 0;
  return "permit-guard-" + std::to_string(++count);
}

}  // namespace

std::uint64_t seal_of(const unsigned char* bytes, std::size_t page_size, std::int64_t page) {
  const std::size_t size = page_size - seal_bytes;
  std::uint64_t seal = 0;
  if (page == 1) {
    alignas(8) std::array<Byte, page_size_max> first;
    std::memcpy(first.data(), bytes, size);
    leave_out_counters(first.data());
    seal = checksum(first.data(), size, page);
  } else {
    seal = checksum(bytes, size, page);
  }
  return seal == 0 ? 1 : seal;
}

PageGuard::PageGuard(const std::string& below_name) : state_(new State) {
  State& state = *state_;
  state.below = sqlite3_vfs_find(below_name.empty() ? nullptr : below_name.c_str());
  if (state.below == nullptr) {
    throw StoreFailed(SQLITE_CANTOPEN, "SQLite has no VFS " + below_name);
  }
  ENSURE(state.below->iVersion >= 2);
  state.name = unique_name();
  sqlite3_vfs& vfs = state.vfs;
  vfs.iVersion = 2;
  vfs.szOsFile = static_cast<int>(sizeof(GuardedFile)) + state.below->szOsFile;
  vfs.mxPathname = state.below->mxPathname;
  vfs.zName = state.name.c_str();
  vfs.pAppData = &state;
  vfs.xOpen = open;
  vfs.xDelete = remove;
  vfs.xAccess = access;
  vfs.xFullPathname = full_pathname;
  vfs.xRandomness = randomness;
  vfs.xSleep = sleep;
  vfs.xCurrentTime = current_time;
  vfs.xGetLastError = last_error;
  vfs.xCurrentTimeInt64 = current_time_int64;
  sqlite3_vfs_register(&vfs, 0);
}

PageGuard::~PageGuard() { sqlite3_vfs_unregister(&state_->vfs); }

const std::string& PageGuard::name() const { return state_->name; }
const std::string& PageGuard::damage() const { return state_->damage; }
const std::vector<std::int64_t>& PageGuard::damaged_pages() const { return state_->damaged; }
void PageGuard::check_log(bool on) { state_->checks_log = on; }
void PageGuard::expect_seals() { state_->expects_seals = true; }
void PageGuard::expect_copy_of(sqlite3_file* file) {
  state_->copy_page_size = own(file).sealed ? own(file).page_size : 0;
}

bool PageGuard::is_sealed(sqlite3_file* file) { return own(file).sealed; }

namespace {

// A page that another program has brought from the log into the file. Only its last 8 bytes are
// written, which lie in one sector: whatever a power loss leaves of that is right.
int seal_in_place(sqlite3_file* file, const Byte* bytes, std::size_t size, std::int64_t page) {
  std::array<Byte, seal_bytes> seal{};
  put_word(seal.data(), seal_of(bytes, size, page));
  const auto page_bytes = static_cast<sqlite3_int64>(size);
  return file->pMethods->xWrite(file, seal.data(), seal_bytes, page * page_bytes - seal_bytes);
}

}  // namespace

PageGuard::Scan PageGuard::scan(sqlite3_file* file, bool seals,
                                const std::function<bool()>& give_up) {
  GuardedFile& guarded = own(file);
  sqlite3_file* file_below = below(file);
  Scan scan;
  sqlite3_int64 size = 0;
  if (!guarded.sealed || file->pMethods->xFileSize(file, &size) != SQLITE_OK) return scan;
  const std::size_t page_bytes = guarded.page_size;
  const auto pages = size / static_cast<sqlite3_int64>(page_bytes);
  auto pages_a_read = static_cast<sqlite3_int64>(scan_read_bytes / page_bytes);
  std::vector<Byte> bytes(scan_read_bytes);
  while (scan.pages < pages) {
    if (give_up()) return scan;
    const auto count = static_cast<std::size_t>(std::min(pages - scan.pages, pages_a_read));
    const int code =
        file_below->pMethods->xRead(file_below, bytes.data(), static_cast<int>(count * page_bytes),
                                    scan.pages * static_cast<sqlite3_int64>(page_bytes));
    if (code != SQLITE_OK && count > 1) {
      pages_a_read = 1;  // which one is it?
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Byte* page = bytes.data() + i * page_bytes;
      const std::int64_t number = ++scan.pages;
      if (code != SQLITE_OK || look_at(page, page_bytes, number) == Seal::wrong) {
        damaged(guarded, "page " + std::to_string(number), number);
        return scan;
      }
      const bool has_seal = word_at(page + page_bytes - seal_bytes) != 0;
      if (has_seal || is_lock_page(number, page_bytes)) continue;
      ++(is_empty(page, page_bytes) ? scan.empty : scan.unsealed);
      if (seals && seal_in_place(file_below, page, page_bytes, number) != SQLITE_OK) return scan;
    }
  }
  if (size % static_cast<sqlite3_int64>(page_bytes) != 0) {
    cut(guarded, scan.pages * static_cast<sqlite3_int64>(page_bytes));
    return scan;
  }
  const bool wrote = seals && scan.unsealed + scan.empty > 0;
  if (wrote && file->pMethods->xSync(file, SQLITE_SYNC_NORMAL) != SQLITE_OK) return scan;
  scan.complete = true;
  return scan;
}

}  // namespace permit::store
