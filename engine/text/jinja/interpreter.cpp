// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/jinja/interpreter.h"

#include "text/jinja/lexer.h"

namespace sluice::jinja {
namespace {

// Of evaluations within each other, macros included. Each takes a few hundred bytes of stack.
constexpr int kMaxNestedCalls = 500;

}  // namespace

Interpreter::Interpreter(Variables globals, std::int64_t max_steps, std::int64_t now_unix)
    : globals_{std::move(globals), nullptr}, budget_(max_steps), now_unix_(now_unix) {}

Interpreter::~Interpreter() {
  for (const auto& space : namespaces_) space->items.clear();
}

void Interpreter::Frame::set(const std::string& name, Value value) {
  for (auto& [key, current] : variables) {
    if (key != name) continue;
    current = std::move(value);
    return;
  }
  variables.emplace_back(name, std::move(value));
}

Status Interpreter::enter() {
  if (nesting_ >= kMaxNestedCalls) return invalid_argument("the template nests too deeply, maybe a macro calls itself");
  ++nesting_;
  return {};
}

Status Interpreter::located(int line, Status status) {
  if (located_ || status.reason() == Reason::kTemplate) return status;  // what a template raises is said in its own words
  located_ = true;
  return error_at(line, status.message());
}

Result<MarkedText> Interpreter::run(const Body& body) {
  MarkedText out;
  const Result<Flow> flow = execute(body, globals_, out);
  if (!flow.ok()) return flow.status();
  return out;
}

Result<Interpreter::Flow> Interpreter::execute(const Body& body, Frame& frame, MarkedText& out) {
  SLUICE_RETURN_IF_ERROR(enter());
  for (const auto& stmt : body) {
    const Result<Flow> flow = execute(*stmt, frame, out);
    if (!flow.ok()) return located(stmt->line, flow.status());
    if (*flow == Flow::kNext) continue;
    --nesting_;
    return flow;
  }
  --nesting_;
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::execute(const Stmt& stmt, Frame& frame, MarkedText& out) {
  SLUICE_RETURN_IF_ERROR(budget_.charge(0));
  switch (stmt.kind) {
    case StmtKind::kText: SLUICE_RETURN_IF_ERROR(emit(Value::literal(stmt.text), out)); break;
    case StmtKind::kOutput: {
      SLUICE_ASSIGN_OR_RETURN(const Value value, evaluate(*stmt.expr, frame));
      SLUICE_RETURN_IF_ERROR(emit(value, out));
      break;
    }
    case StmtKind::kIf: return execute_if(stmt, frame, out);
    case StmtKind::kFor: return execute_for(stmt, frame, out);
    case StmtKind::kSet: SLUICE_RETURN_IF_ERROR(assign(stmt, frame)); break;
    case StmtKind::kSetBlock: {
      MarkedText text;
      SLUICE_ASSIGN_OR_RETURN(const Flow flow, execute(stmt.body, frame, text));
      frame.set(stmt.targets[0], Value(std::move(text)));
      return flow;
    }
    case StmtKind::kMacro: frame.set(stmt.macro.name, Value(&stmt.macro)); break;
    case StmtKind::kGroup: return execute(stmt.body, frame, out);
    case StmtKind::kFilterBlock: {
      MarkedText text;
      Frame inner{{}, &frame};
      SLUICE_ASSIGN_OR_RETURN(const Flow flow, execute(stmt.body, inner, text));
      inner.set(stmt.targets[0], Value(std::move(text)));
      SLUICE_ASSIGN_OR_RETURN(const Value value, evaluate(*stmt.expr, inner));
      SLUICE_RETURN_IF_ERROR(emit(value, out));
      return flow;
    }
    case StmtKind::kBreak: return Flow::kBreak;
    case StmtKind::kContinue: return Flow::kContinue;
  }
  return Flow::kNext;
}

Status Interpreter::emit(const Value& value, MarkedText& out) {
  SLUICE_RETURN_IF_ERROR(budget_.charge(value.weight()));
  const MarkedText text = to_str(value);
  if (out.size() + text.size() > kMaxWeight) return invalid_argument("the prompt grows above 64 MiB");
  out.append(text);
  return {};
}

Result<Interpreter::Flow> Interpreter::execute_if(const Stmt& stmt, Frame& frame, MarkedText& out) {
  for (const auto& [condition, body] : stmt.branches) {
    if (condition) {
      SLUICE_ASSIGN_OR_RETURN(const Value value, evaluate(*condition, frame));
      if (!value.truthy()) continue;
    }
    return execute(body, frame, out);
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::execute_for(const Stmt& stmt, Frame& frame, MarkedText& out) {
  SLUICE_ASSIGN_OR_RETURN(const Value iterable, evaluate(*stmt.expr, frame));
  SLUICE_ASSIGN_OR_RETURN(std::vector<Value> items, iterate(iterable, budget_));
  if (stmt.condition) {
    std::vector<Value> kept;
    for (Value& item : items) {
      Frame probe{{}, &frame};
      SLUICE_RETURN_IF_ERROR(unpack(stmt.targets, item, probe));
      SLUICE_ASSIGN_OR_RETURN(const Value keep, evaluate(*stmt.condition, probe));
      if (keep.truthy()) kept.push_back(std::move(item));
    }
    items = std::move(kept);
  }
  if (items.empty()) return execute(stmt.other, frame, out);
  for (std::size_t i = 0; i < items.size(); ++i) {
    Frame inner{{}, &frame};  // what is set inside a loop ends with the round
    auto loop = std::make_shared<Loop>();
    loop->index0 = static_cast<std::int64_t>(i);
    loop->length = static_cast<std::int64_t>(items.size());
    loop->previous = i > 0 ? items[i - 1] : Value::undefined("there is no previous item");
    loop->next = i + 1 < items.size() ? items[i + 1] : Value::undefined("there is no next item");
    inner.set("loop", Value(std::shared_ptr<const Loop>(std::move(loop))));
    SLUICE_RETURN_IF_ERROR(unpack(stmt.targets, items[i], inner));
    SLUICE_ASSIGN_OR_RETURN(const Flow flow, execute(stmt.body, inner, out));
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

Status Interpreter::unpack(const std::vector<std::string>& targets, const Value& value, Frame& frame) {
  SLUICE_RETURN_IF_ERROR(budget_.charge(16 * frame.variables.size() * targets.size()));
  if (targets.size() == 1) {
    frame.set(targets[0], value);
    return {};
  }
  auto items = iterate(value, budget_);
  if (!items.ok()) return items.status();
  if (items->size() != targets.size()) {
    return invalid_argument(std::to_string(targets.size()) + " names are assigned " + std::to_string(items->size()) +
                            " values");
  }
  for (std::size_t i = 0; i < targets.size(); ++i) frame.set(targets[i], (*items)[i]);
  return {};
}

Status Interpreter::assign(const Stmt& stmt, Frame& frame) {
  auto value = evaluate(*stmt.expr, frame);
  if (!value.ok()) return value.status();
  if (stmt.space.empty()) return unpack(stmt.targets, *value, frame);
  auto target = lookup(stmt.space, frame);
  if (!target.ok()) return target.status();
  Namespace* space = target->space();
  if (space == nullptr) {
    return invalid_argument("cannot assign attribute on non-namespace object \"" + stmt.space + "\"");
  }
  SLUICE_RETURN_IF_ERROR(budget_.charge(16 * space->items.size()));
  for (auto& [key, current] : space->items) {
    if (key != stmt.targets[0]) continue;
    current = std::move(*value);
    return {};
  }
  space->items.emplace_back(stmt.targets[0], std::move(*value));
  return {};
}

Result<Value> Interpreter::lookup(const std::string& name, Frame& frame) {
  for (const Frame* f = &frame; f != nullptr; f = f->parent) {
    SLUICE_RETURN_IF_ERROR(budget_.charge(2 * f->variables.size()));  // a linear search; there are few as a rule
    for (const auto& [key, value] : f->variables) {
      if (key == name) return value;
    }
  }
  static const std::pair<std::string_view, Builtin> builtins[] = {{"range", Builtin::kRange},
                                                                  {"namespace", Builtin::kNamespace},
                                                                  {"dict", Builtin::kDict},
                                                                  {"raise_exception", Builtin::kRaiseException},
                                                                  {"strftime_now", Builtin::kStrftimeNow}};
  for (const auto& [key, builtin] : builtins) {
    if (key == name) return Value(builtin);
  }
  return Value::undefined("'" + name + "' is undefined");
}

Result<std::vector<Value>> Interpreter::all(const std::vector<ExprPtr>& exprs, Frame& frame) {
  std::vector<Value> out;
  for (const ExprPtr& expr : exprs) {
    SLUICE_ASSIGN_OR_RETURN(Value value, evaluate(*expr, frame));
    out.push_back(std::move(value));
  }
  return out;
}

Result<Value> Interpreter::evaluate(const Expr& expr, Frame& frame) {
  Status entered = enter();
  if (entered.ok()) entered = budget_.charge(0);
  if (!entered.ok()) return located(expr.line, entered);
  Result<Value> out = evaluate_inner(expr, frame);
  if (!out.ok()) return located(expr.line, out.status());
  --nesting_;
  return out;
}

Result<Value> Interpreter::evaluate_inner(const Expr& expr, Frame& frame) {
  const auto part = [&](std::size_t i) { return evaluate(*expr.args[i], frame); };
  switch (expr.kind) {
    case ExprKind::kConstant: return expr.constant;
    case ExprKind::kName: return lookup(expr.name, frame);
    case ExprKind::kCompare: return compare(expr, frame);
    case ExprKind::kSlice: return slice(expr, frame);
    case ExprKind::kCall: return call(expr, frame);
    case ExprKind::kList:
    case ExprKind::kTuple: {
      SLUICE_ASSIGN_OR_RETURN(std::vector<Value> items, all(expr.args, frame));
      return make_list(std::move(items), expr.kind == ExprKind::kTuple);
    }
    case ExprKind::kDict: {
      SLUICE_ASSIGN_OR_RETURN(std::vector<Value> parts, all(expr.args, frame));
      std::vector<std::pair<Value, Value>> items;
      for (std::size_t i = 0; i < parts.size(); i += 2) items.emplace_back(std::move(parts[i]), std::move(parts[i + 1]));
      return make_dict(std::move(items));
    }
    case ExprKind::kConditional: {
      SLUICE_ASSIGN_OR_RETURN(const Value condition, part(1));
      if (condition.truthy()) return part(0);
      return expr.args[2] ? part(2) : Value::undefined("the condition is false and there is no else");
    }
    default: break;
  }
  SLUICE_ASSIGN_OR_RETURN(const Value first, part(0));
  switch (expr.kind) {
    case ExprKind::kAttribute: return attribute(first, expr.name);
    case ExprKind::kSubscript: {
      SLUICE_ASSIGN_OR_RETURN(const Value index, part(1));
      return subscript(first, index);
    }
    case ExprKind::kNot: return Value(!first.truthy());
    case ExprKind::kAnd: return first.truthy() ? part(1) : first;
    case ExprKind::kOr: return first.truthy() ? first : part(1);
    case ExprKind::kUnary: return binary(expr.name, Value(std::int64_t{0}), first, budget_);
    case ExprKind::kBinary: {
      SLUICE_ASSIGN_OR_RETURN(const Value second, part(1));
      return binary(expr.name, first, second, budget_);
    }
    case ExprKind::kFilter: {
      SLUICE_ASSIGN_OR_RETURN(const Arguments args, arguments(expr, frame));
      return apply_filter(expr.name, first, args, budget_);
    }
    default: {  // kTest
      SLUICE_ASSIGN_OR_RETURN(const Arguments args, arguments(expr, frame));
      SLUICE_RETURN_IF_ERROR(args.allow("a test", 1));
      SLUICE_RETURN_IF_ERROR(budget_.charge(first.weight()));
      for (const Value& argument : args.positional) SLUICE_RETURN_IF_ERROR(budget_.charge(argument.weight()));
      SLUICE_ASSIGN_OR_RETURN(const bool passes, apply_test(expr.name, first, args.positional));
      return Value(passes);
    }
  }
}

Result<Arguments> Interpreter::arguments(const Expr& expr, Frame& frame) {
  Arguments out;
  for (std::size_t i = 1; i < expr.args.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(Value value, evaluate(*expr.args[i], frame));
    out.positional.push_back(std::move(value));
  }
  for (const auto& [name, argument] : expr.named) {
    SLUICE_ASSIGN_OR_RETURN(Value value, evaluate(*argument, frame));
    out.named.emplace_back(name, std::move(value));
  }
  return out;
}

}  // namespace sluice::jinja
