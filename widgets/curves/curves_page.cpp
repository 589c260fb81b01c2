// SPDX-License-Identifier: GPL-3.0-or-later
#include "curves/curves_page.h"

#include <QDateTime>
#include <QGridLayout>
#include <QLocale>
#include <QTextStream>
#include <QVBoxLayout>
#include <cmath>

namespace sluice::gui {
namespace {

constexpr int kTickMs = 50;            // one card a tick; a dirty card is redrawn at most every 200 ms with four of them
constexpr std::size_t kRollingWindow = 32;
constexpr std::size_t kRollingLeast = 8;
constexpr double kSmoothing = 0.6;

CurveMark markOf(const DecisionRow& row, double x) {
  CurveMark mark;
  mark.x = x;
  mark.text = QString::fromStdString(row.reason_text);
  if (row.kind == "rollback") {
    mark.kind = CurveMark::Kind::kRollback;
    mark.glyph = QChar(0x21B6);  // anticlockwise arrow
  } else if (row.verdict == Verdict::kPromote) {
    mark.kind = CurveMark::Kind::kPromote;
    mark.glyph = QChar(0x25B2);  // up triangle
  } else if (row.verdict == Verdict::kReject) {
    mark.kind = CurveMark::Kind::kReject;
    mark.glyph = QChar(0x2715);  // cross
  } else {
    mark.kind = CurveMark::Kind::kHold;
    mark.glyph = QChar(0x2016);  // double bar
  }
  return mark;
}

}  // namespace

CurvesPage::CurvesPage(EngineBridge& bridge, QWidget* parent) : QWidget(parent), m_bridge(bridge), m_conditions(new QLabel(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 6, 6, 6);
  auto* grid = new QGridLayout;
  grid->setSpacing(6);
  layout->addLayout(grid, 1);
  m_conditions->setWordWrap(true);
  m_conditions->setTextInteractionFlags(Qt::TextSelectableByMouse);
  layout->addWidget(m_conditions);
  buildCards();
  connect(&bridge, &EngineBridge::metricsArrived, this, &CurvesPage::takeMetrics);
  connect(&bridge, &EngineBridge::decisionsArrived, this, &CurvesPage::takeDecisions);
  connect(&bridge, &EngineBridge::sessionsChanged, this, &CurvesPage::takeSessions);
  connect(&m_refresh, &QTimer::timeout, this, &CurvesPage::refreshNext);
  m_refresh.start(kTickMs);
}

void CurvesPage::buildCards() {
  const Range unit{0, 1};
  const QString afterRequests = tr("Appears with the first verdicts.");
  const QString afterSteps = tr("Appears after the first training step.");
  const QString afterDecisions = tr("Appears after the first gate decision.");
  addCard({QStringLiteral("accept"), tr("Accept rate (last 32 requests)"), afterRequests,
           {{QStringLiteral("accept"), tr("accepted"), Line::Kind::kRolling}}, unit, nullptr, nullptr, nullptr, true, {}}, 0, 0);
  addCard({QStringLiteral("rejection"), tr("Rejection rate of the gate"), afterDecisions,
           {{QStringLiteral("rejection_rate"), tr("rejected / decided"), Line::Kind::kSmoothed}}, unit, nullptr, nullptr, nullptr, true, {}}, 0, 1);
  addCard({QStringLiteral("reward"), tr("Mean reward of a batch"), afterSteps,
           {{QStringLiteral("reward_mean"), tr("reward"), Line::Kind::kSmoothed}}, std::nullopt, nullptr, nullptr, nullptr, true, {}}, 1, 0);
  addCard({QStringLiteral("kl"), tr("Divergence from the base (nats per token)"), afterSteps,
           {{QStringLiteral("kl_base"), tr("KL"), Line::Kind::kSmoothed}}, std::nullopt, nullptr, nullptr, nullptr, true, {}}, 1, 1);
  addCard({QStringLiteral("loss"), tr("Loss"), afterSteps,
           {{QStringLiteral("loss"), tr("loss"), Line::Kind::kSmoothed}}, std::nullopt, nullptr, nullptr, nullptr, true, {}}, 2, 0);
  addCard({QStringLiteral("fractions"), tr("Clipped and truncated tokens (share)"), afterSteps,
           {{QStringLiteral("clip_fraction"), tr("clipped"), Line::Kind::kSmoothed},
            {QStringLiteral("truncated_fraction"), tr("truncated"), Line::Kind::kSmoothed}}, std::nullopt, nullptr, nullptr, nullptr, true, {}}, 2, 1);
  addCard({QStringLiteral("entropy"), tr("Entropy (nats per token)"), afterSteps,
           {{QStringLiteral("entropy"), tr("entropy"), Line::Kind::kSmoothed}}, std::nullopt, nullptr, nullptr, nullptr, true, {}}, 0, 2);
  addCard({QStringLiteral("length"), tr("Mean answer length (tokens)"), afterSteps,
           {{QStringLiteral("length"), tr("length"), Line::Kind::kSmoothed}}, std::nullopt, nullptr, nullptr, nullptr, true, {}}, 1, 2);
  addCard({QStringLiteral("speed"), tr("Generated tokens per second"), tr("Appears while requests run."),
           {{QStringLiteral("tokens_per_s"), tr("tokens/s"), Line::Kind::kSmoothed}}, std::nullopt, nullptr, nullptr, nullptr, true, {}}, 2, 2);
}

void CurvesPage::addCard(Card card, int row, int column) {
  auto* frame = new QFrame(this);
  frame->setFrameShape(QFrame::StyledPanel);
  auto* layout = new QVBoxLayout(frame);
  layout->setContentsMargins(6, 4, 6, 2);
  layout->setSpacing(2);
  card.head = new QLabel(card.title, frame);
  card.head->setTextFormat(Qt::PlainText);
  card.view = new CurveView(frame);
  card.view->setObjectName(QStringLiteral("curve_") + card.id);
  card.view->setAccessibleName(card.title);
  card.view->setYRange(card.range);
  card.placeholder = new QLabel(card.empty, frame);
  card.placeholder->setAlignment(Qt::AlignCenter);
  card.placeholder->setWordWrap(true);
  card.placeholder->setEnabled(false);
  card.view->hide();
  layout->addWidget(card.head);
  layout->addWidget(card.view, 1);
  layout->addWidget(card.placeholder, 1);
  card.derived.resize(card.lines.size());
  static_cast<QGridLayout*>(this->layout()->itemAt(0)->layout())->addWidget(frame, row, column);
  m_cards.push_back(std::move(card));
}

void CurvesPage::showSession(SessionId session) {
  m_followNewest = !session.valid();
  if (session.valid() && session != m_session) {
    m_session = session;
    rebuild();
  }
}

void CurvesPage::takeSessions(const Rows<SessionRow>& rows) {
  const SessionRow* shown = nullptr;
  for (const SessionRow& row : *rows) {
    if (m_followNewest ? (!shown || row.id > shown->id) : row.id == m_session) shown = &row;
  }
  if (!shown) return;
  if (shown->id != m_session) {
    m_session = shown->id;
    rebuild();
  }
  m_conditions->setText(tr("Session %1 “%2”, seed %3. Conditions: %4")
                            .arg(shown->id.value)
                            .arg(QString::fromStdString(shown->name))
                            .arg(shown->seed)
                            .arg(QString::fromStdString(shown->conditions_json)));
}

void CurvesPage::takeMetrics(const Rows<MetricRow>& rows) {
  for (const MetricRow& row : *rows) {
    m_rows.push_back(row);
    if (row.session != m_session) continue;
    const QString name = QString::fromStdString(row.name);
    m_series[name].add({row.x, row.value});
    for (Card& card : m_cards) {
      for (const Line& line : card.lines) card.dirty = card.dirty || line.metric == name;
    }
  }
}

void CurvesPage::takeDecisions(const Rows<DecisionRow>& rows) {
  m_decisions.insert(m_decisions.end(), rows->begin(), rows->end());
  updateMarks();
}

void CurvesPage::rebuild() {
  m_series.clear();
  for (const MetricRow& row : m_rows) {
    if (row.session == m_session) m_series[QString::fromStdString(row.name)].add({row.x, row.value});
  }
  for (Card& card : m_cards) card.dirty = true;
  updateMarks();
}

void CurvesPage::updateMarks() {
  // A decision stands where the last live request before it stands: the x of every curve is the request count.
  std::vector<std::pair<std::int64_t, double>> requests;  // time, x
  for (const MetricRow& row : m_rows) {
    if (row.session == m_session && row.name == "accept") requests.emplace_back(row.time_us, row.x);
  }
  m_marks.clear();
  for (const DecisionRow& row : m_decisions) {
    if (row.session != m_session || row.kind == "startup") continue;
    double x = 0;
    for (const auto& [time, at] : requests) {
      if (time > row.time_us) break;
      x = std::max(x, at);
    }
    m_marks.push_back(markOf(row, x));
  }
  for (Card& card : m_cards) card.view->setMarks(m_marks);
}

void CurvesPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  for (Card& card : m_cards) card.dirty = true;
}

void CurvesPage::refreshNext() {
  if (!isVisible()) return;
  for (std::size_t i = 0; i < m_cards.size(); ++i) {
    Card& card = m_cards[m_nextCard];
    m_nextCard = (m_nextCard + 1) % m_cards.size();
    if (!card.dirty) continue;
    refreshCard(card);
    return;
  }
}

void CurvesPage::refreshCard(Card& card) {
  card.dirty = false;
  std::vector<CurveSeries> drawn;
  qsizetype points = 0;
  double last = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < card.lines.size(); ++i) {
    const Line& line = card.lines[i];
    const auto found = m_series.constFind(line.metric);
    if (found == m_series.constEnd() || found->empty()) continue;
    card.derived[i] = line.kind == Line::Kind::kRolling ? rollingMean(found->points(), kRollingWindow, kRollingLeast)
                                                        : smoothed(found->points(), kSmoothing);
    points += static_cast<qsizetype>(found->points().size());
    last = line.kind == Line::Kind::kRolling ? card.derived[i].back().y : found->points().back().y;
    // A 0/1 curve has nothing to show in its raw form but two bars: its smoothed twin stands in for it.
    drawn.push_back({line.name, line.kind == Line::Kind::kRolling ? nullptr : &found->points(), &card.derived[i],
                     static_cast<int>(i)});
  }
  card.view->setVisible(points > 0);
  card.placeholder->setVisible(points == 0);
  card.view->setSeries(std::move(drawn));
  const QLocale locale;
  QString head = card.title;
  if (points > 0) {
    head += std::isfinite(last) ? tr(" · %1 · %n point(s)", nullptr, static_cast<int>(points)).arg(locale.toString(last, 'g', 3))
                                : tr(" · %n point(s), not enough for a rate yet", nullptr, static_cast<int>(points));
  }
  if (card.lines.size() > 1 && points > 0) head += tr(" · line: %1, dashes: %2").arg(card.lines[0].name, card.lines[1].name);
  card.head->setText(head);
}

const Series& CurvesPage::series(const QString& metric) const {
  static const Series none;
  const auto found = m_series.constFind(metric);
  return found == m_series.constEnd() ? none : *found;
}

CurveView* CurvesPage::card(const QString& id) const {
  for (const Card& card : m_cards) {
    if (card.id == id) return card.view;
  }
  return nullptr;
}

QString CurvesPage::cardHead(const QString& id) const {
  for (const Card& card : m_cards) {
    if (card.id == id) return card.head->text();
  }
  return {};
}

QString CurvesPage::csv() const {
  QString out;
  QTextStream stream(&out);
  stream << "metric,x,value,time_utc\n";
  for (const MetricRow& row : m_rows) {
    if (row.session != m_session) continue;
    stream << QString::fromStdString(row.name) << ',' << QString::number(row.x, 'g', 17) << ','
           << QString::number(row.value, 'g', 17) << ','
           << QDateTime::fromMSecsSinceEpoch(row.time_us / 1000, Qt::UTC).toString(Qt::ISODateWithMs) << '\n';
  }
  return out;
}

}  // namespace sluice::gui
