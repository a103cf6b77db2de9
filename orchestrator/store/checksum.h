// The checksum of what goes to disk beside SQLite's own: seals of pages, commits in the redo log.
// Not against anybody: it finds what a disk has changed or lost.
#pragma once

#include <cstddef>
#include <cstdint>

namespace permit::store {

using Byte = unsigned char;

// Eight bytes in the order in which they are on disk.
std::uint64_t word_at(const Byte* bytes);
void put_word(Byte* bytes, std::uint64_t word);

// `size` is a multiple of 8. The same bytes have another sum under another number.
std::uint64_t checksum(const Byte* bytes, std::size_t size, std::int64_t number);

}  // namespace permit::store
