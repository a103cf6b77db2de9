#include "orchestrator/store/commit_record.h"

#include <sqlite3.h>

#include <boost/describe/members.hpp>
#include <boost/mp11.hpp>
#include <optional>
#include <type_traits>

#include "orchestrator/protocol/text_buffer.h"
#include "orchestrator/store/errors.h"

namespace permit::store {

namespace {

namespace describe = boost::describe;
namespace mp11 = boost::mp11;

[[noreturn]] void refuse() {
  throw Damaged(SQLITE_CORRUPT, "a commit in the redo log is not as it was written");
}

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
using Members = describe::describe_members<T, describe::mod_any_access>;

// --- Writing. Integers are signed LEB128 by zigzag, texts have their length in front ---

void put(TextBuffer& out, std::int64_t number) {
  auto bits =
      (static_cast<std::uint64_t>(number) << 1U) ^ static_cast<std::uint64_t>(number >> 63U);
  constexpr std::size_t bytes_max = 10;
  char* to = out.room(bytes_max);
  for (; bits >= 0x80; bits >>= 7U) *to++ = static_cast<char>(bits | 0x80U);
  *to++ = static_cast<char>(bits);
  out.wrote_to(to);
}

void put(TextBuffer& out, const std::string& text) {
  put(out, static_cast<std::int64_t>(text.size()));
  out += text;
}

void put(TextBuffer& out, Time time) { put(out, time.time_since_epoch().count()); }

template <class T>
void put(TextBuffer& out, const T& value) {
  if constexpr (std::is_enum_v<T>) {
    put(out, static_cast<std::int64_t>(value));
  } else if constexpr (is_optional<T>) {
    out += value ? '\1' : '\0';
    if (value) put(out, *value);
  } else if constexpr (requires { value.value; }) {  // a name, a number with a type
    put(out, value.value);
  } else {
    mp11::mp_for_each<Members<T>>([&](auto member) { put(out, value.*member.pointer); });
  }
}

// --- Reading ---

void get(std::string_view& in, std::int64_t& number) {
  std::uint64_t bits = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (in.empty() || shift > 63) refuse();
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    bits |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) break;
  }
  number = static_cast<std::int64_t>(bits >> 1U) ^ -static_cast<std::int64_t>(bits & 1U);
}

void get(std::string_view& in, std::string& text) {
  std::int64_t size = 0;
  get(in, size);
  if (size < 0 || static_cast<std::uint64_t>(size) > in.size()) refuse();
  text = in.substr(0, static_cast<std::size_t>(size));
  in.remove_prefix(static_cast<std::size_t>(size));
}

void get(std::string_view& in, Time& time) {
  std::int64_t us = 0;
  get(in, us);
  time = Time(Duration(us));
}

template <class T>
void get(std::string_view& in, T& value) {
  if constexpr (std::is_enum_v<T>) {
    std::int64_t number = 0;
    get(in, number);
    value = static_cast<T>(number);
  } else if constexpr (is_optional<T>) {
    if (in.empty()) refuse();
    const bool has_value = in.front() != '\0';
    in.remove_prefix(1);
    value.reset();
    if (has_value) get(in, value.emplace());
  } else if constexpr (requires { value.value; }) {
    get(in, value.value);
  } else {
    mp11::mp_for_each<Members<T>>([&](auto member) { get(in, value.*member.pointer); });
  }
}

}  // namespace

template <class Change>
void append_change(std::string& record, const Change& change) {
  TextBuffer out;
  out += static_cast<char>(mp11::mp_find<RowChange, Change>::value);
  put(out, change);
  record += out.view();
}

void append_history_change(std::string& record, RunNumber run, std::int64_t first_event_id,
                           std::string_view events) {
  TextBuffer out;
  out += static_cast<char>(mp11::mp_find<RowChange, AppendHistory>::value);
  put(out, run);
  put(out, first_event_id);
  put(out, static_cast<std::int64_t>(events.size()));
  record += out.view();
  record += events;
}

template void append_change(std::string&, const InsertRun&);
template void append_change(std::string&, const UpdateRun&);
template void append_change(std::string&, const DeleteRun&);
template void append_change(std::string&, const AppendHistory&);
template void append_change(std::string&, const PutActivity&);
template void append_change(std::string&, const DeleteActivity&);
template void append_change(std::string&, const DeleteActivities&);
template void append_change(std::string&, const PutPool&);
template void append_change(std::string&, const DeletePool&);
template void append_change(std::string&, const PutWaiter&);
template void append_change(std::string&, const DeleteWaiter&);
template void append_change(std::string&, const OpenHold&);
template void append_change(std::string&, const CloseHold&);
template void append_change(std::string&, const NoteLateRelease&);
template void append_change(std::string&, const TrimHolds&);
template void append_change(std::string&, const PutApiKey&);
template void append_change(std::string&, const RemoveApiKey&);
template void append_change(std::string&, const SetCounters&);

RowChange take_change(std::string_view& record) {
  if (record.empty()) refuse();
  const auto number = static_cast<unsigned char>(record.front());
  record.remove_prefix(1);
  if (number >= mp11::mp_size<RowChange>::value) refuse();
  return mp11::mp_with_index<mp11::mp_size<RowChange>::value>(number, [&](auto index) {
    mp11::mp_at_c<RowChange, index> change;
    get(record, change);
    return RowChange(std::move(change));
  });
}

}  // namespace permit::store
