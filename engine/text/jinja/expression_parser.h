// SPDX-License-Identifier: GPL-3.0-or-later
// The expression half of the parser, by recursive descent in the order of precedence of Jinja's own grammar.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/jinja/syntax.h"
#include "text/jinja/token_stream.h"

namespace sluice::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  Result<ExprPtr> expression();              // with `a if b else c`
  Result<ExprPtr> without_conditional();     // for the iterable of a loop, whose `if` is the loop's
  Result<ExprPtr> tuple();                   // expression, or several with commas
  Result<ExprPtr> filter_chain(const std::string& name, int line);  // filter|filter ..., on the variable of that name
  Result<std::vector<std::string>> targets();  // names with commas, maybe in parentheses

 private:
  using Rule = Result<ExprPtr> (ExpressionParser::*)();

  Result<ExprPtr> guarded(Rule rule);
  Result<ExprPtr> left_associative(Rule operand, std::initializer_list<std::string_view> operators);
  Result<ExprPtr> or_();
  Result<ExprPtr> and_();
  Result<ExprPtr> not_();
  Result<ExprPtr> compare();
  Result<ExprPtr> sum();
  Result<ExprPtr> concat();
  Result<ExprPtr> product();
  Result<ExprPtr> power();
  Result<ExprPtr> unary();          // with filters and tests behind it
  Result<ExprPtr> unary_no_filter();
  Result<ExprPtr> primary();
  Result<ExprPtr> parenthesized();
  Result<ExprPtr> list_literal();
  Result<ExprPtr> dict_literal();
  Result<ExprPtr> number();
  Result<ExprPtr> postfix(ExprPtr base);
  Result<ExprPtr> subscript(ExprPtr base);
  Result<ExprPtr> filter(ExprPtr base);   // the name of one and its arguments, behind the bar
  Result<ExprPtr> filters(ExprPtr base);
  Result<ExprPtr> test(ExprPtr base);
  Result<ExprPtr> call(ExprPtr callee);
  Status arguments(Expr& call);

  TokenStream& tokens_;
  int depth_ = 0;
};

// Sets depth from the parts; kInvalidArgument where it passes kMaxSyntaxDepth.
Result<ExprPtr> finish(ExprPtr expr);

}  // namespace sluice::jinja
