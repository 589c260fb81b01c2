// SPDX-License-Identifier: GPL-3.0-or-later
// The notices that stand while something about the engine or its session holds, each with the way on.
#include "workbench/main_window.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "curves/curves_page.h"
#include "gate/gate_panel.h"
#include "shell/actions.h"
#include "shell/format.h"
#include "shell/info_bar.h"
#include "shell/words.h"

namespace sluice::gui {
namespace {

using Severity = InfoBar::Severity;
constexpr int kNamed = 4;                        // held versions named in one line
constexpr std::int64_t kFirst = 32, kLast = 64;  // verdicts that stand for the beginning and the end of a demo

QStringList newestOf(const std::vector<VersionId>& versions) {
  QStringList names;
  for (std::size_t i = versions.size() > kNamed ? versions.size() - kNamed : 0; i < versions.size(); ++i) names << versionText(versions[i].value);
  return names;
}

using Verdicts = std::vector<double>;  // 1 = accepted

QString acceptedText(Verdicts::const_iterator from, Verdicts::const_iterator to) {
  return rateText(std::count_if(from, to, [](double verdict) { return verdict > 0; }), std::distance(from, to));
}

// What a session that waits for an answer says; empty while it goes on.
QString plateauText(const EngineState& s) {
  if (!s.session || !s.train.asks) return {};
  const auto& held = s.gate.held;
  if (held.empty()) return MainWindow::tr("Training waits for you: it is %n step(s) ahead of what serves, and the gate has nothing left to measure.", nullptr, static_cast<int>(s.train.steps_ahead));
  return MainWindow::tr("Training waits for you: the gate could not decide on %n candidate(s), which are held (%1), and has nothing left to "
                        "measure. Promote or reject by hand, train on to the next candidate, or discard what was learnt since %2.", nullptr, static_cast<int>(held.size()))
      .arg((held.size() > kNamed ? QStringLiteral("… ") : QString()) + newestOf(held).join(MainWindow::tr(", ")), adapterText(s.serving_name));
}

// What a session that has nothing left to do says; empty while it has.
QString throughText(const EngineState& s) {
  if (!s.session || !s.session_through) return {};
  return MainWindow::tr("The demo “%1” is through: its requests are answered, and the last candidate is judged.").arg(QString::fromStdString(s.session->name));
}

// What it came to, from its own verdicts; empty where those are too few to tell a beginning from an end.
QString gainText(const Verdicts& verdicts) {
  if (std::ssize(verdicts) < kFirst + kLast) return {};
  return MainWindow::tr("Accepted at first: %1; at last: %2.")
      .arg(acceptedText(verdicts.begin(), verdicts.begin() + kFirst), acceptedText(verdicts.end() - kLast, verdicts.end()));
}

}  // namespace

// What stands until it is over. The state is read several times a second, and a notice is made when its text changes only: its
// text can be selected, one that was dismissed stays away, and one that no longer holds goes.
void MainWindow::showStanding(const EngineState& s) {
  const auto news = [this](const char* id, QString& last, const QString& text) {
    if (text == last) return false;
    last = text;
    if (last.isEmpty()) m_info->dismiss(QString::fromLatin1(id));
    return !last.isEmpty();
  };
  if (news("server", m_lastServerError, QString::fromStdString(s.server_error))) {
    m_info->show(QStringLiteral("server"), Severity::kWarning, m_lastServerError, {{tr("Choose port …"), [this] { choosePort(); }}});
  }
  if (news("brake", m_lastBrake, QString::fromStdString(s.train.brake))) {
    m_info->dismiss(QStringLiteral("warning"));  // the log's line on it, told without the way on
    m_info->show(QStringLiteral("brake"), Severity::kWarning, tr("Training stopped: %1").arg(m_lastBrake),
                 {{tr("Go on"), [this] { send(ResumeSession{}, tr("Resuming …")); }}});
  }
  if (news("through", m_lastThrough, throughText(s))) showThrough(s);
  if (news("plateau", m_lastPlateau, plateauText(s))) showPlateau(s);
  if (news("store", m_lastStoreError, QString::fromStdString(s.store_error))) m_info->show(QStringLiteral("store"), Severity::kError, m_lastStoreError);
}

// The gate decided on nothing of what was learnt: nothing goes on until someone answers (gate.md §4).
void MainWindow::showPlateau(const EngineState& s) {
  m_info->dismiss(QStringLiteral("warning"));  // as above
  std::vector<InfoBar::Action> actions;
  if (!s.gate.held.empty()) {
    const qint64 newest = s.gate.held.back().value;
    // The card has the sentence, the numbers, and the two buttons with the reason that they need.
    actions.push_back({tr("Decide on %1 …").arg(versionText(newest)), [this, newest] {
      setMode(Mode::kOperate);
      m_gate->showHeldCard(VersionId(newest));
    }, true});
  }
  actions.push_back({tr("Train on"), [this] { send(TrainOn{}, tr("Training on …")); }});
  actions.push_back({tr("Discard the steps"), [this] { send(DiscardTraining{}, tr("Discarding …")); }});
  m_info->show(QStringLiteral("plateau"), Severity::kWarning, m_lastPlateau, std::move(actions));
}

// What session and trainer warn of is for whoever watches them, and the log is hidden at first. One notice for all: the newest,
// and how many came before it.
void MainWindow::showWarnings(const Rows<LogRow>& rows) {
  const QString id = QStringLiteral("warning");
  const TrainProgress& train = m_bridge->state().train;
  for (const LogRow& row : *rows) {
    if (row.level != "warning" || (row.category != "session" && row.category != "train") || row.time_us < m_openedUs) continue;
    if (train.asks || row.text == train.brake) continue;  // a standing notice says it
    m_warnings = m_info->has(id) ? m_warnings + 1 : 1;
    const QString text = QString::fromStdString(row.text);
    m_info->show(id, Severity::kWarning, m_warnings == 1 ? text : tr("%1 (Warnings before it, in the log: %2)").arg(text, QString::number(m_warnings - 1)),
                 {{tr("Show log"), [this] { (*m_actions)[QStringLiteral("log")]->trigger(); }}});
  }
}

// Nothing goes on by itself any more, and nothing else can be started before it is ended.
void MainWindow::showThrough(const EngineState& s) {
  const QString gain = gainText(m_curves->verdicts(s.session->id));
  const QString on = tr("%1 serves on; your own verdicts still train.").arg(adapterText(s.serving_name));
  QStringList text{m_lastThrough, gain, on};
  text.removeAll(QString());
  m_info->show(QStringLiteral("through"), Severity::kNotice, text.join(QLatin1Char(' ')),
               {{tr("End session"), [this] { send(EndSession{}, tr("Ending the session …")); }, true}});
}

}  // namespace sluice::gui
