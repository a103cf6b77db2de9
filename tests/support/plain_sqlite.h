// What other programs than the server do to its files.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/crash_vfs.h"

namespace permit::test {

// The database as SQLite alone makes it: the same rows, no room for checksums, an empty log.
Disk without_seals(const Disk& disk, const std::string& path);

// Writes into a file that may be open.
void overwrite(const CrashVfs& vfs, const std::string& path, std::size_t at,
               std::string_view bytes);

}  // namespace permit::test
