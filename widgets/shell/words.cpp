// SPDX-License-Identifier: GPL-3.0-or-later
#include "shell/words.h"

#include <QCoreApplication>
#include <QStringList>
#include <utility>

#include "shell/format.h"

namespace sluice::gui {
namespace {

QString tr(const char* text, int n = -1) { return QCoreApplication::translate("sluice::gui", text, nullptr, n); }

// Code and untranslated text: a painted cell translates the one word that it shows.
using Words = std::initializer_list<std::pair<const char*, const char*>>;

QString oneOf(const std::string& code, Words words) {
  for (const auto& [known, text] : words) {
    if (code == known) return tr(text);
  }
  return QString::fromStdString(code);
}

}  // namespace

QString versionStateText(VersionState state) {
  switch (state) {
    case VersionState::kCandidate: return tr("candidate");
    case VersionState::kEvaluating: return tr("being measured");
    case VersionState::kHeld: return tr("held");
    case VersionState::kCanary: return tr("serves a part");
    case VersionState::kServing: return tr("in service");
    case VersionState::kRetired: return tr("served before");
    case VersionState::kRejected: return tr("rejected");
    case VersionState::kSuperseded: return tr("overtaken");
    case VersionState::kQuarantined: return tr("taken out");
    case VersionState::kPruned: return tr("files deleted");
  }
  return {};
}

QString labelText(const std::string& label) {
  return oneOf(label, {{"deliberately bad", QT_TRANSLATE_NOOP("sluice::gui", "deliberately bad")},
                       {"half strength", QT_TRANSLATE_NOOP("sluice::gui", "half strength")}});
}

QString versionTitle(VersionId version, const std::string& label) {
  const QString number = versionText(version.value);
  if (label.empty()) return number;
  return number + QStringLiteral(" – ") + labelText(label);
}

QString versionTitle(const VersionRow& version) { return versionTitle(version.id, version.label); }

QString adapterText(const std::string& name) { return oneOf(name, {{"base", QT_TRANSLATE_NOOP("sluice::gui", "base")}}); }

QString sessionStateText(SessionState state) {
  switch (state) {
    case SessionState::kRunning: return tr("runs");
    case SessionState::kPaused: return tr("paused");
    case SessionState::kEnded: return tr("ended");
  }
  return {};
}

QString trainText(const TrainProgress& train) {
  switch (train.phase) {
    case TrainPhase::kWaiting: return tr("waits for %1 labels (%2 here)").arg(train.batch_size).arg(train.labelled_waiting);
    case TrainPhase::kTraining: return tr("makes step %1").arg(train.head_step + 1);
    case TrainPhase::kAtBound: return tr("is ahead of the gate and waits for it");
    case TrainPhase::kPaused: return tr("paused");
    case TrainPhase::kBraked: return tr("stopped by a brake");
    case TrainPhase::kFailed: return tr("failed");
    case TrainPhase::kEnded: return tr("ended");
  }
  return {};
}

QString gateNoteText(const GateProgress& gate) {
  switch (gate.phase) {
    case GatePhase::kPaused: return tr("The gate stands still: the session is paused.");
    case GatePhase::kFrozen: return tr("The gate stands still: serving is frozen, nothing is promoted.");
    case GatePhase::kIdle:
    case GatePhase::kMeasuring: return {};
  }
  return {};
}

QString feedbackStateText(const std::string& state) {
  return oneOf(state, {{"waiting", QT_TRANSLATE_NOOP("sluice::gui", "waits for the next batch")},
                       {"used", QT_TRANSLATE_NOOP("sluice::gui", "used in a step")},
                       {"replaced", QT_TRANSLATE_NOOP("sluice::gui", "replaced by a newer one")},
                       {"duplicate", QT_TRANSLATE_NOOP("sluice::gui", "given before")},
                       {"late", QT_TRANSLATE_NOOP("sluice::gui", "too late to train")},
                       {"consumed", QT_TRANSLATE_NOOP("sluice::gui", "a step used the answer before")},
                       {"held_out", QT_TRANSLATE_NOOP("sluice::gui", "kept out of training for evaluation")},
                       {"ignored", QT_TRANSLATE_NOOP("sluice::gui", "does not train")}});
}

QString fateText(const std::string& fate) {
  if (fate.empty()) return {};
  if (fate == "waiting") return tr("waits for the next batch");
  if (fate == "batched") return tr("in the batch at hand");
  if (fate == "trained") return tr("trained on");
  return tr("not trained: %1").arg(dropText(fate));
}

QString dropText(const std::string& reason) {
  return oneOf(reason, {{"no_event", QT_TRANSLATE_NOOP("sluice::gui", "no verdict")},
                        {"late", QT_TRANSLATE_NOOP("sluice::gui", "verdict too late")},
                        {"too_old", QT_TRANSLATE_NOOP("sluice::gui", "version too old")},
                        {"no_spread", QT_TRANSLATE_NOOP("sluice::gui", "all rewards of the batch were equal")},
                        {"judge_missing", QT_TRANSLATE_NOOP("sluice::gui", "no vote of the judge")},
                        {"held_out", QT_TRANSLATE_NOOP("sluice::gui", "kept for evaluation")},
                        {"infra", QT_TRANSLATE_NOOP("sluice::gui", "request broke off")},
                        {"cut", QT_TRANSLATE_NOOP("sluice::gui", "cut by the budget")},
                        {"empty_mask", QT_TRANSLATE_NOOP("sluice::gui", "empty answer")},
                        {"no_logprobs", QT_TRANSLATE_NOOP("sluice::gui", "no log-probabilities")},
                        {"greedy", QT_TRANSLATE_NOOP("sluice::gui", "sampled without chance (temperature 0)")},
                        {"imported", QT_TRANSLATE_NOOP("sluice::gui", "from elsewhere")},
                        {"too_far", QT_TRANSLATE_NOOP("sluice::gui", "too far from the present policy")}});
}

QString sourceText(FeedbackSource source) {
  switch (source) {
    case FeedbackSource::kHuman: return tr("person");
    case FeedbackSource::kJudge: return tr("judge");
    case FeedbackSource::kVerifier: return tr("verifier");
    case FeedbackSource::kClient: return tr("client");
    case FeedbackSource::kPersona: return tr("simulated user");
  }
  return {};
}

QString ruleText(const std::string& rules) {
  QStringList out;
  for (const QString& rule : QString::fromStdString(rules).split(QLatin1Char(','), Qt::SkipEmptyParts)) {
    out << oneOf(rule.trimmed().toStdString(), {{"not-empty", QT_TRANSLATE_NOOP("sluice::gui", "empty")},
                                                {"finished", QT_TRANSLATE_NOOP("sluice::gui", "not finished")},
                                                {"words", QT_TRANSLATE_NOOP("sluice::gui", "number of words")},
                                                {"characters", QT_TRANSLATE_NOOP("sluice::gui", "number of characters")},
                                                {"one-line", QT_TRANSLATE_NOOP("sluice::gui", "more than one line")},
                                                {"one-paragraph", QT_TRANSLATE_NOOP("sluice::gui", "more than one paragraph")},
                                                {"no-markup", QT_TRANSLATE_NOOP("sluice::gui", "mark-up")},
                                                {"no-characters", QT_TRANSLATE_NOOP("sluice::gui", "unwanted characters")},
                                                {"no-words", QT_TRANSLATE_NOOP("sluice::gui", "unwanted words")},
                                                {"names-topic", QT_TRANSLATE_NOOP("sluice::gui", "does not name the topic")}});
  }
  return out.join(tr(", "));
}

QString endText(const std::string& finishReason) {
  return oneOf(finishReason, {{"length", QT_TRANSLATE_NOOP("sluice::gui", "the budget")},
                              {"stop", QT_TRANSLATE_NOOP("sluice::gui", "itself")},
                              {"cancelled", QT_TRANSLATE_NOOP("sluice::gui", "cancelling")},
                              {"error", QT_TRANSLATE_NOOP("sluice::gui", "an error")}});
}

QString partText(const std::string& category) {
  return oneOf(category, {{"session", QT_TRANSLATE_NOOP("sluice::gui", "session")},
                          {"train", QT_TRANSLATE_NOOP("sluice::gui", "training")},
                          {"gate", QT_TRANSLATE_NOOP("sluice::gui", "gate")},
                          {"serve", QT_TRANSLATE_NOOP("sluice::gui", "serving")},
                          {"stream", QT_TRANSLATE_NOOP("sluice::gui", "stream")},
                          {"http", QT_TRANSLATE_NOOP("sluice::gui", "HTTP")},
                          {"model", QT_TRANSLATE_NOOP("sluice::gui", "model")},
                          {"store", QT_TRANSLATE_NOOP("sluice::gui", "store")},
                          {"command", QT_TRANSLATE_NOOP("sluice::gui", "command")}});
}

}  // namespace sluice::gui
