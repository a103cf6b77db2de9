// Fills, compares and lists the structs of protocol/ by their descriptions, without the codec that
// the tests are about.
#pragma once

#include <boost/describe.hpp>
#include <boost/mp11.hpp>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "orchestrator/protocol/request.h"

namespace permit::test {

template <class T>
using Members = boost::describe::describe_members<T, boost::describe::mod_public>;

template <class T>
concept Struct = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;

// Gives every field a value that is not zero, and no two fields the same.
class Filler {
 public:
  template <class T>
  T make() {
    T value{};
    fill(value);
    return value;
  }

  template <class T>
  void fill(T& value) {
    if constexpr (Struct<T>) {
      if (++depth_ > 12) fail_of_depth();
      boost::mp11::mp_for_each<Members<T>>([&](auto member) { fill(value.*member.pointer); });
      --depth_;
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(1);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = true;
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = static_cast<T>(next());
    }
  }
  void fill(double& value) { value = next() + 0.1; }
  void fill(std::string& value) { value = "text-" + std::to_string(next()) + " \"\\\n\x7F ä€😀"; }
  void fill(Time& value) { value = Time(Duration(1'785'585'600'000'000 + next())); }
  void fill(Duration& value) { value = Duration(next() * 1001); }
  void fill(Bytes& value) { value.value = std::string("\0\xFF", 2) + std::to_string(next()); }
  void fill(Fence& value) { value.value = next(); }
  void fill(Count& value) { value.value = next(); }
  void fill(RawJson& value) { value.text = "[" + std::to_string(next()) + ",{\"a\": null}]"; }
  void fill(Unsupported&) {}
  void fill(Ignored&) {}
  void fill(Payload& value) {
    switch (next() % 3) {
      case 0:
        value = json_payload("{\"a\": [" + std::to_string(next()) + ", 1.50]}");
        break;
      case 1:
        value = Payload{{{"encoding", Bytes{"binary/null"}}}, Bytes{}};
        break;
      default:
        value.metadata = {{"encoding", Bytes{"binary/plain"}}, {"more", Bytes{"\xFF"}}};
        fill(value.data);
    }
  }
  void fill(Payloads& value) { value.payloads = {make<Payload>(), make<Payload>()}; }
  void fill(Event& value) {
    fill(value.event_id);
    fill(value.event_time);
    fill(value.attributes);
    fill(value.user_metadata);
  }
  void fill(Command& value) {
    fill(value.attributes);
    fill(value.user_metadata);
  }
  void fill(EventAttributes& value) { fill(static_cast<EventVariant&>(value)); }
  void fill(CommandAttributes& value) { fill(static_cast<CommandVariant&>(value)); }
  // One alternative after the other, as it is called.
  template <class... T>
  void fill(std::variant<T...>& value) {
    const auto index = static_cast<std::size_t>(next()) % sizeof...(T);
    boost::mp11::mp_with_index<sizeof...(T)>(index,
                                             [&](auto i) { fill(value.template emplace<i>()); });
  }
  template <class Tag>
  void fill(Name<Tag>& value) {
    fill(value.value);
  }
  template <class T>
  void fill(std::optional<T>& value) {
    fill(value.emplace());
  }
  void fill(Box<Failure>& value) {
    if (++causes_ <= 3) fill(value.emplace());
    --causes_;
  }
  template <class T>
  void fill(std::vector<T>& value) {
    value.resize(2);
    for (T& element : value) fill(element);
  }
  template <class T>
  void fill(std::map<std::string, T>& value) {
    for (const char* key : {"", "key", "clé \"\n"}) fill(value[key]);
  }

 private:
  int next() { return ++last_; }
  [[noreturn]] static void fail_of_depth() { throw std::logic_error("a struct holds itself"); }

  int last_ = 0;
  int depth_ = 0;
  int causes_ = 0;
};

// Equality of structs that have none of their own. Members, so that each sees all others.
struct Comparison {
  template <class T>
  static bool same(const std::optional<T>& a, const std::optional<T>& b) {
    return a.has_value() == b.has_value() && (!a || same(*a, *b));
  }
  template <class T>
  static bool same(const Box<T>& a, const Box<T>& b) {
    return bool(a) == bool(b) && (!a || same(*a, *b));
  }
  template <class T>
  static bool same(const std::vector<T>& a, const std::vector<T>& b) {
    bool is_same = a.size() == b.size();
    for (std::size_t i = 0; is_same && i < a.size(); ++i) is_same = same(a[i], b[i]);
    return is_same;
  }
  template <class T>
  static bool same(const std::map<std::string, T>& a, const std::map<std::string, T>& b) {
    bool is_same = a.size() == b.size();
    for (const auto& [key, value] : a) {
      const auto other = b.find(key);
      is_same = is_same && other != b.end() && same(value, other->second);
    }
    return is_same;
  }
  template <class... T>
  static bool same(const std::variant<T...>& a, const std::variant<T...>& b) {
    return a.index() == b.index() &&
           std::visit(
               [&](const auto& x) { return same(x, std::get<std::decay_t<decltype(x)>>(b)); }, a);
  }
  static bool same(const EventAttributes& a, const EventAttributes& b) {
    return same(static_cast<const EventVariant&>(a), static_cast<const EventVariant&>(b));
  }
  static bool same(const CommandAttributes& a, const CommandAttributes& b) {
    return same(static_cast<const CommandVariant&>(a), static_cast<const CommandVariant&>(b));
  }
  static bool same(const Event& a, const Event& b) {
    return a.event_id == b.event_id && a.event_time == b.event_time &&
           same(a.attributes, b.attributes) && same(a.user_metadata, b.user_metadata);
  }
  static bool same(const Command& a, const Command& b) {
    return same(a.attributes, b.attributes) && same(a.user_metadata, b.user_metadata);
  }
  static bool same(const RawJson& a, const RawJson& b) { return a.text == b.text; }
  static bool same(const Unsupported&, const Unsupported&) { return true; }
  static bool same(const Ignored&, const Ignored&) { return true; }

  template <class T>
  static bool same(const T& a, const T& b) {
    if constexpr (Struct<T>) {
      bool is_same = true;
      boost::mp11::mp_for_each<Members<T>>(
          [&](auto member) { is_same = is_same && same(a.*member.pointer, b.*member.pointer); });
      return is_same;
    } else {
      return a == b;
    }
  }
};

template <class T>
bool same(const T& a, const T& b) {
  return Comparison::same(a, b);
}

// Every type that is read or written on its own.
using Messages = boost::mp11::mp_list<
    StartWorkflowExecutionRequest, StartWorkflowExecutionResponse, SignalWorkflowExecutionRequest,
    SignalWithStartWorkflowExecutionRequest, SignalWithStartWorkflowExecutionResponse,
    RequestCancelWorkflowExecutionRequest, TerminateWorkflowExecutionRequest, EmptyResponse,
    DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryRequest, GetWorkflowExecutionHistoryResponse,
    ListWorkflowExecutionsRequest, ListWorkflowExecutionsResponse, CountWorkflowExecutionsRequest,
    CountWorkflowExecutionsResponse, QueryWorkflowRequest, QueryWorkflowResponse,
    PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse,
    RespondWorkflowTaskCompletedRequest, RespondWorkflowTaskCompletedResponse,
    RespondWorkflowTaskFailedRequest, RespondQueryTaskCompletedRequest, ResetStickyTaskQueueRequest,
    ShutdownWorkerRequest, RecordWorkerHeartbeatRequest, ListWorkersRequest, ListWorkersResponse,
    DescribeWorkerRequest, DescribeWorkerResponse, PollActivityTaskQueueRequest,
    PollActivityTaskQueueResponse, RecordActivityTaskHeartbeatRequest,
    RecordActivityTaskHeartbeatByIdRequest, RecordActivityTaskHeartbeatResponse,
    RespondActivityTaskCompletedRequest, RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskFailedRequest, RespondActivityTaskFailedByIdRequest,
    RespondActivityTaskCanceledRequest, RespondActivityTaskCanceledByIdRequest,
    DescribeTaskQueueRequest, DescribeTaskQueueResponse, DescribeNamespaceRequest,
    DescribeNamespaceResponse, ListNamespacesRequest, ListNamespacesResponse, GetSystemInfoRequest,
    GetSystemInfoResponse, GetClusterInfoRequest, GetClusterInfoResponse, Event, std::vector<Event>,
    Command, Failure, Payload, Payloads, Header, Memo, PermitRequest, Priority, RetryPolicy>;

}  // namespace permit::test
