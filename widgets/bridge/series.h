// SPDX-License-Identifier: GPL-3.0-or-later
// The points of one curve and the pure functions that make them drawable. Every point is kept; the envelope and the smoothing
// read all of them. Values, no thread rules.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace sluice::gui {

struct CurvePoint {
  double x = 0;
  double y = 0;  // NaN or infinite = a gap with a mark
  bool operator==(const CurvePoint&) const = default;
};

// Points in order of x (equal x allowed, order of arrival kept).
class Series {
 public:
  // Appends; a point with a smaller x than the last is put in its place.
  void add(CurvePoint point);
  const std::vector<CurvePoint>& points() const { return m_points; }
  bool empty() const { return m_points.empty(); }
  double minX() const { return m_points.empty() ? 0 : m_points.front().x; }
  double maxX() const { return m_points.empty() ? 0 : m_points.back().x; }

 private:
  std::vector<CurvePoint> m_points;
};

// Bucket width for a range drawn over `columns` pixels: the smallest power of two (in x units) that needs no more buckets
// than columns. Edges lie at absolute multiples, so arriving points never move them.
double bucketWidth(double xMin, double xMax, int columns);

// Minimum and maximum of each bucket in order of occurrence: at most two points a bucket, plus one gap point (NaN) where a
// non-finite value stood. Points outside [xMin, xMax] are left out except one on each side, so that lines reach the edge.
std::vector<CurvePoint> envelope(const std::vector<CurvePoint>& points, double xMin, double xMax, int columns);

// Debiased exponential smoothing over every point, by distance in x: with b = a^(dx),
//   s <- b s + (1 - b) y,  w <- b w + (1 - b),  shown s / w.
// A constant stays constant and irregular spacing keeps its scale. `a` in [0, 1); 0 = the points themselves. dx of the first
// point and of equal x counts as 1. Non-finite values are skipped.
std::vector<CurvePoint> smoothed(const std::vector<CurvePoint>& points, double a);

// Share of y = 1 among the last `window` points at every point; NaN before there are `least` of them.
std::vector<CurvePoint> rollingMean(const std::vector<CurvePoint>& points, std::size_t window, std::size_t least);

struct Range {
  double low = 0;
  double high = 1;
};

// All finite values, widened by 5 %; {0, 1} when there are none.
Range autoRange(const std::vector<CurvePoint>& points);

// Distance of ticks for about `count` of them: 1, 2 or 5 times a power of ten.
double tickInterval(const Range& range, int count);

}  // namespace sluice::gui
