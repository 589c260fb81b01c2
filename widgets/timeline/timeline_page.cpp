// SPDX-License-Identifier: GPL-3.0-or-later
#include "timeline/timeline_page.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QSplitter>
#include <QTableWidget>
#include <QVBoxLayout>

#include "shell/format.h"
#include "shell/theme.h"
#include "shell/words.h"
#include "timeline/lane_view.h"
#include "timeline/roll_back_sheet.h"

namespace sluice::gui {
namespace {

enum Column { kVersion, kState, kRates, kDecision, kWhen, kColumns };

// As the registry has it: what was taken out does not come back this way.
bool canRollBackTo(VersionState state) { return state == VersionState::kRetired; }

}  // namespace

TimelinePage::TimelinePage(EngineBridge& bridge, QWidget* parent)
    : QWidget(parent), m_bridge(bridge), m_lanes(new LaneView(this)), m_table(new QTableWidget(0, kColumns, this)) {
  m_table->setObjectName(QStringLiteral("versionTable"));
  m_table->setHorizontalHeaderLabels({tr("Version"), tr("State"), tr("Accepted: it / in service"), tr("Decision"), tr("When")});
  m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
  m_table->setSelectionMode(QAbstractItemView::SingleSelection);
  m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  m_table->verticalHeader()->hide();
  m_table->horizontalHeader()->setHighlightSections(false);
  m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
  m_table->setShowGrid(false);
  m_table->horizontalHeader()->setSectionResizeMode(kDecision, QHeaderView::Stretch);
  m_table->setAccessibleName(tr("Adapter versions"));
  m_table->setWordWrap(false);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 6, 6, 6);
  layout->addWidget(m_lanes);
  auto* split = new QSplitter(Qt::Horizontal, this);
  split->addWidget(m_table);
  split->addWidget(makeCard());
  split->setObjectName(QStringLiteral("versionsAndCard"));
  split->setStretchFactor(0, 3);
  split->setStretchFactor(1, 1);
  split->setSizes({600, 300});
  layout->addWidget(split, 1);
  connect(&bridge, &EngineBridge::versionsChanged, this, &TimelinePage::takeVersions);
  connect(&bridge, &EngineBridge::decisionsArrived, this, &TimelinePage::takeDecisions);
  connect(m_lanes, &LaneView::versionClicked, this, [this](qint64 version) { select(VersionId(version)); });
  connect(m_table, &QTableWidget::itemSelectionChanged, this, [this] {
    const auto items = m_table->selectedItems();
    if (!items.isEmpty()) select(VersionId(m_table->item(items.front()->row(), kVersion)->data(Qt::UserRole).toLongLong()));
  });
  showCard();
}

QWidget* TimelinePage::makeCard() {
  auto* box = new QWidget(this);
  auto* layout = new QVBoxLayout(box);
  layout->setContentsMargins(6, 0, 0, 0);
  auto* scroll = new QScrollArea(box);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  m_card = new QLabel(scroll);
  m_card->setObjectName(QStringLiteral("versionCard"));
  m_card->setWordWrap(true);
  m_card->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  m_card->setTextInteractionFlags(Qt::TextSelectableByMouse);
  scroll->setWidget(m_card);
  m_rollBack = new QPushButton(tr("Roll back to this version …"), box);
  m_rollBack->setObjectName(QStringLiteral("rollBack"));
  m_compare = new QPushButton(tr("Compare answers …"), box);
  m_export = new QPushButton(tr("Export …"), box);
  m_export->setObjectName(QStringLiteral("exportVersion"));
  layout->addWidget(scroll, 1);
  auto* row = new QHBoxLayout;
  row->addWidget(m_compare);
  row->addWidget(m_export);
  layout->addWidget(m_rollBack);
  layout->addLayout(row);
  connect(m_rollBack, &QPushButton::clicked, this, &TimelinePage::rollBack);
  connect(m_compare, &QPushButton::clicked, this, [this] { Q_EMIT compareRequested(m_selected.value); });
  connect(m_export, &QPushButton::clicked, this, [this] { Q_EMIT exportRequested(m_selected.value); });
  return box;
}

const VersionRow* TimelinePage::row(VersionId version) const {
  for (const VersionRow& row : m_versions) {
    if (row.id == version) return &row;
  }
  return nullptr;
}

const DecisionRow* TimelinePage::lastDecision(VersionId version) const {
  for (auto it = m_decisions.rbegin(); it != m_decisions.rend(); ++it) {
    const bool about = it->reason_code != "freeze" && it->reason_code != "unfreeze";  // of the service, not of the version
    if (it->version == version && it->kind != "startup" && about) return &*it;
  }
  return nullptr;
}

void TimelinePage::takeVersions(const Rows<VersionRow>& rows) {
  m_versions = *rows;
  rebuild();
}

void TimelinePage::takeDecisions(const Rows<DecisionRow>& rows) {
  m_decisions.insert(m_decisions.end(), rows->begin(), rows->end());
  rebuild();
}

void TimelinePage::rebuild() {
  m_lanes->setRows(m_versions, m_decisions);
  const QSignalBlocker block(m_table);
  const Theme theme(palette());
  m_table->setRowCount(static_cast<int>(m_versions.size()));
  for (std::size_t i = 0; i < m_versions.size(); ++i) {
    const VersionRow& version = m_versions[m_versions.size() - 1 - i];  // newest first
    const DecisionRow* decision = lastDecision(version.id);
    const auto put = [&](int column, const QString& text) {
      auto* item = new QTableWidgetItem(text);
      item->setData(Qt::UserRole, static_cast<qlonglong>(version.id.value));
      item->setToolTip(plainToolTip(text));
      if (version.state == VersionState::kServing) {
        QFont bold = item->font();
        bold.setBold(true);
        item->setFont(bold);
      }
      if (version.state == VersionState::kRejected) item->setForeground(theme.fail());
      m_table->setItem(static_cast<int>(i), column, item);
    };
    put(kVersion, versionTitle(version));
    put(kState, versionStateText(version.state));
    const bool rated = decision && decision->candidate_n > 0;
    put(kRates, rated ? tr("%1/%2 : %3/%4").arg(decision->candidate_k).arg(decision->candidate_n).arg(decision->incumbent_k).arg(decision->incumbent_n) : QString());
    put(kDecision, decision ? QString::fromStdString(decision->reason_text) : QString());
    put(kWhen, timeText(version.state_us ? version.state_us : version.created_us));
    if (version.id == m_selected) m_table->selectRow(static_cast<int>(i));
  }
  for (const int column : {kVersion, kState, kRates, kWhen}) m_table->resizeColumnToContents(column);
  showCard();
}

void TimelinePage::select(VersionId version) {
  m_selected = version;
  m_lanes->setSelected(version);
  const QSignalBlocker block(m_table);
  for (int i = 0; i < m_table->rowCount(); ++i) {
    if (m_table->item(i, kVersion)->data(Qt::UserRole).toLongLong() == version.value) m_table->selectRow(i);
  }
  showCard();
}

QString TimelinePage::rollBackReason() const {
  const VersionRow* version = row(m_selected);
  if (!version) return tr("Choose a version first.");
  if (version->state == VersionState::kServing) return tr("This version serves already.");
  if (version->state == VersionState::kPruned) return tr("%1 can't serve: its files were deleted.").arg(versionText(m_selected.value));
  if (version->state == VersionState::kQuarantined) return tr("%1 was taken out: it can't be rolled back to.").arg(versionText(m_selected.value));
  if (!canRollBackTo(version->state)) return tr("%1 never served: only versions that did can be rolled back to.").arg(versionText(m_selected.value));
  return {};
}

void TimelinePage::showCard() {
  const VersionRow* version = row(m_selected);
  const QString reason = rollBackReason();
  m_rollBack->setEnabled(reason.isEmpty());
  m_rollBack->setToolTip(reason.isEmpty() ? tr("Asks first; done within a second; can be undone (Ctrl+Shift+B)") : reason);
  m_compare->setEnabled(version && version->state != VersionState::kPruned && version->id != kBaseVersion);
  m_export->setEnabled(m_compare->isEnabled());
  if (!version) {
    m_card->setText(tr("Choose a version in the timeline or the table."));
    return;
  }
  QStringList lines{QStringLiteral("<b>%1</b> %2").arg(versionText(version->id.value), labelText(version->label).toHtmlEscaped()),
                    tr("State: %1").arg(versionStateText(version->state))};
  if (version->id != kBaseVersion) {
    lines << tr("Parent: %1, %n step(s) along its line", nullptr, static_cast<int>(version->head_step)).arg(versionText(version->parent.value))
          << tr("Rank %1, %2").arg(version->rank).arg(bytesText(version->bytes))
          << tr("Hash %1 …").arg(QString::fromStdString(version->content_hash.substr(0, 12)));
  }
  lines << tr("Made %1").arg(timeText(version->created_us));
  for (const DecisionRow& decision : m_decisions) {
    if (decision.version != version->id || decision.kind == "startup") continue;
    lines << QStringLiteral("<i>%1</i> %2").arg(timeText(decision.time_us), QString::fromStdString(decision.reason_text).toHtmlEscaped());
    if (!decision.note.empty()) lines << tr("Note: %1").arg(QString::fromStdString(decision.note).toHtmlEscaped());
  }
  m_card->setText(lines.join(QStringLiteral("<br>")));
}

void TimelinePage::rollBack() {
  const QString reason = rollBackReason();
  if (!reason.isEmpty()) {
    Q_EMIT refused(reason);
    return;
  }
  const VersionId target = m_selected;
  VersionId now = m_bridge.state().serving;  // polled: the rows know first
  for (const VersionRow& version : m_versions) {
    if (version.state == VersionState::kServing) now = version.id;
  }
  auto* sheet = new RollBackSheet(*row(target), row(now), lastDecision(target), this);
  sheet->setAttribute(Qt::WA_DeleteOnClose);
  connect(sheet, &QDialog::accepted, this, [this, sheet, target, now] {
    Decide command{"rollback", target, m_bridge.user(), sheet->note().toStdString()};
    m_rollBack->setEnabled(false);
    m_bridge.submit(command, this, [this, target, now](const CommandOutcome& outcome) {
      showCard();
      if (outcome.ok()) {
        Q_EMIT rolledBack(QString::fromStdString(outcome.text), target.value, now.value);
      } else {
        Q_EMIT refused(QString::fromStdString(outcome.text));
      }
    });
  });
  sheet->open();
}

QStringList TimelinePage::rowTexts() const {
  QStringList out;
  for (int i = 0; i < m_table->rowCount(); ++i) {
    QStringList cells;
    for (int c = 0; c < kColumns; ++c) cells << m_table->item(i, c)->text();
    out << cells.join(QLatin1Char('\t'));
  }
  return out;
}

}  // namespace sluice::gui
