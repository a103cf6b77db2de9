#include "tests/support/golden.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace permit::test {

namespace {

constexpr std::string_view separator = "----";

bool is_comment(const std::string& line) { return line.starts_with("#"); }

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "    " + line + "\n";
  return text;
}

void write_golden(const GoldenFile& file) {
  std::ofstream out(file.path, std::ios::trunc);
  for (const std::string& line : file.header) out << line << '\n';
  for (std::size_t i = 0; i < file.blocks.size(); ++i) {
    const GoldenFile::Block& block = file.blocks[i];
    if (i > 0) out << '\n';
    for (const std::string& line : block.comments) out << line << '\n';
    for (const std::string& line : block.commands) out << line << '\n';
    out << separator << '\n';
    for (const std::string& line : block.expected) out << line << '\n';
  }
}

}  // namespace

std::string GoldenFile::intent() const {
  std::string text;
  for (const std::string& line : header) {
    if (!is_comment(line)) break;
    text += (text.empty() ? "" : " ") + line.substr(std::min<std::size_t>(2, line.size()));
  }
  const auto end = text.find(". ");
  if (end != std::string::npos) text.resize(end);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

GoldenFile read_golden(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  GoldenFile file;
  file.path = path;
  GoldenFile::Block block;
  bool in_header = true;
  bool in_expected = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (in_header && (line.empty() || is_comment(line))) {
      file.header.push_back(line);
      continue;
    }
    in_header = false;
    if (in_expected && !line.empty()) {
      block.expected.push_back(line);
      continue;
    }
    if (in_expected) {
      file.blocks.push_back(std::move(block));
      block = {};
      in_expected = false;
    } else if (line == separator) {
      in_expected = true;
    } else if (is_comment(line)) {
      block.comments.push_back(line);
    } else if (!line.empty()) {
      if (block.commands.empty()) block.line = number;
      block.commands.push_back(line);
    }
  }
  if (!block.commands.empty()) file.blocks.push_back(std::move(block));
  return file;
}

std::vector<std::string> golden_files(const std::string& directory, const std::string& suffix) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().string().ends_with(suffix)) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string check_golden(GoldenFile file, const RunBlock& run) {
  const bool update = std::getenv("UPDATE_GOLDEN") != nullptr;
  for (GoldenFile::Block& block : file.blocks) {
    std::vector<std::string> printed = run(block.commands);
    if (printed.empty()) printed.emplace_back("ok");
    if (update) {
      block.expected = std::move(printed);
    } else if (printed != block.expected) {
      return file.path + ":" + std::to_string(block.line) + " expects\n" + joined(block.expected) +
             "  but this is printed (UPDATE_GOLDEN=1 rewrites the file)\n" + joined(printed);
    }
  }
  if (update) write_golden(file);
  return "";
}

}  // namespace permit::test
