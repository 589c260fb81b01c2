// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/adapters_api.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/excerpt.h"
#include "base/plain_name.h"
#include "http/api_json.h"
#include "store/version_name.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Fields = FieldsOf<Json>;

constexpr std::size_t kMostAtOnce = 64;

AdapterImport read_import(Fields& f) {
  AdapterImport out;
  out.name = f.text("name", "", 64);
  if (!is_plain_name(out.name)) {
    f.refuse("name", "must begin with a letter or digit and hold letters, digits, dot, dash and underscore, at most 64");
  }
  out.path = f.text("path", "", 4096);
  if (out.path.empty()) f.refuse("path", "must be a PEFT folder or a GGUF adapter on this machine");
  out.note = f.text("note", "", 200);
  return out;
}

Json imported_json(const NewCandidate& a) {
  return {{"name", version_name(a.name, a.version)},
          {"version", a.version.value},
          {"state", version_state_name(VersionState::kCandidate)},
          {"modules", stored_json<Json>(a.modules_json)},
          {"rank", a.rank},
          {"bytes", a.bytes}};
}

}  // namespace

void AdaptersApi::add_routes(RouteTable& table) {
  using Parts = RouteTable::Parts;
  const std::string base = "/sluice/v1/adapters";
  table.add(Scope::kAdmin, "POST", base, [this](const HttpRequest& r, const Parts&) { return add(r); });
  table.add(Scope::kAdmin, "DELETE", base + "/*", [this](const HttpRequest&, const Parts& p) { return remove(p[0], ""); });
  table.add(Scope::kAdmin, "DELETE", base + "/*/versions/*",
            [this](const HttpRequest&, const Parts& p) { return remove(p[0], p[1]); });
}

HttpReply AdaptersApi::add(const HttpRequest& request) {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  Fields f(body);
  const Json* list = f.find("adapters");
  std::vector<AdapterImport> wanted;
  if (list == nullptr) {
    wanted.push_back(read_import(f));
  } else if (!list->is_array() || list->empty() || list->size() > kMostAtOnce) {
    f.refuse("adapters", "must be a list of 1 to " + std::to_string(kMostAtOnce) + " adapters");
  } else {
    for (std::size_t i = 0; i < list->size() && !f.error(); ++i) {
      const std::string where = "adapters[" + std::to_string(i) + "]";
      if (!(*list)[i].is_object()) {
        f.refuse(where, "must be an object");
        break;
      }
      Fields each((*list)[i], where + ".");
      wanted.push_back(read_import(each));
      f.adopt(each);
    }
  }
  if (f.error()) return error_reply(*f.error());
  const auto imported = control_.import_adapters(wanted);
  if (!imported.ok()) {
    ApiError error = api_error(imported.status(), "name_in_use");
    if (error.status == 400 || imported.code() == Code::kNotFound) {
      error.status = 400;
      error.code = "invalid_adapter";
      error.param = "path";
    }
    return error_reply(error);
  }
  if (list == nullptr) return json_reply(imported_json(imported->front()), 201);
  Json data = Json::array();
  for (const NewCandidate& a : *imported) data.push_back(imported_json(a));
  return json_reply(Json{{"adapters", std::move(data)}}, 201);
}

HttpReply AdaptersApi::remove(const std::string& name, const std::string& version) {
  std::vector<VersionId> versions;
  for (const VersionRow& v : store_.versions()) {
    if (v.id == kBaseVersion || v.state == VersionState::kPruned) continue;
    const bool named = v.name == name || version_name(v.name, v.id) == name;  // as our answers write it
    if (named && (version.empty() || std::to_string(v.id.value) == version)) versions.push_back(v.id);
  }
  if (versions.empty()) {
    return failed(not_found("There is no adapter " + excerpt(version.empty() ? name : name + "@" + version)), "", "model_not_found");
  }
  if (const Status done = control_.prune_versions(versions); !done.ok()) return failed(done, "illegal_transition");
  Json pruned = Json::array();
  for (const VersionId v : versions) pruned.push_back({{"version", v.value}, {"state", version_state_name(VersionState::kPruned)}});
  return json_reply(Json{{"name", name}, {"versions", std::move(pruned)}}, 202);
}

}  // namespace sluice
