// SPDX-License-Identifier: GPL-3.0-or-later
// The parsed form of a template. Immutable once parsed. Depth is bounded by the parser, as evaluating and freeing recurse.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

enum class ExprKind {
  kConstant,   // constant
  kName,       // name
  kList,       // args
  kTuple,      // args
  kDict,       // args: key, value, key, value ...
  kAttribute,  // args[0].name
  kSubscript,  // args[0][args[1]]
  kSlice,      // args[0][args[1]:args[2]:args[3]], null where left out
  kCall,       // args[0](args[1..], named)
  kFilter,     // args[0] | name(args[1..], named)
  kTest,       // args[0] is name(args[1..])
  kNot,        // not args[0]
  kUnary,      // name ("+" or "-") args[0]
  kBinary,     // args[0] name args[1]
  kAnd,
  kOr,
  kCompare,      // args[0] names[0] args[1] names[1] args[2] ...
  kConditional,  // args[0] if args[1] else args[2], null where left out
};

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  int line = 1;
  int depth = 1;
  Value constant;
  std::string name;
  std::vector<std::string> names;
  std::vector<ExprPtr> args;
  std::vector<std::pair<std::string, ExprPtr>> named;
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

enum class StmtKind {
  kText,      // text
  kOutput,    // expr
  kIf,        // branches: condition (null = else) and body
  kFor,       // targets in expr if condition: body else other
  kSet,       // targets = expr, or space.targets[0] = expr
  kSetBlock,  // targets[0] = what body renders
  kMacro,     // macro
  kGroup,     // body, as it stands (generation)
  kFilterBlock,  // expr, in which targets[0] is what body renders
  kBreak,
  kContinue,
};

struct Macro {
  std::string name;
  std::vector<std::pair<std::string, ExprPtr>> parameters;  // with defaults, null where there is none
  Body body;
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  int line = 1;
  std::string text;
  ExprPtr expr;
  ExprPtr condition;
  std::vector<std::string> targets;
  std::string space;  // name of the namespace that is set
  Body body;
  Body other;
  std::vector<std::pair<ExprPtr, Body>> branches;
  Macro macro;
};

}  // namespace sluice::jinja
