// SPDX-License-Identifier: GPL-3.0-or-later
#include "compare/inspect_page.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QGroupBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSplitter>
#include <QScrollBar>
#include <QTableView>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "compare/diff.h"
#include "compare/record_model.h"
#include "shell/format.h"
#include "shell/theme.h"
#include "shell/words.h"

namespace sluice::gui {
namespace {

constexpr int kPage = 200;

}  // namespace

InspectPage::InspectPage(EngineBridge& bridge, QWidget* parent) : QWidget(parent), m_bridge(bridge) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 6, 6, 6);
  auto* split = new QSplitter(Qt::Vertical, this);
  auto* top = new QWidget(split);
  auto* topLayout = new QVBoxLayout(top);
  topLayout->setContentsMargins(0, 0, 0, 0);
  topLayout->addWidget(makeAsk());
  topLayout->addWidget(makeAnswers(), 1);
  split->addWidget(top);
  split->addWidget(makeRecords());
  layout->addWidget(split);
  connect(&bridge, &EngineBridge::versionsChanged, this, &InspectPage::takeVersions);
  connect(&bridge, &EngineBridge::recordsArrived, this, &InspectPage::takeRecords);
  connect(&bridge, &EngineBridge::recordPageArrived, this, &InspectPage::takePage);
  connect(&bridge, &EngineBridge::feedbackArrived, this, [this](const Rows<FeedbackRow>& rows) { m_model->setVerdicts(*rows); });
  connect(&bridge, &EngineBridge::countsChanged, this, &InspectPage::refreshFates);
}

QWidget* InspectPage::makeAsk() {
  auto* box = new QGroupBox(tr("Try it"), this);
  auto* layout = new QVBoxLayout(box);
  m_prompt = new QPlainTextEdit(box);
  m_prompt->setObjectName(QStringLiteral("askPrompt"));
  m_prompt->setPlaceholderText(tr("Type a prompt. Ctrl+Return asks the version in service."));
  m_prompt->setTabChangesFocus(true);
  m_prompt->setMaximumHeight(fontMetrics().height() * 4);
  m_prompt->setAccessibleName(tr("Prompt"));
  m_ask = new QPushButton(tr("Ask"), box);
  m_ask->setObjectName(QStringLiteral("ask"));
  m_ask->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_Return));
  m_ask->setToolTip(tr("A live request with a receipt: you can label it, and the label trains"));
  m_both = new QPushButton(tr("Ask both"), box);
  m_both->setObjectName(QStringLiteral("askBoth"));
  m_both->setToolTip(tr("The same prompt and seed to both versions; such probes never train"));
  m_left = new QComboBox(box);
  m_right = new QComboBox(box);
  m_left->setAccessibleName(tr("Left version"));
  m_right->setAccessibleName(tr("Right version"));
  m_left->setObjectName(QStringLiteral("leftVersion"));
  m_right->setObjectName(QStringLiteral("rightVersion"));
  connect(m_right, &QComboBox::activated, this, [this] { m_rightChosen = true; });
  auto* row = new QHBoxLayout;
  row->addWidget(m_ask);
  row->addSpacing(fontMetrics().averageCharWidth() * 4);
  row->addWidget(m_left);
  row->addWidget(m_right);
  row->addWidget(m_both);
  row->addStretch(1);
  layout->addWidget(m_prompt);
  layout->addLayout(row);
  connect(m_ask, &QPushButton::clicked, this, [this] { ask(false); });
  connect(m_both, &QPushButton::clicked, this, [this] { ask(true); });
  return box;
}

QWidget* InspectPage::makeAnswers() {
  auto* box = new QWidget(this);
  auto* layout = new QVBoxLayout(box);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* sides = new QHBoxLayout;
  for (Side& side : m_sides) {
    auto* column = new QVBoxLayout;
    side.head = new QLabel(box);
    side.head->setObjectName(&side == m_sides ? QStringLiteral("leftHead") : QStringLiteral("rightHead"));
    side.head->setTextFormat(Qt::PlainText);
    side.head->setWordWrap(true);
    side.text = new QTextBrowser(box);
    side.text->setAccessibleName(&side == m_sides ? tr("Left answer") : tr("Right answer"));
    column->addWidget(side.head);
    column->addWidget(side.text, 1);
    sides->addLayout(column, 1);
  }
  layout->addLayout(sides, 1);
  auto* row = new QHBoxLayout;
  m_receipt = new QLabel(box);
  m_receipt->setObjectName(QStringLiteral("receipt"));
  m_receipt->setTextFormat(Qt::PlainText);
  m_receipt->setTextInteractionFlags(Qt::TextSelectableByMouse);
  m_accept = new QPushButton(tr("✓ Accept"), box);
  m_accept->setObjectName(QStringLiteral("askAccept"));
  m_reject = new QPushButton(tr("✕ Reject"), box);
  m_reject->setObjectName(QStringLiteral("askReject"));
  row->addWidget(m_receipt, 1);
  row->addWidget(m_accept);
  row->addWidget(m_reject);
  layout->addLayout(row);
  connect(m_accept, &QPushButton::clicked, this, [this] { label(FeedbackKind::kAccept); });
  connect(m_reject, &QPushButton::clicked, this, [this] { label(FeedbackKind::kReject); });
  showSides(tr("The answer appears here."), {}, tr("With “Ask both”, or with two records chosen below, the second one appears here."), {});
  m_accept->setEnabled(false);
  m_reject->setEnabled(false);
  return box;
}

QWidget* InspectPage::makeRecords() {
  auto* box = new QGroupBox(tr("Records"), this);
  auto* layout = new QVBoxLayout(box);
  auto* row = new QHBoxLayout;
  m_search = new QLineEdit(box);
  m_search->setObjectName(QStringLiteral("recordSearch"));
  m_search->setPlaceholderText(tr("Search prompts and answers"));
  m_search->setClearButtonEnabled(true);
  m_count = new QLabel(box);
  m_more = new QPushButton(tr("Older"), box);
  row->addWidget(m_search, 1);
  row->addWidget(m_count);
  row->addWidget(m_more);
  m_model = new RecordModel(this);
  m_table = new QTableView(box);
  m_table->setObjectName(QStringLiteral("records"));
  m_table->setModel(m_model);
  m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
  m_table->setSelectionMode(QAbstractItemView::ExtendedSelection);
  m_table->verticalHeader()->hide();
  m_table->horizontalHeader()->setHighlightSections(false);
  m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
  m_table->setShowGrid(false);
  m_table->setAlternatingRowColors(true);
  m_table->setWordWrap(false);
  m_table->horizontalHeader()->setSectionResizeMode(RecordModel::kReply, QHeaderView::Stretch);
  const int em = fontMetrics().averageCharWidth();
  m_table->setColumnWidth(RecordModel::kPrompt, em * 40);
  m_table->setColumnWidth(RecordModel::kVerdict, em * 34);
  m_table->setColumnWidth(RecordModel::kFate, em * 18);
  m_table->setAccessibleName(tr("Records"));
  layout->addLayout(row);
  layout->addWidget(m_table, 1);
  connect(m_search, &QLineEdit::returnPressed, this, &InspectPage::search);
  connect(m_search, &QLineEdit::textChanged, this, [this](const QString& text) {
    if (text.isEmpty()) search();
  });
  connect(m_more, &QPushButton::clicked, this, &InspectPage::loadMore);
  connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this, &InspectPage::showSelected);
  return box;
}

void InspectPage::compareVersions(VersionId left, VersionId right) {
  m_left->setCurrentIndex(m_left->findData(static_cast<qlonglong>(left.value)));
  m_right->setCurrentIndex(m_right->findData(static_cast<qlonglong>(right.value)));
  m_rightChosen = true;
  m_prompt->setFocus();
}

// Until someone chooses, the base stands left and what serves right; the newest where the base itself serves.
void InspectPage::takeVersions(const Rows<VersionRow>& rows) {
  VersionId serving;
  for (const VersionRow& row : *rows) {
    if (row.state == VersionState::kServing) serving = row.id;
  }
  for (QComboBox* combo : {m_left, m_right}) {
    if (combo->view()->isVisible()) continue;  // someone is choosing: the next change fills it
    const QVariant before = combo->currentData();
    combo->clear();
    for (const VersionRow& row : *rows) {
      if (row.state == VersionState::kPruned) continue;
      combo->addItem(versionTitle(row), static_cast<qlonglong>(row.id.value));
    }
    int index = before.isValid() ? combo->findData(before) : -1;
    const bool mine = combo == m_right && !m_rightChosen && serving != kBaseVersion;
    if (index < 0 || mine) index = combo == m_left ? 0 : mine ? combo->findData(static_cast<qlonglong>(serving.value)) : combo->count() - 1;
    combo->setCurrentIndex(index);
  }
}

void InspectPage::ask(bool both) {
  Ask command;
  command.prompt = m_prompt->toPlainText().trimmed().toStdString();
  if (command.prompt.empty()) {
    m_receipt->setText(tr("Type a prompt first."));
    m_prompt->setFocus();
    return;
  }
  if (both) command.versions = {VersionId(m_left->currentData().toLongLong()), VersionId(m_right->currentData().toLongLong())};
  m_ask->setEnabled(false);
  m_both->setEnabled(false);
  m_receipt->setText(tr("Waiting for the answer …"));
  m_bridge.submit(std::move(command), this, [this](const CommandOutcome& outcome) {
    m_ask->setEnabled(true);
    m_both->setEnabled(true);
    if (!outcome.ok()) {
      m_receipt->setText(QString::fromStdString(outcome.text));
      return;
    }
    showAnswers(outcome.answers);
  });
}

void InspectPage::showAnswers(const std::vector<Answer>& answers) {
  const QLocale locale;
  const auto head = [&](const Answer& a) {
    return tr("%1 · %n token(s) · %2 s · ended by %3", nullptr, a.tokens)
        .arg(adapterText(a.adapter_name), locale.toString(a.seconds, 'f', 1), endText(a.finish_reason));
  };
  const bool both = answers.size() > 1;
  showSides(head(answers[0]), QString::fromStdString(answers[0].text), both ? head(answers[1]) : QString(),
            both ? QString::fromStdString(answers[1].text) : QString());
  m_answered = both ? RecordId() : answers[0].record;
  m_receipt->setText(both ? tr("Probes: they never train.") : tr("Receipt %1").arg(QString::fromStdString(answers[0].record.text)));
  m_accept->setEnabled(m_answered.valid());
  m_reject->setEnabled(m_answered.valid());
}

void InspectPage::showSides(const QString& leftHead, const QString& left, const QString& rightHead, const QString& right) {
  m_sides[0].head->setText(leftHead);
  m_sides[1].head->setText(rightHead);
  m_sides[0].plain = left;
  m_sides[1].plain = right;
  if (left.isEmpty() || right.isEmpty()) {
    m_sides[0].text->setPlainText(left);
    m_sides[1].text->setPlainText(right);
    return;
  }
  const Theme theme(palette());
  const auto pieces = wordDiff(left, right);
  for (int side = 0; side < 2; ++side) {
    m_sides[side].text->setHtml(diffHtml(pieces, side == 1, theme.removed().name(), theme.added().name()));
  }
}

void InspectPage::label(FeedbackKind kind) {
  GiveLabel command;
  command.record = m_answered;
  command.kind = kind;
  command.labeller = m_bridge.user();
  m_accept->setEnabled(false);
  m_reject->setEnabled(false);
  m_bridge.submit(std::move(command), this, [this, kind](const CommandOutcome& outcome) {
    if (!outcome.ok()) {
      m_accept->setEnabled(true);
      m_reject->setEnabled(true);
      Q_EMIT refused(QString::fromStdString(outcome.text));
      return;
    }
    const QString text = (kind == FeedbackKind::kAccept ? tr("Accepted (%1)") : tr("Rejected (%1)")).arg(feedbackStateText(outcome.feedback_state));
    m_receipt->setText(m_receipt->text() + QStringLiteral(" · ") + text);
    Q_EMIT labelled(text);
  });
}

void InspectPage::takeRecords(const Rows<RecordRow>& rows) {
  if (!m_search->text().isEmpty()) return;  // a search shows what was found; new rows wait until it is cleared
  std::vector<RecordRow> live;  // a page that was asked for meanwhile may hold some already
  for (const RecordRow& row : *rows) {
    if (row.purpose == Purpose::kLive && row.seq > m_model->newestSeq()) live.push_back(row);
  }
  const bool atTop = m_table->verticalScrollBar()->value() == 0 && !m_table->selectionModel()->hasSelection();
  m_model->prepend(live);
  if (atTop) m_table->scrollToTop();
  showCount();
}

void InspectPage::search() {
  m_model->clear();
  loadMore();
}

void InspectPage::loadMore() {
  RecordFilter filter;
  filter.purpose = Purpose::kLive;
  filter.text = m_search->text().toStdString();
  m_page = m_bridge.requestRecordPage(filter, m_model->oldestSeq(), kPage);
}

void InspectPage::takePage(quint64 request, const Rows<RecordRow>& rows) {
  if (request == m_fates) m_model->update(*rows);
  if (request != m_page) return;
  std::vector<RecordRow> older;  // new rows may have arrived while the page was read
  for (const RecordRow& row : *rows) {
    if (m_model->empty() || row.seq < m_model->oldestSeq()) older.push_back(row);
  }
  m_model->append(older);
  m_more->setEnabled(static_cast<int>(rows->size()) == kPage);
  showCount();
}

void InspectPage::showCount() {
  m_count->setText(m_model->empty() ? tr("Nothing found") : tr("%n shown", nullptr, m_model->rowCount()));
}

void InspectPage::refreshFates(const StoreCounts& counts) {
  if (counts.trained == m_trained) return;
  m_trained = counts.trained;
  RecordFilter filter;
  filter.purpose = Purpose::kLive;
  m_fates = m_bridge.requestRecordPage(filter, 0, kPage);
}

void InspectPage::showSelected() {
  std::vector<const RecordRow*> chosen;
  for (const QModelIndex& index : m_table->selectionModel()->selectedRows()) chosen.push_back(&m_model->record(index.row()));
  if (chosen.empty()) return;
  const auto head = [](const RecordRow& r) {
    return tr("%1 · %2\n%3").arg(adapterText(r.adapter_name), timeText(r.served_us), QString::fromStdString(r.prompt_text).simplified().left(200));
  };
  const bool two = chosen.size() > 1;
  showSides(head(*chosen[0]), QString::fromStdString(chosen[0]->completion_text), two ? head(*chosen[1]) : tr("Choose a second record to compare (Ctrl+click)."),
            two ? QString::fromStdString(chosen[1]->completion_text) : QString());
  m_answered = two || chosen[0]->used_in_step.valid() ? RecordId() : chosen[0]->id;
  m_receipt->setText(two ? tr("Words only on the left are struck out, words only on the right underlined.")
                         : tr("Receipt %1").arg(QString::fromStdString(chosen[0]->id.text)));
  m_accept->setEnabled(m_answered.valid());
  m_reject->setEnabled(m_answered.valid());
}

QString InspectPage::answerText(int side) const { return m_sides[side].plain; }
int InspectPage::recordCount() const { return m_model->rowCount(); }

}  // namespace sluice::gui
