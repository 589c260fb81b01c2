// SPDX-License-Identifier: GPL-3.0-or-later
#include "bridge/series.h"

#include <algorithm>
#include <cmath>

namespace sluice::gui {

void Series::add(CurvePoint point) {
  if (m_points.empty() || !(point.x < m_points.back().x)) {
    m_points.push_back(point);
    return;
  }
  const auto place = std::upper_bound(m_points.begin(), m_points.end(), point,
                                      [](const CurvePoint& a, const CurvePoint& b) { return a.x < b.x; });
  m_points.insert(place, point);
}

double bucketWidth(double xMin, double xMax, int columns) {
  const double span = xMax - xMin;
  if (!(span > 0) || columns <= 0) return 1;
  return std::exp2(std::ceil(std::log2(span / columns)));
}

namespace {

// One bucket while it is being filled.
struct Bucket {
  std::size_t low = 0, high = 0;
  bool any = false, gap = false;

  void flush(const std::vector<CurvePoint>& points, std::vector<CurvePoint>& out) {
    if (any) {
      out.push_back(points[std::min(low, high)]);
      if (low != high) out.push_back(points[std::max(low, high)]);
    }
    *this = Bucket();
  }
};

}  // namespace

std::vector<CurvePoint> envelope(const std::vector<CurvePoint>& points, double xMin, double xMax, int columns) {
  std::vector<CurvePoint> out;
  if (points.empty() || columns <= 0) return out;
  const auto byX = [](const CurvePoint& p, double x) { return p.x < x; };
  auto first = std::lower_bound(points.begin(), points.end(), xMin, byX);
  auto last = std::upper_bound(points.begin(), points.end(), xMax, [](double x, const CurvePoint& p) { return x < p.x; });
  if (first != points.begin()) --first;
  if (last != points.end()) ++last;

  const double width = bucketWidth(xMin, xMax, columns);
  Bucket bucket;
  double current = std::numeric_limits<double>::quiet_NaN();
  for (auto it = first; it != last; ++it) {
    const auto index = static_cast<std::size_t>(it - points.begin());
    const double number = std::floor(it->x / width);
    if (number != current) {
      bucket.flush(points, out);
      current = number;
    }
    if (!std::isfinite(it->y)) {
      bucket.flush(points, out);
      if (out.empty() || std::isfinite(out.back().y)) out.push_back({it->x, std::numeric_limits<double>::quiet_NaN()});
      continue;
    }
    if (!bucket.any || it->y < points[bucket.low].y) bucket.low = index;
    if (!bucket.any || it->y > points[bucket.high].y) bucket.high = index;
    bucket.any = true;
  }
  bucket.flush(points, out);
  return out;
}

std::vector<CurvePoint> smoothed(const std::vector<CurvePoint>& points, double a) {
  std::vector<CurvePoint> out;
  out.reserve(points.size());
  double sum = 0, weight = 0, previous = std::numeric_limits<double>::quiet_NaN();
  for (const CurvePoint& point : points) {
    if (!std::isfinite(point.y)) continue;
    const double dx = std::isfinite(previous) && point.x > previous ? point.x - previous : 1.0;
    const double keep = a > 0 ? std::pow(a, dx) : 0.0;
    sum = keep * sum + (1 - keep) * point.y;
    weight = keep * weight + (1 - keep);
    out.push_back({point.x, sum / weight});
    previous = point.x;
  }
  return out;
}

std::vector<CurvePoint> rollingMean(const std::vector<CurvePoint>& points, std::size_t window, std::size_t least) {
  std::vector<CurvePoint> out;
  out.reserve(points.size());
  double sum = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    sum += points[i].y;
    if (i >= window) sum -= points[i - window].y;
    const std::size_t n = std::min(i + 1, window);
    out.push_back({points[i].x, n >= least ? sum / static_cast<double>(n) : std::numeric_limits<double>::quiet_NaN()});
  }
  return out;
}

Range autoRange(const std::vector<CurvePoint>& points) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const CurvePoint& point : points) {
    if (!std::isfinite(point.y)) continue;
    low = std::min(low, point.y);
    high = std::max(high, point.y);
  }
  if (!(low <= high)) return {0, 1};
  // A constant whose smoothing differs in the last bits is a constant: a range of a few bits has no ticks to draw.
  const double size = std::max(std::abs(low), std::abs(high));
  const double margin = high - low > 1e-6 * size ? 0.05 * (high - low) : std::max(0.05 * size, 1e-3);
  return {low - margin, high + margin};
}

double tickInterval(const Range& range, int count) {
  const double span = range.high - range.low;
  if (!(span > 0) || count <= 0) return 1;
  // Never so small that adding it to an end of the range changes nothing: whoever counts ticks would not come to an end.
  const double raw = std::max(span / count, 1e-9 * std::max(std::abs(range.low), std::abs(range.high)));
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

}  // namespace sluice::gui
