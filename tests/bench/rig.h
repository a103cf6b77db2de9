// What the scenarios of the server share: where its database is, what it is asked, what it says.
#pragma once

#include <map>
#include <string>

namespace permit::bench {

inline const std::string namespace_path = "/api/v1/namespaces/default";
inline const std::string rpc_path = "/temporal.api.workflowservice.v1.WorkflowService/";

// In a directory that is emptied for it.
std::string fresh_database(const std::string& directory);

std::string start_request(const std::string& id);

// Of a histogram in the text of /metrics: upper bound → observations up to it; infinity: all.
std::map<double, double> buckets_of(const std::string& metrics, const std::string& name);

}  // namespace permit::bench
