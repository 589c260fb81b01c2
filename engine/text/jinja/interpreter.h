// SPDX-License-Identifier: GPL-3.0-or-later
// Runs a parsed template once. Used by one thread, for one render; the syntax tree must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/functions.h"
#include "text/jinja/syntax.h"

namespace sluice::jinja {

class Interpreter {
 public:
  using Variables = std::vector<std::pair<std::string, Value>>;

  Interpreter(Variables globals, std::int64_t max_steps, std::int64_t now_unix);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  Result<MarkedText> run(const Body& body);

 private:
  struct Frame {
    Variables variables;
    Frame* parent = nullptr;

    void set(const std::string& name, Value value);
  };
  enum class Flow { kNext, kBreak, kContinue };

  Result<Flow> execute(const Body& body, Frame& frame, MarkedText& out);
  Result<Flow> execute(const Stmt& stmt, Frame& frame, MarkedText& out);
  Result<Flow> execute_if(const Stmt& stmt, Frame& frame, MarkedText& out);
  Result<Flow> execute_for(const Stmt& stmt, Frame& frame, MarkedText& out);
  Status assign(const Stmt& stmt, Frame& frame);
  Status unpack(const std::vector<std::string>& targets, const Value& value, Frame& frame);
  Status emit(const Value& value, MarkedText& out);

  Result<Value> evaluate(const Expr& expr, Frame& frame);
  Result<Value> evaluate_inner(const Expr& expr, Frame& frame);
  Result<Value> lookup(const std::string& name, Frame& frame);
  Result<Value> attribute(const Value& object, const std::string& name);
  Result<Value> subscript(const Value& object, const Value& index);
  Result<Value> slice(const Expr& expr, Frame& frame);
  Result<Value> compare(const Expr& expr, Frame& frame);
  Result<Value> call(const Expr& expr, Frame& frame);
  Result<Value> call_macro(const Macro& macro, Arguments arguments);
  Result<Value> call_builtin(Builtin builtin, const Arguments& arguments);
  Result<Value> make_namespace(const Arguments& arguments);
  Result<Arguments> arguments(const Expr& expr, Frame& frame);
  Result<std::vector<Value>> all(const std::vector<ExprPtr>& exprs, Frame& frame);

  Status enter();
  Status located(int line, Status status);

  Frame globals_;
  Budget budget_;
  const std::int64_t now_unix_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;  // one may hold itself; they are emptied at the end
  int nesting_ = 0;
  bool located_ = false;  // the error on its way already names its line
};

// a op b for + - ~ * / // % **.
Result<Value> binary(const std::string& op, const Value& a, const Value& b, Budget& budget);

}  // namespace sluice::jinja
