// SPDX-License-Identifier: GPL-3.0-or-later
#include "shell/words.h"

#include <QCoreApplication>
#include <QStringList>
#include <utility>

namespace sluice::gui {
namespace {

QString tr(const char* text, int n = -1) { return QCoreApplication::translate("sluice::gui", text, nullptr, n); }

using Words = std::initializer_list<std::pair<const char*, QString>>;

QString oneOf(const std::string& code, const Words& words) {
  for (const auto& [known, text] : words) {
    if (code == known) return text;
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

QString labelText(const std::string& label) { return oneOf(label, {{"deliberately bad", tr("deliberately bad")}}); }

QString adapterText(const std::string& name) { return oneOf(name, {{"base", tr("base")}}); }

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
  return oneOf(state, {{"waiting", tr("waits for the next batch")},
                       {"used", tr("used in a step")},
                       {"replaced", tr("replaced by a newer one")},
                       {"duplicate", tr("given before")},
                       {"late", tr("too late to train")},
                       {"consumed", tr("a step used the answer before")},
                       {"held_out", tr("kept out of training for evaluation")},
                       {"ignored", tr("does not train")}});
}

QString fateText(const std::string& fate) {
  if (fate.empty()) return {};
  if (fate == "waiting") return tr("waits for the next batch");
  if (fate == "batched") return tr("in the batch at hand");
  if (fate == "trained") return tr("trained on");
  return tr("not trained: %1").arg(dropText(fate));
}

QString dropText(const std::string& reason) {
  return oneOf(reason, {{"no_event", tr("no verdict")},
                        {"late", tr("verdict too late")},
                        {"too_old", tr("version too old")},
                        {"no_spread", tr("all rewards of the batch were equal")},
                        {"judge_missing", tr("no vote of the judge")},
                        {"held_out", tr("kept for evaluation")},
                        {"infra", tr("request broke off")},
                        {"cut", tr("cut by the budget")},
                        {"empty_mask", tr("empty answer")},
                        {"no_logprobs", tr("no log-probabilities")},
                        {"greedy", tr("sampled without chance (temperature 0)")},
                        {"imported", tr("from elsewhere")},
                        {"too_far", tr("too far from the present policy")}});
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
    out << oneOf(rule.trimmed().toStdString(), {{"not-empty", tr("empty")},
                                                {"finished", tr("not finished")},
                                                {"words", tr("number of words")},
                                                {"characters", tr("number of characters")},
                                                {"one-line", tr("more than one line")},
                                                {"one-paragraph", tr("more than one paragraph")},
                                                {"no-markup", tr("mark-up")},
                                                {"no-characters", tr("unwanted characters")},
                                                {"no-words", tr("unwanted words")},
                                                {"names-topic", tr("does not name the topic")}});
  }
  return out.join(tr(", "));
}

QString endText(const std::string& finishReason) {
  return oneOf(finishReason, {{"length", tr("the budget")}, {"stop", tr("itself")}, {"cancelled", tr("cancelling")}, {"error", tr("an error")}});
}

QString partText(const std::string& category) {
  return oneOf(category, {{"session", tr("session")},
                          {"train", tr("training")},
                          {"gate", tr("gate")},
                          {"serve", tr("serving")},
                          {"stream", tr("stream")},
                          {"http", tr("HTTP")},
                          {"model", tr("model")},
                          {"store", tr("store")},
                          {"command", tr("command")}});
}

}  // namespace sluice::gui
