// Room on the disk that is given up when the disk is full: a file of 16 MiB beside the database.
// With what it leaves, closes and expiries can still be written while nothing new is begun.
#pragma once

#include <cstdint>
#include <string>

namespace permit::store {

class Ballast {
 public:
  static constexpr std::int64_t default_bytes = std::int64_t{16} << 20;

  // Makes the file, if there is room.
  explicit Ballast(std::string path, std::int64_t bytes = default_bytes);

  bool is_there() const { return is_there_; }
  // Gives it up. False: it is gone already, or was never made.
  bool drop() noexcept;
  // Makes it, if there is as much room again besides. False: not now.
  bool make() noexcept;

 private:
  const std::string path_;
  const std::int64_t bytes_;
  bool is_there_ = false;
};

}  // namespace permit::store
