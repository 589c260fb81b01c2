// SPDX-License-Identifier: GPL-3.0-or-later
#include "curves/curve_view.h"

#include <QEvent>
#include <QGraphicsLineItem>
#include <QGraphicsSimpleTextItem>
#include <QKeyEvent>
#include <QVBoxLayout>
#include <QWheelEvent>
#include <QtCharts/QChart>
#include <QtCharts/QChartView>
#include <QtCharts/QLineSeries>
#include <QtCharts/QValueAxis>
#include <algorithm>
#include <cmath>

#include "shell/format.h"
#include "shell/theme.h"

namespace sluice::gui {
namespace {

constexpr std::size_t kDots = 40;  // from so many points on the line alone is shown
constexpr qreal kDotSize = 5;
constexpr int kMaxColumns = 1200;  // shared by the series of a view: keeps a refresh within its frame

// A line needs two points; few are told apart by their dots. A gap lies nowhere and has none.
void showDots(QLineSeries& line, const std::vector<CurvePoint>& drawn) {
  line.clearPointsConfiguration();
  line.setPointsVisible(drawn.size() < kDots);
  if (!line.pointsVisible()) return;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (!std::isfinite(drawn[i].y)) line.setPointConfiguration(static_cast<int>(i), QXYSeries::PointConfiguration::Visibility, false);
  }
}

QList<QPointF> toPoints(const std::vector<CurvePoint>& points) {
  QList<QPointF> out;
  out.reserve(static_cast<qsizetype>(points.size()));
  for (const CurvePoint& p : points) out.append({p.x, p.y});
  return out;
}

// Range and ticks, in an order that never has many ticks in between: a wide range with the ticks of a narrow one holds
// millions of labels.
void setAxis(QValueAxis* axis, const Range& range, int ticks) {
  const double interval = tickInterval(range, ticks);
  // As many decimals as the ticks need: summed-up ticks miss a round zero by a bit, which %g would spell out.
  const int decimals = interval < 1 ? static_cast<int>(std::ceil(-std::log10(interval) - 1e-9)) : 0;
  const QString format = decimals <= 4 && std::abs(range.high) < 1e6 ? QStringLiteral("%.%1f").arg(decimals) : QStringLiteral("%.3g");
  if (format != axis->labelFormat()) axis->setLabelFormat(format);  // lays the chart out anew even when it is the same
  if (interval > axis->tickInterval()) axis->setTickInterval(interval);
  axis->setRange(range.low, range.high);
  axis->setTickInterval(interval);
}

}  // namespace

struct CurveView::Chart {
  QChart* chart = nullptr;
  QChartView* view = nullptr;
  QValueAxis* x = nullptr;
  QValueAxis* y = nullptr;
  struct Pair {
    QLineSeries* raw = nullptr;
    QLineSeries* line = nullptr;
  };
  std::vector<Pair> pairs;
  struct MarkItem {
    QGraphicsLineItem* stem;
    QGraphicsSimpleTextItem* glyph;
  };
  std::vector<MarkItem> marks;
};

CurveView::CurveView(QWidget* parent) : QWidget(parent), m_chart(std::make_unique<Chart>()) {
  m_chart->chart = new QChart;
  m_chart->chart->legend()->hide();
  m_chart->chart->setMargins({0, 0, 0, 0});
  m_chart->chart->setBackgroundRoundness(0);
  m_chart->chart->setAnimationOptions(QChart::NoAnimation);
  m_chart->view = new QChartView(m_chart->chart, this);
  m_chart->view->setFrameShape(QFrame::NoFrame);
  m_chart->view->viewport()->installEventFilter(this);
  m_chart->view->setFocusPolicy(Qt::NoFocus);
  m_chart->x = new QValueAxis(m_chart->chart);
  m_chart->y = new QValueAxis(m_chart->chart);
  for (QValueAxis* axis : {m_chart->x, m_chart->y}) {
    axis->setTickType(QValueAxis::TicksDynamic);
    axis->setTickAnchor(0);
  }
  m_chart->chart->addAxis(m_chart->x, Qt::AlignBottom);
  m_chart->chart->addAxis(m_chart->y, Qt::AlignLeft);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(m_chart->view);
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(fontMetrics().averageCharWidth() * 24, fontMetrics().height() * 8);
  connect(m_chart->chart, &QChart::plotAreaChanged, this, &CurveView::layoutOverlays);
  applyTheme();
}

CurveView::~CurveView() = default;

void CurveView::setSeries(std::vector<CurveSeries> series) {
  const bool sameLooks = std::equal(series.begin(), series.end(), m_series.begin(), m_series.end(),
                                    [](const CurveSeries& a, const CurveSeries& b) { return a.color == b.color; });
  m_series = std::move(series);
  while (m_chart->pairs.size() < m_series.size()) {
    Chart::Pair pair;
    for (QLineSeries** line : {&pair.raw, &pair.line}) {
      *line = new QLineSeries(m_chart->chart);
      m_chart->chart->addSeries(*line);
      (*line)->attachAxis(m_chart->x);
      (*line)->attachAxis(m_chart->y);
      (*line)->setMarkerSize(kDotSize);
    }
    m_chart->pairs.push_back(pair);
  }
  if (!sameLooks) applyTheme();  // fonts and pens cost a layout of the whole chart
  refresh();
}

void CurveView::setMarks(std::vector<CurveMark> marks) {
  m_marks = std::move(marks);
  for (auto& item : m_chart->marks) {
    delete item.stem;
    delete item.glyph;
  }
  m_chart->marks.clear();
  const Theme theme(palette());
  for (const CurveMark& mark : m_marks) {
    QColor color = theme.off();
    if (mark.kind == CurveMark::Kind::kPromote) color = theme.pass();
    if (mark.kind == CurveMark::Kind::kReject) color = theme.fail();
    if (mark.kind == CurveMark::Kind::kRollback) color = theme.removed();
    if (mark.kind == CurveMark::Kind::kHold) color = theme.wait();
    Chart::MarkItem item{new QGraphicsLineItem(m_chart->chart), new QGraphicsSimpleTextItem(mark.glyph, m_chart->chart)};
    QPen pen(color, 1, Qt::DashLine);
    pen.setCosmetic(true);
    item.stem->setPen(pen);
    item.glyph->setBrush(color);
    for (QGraphicsItem* part : {static_cast<QGraphicsItem*>(item.stem), static_cast<QGraphicsItem*>(item.glyph)}) {
      part->setToolTip(plainToolTip(mark.text));
      part->setZValue(20);
    }
    m_chart->marks.push_back(item);
  }
  layoutOverlays();
}

void CurveView::setYRange(std::optional<Range> fixed) {
  m_fixedY = fixed;
  refresh();
}

void CurveView::refresh() {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const CurveSeries& series : m_series) {
    for (const auto* points : {series.raw, series.line}) {
      if (!points || points->empty()) continue;
      low = std::min(low, points->front().x);
      high = std::max(high, points->back().x);
    }
  }
  if (m_following) m_x = low < high ? Range{low, high} : Range{0, std::isfinite(high) && high > 0 ? high : 1};

  const qreal ratio = devicePixelRatioF();
  const int width = std::max(64, static_cast<int>(m_chart->chart->plotArea().width() * ratio));
  const int columns = std::max(64, std::min(width, kMaxColumns / std::max<int>(1, static_cast<int>(m_series.size()))));
  std::vector<CurvePoint> visible;
  for (std::size_t i = 0; i < m_chart->pairs.size(); ++i) {
    const bool used = i < m_series.size();
    for (const bool isRaw : {true, false}) {
      QLineSeries* target = isRaw ? m_chart->pairs[i].raw : m_chart->pairs[i].line;
      const auto* points = used ? (isRaw ? m_series[i].raw : m_series[i].line) : nullptr;
      const auto drawn = points ? envelope(*points, m_x.low, m_x.high, columns) : std::vector<CurvePoint>();
      target->replace(toPoints(drawn));
      showDots(*target, drawn);
      visible.insert(visible.end(), drawn.begin(), drawn.end());
    }
  }
  const Range y = m_fixedY.value_or(autoRange(visible));
  setAxis(m_chart->x, m_x, 6);
  setAxis(m_chart->y, y, 4);
  layoutOverlays();
}

void CurveView::layoutOverlays() {
  const QRectF area = m_chart->chart->plotArea();
  const double span = m_x.high - m_x.low;
  double previousRight = -1e9;
  int level = 0;
  for (std::size_t i = 0; i < m_chart->marks.size(); ++i) {
    auto& item = m_chart->marks[i];
    const double share = span > 0 ? (m_marks[i].x - m_x.low) / span : 0;
    const bool visible = share >= 0 && share <= 1;
    item.stem->setVisible(visible);
    item.glyph->setVisible(visible);
    if (!visible) continue;
    const double px = area.left() + share * area.width();
    const QRectF box = item.glyph->boundingRect();
    // Glyphs that would lie on each other step down a line, so that none hides another.
    level = px - box.width() / 2 < previousRight ? level + 1 : 0;
    previousRight = px + box.width() / 2 + 1;
    item.stem->setLine(px, area.top(), px, area.bottom());
    item.glyph->setPos(px - box.width() / 2, area.top() + level * box.height());
  }
}

void CurveView::applyTheme() {
  const Theme theme(palette());
  m_chart->chart->setBackgroundBrush(theme.background());
  m_chart->chart->setTitleBrush(theme.text());
  for (QValueAxis* axis : {m_chart->x, m_chart->y}) {
    axis->setLabelsBrush(theme.mutedText());
    axis->setGridLineColor(theme.grid());
    axis->setLinePenColor(theme.grid());
    QFont small = font();
    small.setPointSizeF(font().pointSizeF() * 0.85);
    axis->setLabelsFont(small);
  }
  for (std::size_t i = 0; i < m_chart->pairs.size() && i < m_series.size(); ++i) {
    QColor pale = theme.series(m_series[i].color);
    pale.setAlphaF(0.35f);
    QPen raw(pale, 1);
    raw.setCosmetic(true);
    m_chart->pairs[i].raw->setPen(raw);
    QPen line(theme.series(m_series[i].color), 2, m_series[i].color % 2 ? Qt::DashLine : Qt::SolidLine);
    line.setCosmetic(true);
    m_chart->pairs[i].line->setPen(line);
  }
}

void CurveView::setView(double low, double high) {
  if (!(high > low)) return;
  m_x = {low, high};
  if (std::exchange(m_following, false)) Q_EMIT followingChanged(false);
  refresh();
}

void CurveView::zoom(double factor, double centre) {
  setView(centre - (centre - m_x.low) * factor, centre + (m_x.high - centre) * factor);
}

void CurveView::pan(double share) {
  const double shift = (m_x.high - m_x.low) * share;
  setView(m_x.low + shift, m_x.high + shift);
}

void CurveView::jumpToLive() {
  if (!std::exchange(m_following, true)) Q_EMIT followingChanged(true);
  refresh();
}

bool CurveView::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::MouseButtonPress) setFocus(Qt::MouseFocusReason);
  if (event->type() == QEvent::MouseButtonDblClick) {
    jumpToLive();
    return true;
  }
  // Without focus the wheel scrolls the page that holds the card.
  if (event->type() == QEvent::Wheel && hasFocus()) {
    auto* wheel = static_cast<QWheelEvent*>(event);
    const QRectF area = m_chart->chart->plotArea();
    const double share = area.width() > 0 ? std::clamp((wheel->position().x() - area.left()) / area.width(), 0.0, 1.0) : 0.5;
    zoom(std::pow(0.999, wheel->angleDelta().y()), m_x.low + share * (m_x.high - m_x.low));
    return true;
  }
  return QWidget::eventFilter(watched, event);
}

void CurveView::keyPressEvent(QKeyEvent* event) {
  const double centre = (m_x.low + m_x.high) / 2;
  switch (event->key()) {
    case Qt::Key_Plus: zoom(0.8, centre); return;
    case Qt::Key_Minus: zoom(1.25, centre); return;
    case Qt::Key_Left: pan(-0.1); return;
    case Qt::Key_Right: pan(0.1); return;
    case Qt::Key_Home:
    case Qt::Key_End: jumpToLive(); return;
    default: QWidget::keyPressEvent(event);
  }
}

void CurveView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) {
    applyTheme();
    setMarks(m_marks);
  }
  QWidget::changeEvent(event);
}

void CurveView::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  refresh();
}

std::vector<CurvePoint> CurveView::drawnLine(int series) const {
  std::vector<CurvePoint> out;
  if (series < 0 || series >= static_cast<int>(m_chart->pairs.size())) return out;
  for (const QPointF& p : m_chart->pairs[static_cast<std::size_t>(series)].line->points()) out.push_back({p.x(), p.y()});
  return out;
}

int CurveView::drawnPoints() const {
  qsizetype total = 0;
  for (const auto& pair : m_chart->pairs) total += pair.raw->count() + pair.line->count();
  return static_cast<int>(total);
}

}  // namespace sluice::gui
