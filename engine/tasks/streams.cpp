// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the task part of a recipe file and expands its forms and topics into prompts.
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/json_limits.h"
#include "base/plain_name.h"
#include "tasks/held_out.h"
#include "tasks/recipe.h"

namespace sluice {
namespace {

using nlohmann::json;

constexpr std::string_view kHole = "{topic}";
constexpr std::size_t kMostPrompts = 100000;

Status wrong(const std::string& field, const std::string& what) { return invalid_argument("recipe: \"" + field + "\" " + what); }

struct Topic {
  std::string text;
  std::vector<std::string> names;
};

Result<std::string> string_at(const json& object, const char* name, const std::string& field, bool required) {
  const auto it = object.find(name);
  if (it == object.end() || it->is_null()) return required ? Result<std::string>(wrong(field, "is missing")) : std::string();
  if (!it->is_string()) return wrong(field, "must be a string");
  return it->get<std::string>();
}

Result<std::vector<std::string>> strings_at(const json& object, const char* name, const std::string& field) {
  std::vector<std::string> out;
  const auto it = object.find(name);
  if (it == object.end() || it->is_null()) return out;
  if (!it->is_array()) return wrong(field, "must be a list of strings");
  for (const json& value : *it) {
    if (!value.is_string() || value.get<std::string>().empty()) return wrong(field, "must be a list of strings, none of them empty");
    out.push_back(value.get<std::string>());
  }
  return out;
}

// Objects are looked up once and must be there; a null reference never leaves this file.
Result<const json*> object_at(const json& root, const char* name) {
  const auto it = root.find(name);
  if (it == root.end()) return wrong(name, "is missing");
  if (!it->is_object()) return wrong(name, "must be an object");
  return &*it;
}

std::string without_article(const std::string& text) {
  for (const char* article : {"a ", "an ", "the ", "A ", "An ", "The "}) {
    if (text.rfind(article, 0) == 0) return text.substr(std::string_view(article).size());
  }
  return text;
}

Result<std::vector<Topic>> topics_at(const json& stream, const char* name) {
  const std::string field = std::string("stream.") + name;
  std::vector<Topic> out;
  const auto it = stream.find(name);
  if (it == stream.end() || it->is_null()) return out;
  if (!it->is_array()) return wrong(field, "must be a list");
  for (const json& value : *it) {
    Topic topic;
    if (value.is_string()) {
      topic.text = value.get<std::string>();
    } else if (value.is_object()) {
      SLUICE_ASSIGN_OR_RETURN(topic.text, string_at(value, "text", field + ".text", true));
      SLUICE_ASSIGN_OR_RETURN(topic.names, strings_at(value, "names", field + ".names"));
    } else {
      return wrong(field, "must hold strings or {\"text\", \"names\"}");
    }
    if (topic.text.empty()) return wrong(field, "holds an empty topic");
    if (topic.names.empty()) topic.names.push_back(without_article(topic.text));
    out.push_back(std::move(topic));
  }
  return out;
}

Status check_forms(const std::vector<std::string>& forms) {
  for (const std::string& form : forms) {
    const std::size_t at = form.find(kHole);
    if (at == std::string::npos || form.find(kHole, at + 1) != std::string::npos) {
      return wrong("stream.forms", "holds a form without exactly one {topic}: " + form);
    }
  }
  return {};
}

std::vector<TaskPrompt> expand(const std::vector<std::string>& forms, const std::vector<Topic>& topics) {
  std::vector<TaskPrompt> out;
  for (std::size_t f = 0; f < forms.size(); ++f) {
    for (const Topic& topic : topics) {
      TaskPrompt prompt;
      prompt.id = std::to_string(f) + "/" + topic.text;
      prompt.text = forms[f];
      prompt.text.replace(prompt.text.find(kHole), kHole.size(), topic.text);
      if (prompt.text[0] >= 'a' && prompt.text[0] <= 'z') prompt.text[0] = static_cast<char>(prompt.text[0] - 'a' + 'A');
      prompt.topic = topic.text;
      prompt.names = topic.names;
      prompt.group = prompt.id;
      out.push_back(std::move(prompt));
    }
  }
  return out;
}

void add_plain(const std::vector<std::string>& texts, const char* prefix, std::vector<TaskPrompt>& out) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string id = prefix + std::to_string(i);
    out.push_back({id, texts[i], "", {}, id});
  }
}

// The held-out prompts must be about something else, or they would measure memory.
Status check_apart(const TaskRecipe& recipe) {
  std::set<std::string> texts, train_topics;
  for (const auto* list : {&recipe.train, &recipe.held_out, &recipe.probes}) {
    for (const TaskPrompt& prompt : *list) {
      if (!texts.insert(prompt.text).second) return wrong("stream", "makes the same prompt twice: " + prompt.text);
      if (list == &recipe.train) {
        if (!prompt.topic.empty()) train_topics.insert(prompt.topic);
      } else if (train_topics.contains(prompt.topic)) {
        return wrong("stream", "has the topic \"" + prompt.topic + "\" both to train on and held out");
      }
    }
  }
  const HeldOutTexts held_back({&recipe.held_out, &recipe.probes});  // by which live traffic is kept out of training
  for (const TaskPrompt& prompt : recipe.train) {
    if (held_back.contain(prompt.text)) return wrong("stream", "both trains on and holds out the prompt: " + prompt.text);
  }
  if (recipe.train.empty()) return wrong("stream", "makes no prompts to train on: give forms and topics, or prompts");
  return {};
}

Status read_stream(const json& stream, TaskRecipe& recipe) {
  SLUICE_ASSIGN_OR_RETURN(recipe.system_prompt, string_at(stream, "system", "stream.system", false));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::string> forms, strings_at(stream, "forms", "stream.forms"));
  SLUICE_RETURN_IF_ERROR(check_forms(forms));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<Topic> topics, topics_at(stream, "topics"));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<Topic> held_out, topics_at(stream, "held_out_topics"));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<Topic> probes, topics_at(stream, "probe_topics"));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::string> prompts, strings_at(stream, "prompts", "stream.prompts"));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::string> held_prompts,
                          strings_at(stream, "held_out_prompts", "stream.held_out_prompts"));
  if (forms.size() * (topics.size() + held_out.size() + probes.size()) > kMostPrompts) {
    return wrong("stream", "makes more than " + std::to_string(kMostPrompts) + " prompts");
  }
  recipe.train = expand(forms, topics);
  recipe.held_out = expand(forms, held_out);
  recipe.probes = expand(forms, probes);
  add_plain(prompts, "prompt/", recipe.train);
  add_plain(held_prompts, "held-out/", recipe.held_out);
  return check_apart(recipe);
}

Result<double> number_at(const json& object, const char* name, double fallback, double lo, double hi) {
  const auto it = object.find(name);
  if (it == object.end() || it->is_null()) return fallback;
  const std::string field = std::string("sampling.") + name;
  if (!it->is_number()) return wrong(field, "must be a number");
  const double value = it->get<double>();
  if (!(value >= lo && value <= hi)) {
    std::ostringstream text;
    text << "is " << value << "; it must lie between " << lo << " and " << hi;
    return wrong(field, text.str());
  }
  return value;
}

Status read_sampling(const json& root, TaskSampling& out) {
  if (!root.contains("sampling")) return {};
  SLUICE_ASSIGN_OR_RETURN(const json* sampling, object_at(root, "sampling"));
  SLUICE_ASSIGN_OR_RETURN(out.temperature, number_at(*sampling, "temperature", out.temperature, 0, 2));
  SLUICE_ASSIGN_OR_RETURN(out.top_p, number_at(*sampling, "top_p", out.top_p, 0.01, 1));
  SLUICE_ASSIGN_OR_RETURN(const double max_tokens, number_at(*sampling, "max_tokens", out.max_tokens, 1, 100000));
  out.max_tokens = static_cast<int>(max_tokens);
  return {};
}

Result<Rule> read_rule(const json& value, const std::string& field) {
  if (!value.is_object()) return wrong(field, "must be an object with \"rule\"");
  SLUICE_ASSIGN_OR_RETURN(const std::string name, string_at(value, "rule", field + ".rule", true));
  Rule rule;
  SLUICE_ASSIGN_OR_RETURN(rule.kind, parse_rule(name));
  for (const auto& [key, place] : {std::pair("min", &rule.min), std::pair("max", &rule.max)}) {
    const auto it = value.find(key);
    if (it == value.end()) continue;
    if (!it->is_number_integer() || it->get<std::int64_t>() < 0 || it->get<std::int64_t>() > 1000000) {
      return wrong(field + "." + key, "must be a whole number from 0 to 1000000");
    }
    *place = static_cast<int>(it->get<std::int64_t>());
  }
  SLUICE_ASSIGN_OR_RETURN(rule.values, strings_at(value, "values", field + ".values"));
  const bool ranged = rule.kind == RuleKind::kWords || rule.kind == RuleKind::kCharacters;
  const bool listed = rule.kind == RuleKind::kNoWords || rule.kind == RuleKind::kNoCharacters;
  if (ranged && rule.min == 0 && rule.max == 0) return wrong(field, "needs \"min\" or \"max\"");
  if (rule.max > 0 && rule.min > rule.max) return wrong(field, "has a \"min\" above its \"max\"");
  if (listed && rule.values.empty()) return wrong(field, "needs \"values\"");
  return rule;
}

Result<RuleSet> read_rules(const json& root, const char* name) {
  SLUICE_ASSIGN_OR_RETURN(const json* object, object_at(root, name));
  RuleSet set;
  SLUICE_ASSIGN_OR_RETURN(set.name, string_at(*object, "name", std::string(name) + ".name", true));
  SLUICE_ASSIGN_OR_RETURN(set.description, string_at(*object, "description", std::string(name) + ".description", false));
  const auto rules = object->find("rules");
  if (rules == object->end() || !rules->is_array() || rules->empty()) {
    return wrong(std::string(name) + ".rules", "must be a list with at least one rule");
  }
  for (const json& value : *rules) {
    SLUICE_ASSIGN_OR_RETURN(Rule rule, read_rule(value, std::string(name) + ".rules"));
    set.rules.push_back(std::move(rule));
  }
  return set;
}

}  // namespace

Result<TaskRecipe> parse_task_recipe(std::string_view text) {
  SLUICE_RETURN_IF_ERROR(check_json_limits(text, "recipe"));
  const json root = json::parse(text, nullptr, false);
  if (root.is_discarded()) return invalid_argument("recipe: the text is not valid JSON: " + json_problem<json>(text));
  if (!root.is_object()) return invalid_argument("recipe: the text must be a JSON object");
  TaskRecipe recipe;
  SLUICE_ASSIGN_OR_RETURN(recipe.name, string_at(root, "name", "name", true));
  if (!is_plain_name(recipe.name)) {
    return wrong("name", "must be 1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit");
  }
  SLUICE_ASSIGN_OR_RETURN(recipe.title, string_at(root, "title", "title", false));
  SLUICE_ASSIGN_OR_RETURN(recipe.summary, string_at(root, "summary", "summary", false));
  SLUICE_ASSIGN_OR_RETURN(const json* stream, object_at(root, "stream"));
  SLUICE_RETURN_IF_ERROR(read_stream(*stream, recipe));
  SLUICE_RETURN_IF_ERROR(read_sampling(root, recipe.sampling));
  SLUICE_ASSIGN_OR_RETURN(recipe.user, read_rules(root, "user"));
  if (root.contains("protected")) {
    SLUICE_ASSIGN_OR_RETURN(recipe.protected_metric, read_rules(root, "protected"));
  }
  return recipe;
}

Result<TaskRecipe> load_task_recipe(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("recipe file " + path + " can't be opened");
  std::ostringstream text;
  text << file.rdbuf();
  Result<TaskRecipe> recipe = parse_task_recipe(text.str());
  if (!recipe.ok()) return Status(recipe.status().code(), path + ": " + recipe.status().message());
  return recipe;
}

}  // namespace sluice
