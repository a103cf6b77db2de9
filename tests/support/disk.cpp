// The files in memory of crash_vfs.h, and which of their changes a loss of power leaves.
#include <algorithm>

#include "tests/support/crash_vfs.h"

namespace permit::test {

namespace {

constexpr std::size_t sector_bytes = 512;

void write_into(std::string& file, std::size_t offset, std::string_view bytes) {
  if (file.size() < offset + bytes.size()) file.resize(offset + bytes.size());
  file.replace(offset, bytes.size(), bytes);
}

}  // namespace

void Disk::put(const std::string& name, std::string bytes) {
  const std::optional<int> found = find(name);
  const int inode = found ? *found : inode_next_++;
  names_[name] = names_durable_[name] = inode;
  inodes_[inode] = Inode{bytes, bytes, true};
}

std::optional<std::string> Disk::get(const std::string& name) const {
  const std::optional<int> inode = find(name);
  return inode ? std::optional(content(*inode)) : std::nullopt;
}

std::optional<int> Disk::find(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

int Disk::create(const std::string& name) {
  const int inode = inode_next_++;
  inodes_[inode].named = true;
  names_[name] = inode;
  change(Change{.kind = Kind::link, .inode = inode, .name = name});
  return inode;
}

int Disk::create_unnamed() {
  const int inode = inode_next_++;
  inodes_[inode] = Inode{};
  return inode;
}

void Disk::remove(const std::string& name) {
  const auto found = names_.find(name);
  change(Change{.kind = Kind::unlink, .inode = found->second, .name = name});
  names_.erase(found);
}

void Disk::write(int inode, std::size_t offset, std::string_view bytes) {
  write_into(inodes_.at(inode).live, offset, bytes);
  change(
      Change{.kind = Kind::write, .inode = inode, .offset = offset, .bytes = std::string(bytes)});
}

void Disk::truncate(int inode, std::size_t size) {
  inodes_.at(inode).live.resize(size);
  change(Change{.kind = Kind::truncate, .inode = inode, .offset = size});
}

std::size_t Disk::size() const {
  std::size_t bytes = 0;
  for (const auto& [name, inode] : names_) bytes += content(inode).size();
  return bytes;
}

void Disk::change(Change change) {
  const bool of_directory = change.kind == Kind::link || change.kind == Kind::unlink;
  if (of_directory && directory_ == Directory::durable_at_once) {
    make_durable(change);
  } else if (inodes_.at(change.inode).named) {
    unsynced_.push_back(std::move(change));
  }
}

void Disk::make_durable(const Change& change) {
  std::string& file = inodes_.at(change.inode).durable;
  switch (change.kind) {
    case Kind::write:
      write_into(file, change.offset, change.bytes);
      break;
    case Kind::truncate:
      file.resize(change.offset);
      break;
    case Kind::link:
      names_durable_[change.name] = change.inode;
      break;
    case Kind::unlink:
      names_durable_.erase(change.name);
      break;
  }
}

void Disk::sync(int inode) {
  std::erase_if(unsynced_, [&](const Change& change) {
    const bool of_file = change.kind == Kind::write || change.kind == Kind::truncate;
    const bool covered = of_file && change.inode == inode;
    if (covered) make_durable(change);
    return covered;
  });
}

void Disk::sync_directory() {
  std::erase_if(unsynced_, [&](const Change& change) {
    const bool covered = change.kind == Kind::link || change.kind == Kind::unlink;
    if (covered) make_durable(change);
    return covered;
  });
}

std::size_t Disk::unsynced_bytes() const {
  std::size_t bytes = 0;
  for (const Change& change : unsynced_) bytes += change.bytes.size();
  return bytes;
}

void Disk::lose_power(const Choose& choose, CrashMode mode) {
  std::size_t prefix = unsynced_.size();
  if (mode == CrashMode::drop_all) prefix = 0;
  if (mode == CrashMode::keep_prefix) prefix = choose(static_cast<std::uint32_t>(prefix) + 1);
  for (std::size_t i = 0; i < prefix; ++i) {
    const Change& change = unsynced_[i];
    if (mode == CrashMode::torn_sector && change.kind == Kind::write) {
      keep_sectors(choose, change);
    } else if (mode == CrashMode::drop_all || mode == CrashMode::keep_all ||
               mode == CrashMode::keep_prefix || choose(2) == 1) {
      make_durable(change);
    }
  }
  unsynced_.clear();

  std::map<int, Inode> survivors;
  for (const auto& [name, inode] : names_durable_) {
    const std::string& bytes = inodes_.at(inode).durable;
    survivors[inode] = Inode{bytes, bytes, true};
  }
  inodes_ = std::move(survivors);
  names_ = names_durable_;
}

void Disk::keep_sectors(const Choose& choose, const Change& change) {
  std::string& file = inodes_.at(change.inode).durable;
  const std::string_view bytes = change.bytes;
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t offset = change.offset + done;
    const std::size_t part = std::min(sector_bytes - offset % sector_bytes, bytes.size() - done);
    if (choose(2) == 1) write_into(file, offset, bytes.substr(done, part));
    done += part;
  }
}

}  // namespace permit::test
