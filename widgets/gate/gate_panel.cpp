// SPDX-License-Identifier: GPL-3.0-or-later
#include "gate/gate_panel.h"

#include <QDoubleSpinBox>
#include <QGridLayout>
#include <QGroupBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSlider>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gate/verdict_card.h"
#include "shell/format.h"
#include "shell/words.h"

namespace sluice::gui {
namespace {

constexpr int kWhatIfDelayMs = 150;
constexpr int kCards = 100;   // shown at once; the timeline's table has them all

}  // namespace

GatePanel::GatePanel(EngineBridge& bridge, QWidget* parent) : QWidget(parent), m_bridge(bridge) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 6, 6, 6);
  setMinimumWidth(fontMetrics().averageCharWidth() * 40);
  layout->addWidget(makeProgress());
  layout->addWidget(makeThresholds());
  layout->addWidget(makeVerdicts(), 1);
  connect(&bridge, &EngineBridge::stateChanged, this, &GatePanel::showState);
  connect(&bridge, &EngineBridge::settingsChanged, this, &GatePanel::readInForce);
  connect(&bridge, &EngineBridge::decisionsArrived, this, &GatePanel::takeDecisions);
  connect(&bridge, &EngineBridge::versionsChanged, this, &GatePanel::takeVersions);
  m_whatIfTimer.setSingleShot(true);
  m_whatIfTimer.setInterval(kWhatIfDelayMs);
  connect(&m_whatIfTimer, &QTimer::timeout, this, &GatePanel::askWhatIf);
  readInForce();
  showState();
}

QWidget* GatePanel::makeProgress() {
  auto* box = new QGroupBox(tr("Measuring now"), this);
  auto* layout = new QVBoxLayout(box);
  m_measuring = new QLabel(box);
  m_rates = new QLabel(box);
  m_bets = new QLabel(box);
  m_measuring->setTextFormat(Qt::PlainText);
  for (QLabel* label : {m_measuring, m_rates, m_bets}) label->setWordWrap(true);
  m_measuring->setObjectName(QStringLiteral("gateProgress"));
  m_bets->setToolTip(tr("E grows with evidence that the candidate is not worse, F with evidence that it is not better. "
                        "Promoted when E reaches its limit, rejected when F does; valid at whatever moment anyone looks."));
  m_pairs = new QProgressBar(box);
  m_pairs->setFormat(tr("%v of at most %m pairs"));
  layout->addWidget(m_measuring);
  layout->addWidget(m_pairs);
  layout->addWidget(m_rates);
  layout->addWidget(m_bets);
  return box;
}

QWidget* GatePanel::makeThresholds() {
  auto* box = new QGroupBox(tr("Thresholds"), this);
  auto* layout = new QVBoxLayout(box);
  auto* grid = new QGridLayout;
  grid->setColumnStretch(1, 1);
  for (const ThresholdSpec& spec : mainThresholds()) addRow(box, grid, spec);
  layout->addLayout(grid);
  layout->addWidget(makeFurther(box));
  m_whatIf = new QLabel(box);
  m_whatIf->setObjectName(QStringLiteral("whatIf"));
  m_whatIf->setTextFormat(Qt::PlainText);
  m_whatIf->setWordWrap(true);
  m_whatIf->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  m_whatIf->setMinimumHeight(2 * fontMetrics().lineSpacing());  // the buttons below stay where they are
  layout->addWidget(m_whatIf);
  auto* row = new QHBoxLayout;
  m_note = new QLineEdit(box);
  m_note->setPlaceholderText(tr("Why (goes into the record)"));
  m_note->setAccessibleName(tr("Reason of the change"));
  m_apply = new QPushButton(tr("Apply"), box);
  m_apply->setObjectName(QStringLiteral("applyGate"));
  m_apply->setToolTip(tr("Holds from the next decision on, also for the candidate being measured (Ctrl+Return)"));
  m_discard = new QPushButton(tr("Discard"), box);
  m_discard->setObjectName(QStringLiteral("discardGate"));
  row->addWidget(m_note, 1);
  row->addWidget(m_apply);
  row->addWidget(m_discard);
  layout->addLayout(row);
  connect(m_apply, &QPushButton::clicked, this, &GatePanel::apply);
  connect(m_discard, &QPushButton::clicked, this, &GatePanel::discard);
  return box;
}

// Folded away until somebody looks for them: most are never moved, and the verdicts below need the room.
QWidget* GatePanel::makeFurther(QWidget* parent) {
  auto* whole = new QWidget(parent);
  auto* layout = new QVBoxLayout(whole);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* unfold = new QToolButton(whole);
  unfold->setObjectName(QStringLiteral("furtherThresholds"));
  unfold->setText(tr("Further limits"));
  unfold->setToolTip(tr("Margin, evidence against harm, and what the answers to the probe prompts must keep"));
  unfold->setCheckable(true);
  unfold->setAutoRaise(true);
  unfold->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  unfold->setArrowType(Qt::RightArrow);
  auto* scroll = new QScrollArea(whole);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* rows = new QWidget(scroll);
  auto* grid = new QGridLayout(rows);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setColumnStretch(1, 1);
  for (const ThresholdSpec& spec : furtherThresholds()) addRow(rows, grid, spec);
  scroll->setWidget(rows);
  scroll->setMinimumHeight(8 * fontMetrics().lineSpacing());
  scroll->hide();
  layout->addWidget(unfold, 0, Qt::AlignLeft);
  layout->addWidget(scroll);
  connect(unfold, &QToolButton::toggled, scroll, [unfold, scroll](bool open) {
    unfold->setArrowType(open ? Qt::DownArrow : Qt::RightArrow);
    scroll->setVisible(open);
  });
  return whole;
}

void GatePanel::addRow(QWidget* parent, QGridLayout* grid, const ThresholdSpec& spec) {
  Row row;
  row.spec = spec;
  auto* label = new QLabel(spec.name, parent);
  label->setToolTip(spec.meaning);
  row.slider = new QSlider(Qt::Horizontal, parent);
  row.slider->setRange(0, kSliderSteps);
  row.slider->setPageStep(kSliderSteps / 10);
  row.slider->setObjectName(QStringLiteral("slider_") + spec.path.join(QLatin1Char('.')));
  row.spin = new QDoubleSpinBox(parent);
  row.spin->setDecimals(spec.decimals);
  row.spin->setRange(spec.low, spec.high);
  row.spin->setSingleStep(spec.step);
  row.spin->setObjectName(QStringLiteral("spin_") + spec.path.join(QLatin1Char('.')));
  row.slider->setEnabled(false);  // until it is known what is in force
  row.spin->setEnabled(false);
  row.changed = new QLabel(parent);
  row.changed->setMinimumWidth(fontMetrics().horizontalAdvance(tr("was %1").arg(QStringLiteral("0.55"))));
  for (QWidget* control : {static_cast<QWidget*>(row.slider), static_cast<QWidget*>(row.spin)}) {
    control->setAccessibleName(spec.name);
    control->setAccessibleDescription(spec.meaning);
    control->setToolTip(spec.meaning);
  }
  label->setBuddy(row.spin);
  const int line = grid->rowCount();
  grid->addWidget(label, line, 0);
  grid->addWidget(row.slider, line, 1);
  grid->addWidget(row.spin, line, 2);
  grid->addWidget(row.changed, line, 3);
  const QString name = spec.path.join(QLatin1Char('.'));
  const double low = spec.low, high = spec.high, step = spec.step;
  connect(row.slider, &QSlider::valueChanged, this, [this, name, low, high, step](int position) {
    const double raw = low + (high - low) * position / kSliderSteps;
    setDraftValue(name, std::round(raw / step) * step);
  });
  connect(row.spin, &QDoubleSpinBox::valueChanged, this, [this, name](double value) { setDraftValue(name, value); });
  m_rows.push_back(row);
}

QWidget* GatePanel::makeVerdicts() {
  auto* box = new QGroupBox(tr("Verdicts, newest first"), this);
  auto* layout = new QVBoxLayout(box);
  m_rejections = new QLabel(box);
  m_rejections->setObjectName(QStringLiteral("rejections"));
  m_rejections->setWordWrap(true);
  m_scroll = new QScrollArea(box);
  m_scroll->setWidgetResizable(true);
  m_scroll->setFrameShape(QFrame::NoFrame);
  m_scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* holder = new QWidget(m_scroll);
  m_cards = new QVBoxLayout(holder);
  m_cards->setContentsMargins(0, 0, 0, 0);
  m_cards->addStretch(1);
  m_scroll->setWidget(holder);
  layout->addWidget(m_rejections);
  layout->addWidget(m_scroll, 1);
  return box;
}

void GatePanel::showState() {
  const GateProgress& gate = m_bridge.state().gate;
  const QLocale locale;
  m_pairs->setVisible(gate.measuring);
  m_rates->setVisible(gate.measuring && gate.n > 0);
  m_bets->setVisible(gate.measuring && gate.n > 0);
  if (!gate.measuring) {
    const QString note = gateNoteText(gate);
    m_measuring->setText(!note.isEmpty() ? note : tr("No candidate waits. The trainer hands one over every few updates."));
    return;
  }
  const QString candidate = versionTitle(gate.candidate, labelOf(gate.candidate));
  m_measuring->setText(gate.stage == "invariants"
                           ? tr("%1: checking divergence, length and repetition on the probe prompts").arg(candidate)
                           : tr("%1 against %2, which serves, on held-out prompts").arg(candidate, versionText(gate.incumbent.value)));
  m_pairs->setMaximum(static_cast<int>(std::max<std::int64_t>(1, gate.cap)));
  m_pairs->setValue(static_cast<int>(gate.n));
  m_rates->setText(tr("Accepted: candidate %1, in service %2. Difference between %3 and %4 points.")
                       .arg(rateText(gate.candidate_k, gate.n), rateText(gate.incumbent_k, gate.n),
                            locale.toString(100 * gate.lo, 'f', 1), locale.toString(100 * gate.hi, 'f', 1)));
  m_bets->setText(tr("E %1 of %2 to promote · F %3 of %4 to reject")
                      .arg(locale.toString(gate.e, 'g', 3), locale.toString(gate.e_limit, 'g', 3),
                           locale.toString(gate.f, 'g', 3), locale.toString(gate.f_limit, 'g', 3)));
}

QString GatePanel::progressText() const { return m_measuring->text(); }

void GatePanel::takeVersions(const Rows<VersionRow>& rows) {
  m_held.clear();
  m_labels.clear();
  for (const VersionRow& row : *rows) {
    if (row.state == VersionState::kHeld) m_held.insert(row.id.value);
    if (!row.label.empty()) m_labels[row.id.value] = row.label;
  }
  for (VerdictCard* card : cards()) card->setLabel(labelOf(card->version()));
  showHeld();
  showState();
}

const std::string& GatePanel::labelOf(VersionId version) const {
  static const std::string none;
  const auto found = m_labels.find(version.value);
  return found == m_labels.end() ? none : found->second;
}

void GatePanel::takeDecisions(const Rows<DecisionRow>& rows) {
  const int before = static_cast<int>(m_decisions.size());
  for (const DecisionRow& row : *rows) {
    if (row.kind != "startup") m_decisions.push_back(row);
  }
  // Of a long history only the newest: the cards of the others would go again at once.
  const int all = static_cast<int>(m_decisions.size());
  for (int i = std::max(before, all - kCards); i < all; ++i) addCard(m_decisions[static_cast<std::size_t>(i)]);
  qint64 promoted = 0, rejected = 0, held = 0;
  for (const DecisionRow& row : m_decisions) {
    if (row.kind != "gate") continue;
    promoted += row.verdict == Verdict::kPromote;
    rejected += row.verdict == Verdict::kReject;
    held += row.verdict == Verdict::kHold;
  }
  m_rejections->setText(rejected + promoted + held == 0 ? tr("None yet: the first comes a few updates into a session.")
                                                        : tr("Rejected %1 of the candidates with a final verdict; held: %2.")
                                                              .arg(rateText(rejected, rejected + promoted)).arg(held));
  showHeld();
  if (draftDiffers()) m_whatIfTimer.start();
}

void GatePanel::addCard(const DecisionRow& row) {
  auto* card = new VerdictCard(row, this);
  card->setLabel(labelOf(row.version));
  connect(card, &VerdictCard::decided, this, &GatePanel::decideByHand);
  m_cards->insertWidget(0, card);
  if (m_cards->count() > kCards + 1) {
    QLayoutItem* oldest = m_cards->takeAt(m_cards->count() - 2);
    delete oldest->widget();
    delete oldest;
  }
}

// Only the newest verdict on a candidate that is still held can be overruled.
void GatePanel::showHeld() {
  std::set<std::int64_t> seen;
  for (VerdictCard* card : cards()) {
    const std::int64_t version = card->version().value;
    card->setOpen(m_held.count(version) > 0 && seen.insert(version).second);
  }
}

std::vector<VerdictCard*> GatePanel::cards() const {
  std::vector<VerdictCard*> out;
  for (int i = 0; i < m_cards->count(); ++i) {
    if (auto* card = qobject_cast<VerdictCard*>(m_cards->itemAt(i)->widget())) out.push_back(card);
  }
  return out;
}

void GatePanel::showHeldCard(VersionId version) {
  for (VerdictCard* card : cards()) {
    if (card->version() != version || !card->isOpen()) continue;
    m_scroll->ensureWidgetVisible(card);
    card->askForReason();
    return;
  }
}

void GatePanel::decideByHand(const QString& action, qint64 version, const QString& note) {
  m_bridge.submit(Decide{action.toStdString(), VersionId(version), m_bridge.user(), note.toStdString()}, this, [this](const CommandOutcome& outcome) {
    const QString text = QString::fromStdString(outcome.text);
    if (outcome.ok()) Q_EMIT applied(text);
    else Q_EMIT refused(text);
  });
}

QStringList GatePanel::verdictTexts() const {
  QStringList out;
  for (const VerdictCard* card : cards()) out << card->findChild<QLabel*>(QStringLiteral("reason"))->text();
  return out;
}

QStringList GatePanel::verdictHeads() const {
  QStringList out;
  for (const VerdictCard* card : cards()) out << card->headText();
  return out;
}

}  // namespace sluice::gui
