#include "worker/registry.h"

namespace permit::worker {

namespace {

template <class Map>
const typename Map::mapped_type* find(const Map& map, std::string_view name) {
  const auto found = map.find(name);
  return found == map.end() ? nullptr : &found->second;
}

template <class Map>
std::string names_in(const Map& map) {
  std::string names;
  for (const auto& [name, function] : map) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

}  // namespace

const WorkflowFunction* Registry::find_workflow(std::string_view name) const {
  return find(workflows_, name);
}

const ActivityFunction* Registry::find_activity(std::string_view name) const {
  return find(activities_, name);
}

std::string Registry::workflow_names() const { return names_in(workflows_); }

std::string Registry::activity_names() const { return names_in(activities_); }

}  // namespace permit::worker
