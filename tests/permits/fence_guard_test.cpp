// What a guarded thing remembers, also when it is started again.
#include "permits/fence_guard.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "tests/support/temporary_directory.h"

using namespace permit;
using namespace permit::permits;

namespace {

const std::string gpu = "permit:gpu:0";

}  // namespace

TEST_CASE("A guard admits the highest fence of a slot again and again, and no lower one") {
  FenceGuard guard;
  CHECK(guard.highest(gpu) == Fence{0});
  CHECK(guard.admit(gpu, Fence{7}));
  CHECK(guard.admit(gpu, Fence{7}));
  CHECK_FALSE(guard.admit(gpu, Fence{6}));
  CHECK(guard.admit(gpu, Fence{9}));
  CHECK_FALSE(guard.admit(gpu, Fence{7}));
  CHECK(guard.highest(gpu) == Fence{9});
  CHECK(guard.admit("permit:gpu:1", Fence{8}));  // each slot for itself
  CHECK_THROWS_AS(guard.admit(gpu, Fence{0}), InvalidPermit);
  CHECK_THROWS_AS(guard.admit("two\nlines", Fence{1}), InvalidPermit);
}

TEST_CASE("A guard that throws says what it has seen") {
  FenceGuard guard;
  guard.check(gpu, Fence{9});
  CHECK_THROWS_WITH_AS(guard.check(gpu, Fence{7}),
                       "fence 7 of permit:gpu:0 is stale: 9 has been seen", StaleFence);
  try {
    guard.check(gpu, Fence{8});
  } catch (const StaleFence& stale) {
    CHECK(stale.highest() == Fence{9});
  }
}

TEST_CASE("A guard with a file has it on disk before it admits a fence") {
  const test::TemporaryDirectory directory;
  const auto file = directory.path / "fences";
  FenceGuard guard(file);
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(guard.admit(gpu, Fence{7}));
  CHECK(guard.admit("a slot: its name has blanks", Fence{12}));
  FenceGuard restarted(file);
  CHECK(restarted.highest(gpu) == Fence{7});
  CHECK(restarted.highest("a slot: its name has blanks") == Fence{12});
  CHECK_FALSE(restarted.admit(gpu, Fence{6}));
  CHECK(restarted.admit(gpu, Fence{8}));
  CHECK_FALSE(FenceGuard(file).admit(gpu, Fence{7}));
}

TEST_CASE("What cannot be remembered is not admitted") {
  const test::TemporaryDirectory directory;
  const auto file = directory.path / "sub" / "fences";
  std::filesystem::create_directory(file.parent_path());
  FenceGuard guard(file);
  CHECK(guard.admit(gpu, Fence{7}));
  std::filesystem::remove_all(file.parent_path());
  CHECK_THROWS_AS(guard.admit(gpu, Fence{8}), std::system_error);
  CHECK(guard.highest(gpu) == Fence{7});
  CHECK(guard.admit(gpu, Fence{7}));  // nothing new to remember
  std::filesystem::create_directory(file.parent_path());
  CHECK(guard.admit(gpu, Fence{8}));
  CHECK(FenceGuard(file).highest(gpu) == Fence{8});
}

TEST_CASE("A guard does not begin with a file that is cut short, or is not its own") {
  const test::TemporaryDirectory directory;
  const auto file = directory.path / "fences";
  CHECK(FenceGuard(file).admit(gpu, Fence{7}));
  const auto size = std::filesystem::file_size(file);
  for (const auto length :
       {size - 1, size - 4, size - 5, size - 8, std::uintmax_t{3}, std::uintmax_t{0}}) {
    std::filesystem::copy_file(file, directory.path / "cut");
    std::filesystem::resize_file(directory.path / "cut", length);
    // Of the last newline nothing depends.
    if (length == size - 1) {
      CHECK(FenceGuard(directory.path / "cut").highest(gpu) == Fence{7});
    } else {
      CHECK_THROWS_WITH_AS(FenceGuard(directory.path / "cut"), doctest::Contains("cut short"),
                           std::runtime_error);
    }
    std::filesystem::remove(directory.path / "cut");
  }
  std::ofstream(directory.path / "other") << "something\nelse\n";
  CHECK_THROWS_AS(FenceGuard(directory.path / "other"), std::runtime_error);
}

TEST_CASE("Threads that share a guard each see fences rise") {
  FenceGuard guard;
  std::vector<std::thread> threads;
  std::vector<int> fell(4, 0);
  for (std::size_t i = 0; i < fell.size(); ++i) {
    threads.emplace_back([&guard, &fell, i] {
      Fence seen;
      for (std::int64_t fence = 1; fence <= 5'000; ++fence) {
        guard.admit(gpu, Fence{fence});
        const Fence now = guard.highest(gpu);
        if (now < seen || now < Fence{fence}) ++fell[i];
        seen = now;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(fell == std::vector<int>(4, 0));
  CHECK(guard.highest(gpu) == Fence{5'000});
}
