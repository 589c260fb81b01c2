// SPDX-License-Identifier: GPL-3.0-or-later
// Commands on the session and on the server its stream sends its requests through; on the command thread.
#include "http/guard.h"
#include "release/gate_json.h"
#include "runtime/conditions.h"
#include "runtime/outcomes.h"
#include "runtime/runtime_impl.h"

namespace sluice {

CommandOutcome Runtime::Impl::handle(StartServer& c) {
  MutexLock moving(server_mu);
  // Also while the model loads: the session comes back on the loader's thread then.
  if (Status s = ready(); !s.ok() && !loading()) return refused(std::move(s));
  if (const auto s = session(); s && !s->row().live_only) {
    const auto row = store->session(s->row().id);
    if (row && row->state == SessionState::kRunning) {
      return refused(conflict("A session sends its requests to this server: pause it before moving the server."));
    }
    stop_session();  // paused: it comes back below, with the new address
  }
  if (const Status moved = move_server({c.host.empty() ? wanted_address().host : c.host, c.port}); !moved.ok()) {
    if (!session() && ready().ok()) resume_session();
    return refused(moved);
  }
  if (!session() && ready().ok()) resume_session();
  if (c.remember) remember_port(wanted_address().port);
  MutexLock lock(mu);
  return accepted("Listening on " + server_url + ".");
}

Result<SessionParts> Runtime::Impl::session_parts(bool live_only) const {
  const auto s = serving();
  SessionParts parts;
  parts.store = store.get();
  parts.registry = s->registry.get();
  parts.service = s->service.get();
  parts.model = s->system.model;
  parts.log = &log;
  parts.discard_at_bound = options.discard_at_bound;
  parts.trainer_threads = options.trainer_threads > 0 ? options.trainer_threads : half_the_cores();
  if (options.engine_threads == 0) {
    parts.on_training = [engine = s->engine.get()](bool works) { engine->limit_threads(works ? half_the_cores() : all_cores()); };
  }
  if (!options.api_keys.empty()) parts.api_key = std::string(api_key_text(options.api_keys.front()));
  MutexLock lock(mu);
  parts.server_url = own_url;
  if (!live_only && server_url.empty()) {
    return unavailable((server_error.empty() ? std::string() : server_error + " ") +
                       "The stream sends its requests through the HTTP server: choose a free port first.");
  }
  return parts;
}

Result<std::shared_ptr<Session>> Runtime::Impl::open_session(Recipe recipe, SessionRow row, std::int64_t max_requests) {
  SLUICE_ASSIGN_OR_RETURN(SessionParts parts, session_parts(row.live_only));
  SessionCallbacks callbacks;
  callbacks.on_notice = [this](const std::string& text, const std::string& link) {
    note(LogLevel::kWarning, "session", text, link);
  };
  callbacks.on_request = [this](const DriverEvent& event) {
    std::function<void(const DriverEvent&)> listener;
    {
      MutexLock lock(mu);
      listener = on_request;
    }
    if (listener) listener(event);
    if (!event.error.empty()) note(LogLevel::kWarning, "stream", "A request of the stream failed: " + event.error);
  };
  SLUICE_ASSIGN_OR_RETURN(auto opened, Session::open(std::move(parts), std::move(recipe), std::move(row), max_requests, callbacks));
  std::shared_ptr<Session> session = std::move(opened);
  MutexLock lock(mu);
  session_ = session;
  return session;
}

Result<std::shared_ptr<Session>> Runtime::Impl::begin_session(Recipe recipe, SessionRow row, std::int64_t max_requests) {
  // What the recipe does not say must be known after a restart, too.
  SLUICE_RETURN_IF_ERROR(store->put_value(session_key(row.id, "max_requests"), std::to_string(max_requests)));
  SLUICE_RETURN_IF_ERROR(
      store->put_value(session_key(row.id, "bad_candidate"), recipe.demo.bad_candidate ? "yes" : "no"));
  SLUICE_RETURN_IF_ERROR(leave_candidates());
  return open_session(std::move(recipe), std::move(row), max_requests);
}

// Candidates of a session that ended were made for other prompts and another metric: nobody measures them any more.
Status Runtime::Impl::leave_candidates() {
  for (const VersionRow& version : store->versions()) {
    if (version.state != VersionState::kCandidate && version.state != VersionState::kEvaluating) continue;
    if (version.origin == "import") continue;  // brought in by a person, to be measured by whichever session runs
    SLUICE_RETURN_IF_ERROR(store->set_version_state(version.id, VersionState::kSuperseded));
  }
  return {};
}

CommandOutcome Runtime::Impl::handle(StartSession& c) {
  if (Status s = ready(); !s.ok()) return refused(std::move(s));
  const auto s = serving();
  if (session()) return refused(conflict("A session runs already: end it first."));
  if (const auto out = shut_out()) {
    return refused(conflict("Session \"" + out->name + "\" is open still: resume it or end it first."));
  }
  auto recipe = load_recipe(c.recipe, recipe_folder);
  if (!recipe.ok()) return refused(recipe.status());
  if (!s->system.chat_template && !c.live_only) {
    return refused(invalid_argument("This model cannot chat, and the recipe's stream does: " + s->system.chat_error));
  }
  recipe->demo.bad_candidate = recipe->demo.bad_candidate && c.bad_candidate;
  if (!c.gate_profile.empty()) {
    const auto profile = parse_gate_profile(c.gate_profile);
    if (!profile.ok()) return refused(profile.status());
    if (!recipe->learn.brakes.enabled && *profile != GateProfile::kOff) {
      return refused(invalid_argument("This recipe has its brakes off, which only gate profile \"off\" allows."));
    }
    recipe->gate = gate_preset(*profile);
  }
  const std::int64_t max_requests = c.max_requests >= 0 ? c.max_requests : recipe->demo.requests;

  SessionRow row;
  row.name = c.name.empty() ? recipe->task.name : c.name;
  row.recipe_name = recipe->task.name;
  row.recipe_json = recipe->json;
  row.conditions_json = conditions_json(s->system.model->info(), options, half_the_cores());
  row.seed = c.seed;
  row.live_only = c.live_only;
  // What can be refused is refused before a row says that there was a session.
  const auto parts = session_parts(row.live_only);
  if (!parts.ok()) return refused(parts.status());
  if (Status startable = Session::check_start(*parts, *recipe, row); !startable.ok()) return refused(std::move(startable));
  const auto settings = store_gate_settings(*store, recipe->gate, "recipe " + recipe->task.name, "start of the session");
  if (!settings.ok()) return refused(settings.status());
  const auto id = store->add_session(row);
  if (!id.ok()) return refused(id.status());
  row.id = *id;
  auto session = begin_session(std::move(recipe).value(), row, max_requests);
  if (!session.ok()) {
    if (Status ended = store->set_session_state(row.id, SessionState::kEnded); !ended.ok()) return refused(std::move(ended));
    return refused(session.status());
  }
  (*session)->start(false);
  note(LogLevel::kInfo, "session", "Session \"" + row.name + "\" started, seed " + std::to_string(row.seed) + ".");
  CommandOutcome out = accepted("Session \"" + row.name + "\" runs.");
  out.session = row.id;
  return out;
}

// The session to act on, or why there is none.
Result<std::shared_ptr<Session>> Runtime::Impl::running_session() const {
  SLUICE_RETURN_IF_ERROR(ready());
  if (auto s = session()) return s;
  if (const auto out = shut_out()) {
    return conflict("Session \"" + out->name + "\" can't go on: " + out->reason + " Resume tries again; or end it.");
  }
  return conflict("No session runs: start one first.");
}

CommandOutcome Runtime::Impl::handle(PauseSession&) {
  const auto s = running_session();
  if (!s.ok()) return refused(s.status());
  (*s)->pause();  // also when the disk is full and the row can't say so
  if (Status set = store->set_session_state((*s)->row().id, SessionState::kPaused); !set.ok()) return refused(std::move(set));
  return accepted("Paused: stream, trainer and gate stand still; " + name_of(store->serving_version()) + " serves on.");
}

CommandOutcome Runtime::Impl::handle(ResumeSession&) {
  if (ready().ok() && !session() && shut_out()) try_again();
  const auto s = running_session();
  if (!s.ok()) return refused(s.status());
  if (Status set = store->set_session_state((*s)->row().id, SessionState::kRunning); !set.ok()) return refused(std::move(set));
  (*s)->resume();
  return accepted(serving()->registry->frozen() ? "The session runs again; learning stands still until you unfreeze."
                                                : "The session runs again.");
}

// What kept the session out may be gone: a port let go of, a disk with room again.
void Runtime::Impl::try_again() {
  bool listens = false;
  {
    MutexLock lock(mu);
    listens = !server_url.empty();
  }
  MutexLock moving(server_mu);
  if (!listens && options.serve_http) (void)start_server(wanted_address());  // its failure is noted, and keeps the session out
  resume_session();
}

CommandOutcome Runtime::Impl::handle(EndSession&) {
  SessionId id;
  std::string name;
  if (const auto out = shut_out(); out && ready().ok() && !session()) {
    id = out->id;
    name = out->name;
  } else {
    const auto s = running_session();
    if (!s.ok()) return refused(s.status());
    id = (*s)->row().id;
    name = (*s)->row().name;
  }
  // The row first: whoever finds no session any more also finds it ended. A row that can't be written leaves the session be.
  if (Status set = store->set_session_state(id, SessionState::kEnded); !set.ok()) return refused(std::move(set));
  stop_session();
  if (Status left = leave_candidates(); !left.ok()) note(LogLevel::kWarning, "session", left.message());
  {
    MutexLock lock(mu);
    shut_out_.reset();
  }
  note(LogLevel::kInfo, "session", "Session \"" + name + "\" ended.");
  return accepted("The session ended; " + name_of(store->serving_version()) + " serves on.");
}

CommandOutcome Runtime::Impl::handle(TrainOn&) {
  const auto s = running_session();
  if (!s.ok()) return refused(s.status());
  const auto steps = (*s)->train_on();
  if (!steps.ok()) return refused(steps.status());
  note(LogLevel::kInfo, "session", "Training goes on by hand: up to " + std::to_string(*steps) + " more steps before it asks again.");
  return accepted("Training goes on: up to " + std::to_string(*steps) + " more steps before it asks again.");
}

CommandOutcome Runtime::Impl::handle(DiscardTraining&) {
  const auto s = running_session();
  if (!s.ok()) return refused(s.status());
  if (Status left = (*s)->discard_training(); !left.ok()) return refused(std::move(left));
  const std::string said = "Training goes on from " + name_of(store->serving_version()) + ", which serves; what was learnt since is left.";
  note(LogLevel::kInfo, "session", said);
  return accepted(said);
}

}  // namespace sluice
