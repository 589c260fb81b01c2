// SPDX-License-Identifier: GPL-3.0-or-later
#include "timeline/lane_view.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <cmath>

#include "shell/format.h"
#include "shell/theme.h"
#include "shell/words.h"

namespace sluice::gui {
namespace {

constexpr int kMargin = 8;

QString glyphOf(VersionState state) {
  switch (state) {
    case VersionState::kServing:
    case VersionState::kRetired: return QStringLiteral("▲");
    case VersionState::kRejected:
    case VersionState::kQuarantined: return QStringLiteral("✕");
    case VersionState::kHeld: return QStringLiteral("‖");
    case VersionState::kEvaluating: return QStringLiteral("…");
    case VersionState::kSuperseded: return QStringLiteral("·");
    default: return QStringLiteral("○");
  }
}

QColor colorOf(const Theme& theme, VersionState state) {
  switch (state) {
    case VersionState::kServing:
    case VersionState::kRetired: return theme.pass();
    case VersionState::kRejected:
    case VersionState::kQuarantined: return theme.fail();
    case VersionState::kHeld:
    case VersionState::kEvaluating:
    case VersionState::kCanary: return theme.wait();
    default: return theme.off();
  }
}

}  // namespace

LaneView::LaneView(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setAccessibleName(tr("Adapter timeline"));
}

QSize LaneView::sizeHint() const { return {fontMetrics().averageCharWidth() * 60, fontMetrics().height() * 5 + 2 * kMargin}; }
QSize LaneView::minimumSizeHint() const { return {fontMetrics().averageCharWidth() * 30, fontMetrics().height() * 5 + 2 * kMargin}; }

void LaneView::setRows(const std::vector<VersionRow>& versions, const std::vector<DecisionRow>& decisions) {
  m_segments = servingSegments(decisions);
  m_marks.clear();
  for (const VersionRow& version : versions) {
    if (version.id == kBaseVersion) continue;
    Mark mark{version.id, version.created_us, version.state, glyphOf(version.state),
              versionTitle(version) + QStringLiteral(": ") + versionStateText(version.state)};
    for (const DecisionRow& row : decisions) {
      if (row.version == version.id && !row.reason_text.empty()) mark.text += QLatin1Char('\n') + QString::fromStdString(row.reason_text);
    }
    m_marks.push_back(std::move(mark));
  }
  m_from = m_segments.empty() ? nowUs() - 1 : m_segments.front().from_us;
  // A workspace may be older than its first candidate by days: the picture begins shortly before something happened.
  if (!m_marks.empty()) m_from = std::max(m_from, m_marks.front().time_us - 60'000'000);
  m_to = m_from + 1'000'000;
  for (const Mark& mark : m_marks) m_to = std::max(m_to, mark.time_us);
  for (const ServingSegment& segment : m_segments) m_to = std::max(m_to, segment.from_us);
  m_to += (m_to - m_from) / 20;
  setAccessibleDescription(m_segments.empty() ? tr("The base serves.") : tr("%1 serves; %n version(s).", nullptr, static_cast<int>(m_marks.size()))
                               .arg(versionText(m_segments.back().version.value)));
  update();
}

void LaneView::setSelected(VersionId version) {
  m_selected = version;
  update();
}

LaneMap LaneView::map() const { return {m_from, m_to, static_cast<double>(std::max(1, width() - 2 * kMargin))}; }

void LaneView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const Theme theme(palette());
  const int line = fontMetrics().height();
  const LaneMap lanes = map();
  painter.fillRect(rect(), theme.background());
  painter.setPen(theme.mutedText());
  painter.drawText(kMargin, kMargin + fontMetrics().ascent(), tr("In service"));
  painter.drawText(kMargin, kMargin + 3 * line + fontMetrics().ascent(), tr("Candidates"));

  const double barTop = kMargin + line;
  for (const ServingSegment& segment : m_segments) {
    const double left = kMargin + std::max(0.0, lanes.x(segment.from_us));
    const double right = segment.to_us ? kMargin + lanes.x(segment.to_us) : width() - kMargin;
    if (right <= left) continue;
    const QRectF box(left, barTop, right - left, line * 1.3);
    QColor fill = segment.version == kBaseVersion ? theme.off() : theme.pass();
    fill.setAlphaF(0.25f);
    painter.setBrush(segment.forced ? QBrush(fill, Qt::BDiagPattern) : QBrush(fill));
    painter.setPen(QPen(segment.version == m_selected ? theme.text() : fill, segment.version == m_selected ? 2 : 1));
    painter.drawRect(box);
    painter.setPen(theme.text());
    const QString name = versionText(segment.version.value);
    if (box.width() > fontMetrics().horizontalAdvance(name) + 6) painter.drawText(box, Qt::AlignCenter, name);
  }

  const double markTop = kMargin + 4 * line;
  double previousRight = -1e9;
  int merged = 0;
  for (const Mark& mark : m_marks) {
    const double x = kMargin + lanes.x(mark.time_us);
    painter.setPen(colorOf(theme, mark.state));
    const QString text = mark.glyph + versionText(mark.version.value);
    const double half = fontMetrics().horizontalAdvance(text) / 2.0;
    const bool crowded = x - half < previousRight;
    merged = crowded ? merged + 1 : 0;
    // Crowded marks keep their glyph; the number comes back where there is room. Failures are never left out.
    const QString drawn = crowded ? mark.glyph : text;
    const double drawnHalf = fontMetrics().horizontalAdvance(drawn) / 2.0;
    painter.drawText(QPointF(x - drawnHalf, markTop + fontMetrics().ascent()), drawn);
    previousRight = std::max(previousRight, x + drawnHalf);
    if (mark.version == m_selected) painter.drawRect(QRectF(x - drawnHalf - 2, markTop, 2 * drawnHalf + 4, line));
  }
}

const LaneView::Mark* LaneView::markAt(const QPoint& position) const {
  const int line = fontMetrics().height();
  if (position.y() < kMargin + 3 * line) return nullptr;
  const LaneMap lanes = map();
  const Mark* nearest = nullptr;
  double best = fontMetrics().averageCharWidth() * 4;
  for (const Mark& mark : m_marks) {
    const double distance = std::abs(kMargin + lanes.x(mark.time_us) - position.x());
    if (distance <= best) {
      best = distance;
      nearest = &mark;
    }
  }
  return nearest;
}

VersionId LaneView::versionAt(const QPoint& position) const {
  if (const Mark* mark = markAt(position)) return mark->version;
  const std::int64_t time = map().time(position.x() - kMargin);
  for (const ServingSegment& segment : m_segments) {
    if (time >= segment.from_us && (segment.to_us == 0 || time < segment.to_us)) return segment.version;
  }
  return {};
}

void LaneView::mousePressEvent(QMouseEvent* event) {
  const VersionId version = versionAt(event->position().toPoint());
  if (version.valid()) Q_EMIT versionClicked(version.value);
}

bool LaneView::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    const Mark* mark = markAt(help->pos());
    QToolTip::showText(help->globalPos(), mark ? plainToolTip(mark->text) : QString(), this);
    return true;
  }
  return QWidget::event(event);
}

}  // namespace sluice::gui
