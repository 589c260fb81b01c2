// SPDX-License-Identifier: GPL-3.0-or-later
// One plot: raw envelope (pale) and smoothed line of several series, dots where points are few, vertical event marks on top.
// The only class that uses Qt Charts: it hands the chart at most two points per pixel column, by replace(). GUI thread.
#pragma once

#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "bridge/series.h"

namespace sluice::gui {

struct CurveSeries {
  QString name;
  const std::vector<CurvePoint>* raw = nullptr;       // drawn pale; null = none
  const std::vector<CurvePoint>* line = nullptr;      // drawn strong; null = none
  int color = 0;                                      // Theme::series index
};

struct CurveMark {
  double x = 0;
  QChar glyph;      // one letter or sign, different for each kind
  QString text;     // tool-tip
  enum class Kind { kPromote, kReject, kHold, kRollback, kSettings, kOther } kind = Kind::kOther;
};

class CurveView : public QWidget {
  Q_OBJECT
 public:
  explicit CurveView(QWidget* parent = nullptr);
  ~CurveView() override;

  // Pointers must stay valid until the next call.
  void setSeries(std::vector<CurveSeries> series);
  void setMarks(std::vector<CurveMark> marks);
  void setYRange(std::optional<Range> fixed);  // empty = automatic

  // Reads the series again and redraws; cheap when nothing changed since.
  void refresh();
  bool following() const { return m_following; }
  void jumpToLive();

  // What is drawn now, for tests and the table twin.
  std::vector<CurvePoint> drawnLine(int series) const;
  int drawnPoints() const;
  std::vector<CurveMark> drawnMarks() const { return m_marks; }

 Q_SIGNALS:
  void followingChanged(bool following);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Chart;
  void applyTheme();
  void zoom(double factor, double centre);
  void pan(double share);
  void setView(double low, double high);
  void layoutOverlays();

  std::unique_ptr<Chart> m_chart;
  std::vector<CurveSeries> m_series;
  std::vector<CurveMark> m_marks;
  std::optional<Range> m_fixedY;
  Range m_x{0, 1};
  bool m_following = true;
};

}  // namespace sluice::gui
