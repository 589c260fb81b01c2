// SPDX-License-Identifier: GPL-3.0-or-later
// Life of the engine: loading, serving, the one session, commands on their way, the ordered stop.
#include "runtime/runtime_impl.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>

#include "runtime/outcomes.h"
#include "store/version_name.h"

namespace sluice {

std::string session_key(SessionId session, const char* what) {
  return "session." + std::to_string(session.value) + "." + what;
}

int all_cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

int half_the_cores() { return std::max(1, all_cores() / 2); }

Runtime::Impl::Impl(RuntimeOptions o, Log& l, std::unique_ptr<Store> s)
    : options(std::move(o)),
      log(l),
      store(std::move(s)),
      recipe_folder(options.recipe_folder.empty() ? default_recipe_folder() : options.recipe_folder) {
  EngineState first;
  first.data_folder = store->folder();
  first.serving = store->serving_version();
  address = address_of_workspace();
  state = std::make_shared<const EngineState>(std::move(first));
}

void Runtime::Impl::start() {
  store->add_listener([this](const StoreEvent& event) { on_store_event(event); });
  commander = std::thread([this] { command_loop(); });
  asker = std::thread([this] { ask_loop(); });
  housekeeper = std::thread([this] { housekeeping_loop(); });
  loader = std::thread([this] { load(options.model_path.empty() ? model_of_workspace() : options.model_path, false); });
}

Runtime::Impl::~Impl() {
  stopping = true;
  {
    MutexLock lock(mu);
    phase = EnginePhase::kStopping;
    changed.notify_all();
  }
  commands.close();
  asks.close();
  if (commander.joinable()) commander.join();  // first: it may be joining the loader itself
  if (loader.joinable()) loader.join();
  // A session that runs stays in state running in its row: the next start brings it back, paused.
  stop_session();
  if (const auto s = serving()) s->engine->cancel_all();
  if (asker.joinable()) asker.join();
  {
    MutexLock lock(server_mu);
    close_server();
  }
  if (const auto s = serving()) s->engine->stop();
  events.close();
  if (housekeeper.joinable()) housekeeper.join();
  end_serving();
  store.reset();  // its writer still announces the last commits to what stands in this object
}

void Runtime::Impl::note(LogLevel level, const std::string& category, const std::string& text, const std::string& link) {
  log.write(level, category, text);
  if (level == LogLevel::kError) ++errors;
  if (level == LogLevel::kDebug) return;
  LogRow row;
  row.level = log_level_name(level);
  row.category = category;
  row.text = text;
  row.link = link;
  store->add_log(std::move(row));
}

void Runtime::Impl::load(const std::string& path, bool keep_port) {
  {
    MutexLock lock(mu);
    if (!stopping) phase = EnginePhase::kLoading;
    model_path = path;
    model_error.clear();
  }
  Status done;
  bool noted = false;
  try {
    done = listen_early();
    noted = !done.ok();
    if (done.ok()) done = load_and_serve(path);
  } catch (const std::exception& e) {
    done = internal_error(path + " can't be loaded: " + e.what());
  }
  if (done.ok()) return;
  if (!noted) note(LogLevel::kError, "model", done.message());
  MutexLock moving(server_mu);
  if (!keep_port) close_server();  // no model is on its way that would answer
  MutexLock lock(mu);
  if (stopping) return;
  phase = EnginePhase::kModelFailed;
  model_error = done.message();
  changed.notify_all();
}

Status Runtime::Impl::load_and_serve(const std::string& path) {
  if (path.empty()) {
    return not_found("The bundled model is not on this machine: run packaging/fetch.sh, or choose a GGUF file of your own.");
  }
  if (const auto fit = Runtime::model_fit(path); fit.ok() && !fit->fits) {
    return unavailable(fit->text + " Nothing was loaded.");
  }
  SLUICE_ASSIGN_OR_RETURN(LoadedSystem system, load_system(path));
  if (stopping) return {};
  SLUICE_RETURN_IF_ERROR(build_serving(std::move(system)));
  MutexLock moving(server_mu);
  if (stopping) return {};
  resume_session();
  MutexLock lock(mu);
  if (stopping) return {};
  phase = EnginePhase::kReady;
  changed.notify_all();
  return {};
}

bool Runtime::Impl::loading() const {
  MutexLock lock(mu);
  return phase == EnginePhase::kLoading;
}

Status Runtime::Impl::build_serving(LoadedSystem system) {
  SLUICE_RETURN_IF_ERROR(check_model_of_workspace(system.model->info()));
  const std::shared_ptr<Serving> s(new Serving, [this](Serving* old) {
    delete old;
    MutexLock lock(ended_mu);
    --servings;
    ended.notify_all();
  });
  {
    MutexLock lock(ended_mu);
    ++servings;
  }
  s->system = std::move(system);
  s->slots = std::make_unique<AdapterSlots>(s->system.model->adapter_loader(),
                                            [this](VersionId v) { return store->adapter_folder(v); });
  EngineOptions engine;
  engine.context.kv_tokens = options.kv_tokens;
  engine.context.threads = options.engine_threads > 0 ? options.engine_threads : all_cores();
  engine.deterministic = options.deterministic;
  s->engine = std::make_unique<Engine>(s->system.model, *s->slots, engine, log);
  s->service = std::make_unique<CompletionService>(*s->engine, s->system.tokenizer, s->system.chat_template, store.get(),
                                                   [this](VersionId v) { return name_of(v); }, Clock::system());
  RegistryOptions registry;
  registry.on_pinnable = [slots = s->slots.get()](std::set<VersionId> versions) { slots->set_pinnable(std::move(versions)); };
  registry.on_kept = [slots = s->slots.get()](std::set<VersionId> versions) { slots->set_kept(std::move(versions)); };
  registry.on_decision = [this](const DecisionRow& row) { on_decision(row); };
  registry.on_swap = [this](const SwapNotice& notice) { on_swap(notice); };
  registry.log = &log;
  s->registry = std::make_unique<Registry>(*store, *s->slots, registry);
  SLUICE_ASSIGN_OR_RETURN(const StartReport report, s->registry->start());
  if (report.recovered) note(LogLevel::kWarning, "gate", report.note, "version:" + std::to_string(report.serving.value));
  const ModelInfo& info = s->system.model->info();
  note(LogLevel::kInfo, "model", "Loaded " + info.name + " (" + info.quantisation + ", " +
                                     std::to_string(info.parameters / 1'000'000) + " M parameters); " + name_of(report.serving) +
                                     " serves.");
  if (!s->system.chat_template) note(LogLevel::kWarning, "model", "This model cannot chat: " + s->system.chat_error);
  if (s->system.chat_guessed) {
    note(LogLevel::kWarning, "model", "The model file holds no chat template: it chats in plain ChatML, whose markers it has.");
  }
  remember_model(info);
  MutexLock lock(mu);
  serving_ = s;
  return {};
}

// What runs on the model ends; returns when nobody holds it any more, so that its memory is free and one registry decides.
void Runtime::Impl::end_serving() {
  constexpr auto kPatience = std::chrono::seconds(2);
  std::shared_ptr<Serving> old;
  std::shared_ptr<HttpServer> http;
  {
    MutexLock lock(mu);
    old.swap(serving_);  // from here on requests are told that the model loads
    http = server;
  }
  if (old) old->engine->stop();
  old.reset();
  // Answers end at once, but a client that reads nothing holds its own for long.
  if (http && !http->wait_idle(Clock::system().steady() + kPatience)) http->hang_up();
  MutexLock lock(ended_mu);
  while (servings > 0) ended.wait(ended_mu);
}

void Runtime::Impl::resume_session() {
  // The newest session that was not ended when the program stopped, brought back paused: nothing starts by itself.
  std::optional<SessionRow> open;
  for (SessionRow& row : store->sessions()) {
    if (row.state != SessionState::kEnded) open = std::move(row);
  }
  if (!open || !options.resume_paused) return;
  const Status opened = reopen(*open);
  {
    MutexLock lock(mu);
    shut_out_.reset();
    if (!opened.ok()) shut_out_ = ShutOut{open->id, open->name, opened.message()};
  }
  if (opened.ok()) return note(LogLevel::kInfo, "session", "Session \"" + open->name + "\" is back, paused.");
  note(LogLevel::kError, "session", "Session \"" + open->name + "\" can't go on: " + opened.message());
}

Status Runtime::Impl::reopen(const SessionRow& row) {
  // First: whatever keeps it out, it does not run.
  SLUICE_RETURN_IF_ERROR(store->set_session_state(row.id, SessionState::kPaused));
  SLUICE_ASSIGN_OR_RETURN(Recipe recipe, parse_recipe(row.recipe_json, "session " + std::to_string(row.id.value)));
  const auto max = store->value(session_key(row.id, "max_requests"));
  if (store->value(session_key(row.id, "bad_candidate")) == "no") recipe.demo.bad_candidate = false;
  SLUICE_ASSIGN_OR_RETURN(const auto session, open_session(std::move(recipe), row, max ? std::strtoll(max->c_str(), nullptr, 10) : 0));
  session->start(true);
  return {};
}

void Runtime::Impl::stop_session() {
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mu);
    session = std::move(session_);
    session_.reset();
  }
  if (session) session->stop();
}

std::shared_ptr<Session> Runtime::Impl::session() const {
  MutexLock lock(mu);
  return session_;
}

std::optional<ShutOut> Runtime::Impl::shut_out() const {
  MutexLock lock(mu);
  return shut_out_;
}

std::shared_ptr<Serving> Runtime::Impl::serving() const {
  MutexLock lock(mu);
  return serving_;
}

std::string Runtime::Impl::name_of(VersionId version) const {
  if (version == kBaseVersion) return "base";
  const auto row = store->version(version);
  return version_name(row ? row->name : "version", version);
}

std::string Runtime::Impl::adapter_name() const {
  if (const auto s = session()) return s->recipe().task.name;
  const auto versions = store->versions();
  for (auto v = versions.rbegin(); v != versions.rend(); ++v) {
    if (v->origin == "step") return v->name;
  }
  return options.aliases.empty() ? "sluice" : options.aliases.front();  // nothing was trained here yet
}

void Runtime::Impl::on_store_event(const StoreEvent& event) {
  if (const auto s = session()) s->on_store_event(event);
  event_hub.push(event);
  StoreEvent copy = event;
  events.try_push(copy);
  std::vector<StoreListener> copies;
  {
    MutexLock lock(mu);
    copies = listeners;
  }
  for (const StoreListener& listener : copies) listener(event);
}

void Runtime::Impl::on_decision(const DecisionRow& row) {
  if (const auto s = session()) s->on_decision(row);
  if (row.kind != "startup") {
    note(LogLevel::kInfo, "gate", row.reason_text, "version:" + std::to_string(row.version.value));
  }
}

void Runtime::Impl::on_swap(const SwapNotice& notice) {
  if (notice.from == notice.to) return;  // the version in service put back after a start
  last_swap_us = notice.microseconds;
  std::function<void(const SwapNotice&)> listener;
  {
    MutexLock lock(mu);
    swap_times.add(static_cast<double>(notice.microseconds) / 1e6);
    listener = on_swap_notice;
  }
  if (listener) listener(notice);
  note(LogLevel::kInfo, "serve", name_of(notice.to) + " serves instead of " + name_of(notice.from) + " (" +
                                     std::to_string(notice.microseconds) + " us).", "version:" + std::to_string(notice.to.value));
}

std::uint64_t Runtime::Impl::submit(Command command, std::function<void(const CommandOutcome&)> done) {
  const std::uint64_t number = ++next_command;
  auto& queue = std::holds_alternative<Ask>(command) ? asks : commands;
  Queued item{std::move(command), std::move(done)};
  if (!queue.try_push(item) && item.done) {
    item.done(refused(busy("Too many commands wait, or the engine is stopping: try again in a moment.")));
  }
  return number;
}

CommandOutcome Runtime::Impl::run_and_wait(Command command, const std::atomic<bool>* give_up) {
  struct Waiter {
    Mutex mu;
    CondVar cv;
    std::optional<CommandOutcome> outcome SLUICE_GUARDED_BY(mu);
  };
  auto waiter = std::make_shared<Waiter>();
  submit(std::move(command), [waiter](const CommandOutcome& outcome) {
    MutexLock lock(waiter->mu);
    waiter->outcome = outcome;
    waiter->cv.notify_all();
  });
  MutexLock lock(waiter->mu);
  while (!waiter->outcome) {
    if (give_up && *give_up) {
      return refused(unavailable("The server is moving: the command may still be carried out.").with(Reason::kStopping));
    }
    waiter->cv.wait_until(waiter->mu, Clock::system().steady() + std::chrono::milliseconds(100));
  }
  return *waiter->outcome;
}

CommandOutcome Runtime::Impl::run_from_http(Command command) {
  if (loading()) return refused(not_loaded());  // the command thread may be the one that loads
  return run_and_wait(std::move(command), &server_moving);
}

}  // namespace sluice
