// SPDX-License-Identifier: GPL-3.0-or-later
// Builds the whole engine over one workspace and is all that the two programs see of it: open, submit commands, poll a
// snapshot, read rows, hear commits. Thread-safe. No call blocks on model, gate or disk except open(), the destructor and
// what says so; the window's thread may use everything else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "runtime/commands.h"
#include "runtime/snapshot.h"
#include "store/store.h"

namespace sluice {

inline constexpr int kPortOfWorkspace = -1;

struct RuntimeOptions {
  std::string data_folder;             // the workspace; made when missing
  std::string model_path;              // "" = the one this workspace served last, else the bundled model
  std::string recipe_folder;           // "" = the installed one, then the source tree's
  bool serve_http = true;
  std::string host = "127.0.0.1";
  int port = 8080;                     // 0 = any free one; kPortOfWorkspace = where it listened last by hand, else 8080
  bool port_required = false;          // no model is loaded when the server can't listen: wait_ready() says why
  std::vector<std::string> api_keys;   // needed beyond loopback; these and the next ones as in HttpServerOptions
  std::vector<std::string> allowed_hosts, cors_origins;
  std::string tls_certificate, tls_key;
  bool behind_proxy = false;
  std::vector<int> editor_ports;
  std::vector<std::string> aliases = {"sluice"};  // further names of whatever version serves
  int engine_threads = 0;              // 0 = all cores, half of them while a training step is made
  int trainer_threads = 0;             // 0 = half the cores, at least 1
  std::int64_t kv_tokens = 16384;
  bool deterministic = false;          // answers bit-equal whatever runs beside them (serving.md SMP-12); slower
  bool discard_at_bound = false;       // nobody is there to ask at a plateau: back to the version in service (learning.md §8)
  bool resume_paused = true;           // a session that was running at the last exit comes back paused
};

struct DriverEvent;   // tasks/driver.h: one request of the simulated user, with its verdict
struct SwapNotice;    // release/registry.h
struct HeldOutScore;  // runtime/session.h

struct RecipeSummary {
  std::string name;      // "be-brief"
  std::string title;     // for people
  std::string summary;
  std::string path;
};

struct WhatIfSummary {
  std::int64_t decisions = 0;          // replayed
  std::int64_t recorded_rejects = 0, draft_rejects = 0;
  std::int64_t differ = 0, need_more = 0;
  std::vector<DecisionId> different;   // newest first
};

struct ModelFit {
  std::int64_t needed_bytes = 0, free_bytes = 0;
  bool fits = false;
  std::string text;                    // for a terminal: "This model needs 0.6 GB; 20.1 GB are free."
};

class Runtime {
 public:
  // Opens the store and starts the threads; the server listens, then the model loads in the background (snapshot().phase
  // tells). Blocks while the store opens. kConflict: the workspace is locked. kInvalidArgument: made by a newer Sluice, or a
  // bad option. A busy port is no failure unless it is required: the snapshot carries the reason and everything else runs.
  static Result<std::unique_ptr<Runtime>> open(RuntimeOptions options, Log& log);
  ~Runtime();  // ordered stop (engine.md §4); blocks until the current step ends
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  std::shared_ptr<const EngineState> snapshot() const;

  // Queues a command; `done` is called exactly once, on the runtime's command thread (or a reply thread for Ask), with the
  // outcome. Returns the command's number.
  std::uint64_t submit(Command command, std::function<void(const CommandOutcome&)> done);
  // submit() and wait: for programs without a window.
  CommandOutcome run(Command command);

  // Reads only; Store's writes are for the engine. Rows may be read from any thread; the disk may keep it waiting.
  const Store& store() const;
  // Commit events (ids only), on the writer's thread. For the runtime's life.
  void add_listener(StoreListener listener);

  // Reads and parses the recipe files: for a job thread.
  std::vector<RecipeSummary> recipes() const;
  // The gate settings in force as JSON text, with their settings id. Reads the store: for a job thread.
  std::string gate_settings_json(SettingsId* id = nullptr) const;
  // Replays stored decisions under a draft (pure; for a job thread).
  Result<WhatIfSummary> what_if(const std::string& draft_json) const;
  // Whether a draft lets anything through that the settings in force would not. Reads the store: for a job thread.
  Result<bool> loosens(const std::string& draft_json) const;
  // Does a model file fit in memory? Reads its header only, for a job thread.
  static Result<ModelFit> model_fit(const std::string& path);
  static std::string bundled_model_path();  // "" when it was not found
  static std::string default_data_folder(const std::string& workspace_name);

  // For programs that report a run as it goes; set before a session starts. Called from engine threads: be quick.
  void on_request(std::function<void(const DriverEvent&)> listener);
  void on_swap(std::function<void(const SwapNotice&)> listener);
  // Until the running session's stream, trainer and gate are through; false at the deadline, or when no session runs.
  bool wait_session_finished(double seconds);
  // k of n held-out prompts of the running session's recipe, answered by a version at live settings; n = 0: as many as the
  // recipe says. Blocks.
  Result<HeldOutScore> measure_held_out(VersionId version, int n);

  // Takes no new requests over HTTP and waits until those being answered are; false when some still are after `seconds`.
  // The session's stream pauses. For the way out: nothing takes it back.
  bool drain(double seconds);

  // Waits until the model is loaded, or failed (its reason), or `seconds` passed (kDeadline).
  Status wait_ready(double seconds);

 private:
  class Impl;
  friend class HttpControl;
  explicit Runtime(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
