// What a route says of itself in /openapi.json. It is given with the route, and what it says is
// what the route may do: a parameter, a body or an answer that is not in it throws
// InvariantViolated.
#pragma once

#include <string>
#include <string_view>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "orchestrator/http/auth.h"
#include "orchestrator/http/schema.h"

namespace permit::http {

enum class ParameterKind { text, integer, flag, time, bytes };

// Doc(Access::admin, "Change a pool, or make one").takes<SetPoolRequest>().answers<PoolInfo>()
//
// No route is without an access: who may use it is decided by what stands here.
// The structs are described ones (BOOST_DESCRIBE_STRUCT) that the codec knows (PERMIT_JSON).
class Doc {
 public:
  Doc(Access access, std::string summary) : access_(access), summary_(std::move(summary)) {}

  // The body is this struct, in JSON.
  template <class Request>
  Doc& takes() {
    body_ = {typeid(Request), &schema_of<Request>};
    return *this;
  }
  template <class Response>
  Doc& answers(int status = 200, std::string meaning = "") {
    answers_.push_back(
        {status, std::move(meaning), "application/json", {typeid(Response), &schema_of<Response>}});
    return *this;
  }
  // An answer that is not JSON: a file, text. No type: nothing in it.
  Doc& sends(std::string content_type, int status = 200, std::string meaning = "") {
    answers_.push_back({status, std::move(meaning), std::move(content_type), {}});
    return *this;
  }
  // A stream of events, whose data are these structs in JSON.
  template <class... Messages>
  Doc& streams() {
    const auto any_of = [](Schemas& schemas) {
      std::string list;
      ((list += "," + schema_of<Messages>(schemas)), ...);
      return R"({"anyOf":[)" + list.substr(1) + "]}";
    };
    answers_.push_back(
        {200, "The data of each event", "text/event-stream", {typeid(void), any_of}});
    return *this;
  }
  // Statuses of errors that callers should expect of this route; it may have others.
  Doc& refuses(std::vector<int> statuses) {
    refusals_ = std::move(statuses);
    return *this;
  }
  // `more`: what it means if the name does not say it.
  Doc& query(std::string name, ParameterKind kind = ParameterKind::text, std::string more = "") {
    query_.push_back({std::move(name), std::move(more), kind, {}});
    return *this;
  }
  Doc& query(std::string name, std::vector<std::string> words) {
    query_.push_back({std::move(name), "", ParameterKind::text, std::move(words)});
    return *this;
  }

  struct Type {
    std::type_index index = typeid(void);
    Schemas::Maker schema = nullptr;  // none: no JSON
  };
  struct Answer {
    int status;
    std::string meaning;
    std::string content_type;
    Type type;
  };
  struct Parameter {
    std::string name;
    std::string description;
    ParameterKind kind;
    std::vector<std::string> words;  // that it may be; none: any
  };

  Access access() const { return access_; }
  const std::string& summary() const { return summary_; }
  const Type& body() const { return body_; }
  const std::vector<Answer>& answers() const { return answers_; }
  const std::vector<int>& refusals() const { return refusals_; }
  const std::vector<Parameter>& query() const { return query_; }

  bool has_parameter(std::string_view name) const;
  template <class Response>
  bool has_answer() const {
    return has_answer(typeid(Response));
  }

 private:
  bool has_answer(std::type_index type) const;

  Access access_;
  std::string summary_;
  Type body_;
  std::vector<Answer> answers_;
  std::vector<int> refusals_;
  std::vector<Parameter> query_;
};

}  // namespace permit::http
