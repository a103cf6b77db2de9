#include "orchestrator/http/openapi.h"

#include <algorithm>
#include <map>
#include <utility>

#include "orchestrator/protocol/json_writer.h"
#include "orchestrator/protocol/version.h"

namespace permit::http {

namespace {

constexpr const char* description =
    "Durable workflows, and permits for what only so many may use at once. A field that has its "
    "default value (0, \\\"\\\", false, [], {}) is left out of an answer. What the path names, the "
    "body "
    "need not: the path wins. /namespaces/... is the same as /api/v1/namespaces/...; the only "
    "namespace so far is default. x-role is the role that an API key needs, where the server asks "
    "for keys. The calls under the tag RPC are the same over again, each a POST "
    "of its message, with payloads in the long form: for workers and clients.";

constexpr const char* error_schema =
    R"({"type":"object","description":"A google.rpc.Status. Branch on details[0].reason.",)"
    R"("required":["code","message","details"],"properties":{)"
    R"("code":{"type":"integer","description":"google.rpc.Code"},)"
    R"("message":{"type":"string","description":"A sentence for a person"},)"
    R"("details":{"type":"array","items":{"type":"object","required":["@type"],"properties":{)"
    R"("@type":{"type":"string"},"reason":{"type":"string"},"domain":{"type":"string"}},)"
    R"("additionalProperties":true}}}})";

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(text, out);
  return out;
}

// Appends to a JSON object or array, with a comma where one is due.
void append(std::string& out, std::string_view text) {
  if (out.back() != '{' && out.back() != '[') out += ',';
  out += text;
}

bool is_variable(std::string_view segment) { return segment.starts_with('{'); }

// The variable without braces and "...".
std::string_view variable_name(std::string_view segment) {
  return segment.substr(1, segment.find_first_of(".}") - 1);
}

std::string path_of(const std::vector<std::string>& pattern) {
  std::string path;
  for (const std::string& segment : pattern) {
    path += '/';
    path += is_variable(segment) ? "{" + std::string(variable_name(segment)) + "}" : segment;
  }
  return path.empty() ? "/" : path;
}

const char* tag_of(std::string_view path) {
  if (path.find("Service/") != std::string_view::npos) return "RPC";
  for (const char* part : {"/pools", "/permits", "/waiters"}) {
    if (path.find(part) != std::string_view::npos) return "permits";
  }
  for (const char* part : {"workflow", "/activity", "/task-queues", "/workers", "/schedules"}) {
    if (path.find(part) != std::string_view::npos) return "workflows";
  }
  return "server";
}

// get_pools_pool: unique, for those who make clients of the document.
std::string operation_id(const std::string& method, std::string_view path) {
  constexpr std::string_view prefix = "/api/v1/namespaces/{namespace}/";
  if (path.starts_with(prefix)) path.remove_prefix(prefix.size() - 1);
  std::string id;
  for (const char c : method) id += static_cast<char>(c - 'A' + 'a');
  for (const char c : path) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (is_word) {
      id += c;
    } else if (id.back() != '_') {
      id += '_';
    }
  }
  while (id.back() == '_') id.pop_back();
  return id;
}

std::string schema_of_parameter(const Doc::Parameter& parameter, Schemas& schemas) {
  switch (parameter.kind) {
    case ParameterKind::integer:
      return schema_of<std::int32_t>(schemas);
    case ParameterKind::flag:
      return schema_of<bool>(schemas);
    case ParameterKind::time:
      return schema_of<Time>(schemas);
    case ParameterKind::bytes:
      return schema_of<Bytes>(schemas);
    case ParameterKind::text:
      break;
  }
  if (parameter.words.empty()) return schema_of<std::string>(schemas);
  std::string out = R"({"type":"string","enum":[)";
  for (const std::string& word : parameter.words) append(out, quoted(word));
  return out + "]}";
}

std::string parameters_of(const Routes::Route& route, Schemas& schemas) {
  std::string out = "[";
  for (const std::string& segment : route.pattern) {
    if (!is_variable(segment)) continue;
    append(out, R"({"name":)" + quoted(variable_name(segment)) +
                    R"(,"in":"path","required":true,"schema":{"type":"string"}})");
  }
  for (const Doc::Parameter& parameter : route.doc.query()) {
    std::string text = R"({"name":)" + quoted(parameter.name) + R"(,"in":"query","schema":)" +
                       schema_of_parameter(parameter, schemas);
    if (!parameter.description.empty()) {
      text += R"(,"description":)" + quoted(parameter.description);
    }
    append(out, text + "}");
  }
  return out + "]";
}

std::string content_of(const std::string& content_type, const Doc::Type& type, Schemas& schemas) {
  std::string schema = content_type == "application/json"
                           ? R"({"type":"object","additionalProperties":true})"
                           : "{}";
  if (type.schema != nullptr) schema = type.schema(schemas);
  return R"("content":{)" + quoted(content_type) + R"(:{"schema":)" + schema + "}}";
}

std::string responses_of(const Doc& doc, Schemas& schemas) {
  std::string out = "{";
  for (const Doc::Answer& answer : doc.answers()) {
    std::string text = quoted(std::to_string(answer.status)) + R"(:{"description":)" +
                       quoted(answer.meaning.empty() ? "Done" : answer.meaning);
    if (!answer.content_type.empty()) {
      text += "," + content_of(answer.content_type, answer.type, schemas);
    }
    append(out, text + "}");
  }
  const std::string error = R"(:{"$ref":"#/components/responses/Error"})";
  for (const int status : doc.refusals()) append(out, quoted(std::to_string(status)) + error);
  append(out, R"("default")" + error);
  return out + "}";
}

std::string operation(const Routes::Route& route, const std::string& path, Schemas& schemas) {
  std::string out = R"({"summary":)" + quoted(route.doc.summary()) + R"(,"operationId":)" +
                    quoted(operation_id(route.method, path)) + R"(,"tags":[")" + tag_of(path) +
                    R"("],"x-role":)" + quoted(access_name(route.doc.access()));
  if (route.doc.access() == Access::open) out += R"(,"security":[])";
  const std::string parameters = parameters_of(route, schemas);
  if (parameters != "[]") out += R"(,"parameters":)" + parameters;
  if (route.doc.body().schema != nullptr) {
    out += R"(,"requestBody":{"required":true,)" +
           content_of("application/json", route.doc.body(), schemas) + "}";
  }
  return out + R"(,"responses":)" + responses_of(route.doc, schemas) + "}";
}

std::string lowered(std::string method) {
  std::transform(method.begin(), method.end(), method.begin(),
                 [](char c) { return static_cast<char>(c - 'A' + 'a'); });
  return method;
}

}  // namespace

std::string openapi_json(std::span<const Routes::Route> routes) {
  Schemas schemas;
  std::map<std::string, std::string> paths;
  for (const Routes::Route& route : routes) {
    const std::string path = path_of(route.pattern);
    std::string& item = paths.try_emplace(path, "{").first->second;
    append(item, quoted(lowered(route.method)) + ":" + operation(route, path, schemas));
  }
  std::string out =
      std::string(R"({"openapi":"3.1.0","info":{"title":"Permit","version":")") + version +
      R"(","description":")" + description +
      R"("},"servers":[{"url":"/"}],"security":[{"apiKey":[]}],"tags":[{"name":"permits"},)"
      R"({"name":"workflows"},{"name":"server"},{"name":"RPC"}],"paths":{)";
  for (const auto& [path, item] : paths) append(out, quoted(path) + ":" + item + "}");
  out += R"(},"components":{"securitySchemes":{"apiKey":{"type":"http","scheme":"bearer"}},)"
         R"("schemas":{"Status":)";
  out += error_schema;
  for (const auto& [name, schema] : schemas.definitions()) append(out, quoted(name) + ":" + schema);
  return out + R"(},"responses":{"Error":{"description":"Refused: nothing has happened. See )"
               R"(docs/errors.md for every reason.","content":{"application/json":{"schema":)"
               R"({"$ref":"#/components/schemas/Status"}}}}}}})";
}

}  // namespace permit::http
