// The fuzz targets. Each takes any bytes and aborts, saying why, if a promise is broken. The preset
// `fuzz` makes a libFuzzer program of each (libfuzzer.cpp); permit_fuzz_replay runs what is in
// corpus/ through them in every build (replay.cpp).
#pragma once

#include <string>
#include <string_view>

namespace permit::fuzz {

void config(std::string_view input);
void history_decode(std::string_view input);
void http_gate(std::string_view input);
void json_in(std::string_view input);
void json_reader(std::string_view input);
void list_filter(std::string_view input);
void page_token(std::string_view input);
void route_params(std::string_view input);
void sdk_replay(std::string_view input);
void task_completion(std::string_view input);
void task_token(std::string_view input);

struct Target {
  std::string_view name;
  void (*run)(std::string_view input);
};
inline constexpr Target targets[] = {
    {"config", config},           {"history_decode", history_decode},
    {"http_gate", http_gate},     {"json_in", json_in},
    {"json_reader", json_reader}, {"list_filter", list_filter},
    {"page_token", page_token},   {"route_params", route_params},
    {"sdk_replay", sdk_replay},   {"task_completion", task_completion},
    {"task_token", task_token},
};

// Each input meets an engine of its own, so that what one finds it finds again. Without it an
// engine serves some hundreds of them, which is faster.
extern bool every_input_alone;

[[noreturn]] void broken(const std::string& promise);
inline void promise(bool kept, const char* what) {
  if (!kept) broken(what);
}

}  // namespace permit::fuzz
