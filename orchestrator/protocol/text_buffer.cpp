#include "orchestrator/protocol/text_buffer.h"

#include <algorithm>

namespace permit {

void TextBuffer::grow(std::size_t more) {
  const std::size_t before = size();
  const std::size_t room = std::max(before + more, 2 * static_cast<std::size_t>(limit_ - begin_));
  std::unique_ptr<char[]> larger(new char[room]);
  std::memcpy(larger.get(), begin_, before);
  grown_ = std::move(larger);
  begin_ = grown_.get();
  end_ = begin_ + before;
  limit_ = begin_ + room;
}

}  // namespace permit
