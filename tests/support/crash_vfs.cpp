#include "tests/support/crash_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>

namespace permit::test {

namespace {

constexpr int path_bytes_max = 512;

// The wal-index of one database, for as long as a connection maps it or holds it through a crash.
struct SharedMemory {
  std::vector<std::unique_ptr<std::uint64_t[]>> regions;
};

struct Handle {
  CrashVfs::State* vfs;
  int inode;
  std::size_t boot;  // the handle is dead if the disk has crashed since
  bool syncs_directory =
      false;  // a new journal or WAL: its first sync covers its name, as in os_unix
  int level = SQLITE_LOCK_NONE;
  std::shared_ptr<SharedMemory> memory = {};
  unsigned shared = 0;  // masks of the wal-index locks held
  unsigned exclusive = 0;
};

struct OpenFile : sqlite3_file {
  Handle* handle;
};

struct FaultPlan {
  std::optional<std::size_t> calls_left = {};
  Fault fault = Fault::once;

  bool strikes() {
    if (!calls_left) return false;
    if (*calls_left > 0) {
      --*calls_left;
      return false;
    }
    if (fault == Fault::once) calls_left.reset();
    return true;
  }
};

}  // namespace

struct CrashVfs::State {
  std::mutex mutex = {};  // guards all of it
  std::string name = {};
  sqlite3_vfs vfs = {};
  Disk disk;
  std::size_t boot = 0;
  std::set<Handle*> handles = {};
  std::map<int, std::weak_ptr<SharedMemory>> memory = {};
  std::function<void(std::size_t, SyncEdge)> hook = {};
  std::size_t syncs_begun = 0;
  std::size_t syncs_done = 0;
  FaultPlan sync_fault = {};
  FaultPlan sync_lie = {};
  FaultPlan write_fault = {};
  FaultPlan read_fault = {};
  std::optional<std::size_t> limit = {};

  bool dead(const Handle& handle) const { return handle.boot != boot; }

  // The highest lock that another living handle has on the same file.
  int others_level(const Handle& handle) const {
    int level = SQLITE_LOCK_NONE;
    for (const Handle* other : handles) {
      if (other != &handle && other->inode == handle.inode && !dead(*other)) {
        level = std::max(level, other->level);
      }
    }
    return level;
  }

  bool others_hold(const Handle& handle, unsigned mask, bool shared_counts) const {
    return std::any_of(handles.begin(), handles.end(), [&](const Handle* other) {
      if (other == &handle || other->memory != handle.memory) return false;
      return ((other->exclusive | (shared_counts ? other->shared : 0U)) & mask) != 0;
    });
  }
};

namespace {

Handle& handle_of(sqlite3_file* file) { return *static_cast<OpenFile*>(file)->handle; }

// Files

int close(sqlite3_file* file) {
  const std::unique_ptr<Handle> handle(&handle_of(file));
  const std::lock_guard lock(handle->vfs->mutex);
  handle->vfs->handles.erase(handle.get());
  return SQLITE_OK;
}

int read(sqlite3_file* file, void* bytes, int size, sqlite3_int64 at) {
  const Handle& handle = handle_of(file);
  const std::lock_guard lock(handle.vfs->mutex);
  if (handle.vfs->dead(handle) || handle.vfs->read_fault.strikes()) return SQLITE_IOERR_READ;
  const std::string& content = handle.vfs->disk.content(handle.inode);
  const auto wanted = static_cast<std::size_t>(size);
  const std::size_t offset = std::min(static_cast<std::size_t>(at), content.size());
  const std::size_t found = std::min(wanted, content.size() - offset);
  std::memcpy(bytes, content.data() + offset, found);
  std::memset(static_cast<char*>(bytes) + found, 0, wanted - found);
  return found == wanted ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
  const Handle& handle = handle_of(file);
  CrashVfs::State& state = *handle.vfs;
  const std::lock_guard lock(state.mutex);
  if (state.dead(handle) || state.write_fault.strikes()) return SQLITE_IOERR_WRITE;
  const auto offset = static_cast<std::size_t>(at);
  const auto count = static_cast<std::size_t>(size);
  const std::size_t before = state.disk.content(handle.inode).size();
  const std::size_t growth = offset + count > before ? offset + count - before : 0;
  if (state.limit && growth > 0 && state.disk.size() + growth > *state.limit) return SQLITE_FULL;
  state.disk.write(handle.inode, offset, {static_cast<const char*>(bytes), count});
  return SQLITE_OK;
}

int truncate(sqlite3_file* file, sqlite3_int64 size) {
  const Handle& handle = handle_of(file);
  const std::lock_guard lock(handle.vfs->mutex);
  if (handle.vfs->dead(handle)) return SQLITE_IOERR_TRUNCATE;
  handle.vfs->disk.truncate(handle.inode, static_cast<std::size_t>(size));
  return SQLITE_OK;
}

int sync_now(Handle& handle) {
  CrashVfs::State& state = *handle.vfs;
  const std::lock_guard lock(state.mutex);
  if (state.dead(handle) || state.sync_fault.strikes()) return SQLITE_IOERR_FSYNC;
  state.disk.sync(handle.inode);
  if (std::exchange(handle.syncs_directory, false)) state.disk.sync_directory();
  if (state.sync_lie.strikes()) return SQLITE_IOERR_FSYNC;
  ++state.syncs_done;
  return SQLITE_OK;
}

int sync(sqlite3_file* file, int) {
  Handle& handle = handle_of(file);
  CrashVfs::State& state = *handle.vfs;
  std::size_t number = 0;
  std::function<void(std::size_t, SyncEdge)> hook;
  {
    const std::lock_guard lock(state.mutex);
    number = ++state.syncs_begun;
    hook = state.hook;
  }
  if (hook) hook(number, SyncEdge::before);
  const int code = sync_now(handle);
  if (hook && code == SQLITE_OK) hook(number, SyncEdge::after);
  return code;
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  const Handle& handle = handle_of(file);
  const std::lock_guard lock(handle.vfs->mutex);
  if (handle.vfs->dead(handle)) return SQLITE_IOERR_FSTAT;
  *size = static_cast<sqlite3_int64>(handle.vfs->disk.content(handle.inode).size());
  return SQLITE_OK;
}

int lock(sqlite3_file* file, int level) {
  Handle& handle = handle_of(file);
  const std::lock_guard guard(handle.vfs->mutex);
  if (handle.vfs->dead(handle)) return SQLITE_IOERR_LOCK;
  if (handle.level >= level) return SQLITE_OK;
  const int others = handle.vfs->others_level(handle);
  if (level == SQLITE_LOCK_SHARED && others >= SQLITE_LOCK_PENDING) return SQLITE_BUSY;
  if (level > SQLITE_LOCK_SHARED && others >= SQLITE_LOCK_RESERVED) return SQLITE_BUSY;
  if (level == SQLITE_LOCK_EXCLUSIVE && others >= SQLITE_LOCK_SHARED) {
    handle.level = SQLITE_LOCK_PENDING;  // lets no new reader in
    return SQLITE_BUSY;
  }
  handle.level = level;
  return SQLITE_OK;
}

int unlock(sqlite3_file* file, int level) {
  Handle& handle = handle_of(file);
  const std::lock_guard guard(handle.vfs->mutex);
  if (handle.vfs->dead(handle)) return SQLITE_IOERR_UNLOCK;
  handle.level = std::min(handle.level, level);
  return SQLITE_OK;
}

int check_reserved_lock(sqlite3_file* file, int* reserved) {
  const Handle& handle = handle_of(file);
  const std::lock_guard guard(handle.vfs->mutex);
  if (handle.vfs->dead(handle)) return SQLITE_IOERR_CHECKRESERVEDLOCK;
  const int level = std::max(handle.level, handle.vfs->others_level(handle));
  *reserved = level >= SQLITE_LOCK_RESERVED ? 1 : 0;
  return SQLITE_OK;
}

int file_control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }

// As os_unix answers for an ordinary disk, so that SQLite takes the same paths as in production.
int sector_size(sqlite3_file*) { return 4096; }
int device_characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

// Shared memory

int shm_map(sqlite3_file* file, int region, int size, int extend, void volatile** address) {
  Handle& handle = handle_of(file);
  CrashVfs::State& state = *handle.vfs;
  const std::lock_guard lock(state.mutex);
  *address = nullptr;
  if (state.dead(handle)) return SQLITE_IOERR_SHMMAP;
  if (!handle.memory) {
    std::shared_ptr<SharedMemory> memory = state.memory[handle.inode].lock();
    if (!memory) state.memory[handle.inode] = memory = std::make_shared<SharedMemory>();
    handle.memory = std::move(memory);
  }
  auto& regions = handle.memory->regions;
  const auto index = static_cast<std::size_t>(region);
  if (index >= regions.size() && extend == 0) return SQLITE_OK;
  while (index >= regions.size()) {
    const std::size_t words = static_cast<std::size_t>(size) / sizeof(std::uint64_t);
    regions.push_back(std::make_unique<std::uint64_t[]>(words));
  }
  *address = regions[index].get();
  return SQLITE_OK;
}

int shm_lock(sqlite3_file* file, int offset, int n, int flags) {
  Handle& handle = handle_of(file);
  const std::lock_guard lock(handle.vfs->mutex);
  if (handle.vfs->dead(handle) || !handle.memory) return SQLITE_IOERR_SHMLOCK;
  const unsigned mask = ((1U << n) - 1U) << offset;
  const bool shared = (flags & SQLITE_SHM_SHARED) != 0;
  if ((flags & SQLITE_SHM_UNLOCK) != 0) {
    (shared ? handle.shared : handle.exclusive) &= ~mask;
    return SQLITE_OK;
  }
  if (handle.vfs->others_hold(handle, mask, !shared)) return SQLITE_BUSY;
  (shared ? handle.shared : handle.exclusive) |= mask;
  return SQLITE_OK;
}

void shm_barrier(sqlite3_file* file) { const std::lock_guard lock(handle_of(file).vfs->mutex); }

int shm_unmap(sqlite3_file* file, int) {
  Handle& handle = handle_of(file);
  const std::lock_guard lock(handle.vfs->mutex);
  handle.memory.reset();
  handle.shared = handle.exclusive = 0;
  return SQLITE_OK;
}

// The VFS

constexpr sqlite3_io_methods io_methods = {
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

CrashVfs::State& state_of(sqlite3_vfs* vfs) {
  return *static_cast<CrashVfs::State*>(vfs->pAppData);
}

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  CrashVfs::State& state = state_of(vfs);
  const std::lock_guard lock(state.mutex);
  file->pMethods = nullptr;
  const std::optional<int> found = name == nullptr ? std::nullopt : state.disk.find(name);
  if (found && (flags & SQLITE_OPEN_EXCLUSIVE) != 0) return SQLITE_CANTOPEN;
  if (!found && (flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;

  auto handle = std::make_unique<Handle>(Handle{.vfs = &state, .inode = 0, .boot = state.boot});
  if (found) {
    handle->inode = *found;
  } else if (name == nullptr || (flags & SQLITE_OPEN_DELETEONCLOSE) != 0) {
    handle->inode = state.disk.create_unnamed();
  } else {
    handle->inode = state.disk.create(name);
    constexpr int journals = SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
    handle->syncs_directory = (flags & journals) != 0;
  }
  state.handles.insert(handle.get());
  static_cast<OpenFile*>(file)->handle = handle.release();
  file->pMethods = &io_methods;
  if (flags_out != nullptr) *flags_out = flags;
  return SQLITE_OK;
}

int remove(sqlite3_vfs* vfs, const char* name, int sync_directory) {
  CrashVfs::State& state = state_of(vfs);
  const std::lock_guard lock(state.mutex);
  if (!state.disk.find(name)) return SQLITE_IOERR_DELETE_NOENT;
  state.disk.remove(name);
  if (sync_directory != 0) state.disk.sync_directory();
  return SQLITE_OK;
}

int access(sqlite3_vfs* vfs, const char* name, int flags, int* result) {
  CrashVfs::State& state = state_of(vfs);
  const std::lock_guard lock(state.mutex);
  const std::optional<int> inode = state.disk.find(name);
  // As os_unix: an empty file does not "exist".
  *result = inode && (flags != SQLITE_ACCESS_EXISTS || !state.disk.content(*inode).empty()) ? 1 : 0;
  return SQLITE_OK;
}

int full_pathname(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}

int randomness(sqlite3_vfs*, int size, char* out) {
  sqlite3_randomness(size, out);
  return size;
}

int sleep(sqlite3_vfs*, int microseconds) { return microseconds; }

int current_time_int64(sqlite3_vfs*, sqlite3_int64* now) {
  *now = 212'634'072'000'000;  // Julian milliseconds: 2026-01-01T12:00:00Z
  return SQLITE_OK;
}

int current_time(sqlite3_vfs* vfs, double* now) {
  sqlite3_int64 milliseconds = 0;
  current_time_int64(vfs, &milliseconds);
  *now = static_cast<double>(milliseconds) / 86'400'000.0;
  return SQLITE_OK;
}

int last_error(sqlite3_vfs*, int, char*) { return 0; }

std::string unique_name() {
  static std::atomic<unsigned> count = 0;
  return "crash-vfs-" + std::to_string(++count);
}

}  // namespace

CrashVfs::CrashVfs(Disk disk) : state_(new State{.disk = std::move(disk)}) {
  state_->name = unique_name();
  sqlite3_vfs& vfs = state_->vfs;
  vfs.iVersion = 2;
  vfs.szOsFile = sizeof(OpenFile);
  vfs.mxPathname = path_bytes_max;
  vfs.zName = state_->name.c_str();
  vfs.pAppData = state_.get();
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

CrashVfs::~CrashVfs() { sqlite3_vfs_unregister(&state_->vfs); }

const std::string& CrashVfs::name() const { return state_->name; }

Disk CrashVfs::copy() const {
  const std::lock_guard lock(state_->mutex);
  return state_->disk;
}

void CrashVfs::crash(const Choose& choose, CrashMode mode) {
  const std::lock_guard lock(state_->mutex);
  state_->disk.lose_power(choose, mode);
  state_->memory.clear();
  ++state_->boot;
}

void CrashVfs::on_sync(std::function<void(std::size_t sync, SyncEdge edge)> hook) {
  const std::lock_guard lock(state_->mutex);
  state_->hook = std::move(hook);
}

std::size_t CrashVfs::syncs() const {
  const std::lock_guard lock(state_->mutex);
  return state_->syncs_done;
}

std::size_t CrashVfs::unsynced_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->disk.unsynced_bytes();
}

void CrashVfs::fail_next_sync(Fault fault) {
  const std::lock_guard lock(state_->mutex);
  state_->sync_fault = FaultPlan{0, fault};
}

void CrashVfs::lie_next_sync() {
  const std::lock_guard lock(state_->mutex);
  state_->sync_lie = FaultPlan{0, Fault::once};
}

void CrashVfs::fail_read_after(std::optional<std::size_t> reads) {
  const std::lock_guard lock(state_->mutex);
  state_->read_fault = FaultPlan{reads};
}

void CrashVfs::fail_write_after(std::size_t writes, Fault fault) {
  const std::lock_guard lock(state_->mutex);
  state_->write_fault = FaultPlan{writes, fault};
}

void CrashVfs::clear_faults() {
  const std::lock_guard lock(state_->mutex);
  state_->sync_fault = {};
  state_->sync_lie = {};
  state_->write_fault = {};
  state_->read_fault = {};
}

void CrashVfs::disk_limit(std::optional<std::size_t> bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->limit = bytes;
}

std::size_t CrashVfs::disk_size() const {
  const std::lock_guard lock(state_->mutex);
  return state_->disk.size();
}

}  // namespace permit::test
