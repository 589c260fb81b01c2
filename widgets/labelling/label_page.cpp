// SPDX-License-Identifier: GPL-3.0-or-later
#include "labelling/label_page.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QTextBrowser>
#include <QVBoxLayout>
#include <algorithm>
#include <unordered_map>

#include "shell/format.h"
#include "shell/outcome_text.h"
#include "shell/words.h"

namespace sluice::gui {
namespace {

constexpr int kPage = 200;
constexpr int kMostPages = 50;  // that one look goes back
constexpr std::size_t kLow = 20;       // fetch more when fewer wait
constexpr std::size_t kHistory = 10;

}  // namespace

LabelPage::LabelPage(EngineBridge& bridge, QWidget* parent) : QWidget(parent), m_bridge(bridge) {
  build();
  setFocusPolicy(Qt::StrongFocus);
  connect(&bridge, &EngineBridge::recordPageArrived, this, &LabelPage::takePage);
  connect(&bridge, &EngineBridge::recordsArrived, this, &LabelPage::takeRecords);
  connect(&bridge, &EngineBridge::countsChanged, this, &LabelPage::askFates);
  connect(&bridge, &EngineBridge::recordArrived, this,
          [this](quint64, const Rows<RecordRow>& record, const Rows<FeedbackRow>& feedback) { takeFate(record, feedback); });
  showCurrent();
}

void LabelPage::build() {
  auto* outer = new QHBoxLayout(this);
  auto* left = new QVBoxLayout;
  m_progress = new QLabel(this);
  m_progress->setObjectName(QStringLiteral("labelProgress"));
  m_prompt = new QLabel(this);
  m_prompt->setObjectName(QStringLiteral("labelPrompt"));
  m_prompt->setTextFormat(Qt::PlainText);
  m_prompt->setWordWrap(true);
  m_prompt->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_reply = new QTextBrowser(this);
  m_reply->setObjectName(QStringLiteral("labelReply"));
  m_reply->setFocusPolicy(Qt::NoFocus);  // the page has the keys
  QFont large = m_reply->font();
  large.setPointSizeF(large.pointSizeF() * 1.4);
  m_reply->setFont(large);
  m_prompt->setFont(large);
  m_status = new QLabel(this);
  m_status->setObjectName(QStringLiteral("labelStatus"));
  m_status->setTextFormat(Qt::PlainText);
  m_status->setWordWrap(true);
  auto* buttons = new QHBoxLayout;
  const auto button = [&](const QString& text, const char* name, void (LabelPage::*run)()) {
    auto* b = new QPushButton(text, this);
    b->setObjectName(QString::fromLatin1(name));
    b->setFocusPolicy(Qt::NoFocus);
    b->setMinimumHeight(fontMetrics().height() * 2);
    connect(b, &QPushButton::clicked, this, run);
    buttons->addWidget(b);
    return b;
  };
  m_accept = button(tr("Accept (A)"), "labelAccept", &LabelPage::accept);
  m_reject = button(tr("Reject (X)"), "labelReject", &LabelPage::reject);
  m_skip = button(tr("Skip (S)"), "labelSkip", &LabelPage::skip);
  m_undo = button(tr("Undo (U)"), "labelUndo", &LabelPage::undo);
  m_again = button(tr("Show the skipped again (G)"), "labelAgain", &LabelPage::showSkipped);
  left->addWidget(m_progress);
  left->addWidget(m_prompt);
  left->addWidget(m_reply, 1);
  left->addLayout(buttons);
  left->addWidget(m_status);
  auto* right = new QVBoxLayout;
  right->addWidget(new QLabel(tr("Your last ten decisions"), this));
  m_history = new QListWidget(this);
  m_history->setObjectName(QStringLiteral("labelHistory"));
  m_history->setFocusPolicy(Qt::NoFocus);
  m_history->setWordWrap(true);
  right->addWidget(m_history, 1);
  outer->addLayout(left, 3);
  outer->addLayout(right, 1);
}

void LabelPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  setFocus();
  fetch();  // what came and what was trained on while nobody looked
}

// The newest that may be labelled: what is new joins the queue, what a step used or another person labelled leaves it.
void LabelPage::fetch() {
  m_pagesLeft = kMostPages;
  askPage(0);
}

void LabelPage::askPage(qint64 beforeSeq) {
  RecordFilter filter;
  filter.purpose = Purpose::kLive;
  filter.without_human_label = true;
  m_pageRequest = m_bridge.requestRecordPage(filter, beforeSeq, kPage);
}

void LabelPage::takePage(quint64 request, const Rows<RecordRow>& rows) {
  if (request != m_pageRequest) return;
  prune(*rows);
  for (const RecordRow& row : *rows) enqueue(row);
  // Many may be behind that a step has used or that are held out: older ones wait for a label all the same.
  const bool more = static_cast<int>(rows->size()) == kPage && --m_pagesLeft > 0;
  if (more && m_queue.size() < kLow) askPage(rows->back().seq);
  showCurrent();
}

// `page`: newest first. What lies behind it leaves the queue, too, and comes again when the queue runs low.
void LabelPage::prune(const std::vector<RecordRow>& page) {
  if (page.empty() || m_queue.empty()) return;
  std::unordered_map<std::string, StepId> used;
  for (const RecordRow& row : page) used.emplace(row.id.text, row.used_in_step);
  const auto shown = used.find(m_queue.front().id.text);
  if (shown != used.end()) m_queue.front().used_in_step = shown->second;  // it stays under the reader's eyes
  const auto gone = std::remove_if(std::next(m_queue.begin()), m_queue.end(), [&](const RecordRow& row) {
    if (row.seq > page.front().seq) return false;  // came after the page was read
    const auto found = used.find(row.id.text);
    if (found != used.end() && !found->second.valid()) return false;
    m_seen.erase(row.id.text);
    return true;
  });
  m_queue.erase(gone, m_queue.end());
}

void LabelPage::takeRecords(const Rows<RecordRow>& rows) {
  if (!isVisible()) return;  // the queue is filled from the store when the page is shown
  for (auto row = rows->rbegin(); row != rows->rend(); ++row) enqueue(*row);
  showCurrent();
}

// Newest first, behind the one that is shown: nothing may slip under the key of someone who reads.
void LabelPage::enqueue(const RecordRow& row) {
  if (row.purpose != Purpose::kLive || !row.complete || row.completion_text.empty()) return;
  if (row.split != Split::kTrain || row.used_in_step.valid()) return;
  if (!m_seen.insert(row.id.text).second) return;
  const auto rest = m_queue.begin() + (m_queue.empty() ? 0 : 1);
  m_queue.insert(std::find_if(rest, m_queue.end(), [&row](const RecordRow& other) { return other.seq < row.seq; }), row);
}

// A step was made: the shown decisions may be among what it used, and so may what waits here.
void LabelPage::askFates(const StoreCounts& counts) {
  if (counts.trained == m_trained) return;
  m_trained = counts.trained;
  if (isVisible()) fetch();
  std::size_t shown = 0;
  for (auto it = m_done.rbegin(); it != m_done.rend() && shown < kHistory; ++it, ++shown) m_bridge.requestRecord(it->record.id);
}

void LabelPage::takeFate(const Rows<RecordRow>& record, const Rows<FeedbackRow>& feedback) {
  if (record->empty()) return;
  const StepId step = record->front().used_in_step;
  for (Done& done : m_done) {
    for (const FeedbackRow& row : *feedback) {
      if (done.feedback != row.id) continue;
      done.fate = step.valid() ? tr("used in step %1").arg(step.value) : feedbackStateText(row.state);
    }
  }
  showHistory();
}

QString LabelPage::currentRecord() const { return m_queue.empty() ? QString() : QString::fromStdString(m_queue.front().id.text); }
QString LabelPage::statusText() const { return m_status->text(); }

void LabelPage::showCurrent() {
  const bool any = !m_queue.empty();
  m_progress->setText(any ? tr("%1 to label (newest first) · %2 decided here · %3 skipped").arg(m_queue.size()).arg(m_decided).arg(m_skipped.size())
                          : tr("%1 decided here · %2 skipped").arg(m_decided).arg(m_skipped.size()));
  m_prompt->setText(any               ? QString::fromStdString(m_queue.front().prompt_text)
                    : offersSkipped() ? tr("Only the replies that you skipped are left.")
                                      : tr("Replies to label appear here."));
  m_reply->setPlainText(any               ? QString::fromStdString(m_queue.front().completion_text)
                        : offersSkipped() ? tr("G shows them again, U only the one that you skipped last.")
                                          : tr("Send a request to the server, use “Try it”, or start a session: every answer can be labelled. "
                                               "Your verdicts train the next update."));
  if (any && m_queue.front().used_in_step.valid() && m_status->text().isEmpty()) {
    m_status->setText(tr("Step %1 used this reply meanwhile: your verdict counts for rates, not for training.").arg(m_queue.front().used_in_step.value));
  }
  for (QPushButton* button : {m_accept, m_reject, m_skip}) button->setEnabled(any && !m_saving);
  m_undo->setEnabled(!m_saving && (!m_done.empty() || !m_skipped.empty()));
  m_again->setVisible(offersSkipped());
}

void LabelPage::accept() { decide(FeedbackKind::kAccept); }
void LabelPage::reject() { decide(FeedbackKind::kReject); }

void LabelPage::decide(FeedbackKind kind) {
  if (m_queue.empty() || m_saving) return;
  m_saving = true;
  showCurrent();
  GiveLabel command;
  command.record = m_queue.front().id;
  command.kind = kind;
  command.labeller = m_bridge.user();
  m_bridge.submit(std::move(command), this, [this, kind](const CommandOutcome& outcome) {
    m_saving = false;
    if (!outcome.ok()) {
      m_status->setText(tr("Not saved: %1 The reply stays here; try again.").arg(QString::fromStdString(outcome.text)));
      showCurrent();
      return;
    }
    Done done{std::move(m_queue.front()), *outcome.feedback, kind, feedbackStateText(outcome.feedback_state), false};
    m_queue.pop_front();
    m_done.push_back(std::move(done));
    ++m_decided;
    m_status->clear();
    showHistory();
    showCurrent();
    if (m_queue.size() < kLow) fetch();
  });
}

void LabelPage::skip() {
  if (m_queue.empty() || m_saving) return;
  m_skipped.push_back({std::move(m_queue.front()), m_done.size()});
  m_queue.pop_front();
  m_status->clear();
  showCurrent();
}

void LabelPage::undo() {
  if (m_saving) return;
  if (!m_skipped.empty() && m_skipped.back().decidedBefore == m_done.size()) return takeSkipBack();
  takeLabelBack();
}

void LabelPage::takeSkipBack() {
  m_queue.push_front(std::move(m_skipped.back().record));
  m_skipped.pop_back();
  m_status->clear();
  fetch();  // a step may have used it meanwhile
  showCurrent();
}

void LabelPage::showSkipped() {
  if (m_saving || !offersSkipped()) return;
  for (Skipped& skipped : m_skipped) m_queue.push_back(std::move(skipped.record));
  m_skipped.clear();
  std::sort(m_queue.begin(), m_queue.end(), [](const RecordRow& a, const RecordRow& b) { return a.seq > b.seq; });
  m_status->clear();
  fetch();  // what a step used or another person labelled meanwhile leaves the queue
  showCurrent();
}

void LabelPage::takeLabelBack() {
  auto last = m_done.rbegin();
  while (last != m_done.rend() && last->retracted) ++last;
  if (last == m_done.rend()) return;
  m_saving = true;
  showCurrent();
  const FeedbackId feedback = last->feedback;
  m_bridge.submit(TakeLabelBack{feedback}, this, [this, feedback](const CommandOutcome& outcome) {
    m_saving = false;
    if (outcome.ok()) {
      for (auto it = m_done.begin(); it != m_done.end(); ++it) {
        if (it->feedback != feedback) continue;
        // Back to that reply, first in the queue.
        m_queue.push_front(std::move(it->record));
        m_done.erase(it);
        --m_decided;
        break;
      }
      fetch();  // a page that was asked for before the label went would take the reply out again
      m_status->setText(outcomeText(TakeLabelBack{}, outcome, m_bridge.state()));
    } else {
      m_status->setText(tr("Not taken back: %1").arg(QString::fromStdString(outcome.text)));
    }
    showHistory();
    showCurrent();
  });
}

void LabelPage::showHistory() {
  m_history->clear();
  std::size_t shown = 0;
  for (auto it = m_done.rbegin(); it != m_done.rend() && shown < kHistory; ++it, ++shown) {
    const QString verdict = it->kind == FeedbackKind::kAccept ? tr("✓ accepted") : tr("✕ rejected");
    QString line = tr("%1 · %2 · %3").arg(verdict, versionText(it->record.version.value), it->fate);
    line += QLatin1Char('\n') + QString::fromStdString(it->record.prompt_text).left(80);
    m_history->addItem(line);
  }
}

QStringList LabelPage::history() const {
  QStringList out;
  for (int i = 0; i < m_history->count(); ++i) out << m_history->item(i)->text();
  return out;
}

void LabelPage::keyPressEvent(QKeyEvent* event) {
  // A held key must not accept replies nobody read.
  if (event->isAutoRepeat() || (event->modifiers() & ~Qt::ShiftModifier)) return QWidget::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_A: return accept();
    case Qt::Key_X: return reject();
    case Qt::Key_S: return skip();
    case Qt::Key_U: return undo();
    case Qt::Key_G: return showSkipped();
    default: QWidget::keyPressEvent(event);
  }
}

}  // namespace sluice::gui
