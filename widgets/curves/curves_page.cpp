// SPDX-License-Identifier: GPL-3.0-or-later
#include "curves/curves_page.h"

#include <QComboBox>
#include <QDateTime>
#include <QGridLayout>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLocale>
#include <QScrollArea>
#include <QSlider>
#include <QTextStream>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <limits>

#include "shell/format.h"
#include "shell/theme.h"
#include "shell/words.h"

namespace sluice::gui {
namespace {

constexpr int kTickMs = 50;            // one card a tick; a dirty card is redrawn at most every 200 ms with four of them
constexpr std::size_t kRollingWindow = 32;
constexpr std::size_t kRollingLeast = 8;
constexpr std::size_t kPaleWindow = 8;
constexpr int kSmoothingSteps = 99;   // hundredths

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

CurvesPage::CurvesPage(EngineBridge& bridge, QWidget* parent)
    : QWidget(parent), m_bridge(bridge), m_grid(nullptr), m_axis(new QComboBox(this)), m_smoothing(new QSlider(Qt::Horizontal, this)),
      m_conditions(new QLabel(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 6, 0, 0);
  layout->setSpacing(4);
  layout->addWidget(makeControls());
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAsNeeded);
  auto* holder = new QWidget(scroll);
  m_grid = new QGridLayout(holder);
  m_grid->setContentsMargins(0, 0, 6, 6);
  m_grid->setSpacing(6);
  scroll->setWidget(holder);
  layout->addWidget(scroll, 1);
  buildCards();
  connect(&bridge, &EngineBridge::metricsArrived, this, &CurvesPage::takeMetrics);
  connect(&bridge, &EngineBridge::decisionsArrived, this, &CurvesPage::takeDecisions);
  connect(&bridge, &EngineBridge::versionsChanged, this, &CurvesPage::takeVersions);
  connect(&bridge, &EngineBridge::sessionsChanged, this, &CurvesPage::takeSessions);
  connect(&m_refresh, &QTimer::timeout, this, &CurvesPage::refreshNext);
  m_refresh.start(kTickMs);
}

QWidget* CurvesPage::makeControls() {
  auto* box = new QWidget(this);
  auto* row = new QHBoxLayout(box);
  row->setContentsMargins(0, 0, 6, 0);
  m_conditions->setObjectName(QStringLiteral("conditions"));
  m_conditions->setTextFormat(Qt::PlainText);
  m_conditions->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_conditions->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  m_conditions->setText(tr("No session yet: run the demo or start one."));
  m_axis->addItems({tr("by requests"), tr("by minutes")});
  m_axis->setObjectName(QStringLiteral("xAxis"));
  m_axis->setAccessibleName(tr("Horizontal axis"));
  m_smoothing->setObjectName(QStringLiteral("smoothing"));
  m_smoothing->setRange(0, kSmoothingSteps);
  m_smoothing->setValue(60);
  m_smoothing->setMaximumWidth(fontMetrics().averageCharWidth() * 16);
  m_smoothing->setAccessibleName(tr("Smoothing"));
  auto* label = new QLabel(tr("Smoothing"), box);
  for (QWidget* widget : {static_cast<QWidget*>(label), static_cast<QWidget*>(m_smoothing)}) {
    widget->setToolTip(tr("Of the strong lines, over every point; the pale line under each shows the points themselves, of the accept rate the mean of eight"));
  }
  label->setBuddy(m_smoothing);
  row->addWidget(m_conditions, 1);
  row->addWidget(m_axis);
  row->addWidget(label);
  row->addWidget(m_smoothing);
  connect(m_axis, &QComboBox::currentIndexChanged, this, [this](int index) { setXAxis(index == 0 ? XAxis::kRequests : XAxis::kMinutes); });
  connect(m_smoothing, &QSlider::valueChanged, this, [this] {
    for (Card& card : m_cards) card.dirty = true;
  });
  return box;
}

void CurvesPage::buildCards() {
  using Kind = Line::Kind;
  const Range unit{0, 1};
  const QString afterSteps = tr("Appears after the first training step.");
  const auto line = [](const char* metric, const QString& name, Kind kind = Kind::kSmoothed) {
    return Line{QString::fromLatin1(metric), name, kind};
  };
  addCard(QStringLiteral("accept"), tr("Accept rate (last 32 requests; pale: last 8)"), tr("The learning curve: appears with the first eight verdicts."),
          {line("accept", tr("accepted"), Kind::kRolling)}, unit, {0, 0, 2});
  addCard(QStringLiteral("rejection"), tr("Rejection rate of the gate"), tr("Appears after the first gate decision."),
          {line("rejection_rate", tr("rejected / decided"))}, unit, {0, 1, 1});
  addCard(QStringLiteral("kl"), tr("Divergence (nats/token)"), afterSteps, {line("kl_base", tr("KL"))}, std::nullopt, {1, 1, 1});
  addCard(QStringLiteral("reward"), tr("Mean reward of a batch"), afterSteps, {line("reward_mean", tr("reward"))}, std::nullopt, {2, 0, 1});
  addCard(QStringLiteral("loss"), tr("Loss"), afterSteps, {line("loss", tr("loss"))}, std::nullopt, {2, 1, 1});
  addCard(QStringLiteral("length"), tr("Mean answer length (tokens)"), afterSteps, {line("length", tr("length"))}, std::nullopt, {3, 0, 1});
  addCard(QStringLiteral("entropy"), tr("Entropy (nats/token)"), afterSteps, {line("entropy", tr("entropy"))}, std::nullopt, {3, 1, 1});
  addCard(QStringLiteral("fractions"), tr("Share of tokens"), afterSteps,
          {line("clip_fraction", tr("clipped")), line("truncated_fraction", tr("truncated"))}, std::nullopt, {4, 0, 1});
  addCard(QStringLiteral("speed"), tr("Generated tokens per second"), tr("Appears while requests run."), {line("tokens_per_s", tr("tokens/s"))},
          std::nullopt, {4, 1, 1});
}

void CurvesPage::addCard(const QString& id, const QString& title, const QString& empty, std::vector<Line> lines,
                         std::optional<Range> range, Place place) {
  Card card;
  card.id = id;
  card.title = title;
  card.lines = std::move(lines);
  card.derived.resize(card.lines.size());
  card.pale.resize(card.lines.size());
  auto* frame = new QFrame(this);
  frame->setFrameShape(QFrame::StyledPanel);
  auto* layout = new QVBoxLayout(frame);
  layout->setContentsMargins(6, 4, 6, 2);
  layout->setSpacing(2);
  card.head = new QLabel(title, frame);
  card.head->setTextFormat(Qt::PlainText);
  card.head->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  card.live = new QToolButton(frame);
  card.live->setText(tr("Jump to live"));
  card.live->setAutoRaise(true);
  card.live->hide();
  card.view = new CurveView(frame);
  card.view->setObjectName(QStringLiteral("curve_") + id);
  card.view->setAccessibleName(title);
  card.view->setYRange(range);
  card.placeholder = new QLabel(empty, frame);
  card.placeholder->setAlignment(Qt::AlignCenter);
  card.placeholder->setWordWrap(true);
  QPalette muted = card.placeholder->palette();
  muted.setColor(QPalette::WindowText, Theme(palette()).mutedText());
  card.placeholder->setPalette(muted);
  card.placeholder->setMinimumHeight(card.view->minimumHeight());
  card.view->hide();
  auto* head = new QHBoxLayout;
  head->addWidget(card.head, 1);
  head->addWidget(card.live);
  layout->addLayout(head);
  layout->addWidget(card.view, 1);
  layout->addWidget(card.placeholder, 1);
  connect(card.view, &CurveView::followingChanged, card.live, [live = card.live](bool following) { live->setVisible(!following); });
  connect(card.live, &QToolButton::clicked, card.view, &CurveView::jumpToLive);
  m_grid->addWidget(frame, place.row, place.column, place.rows, 1);
  m_grid->setColumnStretch(place.column, place.column == 0 ? 3 : 2);
  m_cards.push_back(std::move(card));
}

CurvePoint CurvesPage::pointOf(const MetricRow& row) const {
  return {m_x == XAxis::kRequests ? row.x : static_cast<double>(row.time_us - m_startedUs) / 60e6, row.value};
}

void CurvesPage::setXAxis(XAxis axis) {
  if (std::exchange(m_x, axis) == axis) return;
  m_axis->setCurrentIndex(static_cast<int>(axis));
  rebuild();
}

void CurvesPage::showSession(SessionId session) {
  m_followNewest = !session.valid();
  if (session.valid()) m_session = session;
  showSessionHead();
  rebuild();
}

void CurvesPage::takeSessions(const Rows<SessionRow>& rows) {
  m_sessions = *rows;
  const SessionId before = m_session;
  showSessionHead();
  if (m_session != before) rebuild();
  else updateMarks();  // the one shown may have a successor now
}

void CurvesPage::showSessionHead() {
  const SessionRow* shown = nullptr;
  for (const SessionRow& row : m_sessions) {
    if (m_followNewest ? (!shown || row.id > shown->id) : row.id == m_session) shown = &row;
  }
  if (!shown) return;
  m_startedUs = shown->started_us;
  m_nextStartUs = std::numeric_limits<std::int64_t>::max();
  for (const SessionRow& row : m_sessions) {
    if (row.id > shown->id) m_nextStartUs = std::min(m_nextStartUs, row.started_us);
  }
  m_session = shown->id;
  const QJsonObject conditions = QJsonDocument::fromJson(QByteArray::fromStdString(shown->conditions_json)).object();
  QStringList parts, all;
  for (const char* key : {"model", "quantisation", "cpu"}) {
    const QString value = conditions.value(QLatin1String(key)).toString();
    if (!value.isEmpty()) parts << value;
  }
  for (auto it = conditions.begin(); it != conditions.end(); ++it) all << it.key() + QStringLiteral(": ") + it.value().toVariant().toString();
  m_conditions->setText(tr("“%1”, session %2, seed %3 · %4")
                            .arg(QString::fromStdString(shown->name)).arg(shown->id.value).arg(shown->seed).arg(parts.join(QStringLiteral(", "))));
  m_conditions->setToolTip(plainToolTip(all.join(QLatin1Char('\n'))));
}

void CurvesPage::takeMetrics(const Rows<MetricRow>& rows) {
  for (const MetricRow& row : *rows) {
    m_rows.push_back(row);
    if (row.session != m_session) continue;
    const QString name = QString::fromStdString(row.name);
    m_series[name].add(pointOf(row));
    for (Card& card : m_cards) {
      for (const Line& line : card.lines) card.dirty = card.dirty || line.metric == name;
    }
  }
}

void CurvesPage::takeDecisions(const Rows<DecisionRow>& rows) {
  m_decisions.insert(m_decisions.end(), rows->begin(), rows->end());
  updateMarks();
}

void CurvesPage::takeVersions(const Rows<VersionRow>& rows) {
  std::map<std::int64_t, std::string> labels;
  for (const VersionRow& row : *rows) {
    if (!row.label.empty()) labels[row.id.value] = row.label;
  }
  if (labels == m_labels) return;
  m_labels = std::move(labels);
  updateMarks();
}

void CurvesPage::rebuild() {
  for (Card& card : m_cards) card.view->setSeries({});  // they point into what goes now
  m_series.clear();
  for (const MetricRow& row : m_rows) {
    if (row.session == m_session) m_series[QString::fromStdString(row.name)].add(pointOf(row));
  }
  for (Card& card : m_cards) card.view->jumpToLive();
  for (Card& card : m_cards) card.dirty = true;
  updateMarks();
}

// What was decided when no session was open belongs to the one before: its curves are what is shown then.
bool CurvesPage::isOfSession(const DecisionRow& row) const {
  if (row.session.valid()) return row.session == m_session;
  return row.time_us >= m_startedUs && row.time_us < m_nextStartUs;
}

void CurvesPage::updateMarks() {
  // By requests, a decision stands where the last live request before it stands.
  std::vector<std::pair<std::int64_t, double>> requests;  // time, x: both ascending
  for (const MetricRow& row : m_rows) {
    if (m_x == XAxis::kRequests && row.session == m_session && row.name == "accept") requests.emplace_back(row.time_us, row.x);
  }
  m_marks.clear();
  for (const DecisionRow& row : m_decisions) {
    if (!isOfSession(row) || row.kind == "startup") continue;
    double x = static_cast<double>(row.time_us - m_startedUs) / 60e6;
    // After the session it stands where the learning curve ends: beyond that nobody would see it.
    if (const Series& curve = series(QStringLiteral("accept")); !row.session.valid() && !curve.empty()) x = std::min(x, curve.maxX());
    if (m_x == XAxis::kRequests) {
      const auto after = std::partition_point(requests.begin(), requests.end(), [&](const auto& r) { return r.first <= row.time_us; });
      x = after == requests.begin() ? 0 : std::prev(after)->second;
    }
    CurveMark mark = markOf(row, x);
    const auto label = m_labels.find(row.version.value);
    if (label != m_labels.end()) mark.text = tr("%1: %2").arg(versionTitle(row.version, label->second), mark.text);
    m_marks.push_back(std::move(mark));
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
    const bool rolling = line.kind == Line::Kind::kRolling;
    std::vector<CurvePoint> rates;
    if (rolling) {
      // A 0/1 curve has nothing to show in its raw form but two bars: the mean of a few points stands in for them.
      card.pale[i] = rollingMean(found->points(), kPaleWindow, kPaleWindow);
      rates = rollingMean(found->points(), kRollingWindow, kRollingLeast);
    }
    const std::vector<CurvePoint>& told = rolling ? rates : found->points();
    card.derived[i] = smoothed(told, m_smoothing->value() / 100.0);
    points += static_cast<qsizetype>(found->points().size());
    last = told.back().y;
    drawn.push_back({line.name, rolling ? &card.pale[i] : &found->points(), &card.derived[i], static_cast<int>(i)});
  }
  card.view->setVisible(points > 0);
  card.placeholder->setVisible(points == 0);
  card.view->setSeries(std::move(drawn));
  const QLocale locale;
  QString head = card.title;
  if (points > 0) {
    head += std::isfinite(last) ? tr(": %1 · %n point(s)", nullptr, static_cast<int>(points)).arg(locale.toString(last, 'g', 3))
                                : tr(" · %n point(s), not enough for a rate yet", nullptr, static_cast<int>(points));
  }
  if (card.lines.size() > 1 && points > 0) head = tr("%1 · line %2, dashes %3").arg(head, card.lines[0].name, card.lines[1].name);
  card.head->setText(head);
  card.head->setToolTip(head);
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

std::vector<double> CurvesPage::verdicts(SessionId session) const {
  std::vector<double> out;
  for (const MetricRow& row : m_rows) {
    if (row.session == session && row.name == "accept") out.push_back(row.value);
  }
  return out;
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
