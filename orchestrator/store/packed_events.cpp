#include "orchestrator/store/packed_events.h"

#define LZ4_STATIC_LINKING_ONLY  // for LZ4_attach_dictionary
#include <lz4.h>

#include <algorithm>
#include <charconv>

#include "orchestrator/protocol/ensure.h"
#include "orchestrator/store/event_dictionary_txt.h"

namespace permit::store {

namespace {

// Which dictionary, then the length of the JSON, then an LZ4 block.
constexpr std::size_t head_bytes = 5;
constexpr char dictionary_1 = 1;
constexpr std::size_t ratio_max = 255;  // of LZ4; what says more is damaged
constexpr std::size_t events_bytes_max = LZ4_MAX_INPUT_SIZE;

std::string joined_lines(std::string_view text) {
  std::string joined(text);
  joined.erase(std::remove(joined.begin(), joined.end(), '\n'), joined.end());
  return joined;
}

// Events as they are written, a line each, the most frequent ones last. What is packed with it
// needs it as it is: it never changes. A better one gets a number of its own, beside this one.
const std::string& dictionary() {
  static const std::string joined = joined_lines(event_dictionary);
  return joined;
}

int as_int(std::size_t size) {
  ENSURE(size <= events_bytes_max);
  return static_cast<int>(size);
}

}  // namespace

struct EventPacker::State {
  State() {
    ENSURE(LZ4_initStream(&loaded, sizeof loaded) != nullptr);
    ENSURE(LZ4_initStream(&stream, sizeof stream) != nullptr);
    LZ4_loadDict(&loaded, dictionary().data(), as_int(dictionary().size()));
  }
  LZ4_stream_t loaded;  // with the dictionary, behind which every text stands
  LZ4_stream_t stream;
  std::string packed;
};

EventPacker::EventPacker() : state_(std::make_unique<State>()) {}
EventPacker::~EventPacker() = default;

std::string_view EventPacker::pack(std::string_view events) {
  std::string& packed = state_->packed;
  const int size = as_int(events.size());
  const int room = LZ4_compressBound(size);
  packed.resize(std::max(packed.size(), head_bytes + static_cast<std::size_t>(room)));
  packed[0] = dictionary_1;
  for (std::size_t i = 0; i < 4; ++i) packed[1 + i] = static_cast<char>(events.size() >> (8 * i));
  LZ4_resetStream_fast(&state_->stream);
  LZ4_attach_dictionary(&state_->stream, &state_->loaded);
  const char* const source = events.data();
  const int length = LZ4_compress_fast_continue(&state_->stream, source, packed.data() + head_bytes,
                                                size, room, 1);
  ENSURE(length > 0);
  return std::string_view(packed).substr(0, head_bytes + static_cast<std::size_t>(length));
}

std::optional<std::string> unpack_events(std::string_view packed) {
  if (packed.size() < head_bytes || packed[0] != dictionary_1) return std::nullopt;
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    size |= std::size_t{static_cast<unsigned char>(packed[1 + i])} << (8 * i);
  }
  packed.remove_prefix(head_bytes);
  if (size > std::min(packed.size() * ratio_max, events_bytes_max)) return std::nullopt;
  std::string events(size, '\0');
  const char* const source = packed.data();
  const int length =
      LZ4_decompress_safe_usingDict(source, events.data(), as_int(packed.size()), as_int(size),
                                    dictionary().data(), as_int(dictionary().size()));
  if (length != as_int(size)) return std::nullopt;
  return events;
}

void append_batch(std::string& text, const HistoryBatch& batch) {
  text += '\n';
  text += std::to_string(batch.first_event_id);
  text += ' ';
  text += batch.events;
}

std::optional<std::vector<HistoryBatch>> split_batches(std::int64_t first_event_id,
                                                       std::string_view text) {
  std::vector<HistoryBatch> batches;
  for (;;) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    batches.push_back({first_event_id, std::string(text.substr(0, end))});
    if (end == text.size()) return batches;
    text.remove_prefix(end + 1);
    const char* const begin = text.data();
    const auto [stop, error] = std::from_chars(begin, begin + text.size(), first_event_id);
    if (error != std::errc() || stop == begin + text.size() || *stop != ' ') return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(stop - begin) + 1);
  }
}

}  // namespace permit::store
