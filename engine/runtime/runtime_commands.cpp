// SPDX-License-Identifier: GPL-3.0-or-later
// What each command does; on the command thread, Ask on its own.
#include <chrono>
#include <filesystem>
#include <random>

#include "base/sha256.h"
#include "model/export.h"
#include "release/gate_json.h"
#include "runtime/live_split.h"
#include "runtime/outcomes.h"
#include "runtime/runtime_impl.h"
#include "store/desk.h"

namespace sluice {
void Runtime::Impl::command_loop() {
  while (auto item = commands.pop()) {
    const CommandOutcome outcome = run(item->command);
    if (!outcome.ok()) note(LogLevel::kWarning, "command", outcome.text);
    publish_snapshot();
    if (item->done) item->done(outcome);
  }
}

void Runtime::Impl::ask_loop() {
  while (auto item = asks.pop()) {
    const CommandOutcome outcome = run(item->command);
    if (item->done) item->done(outcome);
  }
}

CommandOutcome Runtime::Impl::run(Command& command) {
  if (stopping) return refused(unavailable("The engine is stopping.").with(Reason::kStopping));
  try {
    return std::visit([this](auto& c) { return handle(c); }, command);
  } catch (const std::exception& e) {
    return refused(internal_error(std::string("The command failed: ") + e.what()));
  }
}

// The loader brings up the last session behind the model; until it is through nobody else touches it.
Status Runtime::Impl::ready() const {
  MutexLock lock(mu);
  return phase == EnginePhase::kReady ? Status() : model_error.empty() ? not_loaded() : unavailable(model_error).with(Reason::kLoading);
}

CommandOutcome Runtime::Impl::handle(LoadModel& c) {
  if (session() || shut_out()) return refused(conflict("A session is open on this model: end it before loading another."));
  if (loader.joinable()) loader.join();
  std::string before;  // the model that serves now
  {
    MutexLock lock(mu);
    if (phase == EnginePhase::kReady && serving_) before = model_path;
    if (!stopping) phase = EnginePhase::kLoading;
  }
  end_serving();
  load(c.path.empty() ? find_bundled_model() : c.path, !before.empty());
  std::string reason;
  {
    MutexLock lock(mu);
    if (phase == EnginePhase::kReady) return accepted("Loaded " + model_path + ".");
    reason = model_error;
  }
  // Both would seldom fit into memory, so the old one had to go first; a file that can't be used must not cost it.
  if (!before.empty() && !stopping) load(before, false);
  MutexLock lock(mu);
  const bool back = !before.empty() && phase == EnginePhase::kReady;
  return refused(unavailable(back ? reason + " The model from before serves on." : reason));
}

CommandOutcome Runtime::Impl::handle(PutGateSettings& c) {
  const auto now = stored_gate_settings(*store);
  if (!now.ok()) return refused(now.status());
  if (c.if_match && *c.if_match != now->id) {
    return refused(conflict("The gate settings were changed meanwhile (row " + std::to_string(now->id.value) +
                            "): look at them and apply again.")
                       .with(Reason::kStale));
  }
  const auto next = gate_settings_from_json(c.settings_json, now->settings);
  if (!next.ok()) return refused(next.status());
  const auto id = store_gate_settings(*store, *next, c.who, c.note);
  if (!id.ok()) return refused(id.status());
  CommandOutcome out = accepted("Gate settings " + std::to_string(id->value) + " hold from the next decision on.");
  out.settings = *id;
  return out;
}

CommandOutcome Runtime::Impl::handle(Decide& c) {
  const auto s = serving();
  if (!s) return refused(not_loaded());
  const auto action = parse_manual_action(c.action);
  if (!action.ok()) return refused(action.status());
  ManualRequest request;
  request.action = *action;
  request.version = c.version;
  request.actor = c.actor;
  request.note = c.note;
  request.latest = c.if_match;
  if (const auto running = session()) request.session = running->row().id;
  const auto row = s->registry->act(request);
  if (!row.ok()) return refused(row.status());
  CommandOutcome out = accepted(row->reason_text);
  out.decision = row->id;
  out.swap_us = last_swap_us;
  return out;
}

CommandOutcome Runtime::Impl::handle(ServeBaseAndFreeze& c) {
  const auto s = serving();
  if (!s) return refused(not_loaded());
  // Frozen first: nothing can be promoted between the two decisions.
  if (!s->registry->frozen()) {
    Decide freeze{"freeze", VersionId(), c.actor, c.note};
    if (CommandOutcome out = handle(freeze); !out.ok()) return out;
  }
  std::optional<CommandOutcome> rolled_back;
  if (store->serving_version() != kBaseVersion) {
    Decide back{"rollback", kBaseVersion, c.actor, c.note};
    rolled_back = handle(back);
    if (!rolled_back->ok()) return *rolled_back;
  }
  CommandOutcome out = accepted("The base serves; nothing is learnt or promoted until you unfreeze.");
  if (rolled_back) out.decision = rolled_back->decision;
  return out;
}

CommandOutcome Runtime::Impl::handle(GiveLabel& c) {
  FeedbackRow row;
  row.record = c.record;
  row.kind = c.kind;
  row.score = c.score;
  row.source = FeedbackSource::kHuman;
  row.labeller = c.labeller;
  row.comment = c.comment;
  const auto given = store->add_feedback(std::move(row));
  if (!given.ok()) return refused(given.status());
  CommandOutcome out = accepted("Saved.");
  out.feedback = given->row.id;
  out.feedback_state = given->row.state;
  return out;
}

CommandOutcome Runtime::Impl::handle(TakeLabelBack& c) {
  const auto taken = store->retract_feedback(c.feedback, true);
  if (!taken.ok()) return refused(taken.status());
  // `consumed` came after the step: no step used that one.
  CommandOutcome out = accepted(taken->state == "used"
                                    ? "A step used this label already; the retraction counts for rates, the step stays."
                                    : "Taken back.");
  out.feedback = taken->id;
  out.feedback_state = taken->state;
  return out;
}

Result<Answer> Runtime::Impl::ask_one(const Ask& ask, std::optional<VersionId> version) {
  const auto s = serving();
  if (!s) return not_loaded();
  const auto running = session();
  CompletionRequest request;
  std::vector<ChatMessage> messages;
  if (running && !running->recipe().task.system_prompt.empty()) {
    messages.push_back({});
    messages.back().role = "system";
    messages.back().content = running->recipe().task.system_prompt;
  }
  messages.push_back({});
  messages.back().role = "user";
  messages.back().content = ask.prompt;
  if (s->system.chat_template) {
    request.messages = std::move(messages);
  } else {
    request.prompt = ask.prompt;
  }
  const TaskSampling sampling = running ? running->recipe().task.sampling : TaskSampling();
  request.sampling.temperature = static_cast<float>(sampling.temperature);
  request.sampling.top_p = static_cast<float>(sampling.top_p);
  request.sampling.seed = ask.seed.value_or(std::random_device()() & 0x7fffffffULL);
  request.max_tokens = ask.max_tokens > 0 ? ask.max_tokens : running ? sampling.max_tokens : 128;
  request.route = kDeskRoute;
  Sha256 hash;
  hash.update(ask.prompt);
  request.group_key = "p:" + to_hex(hash.digest()).substr(0, 32);
  if (running) {
    request.session = running->row().id;
    request.split = live_split(running->recipe(), store->split_salt(), *s->system.tokenizer, request);
  }
  if (version) {
    SLUICE_ASSIGN_OR_RETURN(const VersionPass pass, s->registry->make_pass(*version));
    request.adapter = AdapterChoice::with(pass);
    request.purpose = Purpose::kProbe;
  }
  const SteadyTime begin = Clock::system().steady();
  SLUICE_ASSIGN_OR_RETURN(const Completion done, s->service->complete(std::move(request), &stopping));
  Answer answer;
  answer.version = done.version;
  answer.adapter_name = done.adapter_name;
  answer.text = done.text;
  answer.record = done.record;
  answer.finish_reason = finish_reason_name(done.finish);
  answer.tokens = static_cast<int>(done.token_ids.size());
  answer.seconds = std::chrono::duration<double>(Clock::system().steady() - begin).count();
  return answer;
}

CommandOutcome Runtime::Impl::handle(Ask& c) {
  if (c.prompt.empty()) return refused(invalid_argument("The prompt is empty: type something to ask."));
  // Side by side means the same draw for every version, so that a difference is the adapter's.
  if (!c.seed && c.versions.size() > 1) c.seed = std::random_device()() & 0x7fffffffULL;
  CommandOutcome out;
  const std::size_t count = std::max<std::size_t>(1, c.versions.size());
  for (std::size_t i = 0; i < count; ++i) {
    auto answer = ask_one(c, c.versions.empty() ? std::nullopt : std::optional(c.versions[i]));
    if (!answer.ok()) return refused(answer.status());
    out.answers.push_back(std::move(answer).value());
  }
  return out;
}

CommandOutcome Runtime::Impl::handle(ExportAdapter& c) {
  const auto s = serving();
  if (!s) return refused(not_loaded());
  if (c.version == kBaseVersion) return refused(invalid_argument("Version 0 is the base: it has no adapter to export."));
  const auto row = store->version(c.version);
  if (!row) return refused(not_found("There is no version " + std::to_string(c.version.value) + "."));
  if (row->state == VersionState::kPruned) {
    return refused(not_found("The files of " + name_of(c.version) + " were deleted: only its row is kept."));
  }
  if (Status e = export_peft(store->adapter_folder(c.version), *s->system.model, s->system.model->info().name, c.folder);
      !e.ok()) {
    return refused(std::move(e));
  }
  return accepted("Exported " + name_of(c.version) + " to " + c.folder + ".");
}

}  // namespace sluice
