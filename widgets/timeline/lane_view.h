// SPDX-License-Identifier: GPL-3.0-or-later
// The painted timeline: which version served when, and every candidate with its verdict. Its twin is the table below it.
// GUI thread.
#pragma once

#include <QWidget>
#include <vector>

#include "bridge/engine_types.h"
#include "timeline/lane_map.h"

namespace sluice::gui {

class LaneView : public QWidget {
  Q_OBJECT
 public:
  explicit LaneView(QWidget* parent = nullptr);

  void setRows(const std::vector<VersionRow>& versions, const std::vector<DecisionRow>& decisions);
  void setSelected(VersionId version);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 Q_SIGNALS:
  void versionClicked(qint64 version);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Mark {
    VersionId version;
    std::int64_t time_us = 0;
    VersionState state = VersionState::kCandidate;
    QString glyph, text;
  };
  LaneMap map() const;
  VersionId versionAt(const QPoint& position) const;
  const Mark* markAt(const QPoint& position) const;

  std::vector<ServingSegment> m_segments;
  std::vector<Mark> m_marks;
  VersionId m_selected;
  std::int64_t m_from = 0, m_to = 1;
};

}  // namespace sluice::gui
