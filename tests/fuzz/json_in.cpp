// Every message that is read from a request or from the disk: text in, struct, text, the same
// struct. The first byte says which message.
#include <boost/mp11.hpp>

#include "orchestrator/http/url.h"
#include "orchestrator/protocol/error.h"
#include "orchestrator/protocol/json.h"
#include "orchestrator/protocol/pools.h"
#include "tests/fuzz/targets.h"
#include "tests/support/reflect.h"

namespace permit::fuzz {

namespace {

using Read =
    boost::mp11::mp_list<StartWorkflowExecutionRequest, RespondWorkflowTaskCompletedRequest,
                         AcquireRequest, SetPoolRequest, SignalWithStartWorkflowExecutionRequest,
                         RespondWorkflowTaskFailedRequest, RespondActivityTaskFailedRequest,
                         RecordWorkerHeartbeatRequest, QueryWorkflowRequest, ListPermitsRequest,
                         GetWorkflowExecutionHistoryRequest, PollWorkflowTaskQueueRequest,
                         HolderRequest, ForceReleaseRequest, DrainRequest,
                         RespondQueryTaskCompletedRequest, std::vector<Event>, Command>;

template <class T>
void check_round_trip(const T& value) {
  const std::string text = to_json(value);
  const T copy = read_json<T>(text);
  promise(test::same(value, copy), "what is written reads back as the same");
  promise(to_json(copy) == text, "what was read back is written the same");
  const T from_shorthand = read_json<T>(to_json(value, PayloadForm::shorthand));
  promise(test::same(value, from_shorthand), "shorthand reads back as the same");
}

template <class T>
void read_one(std::string_view text, Unknown unknown) {
  T value;
  try {
    value = read_json<T>(text, unknown);
  } catch (const Error& error) {
    promise(!error.reason().empty() && !error.message().empty(), "a refusal says why");
    promise(error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::unimplemented,
            "a text that is not taken is the sender's affair");
    promise(http::is_utf8(error.message()), "a message is text");
    return;
  }
  check_round_trip(value);
}

}  // namespace

void json_in(std::string_view input) {
  if (input.empty()) return;
  const auto first = static_cast<unsigned char>(input[0]);
  constexpr std::size_t types = boost::mp11::mp_size<Read>::value;
  const Unknown unknown = first >= 128 ? Unknown::skip : Unknown::refuse;
  boost::mp11::mp_with_index<types>(first % 128U % types, [&](auto index) {
    read_one<boost::mp11::mp_at<Read, decltype(index)>>(input.substr(1), unknown);
  });
}

}  // namespace permit::fuzz
