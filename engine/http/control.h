// SPDX-License-Identifier: GPL-3.0-or-later
// What HTTP may ask of the program around it: which models there are, the session's life, the gate, decisions. `runtime`
// implements it; tests have their own. Thread-safe: called from many HTTP threads at once. JSON crosses as text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "chat/completion.h"
#include "http/histogram.h"
#include "serve/generator.h"
#include "serve/request.h"
#include "store/rows.h"

namespace sluice {

// What /health and the completion routes answer: anything but ready is 503 there.
enum class ServingPhase { kReady, kLoading, kPaused, kAsleep, kStopping };
const char* phase_name(ServingPhase phase);  // "ready", "loading", "paused", "asleep", "stopping"

// One entry of GET /v1/models.
struct ServedModel {
  std::string id;        // "SmolLM2-135M-Instruct", "be-brief" (whatever serves), "be-brief@3" (that version)
  std::string parent;    // id of the base model; "" for the base itself
  VersionId version;     // 0 = base
  std::string state;     // of version_state_name()
  std::int64_t created_s = 0;  // seconds since 1970 UTC
  bool alias = false;    // names whatever serves, of whichever adapter
};

// Where a live exchange belongs.
struct LiveContext {
  SessionId session;            // invalid while no session runs
  Split split = Split::kTrain;  // a stream with held-out prompts of its own trains on all live ones but those
};

// What a recipe says of its answers, for requests that leave it to the recipe.
struct SamplingDefaults {
  double temperature = 1, top_p = 1;
  int max_tokens = 16;
};

struct GateDocument {
  std::string settings_json;    // whole settings, one object
  SettingsId revision;          // the ETag; If-Match is compared with it
  std::string who, note;
  std::int64_t time_us = 0;
};

struct DecisionRequest {
  std::string action;           // promote, reject, hold, rollback, pin_anchor, stop_canary, freeze, unfreeze
  VersionId version;            // invalid for freeze and unfreeze
  std::string scope = "full";
  std::string actor, note;      // never empty
  std::optional<DecisionId> if_match;  // the newest decision that the operator knows of
};

struct SessionRequest {
  std::string recipe;           // name or file; never empty
  std::string name;             // "" = the recipe's
  std::optional<std::uint64_t> seed;
  std::optional<std::int64_t> max_requests;
  bool live_only = false;
};

enum class SessionAction { kPause, kResume, kEnd };
enum class EngineAction { kPause, kResume, kFlush, kSleep, kWake };

struct AdapterImport {
  std::string name;             // a legal adapter name
  std::string path;             // a PEFT folder or a GGUF adapter on this machine
  std::string note;
};
struct NewCandidate {
  std::string name;
  VersionId version;
  int rank = 0;
  std::int64_t bytes = 0;
  std::string modules_json;     // as the folder's config names them; "" = not at all
};

// Counters that live outside HTTP, for /metrics.
struct ServingCounters {
  GeneratorStats generator;
  TimeHistogram adapter_swaps;
};

class EventHub;
struct CompletionRequest;

class Control {
 public:
  virtual ~Control() = default;

  virtual ServingPhase phase() const = 0;
  // What answers with the loaded model; null while there is none. Who holds it keeps that model in memory: a handler for its
  // request, no longer.
  virtual std::shared_ptr<CompletionService> service() const = 0;
  virtual std::vector<ServedModel> models() const = 0;  // default model first
  // A `model` field or a pin: "" = what serves, the base's id or "base" = no adapter, an adapter's name = what serves,
  // "name@17" = that version. kNotFound names it; it is never answered by another model.
  virtual Result<AdapterChoice> resolve_model(const std::string& name) const = 0;
  virtual std::string base_digest() const = 0;          // hex digest of the weights, for system_fingerprint
  // By the request's prompt and its group_key: what must not be on both sides of the split (the conversation, else the prompt).
  virtual LiveContext live_context(const CompletionRequest& request) const = 0;
  // Texts before the prefix, the suffix and the answer, for models without fill-in-the-middle tokens: the running recipe's.
  virtual std::optional<std::array<std::string, 3>> fim_markers() const = 0;
  virtual std::optional<SamplingDefaults> sampling_defaults() const = 0;  // the running recipe's
  virtual ServingCounters counters() const = 0;

  virtual const EventHub& events() const = 0;           // what the store committed
  virtual std::string status_json() const = 0;          // GET /sluice/v1/status, one object
  virtual Result<GateDocument> gate() const = 0;
  // kConflict, kStale: `if_match` is not the revision in force. kInvalidArgument: a bad field, named.
  virtual Result<SettingsId> put_gate(const std::string& settings_json, std::optional<SettingsId> if_match,
                                      const std::string& who, const std::string& note) = 0;
  // Returns once the decision is committed and, when it moves the version in service, published. kConflict: the state of
  // the version forbids it (gate.md §1), the registry is frozen, or another decision than `if_match` is the newest (kStale).
  virtual Result<DecisionId> decide(const DecisionRequest& request) = 0;
  virtual Result<SessionId> start_session(const SessionRequest& request) = 0;  // kConflict while one runs
  virtual Status change_session(SessionId session, SessionAction action) = 0;

  // Returns once it is done (serving.md §3.2). `weights`: kSleep frees the model's memory too; kUnavailable when it can't,
  // and asleep all the same. kConflict: the state forbids it.
  virtual Status engine_action(EngineAction action, bool weights) = 0;
  // All or none become candidates. kInvalidArgument: a folder is no adapter for this model, with the list of what does not
  // fit. kConflict: a name is that of another model or an alias.
  virtual Result<std::vector<NewCandidate>> import_adapters(const std::vector<AdapterImport>& wanted) = 0;
  // Deletes the files of all these versions, or of none; rows stay. kConflict: gate.md §1 protects one of them.
  virtual Status prune_versions(const std::vector<VersionId>& versions) = 0;
};

}  // namespace sluice
