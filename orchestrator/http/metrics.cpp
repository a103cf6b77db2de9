#include "orchestrator/http/metrics.h"

namespace permit::http {

namespace {

void append_batch_sizes(std::string& out, const service::BatchSizes& sizes) {
  const std::string name = "permit_batch_requests";
  out +=
      "# HELP " + name + " Requests that were committed together.\n# TYPE " + name + " histogram\n";
  const auto& counts = sizes.counts();
  std::uint64_t batches = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    batches += counts[i];
    const std::string bound = i < service::BatchSizes::bounds.size()
                                  ? std::to_string(service::BatchSizes::bounds[i])
                                  : "+Inf";
    out.append(name).append("_bucket{le=\"").append(bound).append("\"} ");
    out.append(std::to_string(batches)).append("\n");
  }
  out += name + "_sum " + std::to_string(sizes.requests()) + "\n";
  out += name + "_count " + std::to_string(batches) + "\n";
}

}  // namespace

std::string metrics_text(const service::Service& service) {
  std::string text;
  append_batch_sizes(text, service.batch_sizes());
  return text;
}

}  // namespace permit::http
