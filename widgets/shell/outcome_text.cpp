// SPDX-License-Identifier: GPL-3.0-or-later
#include "shell/outcome_text.h"

#include <QCoreApplication>
#include <variant>

#include "shell/words.h"

namespace sluice::gui {
namespace {

struct Say {
  const CommandOutcome& outcome;
  const EngineState& state;

  // lupdate files these texts under the name of this struct.
  static QString tr(const char* text) { return QCoreApplication::translate("sluice::gui::Say", text); }
  QString serves() const { return adapterText(state.serving_name); }
  QString operator()(const LoadModel&) const { return tr("%1 is loaded.").arg(QString::fromStdString(state.model_name)); }
  QString operator()(const StartServer&) const { return tr("The server listens on %1.").arg(QString::fromStdString(state.server_url)); }
  QString operator()(const StartSession&) const {
    return state.session ? tr("“%1” runs.").arg(QString::fromStdString(state.session->name)) : tr("The session runs.");
  }
  QString operator()(const PauseSession&) const { return tr("Paused: stream, trainer and gate stand still; %1 serves on.").arg(serves()); }
  QString operator()(const ResumeSession&) const {
    return state.frozen ? tr("The session runs again; learning stands still until you unfreeze.") : tr("The session runs again.");
  }
  QString operator()(const EndSession&) const { return tr("The session ended; %1 serves on.").arg(serves()); }
  QString operator()(const TrainOn&) const { return tr("Training goes on; it asks again when it is as far ahead once more."); }
  QString operator()(const DiscardTraining&) const { return tr("Training goes on from %1, which serves; what was learnt since is left.").arg(serves()); }
  QString operator()(const PutGateSettings&) const {
    return tr("Gate settings %1 hold from the next decision on.").arg(outcome.settings ? outcome.settings->value : 0);
  }
  QString operator()(const ServeBaseAndFreeze&) const { return tr("The base serves; nothing is learnt or promoted until you unfreeze."); }
  QString operator()(const GiveLabel&) const { return tr("Saved."); }
  QString operator()(const TakeLabelBack&) const {
    return outcome.feedback_state == "used" ? tr("A step used this label already; the retraction counts for rates, the step stays.")
                                            : tr("Taken back.");
  }
  QString operator()(const ExportAdapter& c) const { return tr("The adapter is in %1.").arg(QString::fromStdString(c.folder)); }
  // The engine's sentence on a decision is shown unchanged; an answer speaks for itself.
  QString operator()(const Decide&) const { return QString::fromStdString(outcome.text); }
  QString operator()(const Ask&) const { return QString::fromStdString(outcome.text); }
};

}  // namespace

QString outcomeText(const Command& command, const CommandOutcome& outcome, const EngineState& state) {
  if (!outcome.ok()) return QString::fromStdString(outcome.text);
  return std::visit(Say{outcome, state}, command);
}

}  // namespace sluice::gui
