// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/jinja/expression_parser.h"

#include <algorithm>
#include <charconv>

#include "text/jinja/functions.h"
#include "text/jinja/parser.h"

namespace sluice::jinja {
namespace {

ExprPtr make(ExprKind kind, int line, std::string name = {}) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  expr->name = std::move(name);
  return expr;
}

ExprPtr constant(int line, Value value) {
  ExprPtr expr = make(ExprKind::kConstant, line);
  expr->constant = std::move(value);
  return expr;
}

Result<ExprPtr> combine(ExprKind kind, int line, std::string name, ExprPtr left, ExprPtr right) {
  ExprPtr expr = make(kind, line, std::move(name));
  expr->args.push_back(std::move(left));
  expr->args.push_back(std::move(right));
  return finish(std::move(expr));
}

}  // namespace

Result<ExprPtr> finish(ExprPtr expr) {
  const auto count = [&](const ExprPtr& part) {
    if (part) expr->depth = std::max(expr->depth, part->depth + 1);
  };
  for (const ExprPtr& part : expr->args) count(part);
  for (const auto& [name, part] : expr->named) count(part);
  if (expr->depth > kMaxSyntaxDepth) return error_at(expr->line, "an expression nests too deeply");
  return expr;
}

Result<ExprPtr> ExpressionParser::guarded(Rule rule) {
  if (depth_ >= kMaxSyntaxDepth) return error_at(tokens_.line(), "an expression nests too deeply");
  ++depth_;
  Result<ExprPtr> out = (this->*rule)();
  --depth_;
  return out;
}

Result<ExprPtr> ExpressionParser::without_conditional() { return guarded(&ExpressionParser::or_); }

Result<ExprPtr> ExpressionParser::expression() {
  const int line = tokens_.line();
  SLUICE_ASSIGN_OR_RETURN(ExprPtr out, without_conditional());
  while (tokens_.skip_name("if")) {
    ExprPtr conditional = make(ExprKind::kConditional, line);
    conditional->args.push_back(std::move(out));
    SLUICE_ASSIGN_OR_RETURN(ExprPtr condition, without_conditional());
    conditional->args.push_back(std::move(condition));
    ExprPtr otherwise;
    if (tokens_.skip_name("else")) {
      SLUICE_ASSIGN_OR_RETURN(otherwise, guarded(&ExpressionParser::expression));
    }
    conditional->args.push_back(std::move(otherwise));
    SLUICE_ASSIGN_OR_RETURN(out, finish(std::move(conditional)));
  }
  return out;
}

Result<ExprPtr> ExpressionParser::tuple() {
  const int line = tokens_.line();
  SLUICE_ASSIGN_OR_RETURN(ExprPtr first, expression());
  if (!tokens_.peek().is(",")) return first;
  ExprPtr out = make(ExprKind::kTuple, line);
  out->args.push_back(std::move(first));
  while (tokens_.skip(",")) {
    const Token& next = tokens_.peek();
    if (next.is(")") || next.kind == TokenKind::kBlockEnd || next.kind == TokenKind::kOutputEnd) break;
    SLUICE_ASSIGN_OR_RETURN(ExprPtr item, expression());
    out->args.push_back(std::move(item));
  }
  return finish(std::move(out));
}

Result<std::vector<std::string>> ExpressionParser::targets() {
  const bool open = tokens_.skip("(");
  std::vector<std::string> names;
  do {
    if (tokens_.peek().kind != TokenKind::kName) return tokens_.unexpected("a name to assign to");
    names.push_back(tokens_.take().text);
  } while (tokens_.skip(","));
  if (open) SLUICE_RETURN_IF_ERROR(tokens_.expect(")"));
  return names;
}

Result<ExprPtr> ExpressionParser::left_associative(Rule operand, std::initializer_list<std::string_view> operators) {
  SLUICE_ASSIGN_OR_RETURN(ExprPtr left, (this->*operand)());
  while (true) {
    const auto op = std::find_if(operators.begin(), operators.end(), [&](auto o) { return tokens_.peek().is(o); });
    if (op == operators.end()) return left;
    const int line = tokens_.take().line;
    SLUICE_ASSIGN_OR_RETURN(ExprPtr right, (this->*operand)());
    SLUICE_ASSIGN_OR_RETURN(left, combine(ExprKind::kBinary, line, std::string(*op), std::move(left), std::move(right)));
  }
}

Result<ExprPtr> ExpressionParser::or_() {
  SLUICE_ASSIGN_OR_RETURN(ExprPtr left, and_());
  while (tokens_.peek().is_name("or")) {
    const int line = tokens_.take().line;
    SLUICE_ASSIGN_OR_RETURN(ExprPtr right, and_());
    SLUICE_ASSIGN_OR_RETURN(left, combine(ExprKind::kOr, line, {}, std::move(left), std::move(right)));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::and_() {
  SLUICE_ASSIGN_OR_RETURN(ExprPtr left, not_());
  while (tokens_.peek().is_name("and")) {
    const int line = tokens_.take().line;
    SLUICE_ASSIGN_OR_RETURN(ExprPtr right, not_());
    SLUICE_ASSIGN_OR_RETURN(left, combine(ExprKind::kAnd, line, {}, std::move(left), std::move(right)));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::not_() {
  if (!tokens_.peek().is_name("not")) return compare();
  ExprPtr out = make(ExprKind::kNot, tokens_.take().line);
  SLUICE_ASSIGN_OR_RETURN(ExprPtr operand, guarded(&ExpressionParser::not_));
  out->args.push_back(std::move(operand));
  return finish(std::move(out));
}

Result<ExprPtr> ExpressionParser::compare() {
  const int line = tokens_.line();
  SLUICE_ASSIGN_OR_RETURN(ExprPtr first, sum());
  ExprPtr out = make(ExprKind::kCompare, line);
  out->args.push_back(std::move(first));
  while (true) {
    std::string op;
    for (const std::string_view known : {"==", "!=", "<", "<=", ">", ">="}) {
      if (tokens_.peek().is(known)) op = known;
    }
    if (tokens_.peek().is_name("in")) op = "in";
    if (tokens_.peek().is_name("not") && tokens_.peek(1).is_name("in")) {
      tokens_.take();
      op = "not in";
    }
    if (op.empty()) break;
    tokens_.take();
    SLUICE_ASSIGN_OR_RETURN(ExprPtr next, sum());
    out->names.push_back(std::move(op));
    out->args.push_back(std::move(next));
  }
  if (out->names.empty()) return std::move(out->args[0]);
  return finish(std::move(out));
}

Result<ExprPtr> ExpressionParser::sum() { return left_associative(&ExpressionParser::concat, {"+", "-"}); }
Result<ExprPtr> ExpressionParser::concat() { return left_associative(&ExpressionParser::product, {"~"}); }
Result<ExprPtr> ExpressionParser::product() { return left_associative(&ExpressionParser::power, {"*", "/", "//", "%"}); }
Result<ExprPtr> ExpressionParser::power() { return left_associative(&ExpressionParser::unary, {"**"}); }

Result<ExprPtr> ExpressionParser::unary() {
  SLUICE_ASSIGN_OR_RETURN(ExprPtr base, unary_no_filter());
  return filters(std::move(base));
}

Result<ExprPtr> ExpressionParser::unary_no_filter() {
  if (!tokens_.peek().is("-") && !tokens_.peek().is("+")) {
    SLUICE_ASSIGN_OR_RETURN(ExprPtr base, primary());
    return postfix(std::move(base));
  }
  const Token op = tokens_.take();
  ExprPtr out = make(ExprKind::kUnary, op.line, op.text);
  SLUICE_ASSIGN_OR_RETURN(ExprPtr operand, guarded(&ExpressionParser::unary_no_filter));
  out->args.push_back(std::move(operand));
  return finish(std::move(out));
}

Result<ExprPtr> ExpressionParser::primary() {
  const Token token = tokens_.peek();
  switch (token.kind) {
    case TokenKind::kName: {
      tokens_.take();
      if (token.text == "true" || token.text == "True") return constant(token.line, true);
      if (token.text == "false" || token.text == "False") return constant(token.line, false);
      if (token.text == "none" || token.text == "None") return constant(token.line, None{});
      return make(ExprKind::kName, token.line, token.text);
    }
    case TokenKind::kString: {
      std::string text;
      while (tokens_.peek().kind == TokenKind::kString) text += tokens_.take().text;  // neighbours are joined
      return constant(token.line, Value::literal(std::move(text)));
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat: return number();
    default: break;
  }
  if (token.is("(")) return guarded(&ExpressionParser::parenthesized);
  if (token.is("[")) return guarded(&ExpressionParser::list_literal);
  if (token.is("{")) return guarded(&ExpressionParser::dict_literal);
  return tokens_.unexpected("an expression");
}

Result<ExprPtr> ExpressionParser::number() {
  const Token token = tokens_.take();
  const char* end = token.text.data() + token.text.size();
  if (token.kind == TokenKind::kInteger) {
    std::int64_t value = 0;
    if (std::from_chars(token.text.data(), end, value).ec == std::errc()) return constant(token.line, value);
  } else {
    double value = 0;
    if (std::from_chars(token.text.data(), end, value).ec == std::errc()) return constant(token.line, value);
  }
  return error_at(token.line, "a number is too large");
}

Result<ExprPtr> ExpressionParser::parenthesized() {
  const int line = tokens_.take().line;
  if (tokens_.skip(")")) return make(ExprKind::kTuple, line);
  SLUICE_ASSIGN_OR_RETURN(ExprPtr out, tuple());
  SLUICE_RETURN_IF_ERROR(tokens_.expect(")"));
  return out;
}

Result<ExprPtr> ExpressionParser::list_literal() {
  ExprPtr out = make(ExprKind::kList, tokens_.take().line);
  while (!tokens_.skip("]")) {
    if (!out->args.empty()) {
      SLUICE_RETURN_IF_ERROR(tokens_.expect(","));
      if (tokens_.skip("]")) break;
    }
    SLUICE_ASSIGN_OR_RETURN(ExprPtr item, expression());
    out->args.push_back(std::move(item));
  }
  return finish(std::move(out));
}

Result<ExprPtr> ExpressionParser::dict_literal() {
  ExprPtr out = make(ExprKind::kDict, tokens_.take().line);
  while (!tokens_.skip("}")) {
    if (!out->args.empty()) {
      SLUICE_RETURN_IF_ERROR(tokens_.expect(","));
      if (tokens_.skip("}")) break;
    }
    SLUICE_ASSIGN_OR_RETURN(ExprPtr key, expression());
    SLUICE_RETURN_IF_ERROR(tokens_.expect(":"));
    SLUICE_ASSIGN_OR_RETURN(ExprPtr value, expression());
    out->args.push_back(std::move(key));
    out->args.push_back(std::move(value));
  }
  return finish(std::move(out));
}

Result<ExprPtr> ExpressionParser::postfix(ExprPtr base) {
  while (true) {
    const Token token = tokens_.peek();
    if (token.is(".")) {
      tokens_.take();
      const Token name = tokens_.take();
      ExprPtr out = make(ExprKind::kAttribute, name.line, name.text);
      out->args.push_back(std::move(base));
      if (name.kind == TokenKind::kInteger) {  // x.0 is x[0]
        std::int64_t index = 0;
        std::from_chars(name.text.data(), name.text.data() + name.text.size(), index);
        out->kind = ExprKind::kSubscript;
        out->args.push_back(constant(name.line, index));
      } else if (name.kind != TokenKind::kName) {
        return error_at(name.line, "a name should follow \".\"");
      }
      SLUICE_ASSIGN_OR_RETURN(base, finish(std::move(out)));
    } else if (token.is("[")) {
      SLUICE_ASSIGN_OR_RETURN(base, subscript(std::move(base)));
    } else if (token.is("(")) {
      SLUICE_ASSIGN_OR_RETURN(base, call(std::move(base)));
    } else {
      return base;
    }
  }
}

Result<ExprPtr> ExpressionParser::subscript(ExprPtr base) {
  ExprPtr out = make(ExprKind::kSubscript, tokens_.take().line);
  out->args.push_back(std::move(base));
  for (int part = 0; part < 3; ++part) {
    ExprPtr index;
    if (!tokens_.peek().is(":") && !tokens_.peek().is("]")) {
      SLUICE_ASSIGN_OR_RETURN(index, guarded(&ExpressionParser::expression));
    }
    out->args.push_back(std::move(index));
    if (!tokens_.skip(":")) break;
    out->kind = ExprKind::kSlice;
  }
  SLUICE_RETURN_IF_ERROR(tokens_.expect("]"));
  if (out->kind == ExprKind::kSubscript && !out->args[1]) return error_at(out->line, "an index is missing between [ and ]");
  if (out->kind == ExprKind::kSlice) out->args.resize(4);
  return finish(std::move(out));
}

Result<ExprPtr> ExpressionParser::call(ExprPtr callee) {
  ExprPtr out = make(ExprKind::kCall, tokens_.line());
  out->args.push_back(std::move(callee));
  SLUICE_RETURN_IF_ERROR(arguments(*out));
  return finish(std::move(out));
}

Status ExpressionParser::arguments(Expr& call) {
  SLUICE_RETURN_IF_ERROR(tokens_.expect("("));
  bool first = true;
  while (!tokens_.skip(")")) {
    if (!first) {
      SLUICE_RETURN_IF_ERROR(tokens_.expect(","));
      if (tokens_.skip(")")) break;
    }
    first = false;
    const bool named = tokens_.peek().kind == TokenKind::kName && tokens_.peek(1).is("=");
    if (!named && !call.named.empty()) return tokens_.unexpected("name=value, as before it");
    const bool spread = tokens_.peek().is("*") || tokens_.peek().is("**");
    if (spread) return tokens_.unexpected("an argument (* and ** are not supported)");
    std::string name;
    if (named) {
      name = tokens_.take().text;
      tokens_.take();
    }
    auto value = guarded(&ExpressionParser::expression);
    if (!value.ok()) return value.status();
    if (named) {
      call.named.emplace_back(std::move(name), std::move(*value));
    } else {
      call.args.push_back(std::move(*value));
    }
  }
  return {};
}

Result<ExprPtr> ExpressionParser::filter(ExprPtr base) {
  if (tokens_.peek().kind != TokenKind::kName) return tokens_.unexpected("the name of a filter");
  const Token name = tokens_.take();
  if (!is_filter(name.text)) return error_at(name.line, "the filter \"" + name.text + "\" is unknown");
  ExprPtr out = make(ExprKind::kFilter, name.line, name.text);
  out->args.push_back(std::move(base));
  if (tokens_.peek().is("(")) SLUICE_RETURN_IF_ERROR(arguments(*out));
  return finish(std::move(out));
}

Result<ExprPtr> ExpressionParser::filter_chain(const std::string& name, int line) {
  ExprPtr base = make(ExprKind::kName, line, name);
  do {
    SLUICE_ASSIGN_OR_RETURN(base, filter(std::move(base)));
  } while (tokens_.skip("|"));
  return base;
}

Result<ExprPtr> ExpressionParser::filters(ExprPtr base) {
  while (true) {
    if (tokens_.skip("|")) {
      SLUICE_ASSIGN_OR_RETURN(base, filter(std::move(base)));
    } else if (tokens_.skip_name("is")) {
      SLUICE_ASSIGN_OR_RETURN(base, test(std::move(base)));
    } else if (tokens_.peek().is("(")) {
      SLUICE_ASSIGN_OR_RETURN(base, call(std::move(base)));
    } else {
      return base;
    }
  }
}

Result<ExprPtr> ExpressionParser::test(ExprPtr base) {
  const bool negated = tokens_.skip_name("not");
  if (tokens_.peek().kind != TokenKind::kName) return tokens_.unexpected("the name of a test");
  const Token name = tokens_.take();
  if (!is_test(name.text)) return error_at(name.line, "the test \"" + name.text + "\" is unknown");
  ExprPtr out = make(ExprKind::kTest, name.line, name.text);
  out->args.push_back(std::move(base));
  const Token& next = tokens_.peek();
  const bool word = next.kind == TokenKind::kName && next.text != "else" && next.text != "or" && next.text != "and" &&
                    next.text != "is" && next.text != "if" && next.text != "not" && next.text != "in";
  if (next.is("(")) {
    SLUICE_RETURN_IF_ERROR(arguments(*out));
  } else if (word || next.kind == TokenKind::kString || next.kind == TokenKind::kInteger ||
             next.kind == TokenKind::kFloat || next.is("[") || next.is("{")) {
    SLUICE_ASSIGN_OR_RETURN(ExprPtr argument, primary());  // x is divisibleby 3
    SLUICE_ASSIGN_OR_RETURN(argument, postfix(std::move(argument)));
    out->args.push_back(std::move(argument));
  }
  SLUICE_ASSIGN_OR_RETURN(out, finish(std::move(out)));
  if (!negated) return out;
  ExprPtr negation = make(ExprKind::kNot, name.line);
  negation->args.push_back(std::move(out));
  return finish(std::move(negation));
}

}  // namespace sluice::jinja
