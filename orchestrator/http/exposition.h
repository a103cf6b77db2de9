// Metrics as Prometheus reads them: its text format 0.0.4, or OpenMetrics 1.0 for who asks for it.
// Families one after the other, each with its samples. Appends to one string and makes no others,
// since a server with a thousand pools has 50,000 lines to say.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/service/histogram.h"

namespace permit::http {

// Labels as they stand between braces, `a="x",b="y"`, escaped.
class Labels {
 public:
  Labels() = default;
  Labels& add(std::string_view name, std::string_view value);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class Exposition {
 public:
  enum class Format { prometheus, openmetrics };
  enum class Type { counter, gauge, histogram };

  // `size`: about how long it will be.
  explicit Exposition(Format format, std::size_t size = 0) : format_(format) { out_.reserve(size); }

  static std::string_view content_type(Format format);
  // What the Accept header asks for; Prometheus's own format unless it prefers the other.
  static Format format_for(const std::string* accept);

  // A counter's name ends with _total. `name` must outlive the family.
  void family(std::string_view name, Type type, std::string_view help);
  void sample(const Labels& labels, std::int64_t value);
  void sample(const Labels& labels, double value);
  void sample(const Labels& labels, Duration value);  // in seconds
  template <const auto& bounds>
  void sample(const Labels& labels, const service::Histogram<bounds>& histogram) {
    static const std::vector<std::string> limits = limits_of(bounds);
    buckets(labels, limits, histogram.counts());
    begin_sample("_sum", labels);
    end_sample(histogram.sum());
  }
  // The same of whole numbers that are no times.
  void histogram(const Labels& labels, std::span<const std::size_t> bounds,
                 std::span<const std::uint64_t> counts, std::uint64_t sum);

  std::string finish();

 private:
  static std::vector<std::string> limits_of(std::span<const Duration> bounds);
  void buckets(const Labels& labels, const std::vector<std::string>& limits,
               std::span<const std::uint64_t> counts);
  void begin_sample(std::string_view suffix, const Labels& labels);
  void end_sample(std::int64_t value);
  void end_sample(double value);
  void end_sample(Duration value);

  const Format format_;
  std::string_view name_;
  std::string bucket_;  // how the lines of the histogram at hand begin
  std::string out_;
};

}  // namespace permit::http
