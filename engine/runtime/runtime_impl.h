// SPDX-License-Identifier: GPL-3.0-or-later
// The inside of Runtime, shared by its sources. Three threads of its own: loader (once), command, housekeeping (curves and
// snapshot), and one for Ask, so that a long answer holds up nothing else.
//
// Stop order (engine.md §4): commands and asks -> session (driver, gate, trainer) -> HTTP -> engine -> threads -> store.
// `store` stands near the top and is closed in the destructor's body: its writer calls back into this object to the end.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/channel.h"
#include "base/guarded.h"
#include "chat/completion.h"
#include "http/event_hub.h"
#include "http/server.h"
#include "release/registry.h"
#include "runtime/bookkeeper.h"
#include "runtime/http_control.h"
#include "runtime/load.h"
#include "runtime/recipe.h"
#include "runtime/runtime.h"
#include "runtime/session.h"
#include "serve/adapter_slots.h"
#include "serve/engine.h"

namespace sluice {

// What exists once a model is loaded. Built by the loader, then unchanged until the model is replaced or the runtime ends. Its
// users hold it for one request or command: end_serving() waits for them.
struct Serving {
  LoadedSystem system;
  std::unique_ptr<AdapterSlots> slots;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<CompletionService> service;
  std::unique_ptr<Registry> registry;
};

// A session that is open in the store and can't go on, such as over a busy port: it waits for another try or its end.
struct ShutOut {
  SessionId id;
  std::string name;
  std::string reason;  // sentences for people
};

struct Address {
  std::string host;
  int port = 0;
};

class Runtime::Impl {
 public:
  Impl(RuntimeOptions options, Log& log, std::unique_ptr<Store> store);
  ~Impl();

  void start();

  // runtime_impl.cpp
  // `keep_port`: if it fails, another model is tried next.
  void load(const std::string& path, bool keep_port);
  Status load_and_serve(const std::string& path);
  Status build_serving(LoadedSystem system);
  void end_serving();
  bool loading() const;
  std::uint64_t submit(Command command, std::function<void(const CommandOutcome&)> done);
  CommandOutcome run_and_wait(Command command, const std::atomic<bool>* give_up);
  CommandOutcome run_from_http(Command command);
  void resume_session();
  Status reopen(const SessionRow& row);
  void stop_session();
  std::string name_of(VersionId version) const;
  std::string adapter_name() const;          // of the session, or of the last one; the first alias before any
  std::shared_ptr<Session> session() const;
  std::optional<ShutOut> shut_out() const;
  std::shared_ptr<Serving> serving() const;
  void on_store_event(const StoreEvent& event);
  void on_decision(const DecisionRow& row);
  void on_swap(const SwapNotice& notice);
  void note(LogLevel level, const std::string& category, const std::string& text, const std::string& link = "");

  // runtime_server.cpp
  bool drain(double seconds);
  Address wanted_address() const;
  Status listen_early();
  Status start_server(const Address& at) SLUICE_REQUIRES(server_mu);
  Status move_server(const Address& to) SLUICE_REQUIRES(server_mu);
  void close_server() SLUICE_REQUIRES(server_mu);

  // runtime_commands.cpp, session_commands.cpp
  void command_loop();
  void ask_loop();
  CommandOutcome run(Command& command);   // never throws
  Status ready() const;                   // or why a session or server can't be started now
  CommandOutcome handle(LoadModel& c);
  CommandOutcome handle(StartServer& c);
  CommandOutcome handle(StartSession& c);
  CommandOutcome handle(PauseSession& c);
  CommandOutcome handle(ResumeSession& c);
  CommandOutcome handle(EndSession& c);
  CommandOutcome handle(TrainOn& c);
  CommandOutcome handle(DiscardTraining& c);
  CommandOutcome handle(PutGateSettings& c);
  CommandOutcome handle(Decide& c);
  CommandOutcome handle(ServeBaseAndFreeze& c);
  CommandOutcome handle(GiveLabel& c);
  CommandOutcome handle(TakeLabelBack& c);
  CommandOutcome handle(Ask& c);
  CommandOutcome handle(ExportAdapter& c);
  Result<Answer> ask_one(const Ask& ask, std::optional<VersionId> version);
  Result<SessionParts> session_parts(bool live_only) const;
  Result<std::shared_ptr<Session>> running_session() const;
  Status leave_candidates();
  void try_again();
  Result<std::shared_ptr<Session>> begin_session(Recipe recipe, SessionRow row, std::int64_t max_requests);
  Result<std::shared_ptr<Session>> open_session(Recipe recipe, SessionRow row, std::int64_t max_requests);

  // runtime_state.cpp
  void housekeeping_loop();
  void publish_snapshot();

  // runtime_workspace.cpp: what the workspace remembers
  std::string model_of_workspace();
  Status check_model_of_workspace(const ModelInfo& info);
  void remember_model(const ModelInfo& info);
  Address address_of_workspace() const;
  void remember_port(int port);

  const RuntimeOptions options;
  Log& log;
  std::unique_ptr<Store> store;
  const std::string recipe_folder;

  struct Queued {
    Command command;
    std::function<void(const CommandOutcome&)> done;
  };
  Channel<Queued> commands{256};
  Channel<Queued> asks{64};
  Channel<StoreEvent> events{65536};   // wake-ups for housekeeping; dropping some is harmless: it reads after its marks
  std::atomic<std::uint64_t> next_command{0};
  EventHub event_hub;                  // for readers over HTTP
  std::atomic<bool> stopping{false};
  std::atomic<bool> draining{false};   // no new request is taken; those being answered go on
  std::atomic<std::int64_t> errors{0};
  std::atomic<std::int64_t> last_swap_us{0};
  std::atomic<bool> server_moving{false};

  // Held while the server or the session behind its address is brought up or moved, on loader and command thread. Before `mu`.
  Mutex server_mu;
  mutable Mutex mu;
  CondVar changed;
  EnginePhase phase SLUICE_GUARDED_BY(mu) = EnginePhase::kLoading;
  std::string model_error SLUICE_GUARDED_BY(mu);
  std::string model_path SLUICE_GUARDED_BY(mu);
  Address address SLUICE_GUARDED_BY(mu);  // where the server listens, or should
  std::string server_url SLUICE_GUARDED_BY(mu);
  std::string own_url SLUICE_GUARDED_BY(mu);  // the same server for the session's stream
  std::string server_error SLUICE_GUARDED_BY(mu);
  TimeHistogram swap_times SLUICE_GUARDED_BY(mu);
  std::shared_ptr<HttpServer> server SLUICE_GUARDED_BY(mu);
  std::shared_ptr<Serving> serving_ SLUICE_GUARDED_BY(mu);
  std::shared_ptr<Session> session_ SLUICE_GUARDED_BY(mu);
  std::optional<ShutOut> shut_out_ SLUICE_GUARDED_BY(mu);
  std::shared_ptr<const EngineState> state SLUICE_GUARDED_BY(mu);
  std::uint64_t snapshots_begun SLUICE_GUARDED_BY(mu) = 0, newest_snapshot SLUICE_GUARDED_BY(mu) = 0;
  std::vector<StoreListener> listeners SLUICE_GUARDED_BY(mu);
  std::function<void(const DriverEvent&)> on_request SLUICE_GUARDED_BY(mu);
  std::function<void(const SwapNotice&)> on_swap_notice SLUICE_GUARDED_BY(mu);

  Mutex ended_mu;
  CondVar ended;
  int servings SLUICE_GUARDED_BY(ended_mu) = 0;  // that exist: one, but while the last user of the old one lets go

  HttpControl control{*this};
  std::thread loader, commander, asker, housekeeper;
};

// Name of a stored value that belongs to a session.
std::string session_key(SessionId session, const char* what);
// Half the cores, at least one.
int all_cores();
int half_the_cores();

}  // namespace sluice
