#include "orchestrator/http/exposition.h"

#include <charconv>
#include <cstdlib>

#include "orchestrator/protocol/ensure.h"

namespace permit::http {

namespace {

constexpr std::string_view openmetrics_type = "application/openmetrics-text";

template <class Number>
void append_number(Number value, std::string& out) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, end);
}

// As OpenMetrics wants it, "1.0" and not "1": a bucket has one name in both formats.
std::string limit_text(double limit) {
  std::string text;
  append_number(limit, text);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return R"(le=")" + text + R"("} )";
}

// The value of q=, 1 if there is none; 0 if the media type is not there.
double preference(std::string_view accept, std::string_view type) {
  const std::size_t at = accept.find(type);
  if (at == std::string_view::npos) return 0;
  const std::string_view range = accept.substr(at, accept.find(',', at) - at);
  const std::size_t q = range.find("q=");
  return q == std::string_view::npos ? 1 : std::atof(std::string(range.substr(q + 2)).c_str());
}

}  // namespace

Labels& Labels::add(std::string_view name, std::string_view value) {
  if (!text_.empty()) text_ += ',';
  text_.append(name).append("=\"");
  for (const char c : value) {
    if (c == '\n') {
      text_ += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text_ += '\\';
    text_ += c;
  }
  text_ += '"';
  return *this;
}

std::string_view Exposition::content_type(Format format) {
  return format == Format::openmetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

Exposition::Format Exposition::format_for(const std::string* accept) {
  if (accept == nullptr) return Format::prometheus;
  const double wanted = preference(*accept, openmetrics_type);
  return wanted > 0 && wanted >= preference(*accept, "text/plain") ? Format::openmetrics
                                                                   : Format::prometheus;
}

void Exposition::family(std::string_view name, Type type, std::string_view help) {
  static constexpr std::string_view types[] = {"counter", "gauge", "histogram"};
  ENSURE((type == Type::counter) == name.ends_with("_total"));
  name_ = name;
  std::string_view shown = name;
  if (type == Type::counter && format_ == Format::openmetrics) shown.remove_suffix(6);
  out_.append("# HELP ").append(shown).append(" ").append(help).append("\n# TYPE ");
  out_.append(shown).append(" ").append(types[static_cast<int>(type)]).append("\n");
}

void Exposition::begin_sample(std::string_view suffix, const Labels& labels) {
  out_.append(name_).append(suffix);
  if (!labels.text().empty()) out_.append("{").append(labels.text()).append("}");
  out_ += ' ';
}

void Exposition::end_sample(std::int64_t value) {
  append_number(value, out_);
  out_ += '\n';
}

void Exposition::end_sample(double value) {
  append_number(value, out_);
  out_ += '\n';
}

void Exposition::end_sample(Duration value) {
  end_sample(static_cast<double>(value.count()) / 1e6);
}

void Exposition::sample(const Labels& labels, std::int64_t value) {
  begin_sample("", labels);
  end_sample(value);
}

void Exposition::sample(const Labels& labels, double value) {
  begin_sample("", labels);
  end_sample(value);
}

void Exposition::sample(const Labels& labels, Duration value) {
  begin_sample("", labels);
  end_sample(value);
}

std::vector<std::string> Exposition::limits_of(std::span<const Duration> bounds) {
  std::vector<std::string> limits;
  for (const Duration bound : bounds) {
    limits.push_back(limit_text(static_cast<double>(bound.count()) / 1e6));
  }
  limits.push_back(R"(le="+Inf"} )");
  return limits;
}

void Exposition::buckets(const Labels& labels, const std::vector<std::string>& limits,
                         std::span<const std::uint64_t> counts) {
  ENSURE(limits.size() == counts.size());
  bucket_ = name_;
  bucket_.append("_bucket{").append(labels.text());
  if (!labels.text().empty()) bucket_ += ',';
  std::int64_t count = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    count += static_cast<std::int64_t>(counts[i]);
    out_.append(bucket_).append(limits[i]);
    end_sample(count);
  }
  begin_sample("_count", labels);
  end_sample(count);
}

void Exposition::histogram(const Labels& labels, std::span<const std::size_t> bounds,
                           std::span<const std::uint64_t> counts, std::uint64_t sum) {
  std::vector<std::string> limits;
  for (const std::size_t bound : bounds) limits.push_back(limit_text(static_cast<double>(bound)));
  limits.push_back(R"(le="+Inf"} )");
  buckets(labels, limits, counts);
  begin_sample("_sum", labels);
  end_sample(static_cast<std::int64_t>(sum));
}

std::string Exposition::finish() {
  if (format_ == Format::openmetrics) out_ += "# EOF\n";
  return std::move(out_);
}

}  // namespace permit::http
