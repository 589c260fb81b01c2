// SPDX-License-Identifier: GPL-3.0-or-later
// The notices that stand while something about the engine or its session holds, each with the way on.
#include "workbench/main_window.h"

#include <vector>

#include "gate/gate_panel.h"
#include "shell/format.h"
#include "shell/info_bar.h"
#include "shell/words.h"

namespace sluice::gui {
namespace {

using Severity = InfoBar::Severity;
constexpr int kNamed = 4;  // held versions named in one line

QStringList newestOf(const std::vector<VersionId>& versions) {
  QStringList names;
  for (std::size_t i = versions.size() > kNamed ? versions.size() - kNamed : 0; i < versions.size(); ++i) names << versionText(versions[i].value);
  return names;
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
    m_info->show(QStringLiteral("brake"), Severity::kWarning, tr("Training stopped: %1").arg(m_lastBrake),
                 {{tr("Go on"), [this] { send(ResumeSession{}, tr("Resuming …")); }}});
  }
  if (news("plateau", m_lastPlateau, plateauText(s))) showPlateau(s);
  if (news("store", m_lastStoreError, QString::fromStdString(s.store_error))) m_info->show(QStringLiteral("store"), Severity::kError, m_lastStoreError);
}

// The gate decided on nothing of what was learnt: nothing goes on until someone answers (gate.md §4).
void MainWindow::showPlateau(const EngineState& s) {
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

}  // namespace sluice::gui
