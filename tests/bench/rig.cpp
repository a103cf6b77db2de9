#include "tests/bench/rig.h"

#include <filesystem>
#include <limits>

#include "tests/bench/load.h"
#include "tests/bench/scenarios.h"

namespace permit::bench {

std::string fresh_database(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::filesystem::remove_all(entry.path());
  }
  return directory + "/bench.db";
}

std::string start_request(const std::string& id) {
  return post(namespace_path + "/workflows/" + id, start_body(id));
}

std::map<double, double> buckets_of(const std::string& metrics, const std::string& name) {
  std::map<double, double> buckets;
  const std::string key = name + "_bucket{le=\"";
  for (std::size_t at = metrics.find(key); at != std::string::npos;
       at = metrics.find(key, at + 1)) {
    const std::size_t bound = at + key.size();
    const double limit = metrics[bound] == '+' ? std::numeric_limits<double>::infinity()
                                               : std::stod(metrics.substr(bound));
    buckets[limit] = std::stod(metrics.substr(metrics.find("} ", bound) + 2));
  }
  return buckets;
}

}  // namespace permit::bench
