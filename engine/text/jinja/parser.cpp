// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/jinja/parser.h"

#include "text/jinja/expression_parser.h"
#include "text/jinja/lexer.h"

namespace sluice::jinja {
namespace {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)), expressions_(tokens_) {}

  Result<Body> run() {
    SLUICE_ASSIGN_OR_RETURN(Body body, statements({}));
    if (tokens_.peek().kind != TokenKind::kEnd) return tokens_.unexpected("the end of the template");
    return body;
  }

 private:
  // Statements up to the end or a block that begins with one of `ends`, whose name is then next.
  Result<Body> statements(std::initializer_list<std::string_view> ends) {
    if (depth_ >= kMaxSyntaxDepth) return error_at(tokens_.line(), "blocks nest too deeply");
    ++depth_;
    Body body;
    while (tokens_.peek().kind != TokenKind::kEnd) {
      const Token token = tokens_.take();
      if (token.kind == TokenKind::kText) {
        auto stmt = make(StmtKind::kText, token.line);
        stmt->text = token.text;
        body.push_back(std::move(stmt));
      } else if (token.kind == TokenKind::kOutputBegin) {
        auto stmt = make(StmtKind::kOutput, token.line);
        SLUICE_ASSIGN_OR_RETURN(stmt->expr, expressions_.tuple());
        if (tokens_.peek().kind != TokenKind::kOutputEnd) return tokens_.unexpected("}}");
        tokens_.take();
        body.push_back(std::move(stmt));
      } else {  // a block begins
        for (const std::string_view end : ends) {
          if (!tokens_.peek().is_name(end)) continue;
          --depth_;
          return body;
        }
        auto stmt = block();
        if (!stmt.ok()) return stmt.status();
        body.push_back(std::move(*stmt));
      }
    }
    if (ends.size() > 0) return tokens_.unexpected("{% " + std::string(*(ends.end() - 1)) + " %}");
    --depth_;
    return body;
  }

  std::unique_ptr<Stmt> make(StmtKind kind, int line) {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->line = line;
    return stmt;
  }

  Status end_block() {
    if (tokens_.peek().kind != TokenKind::kBlockEnd) return tokens_.unexpected("%}");
    tokens_.take();
    return {};
  }

  Result<std::unique_ptr<Stmt>> block() {
    if (tokens_.peek().kind != TokenKind::kName) return tokens_.unexpected("the name of a block");
    const Token name = tokens_.take();
    if (name.text == "if") return if_block(name.line);
    if (name.text == "for") return for_block(name.line);
    if (name.text == "set") return set_block(name.line);
    if (name.text == "macro") return macro_block(name.line);
    if (name.text == "generation") return group_block(name.line);
    if (name.text == "filter") return filter_block(name.line);
    if (name.text == "break" || name.text == "continue") {
      if (loops_ == 0) return error_at(name.line, "\"" + name.text + "\" stands outside a loop");
      SLUICE_RETURN_IF_ERROR(end_block());
      return make(name.text == "break" ? StmtKind::kBreak : StmtKind::kContinue, name.line);
    }
    return error_at(name.line, "the block \"" + name.text + "\" is unknown or out of place");
  }

  Result<std::unique_ptr<Stmt>> if_block(int line) {
    auto stmt = make(StmtKind::kIf, line);
    while (true) {
      SLUICE_ASSIGN_OR_RETURN(ExprPtr condition, expressions_.tuple());
      SLUICE_RETURN_IF_ERROR(end_block());
      SLUICE_ASSIGN_OR_RETURN(Body body, statements({"elif", "else", "endif"}));
      stmt->branches.emplace_back(std::move(condition), std::move(body));
      if (!tokens_.skip_name("elif")) break;
    }
    if (tokens_.skip_name("else")) {
      SLUICE_RETURN_IF_ERROR(end_block());
      SLUICE_ASSIGN_OR_RETURN(Body body, statements({"endif"}));
      stmt->branches.emplace_back(nullptr, std::move(body));
    }
    tokens_.take();
    SLUICE_RETURN_IF_ERROR(end_block());
    return stmt;
  }

  Result<std::unique_ptr<Stmt>> for_block(int line) {
    auto stmt = make(StmtKind::kFor, line);
    SLUICE_ASSIGN_OR_RETURN(stmt->targets, expressions_.targets());
    if (!tokens_.skip_name("in")) return tokens_.unexpected("\"in\"");
    SLUICE_ASSIGN_OR_RETURN(stmt->expr, expressions_.without_conditional());
    if (tokens_.skip_name("if")) {
      SLUICE_ASSIGN_OR_RETURN(stmt->condition, expressions_.expression());
    }
    if (tokens_.peek().is_name("recursive")) return error_at(line, "recursive loops are not supported");
    SLUICE_RETURN_IF_ERROR(end_block());
    ++loops_;
    SLUICE_ASSIGN_OR_RETURN(stmt->body, statements({"else", "endfor"}));
    --loops_;
    if (tokens_.skip_name("else")) {
      SLUICE_RETURN_IF_ERROR(end_block());
      SLUICE_ASSIGN_OR_RETURN(stmt->other, statements({"endfor"}));
    }
    tokens_.take();
    SLUICE_RETURN_IF_ERROR(end_block());
    return stmt;
  }

  Result<std::unique_ptr<Stmt>> set_block(int line) {
    auto stmt = make(StmtKind::kSet, line);
    SLUICE_ASSIGN_OR_RETURN(stmt->targets, expressions_.targets());
    if (stmt->targets.size() == 1 && tokens_.skip(".")) {
      stmt->space = stmt->targets[0];
      SLUICE_ASSIGN_OR_RETURN(stmt->targets, expressions_.targets());
      if (stmt->targets.size() != 1) return error_at(line, "one attribute of a namespace can be set at a time");
    }
    if (tokens_.skip("=")) {
      SLUICE_ASSIGN_OR_RETURN(stmt->expr, expressions_.tuple());
      SLUICE_RETURN_IF_ERROR(end_block());
      return stmt;
    }
    if (stmt->targets.size() != 1) return tokens_.unexpected("\"=\"");
    stmt->kind = StmtKind::kSetBlock;
    SLUICE_RETURN_IF_ERROR(end_block());
    SLUICE_ASSIGN_OR_RETURN(stmt->body, statements({"endset"}));
    tokens_.take();
    SLUICE_RETURN_IF_ERROR(end_block());
    return stmt;
  }

  Result<std::unique_ptr<Stmt>> macro_block(int line) {
    auto stmt = make(StmtKind::kMacro, line);
    if (tokens_.peek().kind != TokenKind::kName) return tokens_.unexpected("the name of the macro");
    stmt->macro.name = tokens_.take().text;
    SLUICE_RETURN_IF_ERROR(tokens_.expect("("));
    while (!tokens_.skip(")")) {
      if (!stmt->macro.parameters.empty()) SLUICE_RETURN_IF_ERROR(tokens_.expect(","));
      if (tokens_.peek().kind != TokenKind::kName) return tokens_.unexpected("the name of a parameter");
      const std::string name = tokens_.take().text;
      ExprPtr fallback;
      if (tokens_.skip("=")) {
        SLUICE_ASSIGN_OR_RETURN(fallback, expressions_.expression());
      }
      stmt->macro.parameters.emplace_back(name, std::move(fallback));
    }
    SLUICE_RETURN_IF_ERROR(end_block());
    const int loops = std::exchange(loops_, 0);  // a loop around the macro is none around its body
    SLUICE_ASSIGN_OR_RETURN(stmt->macro.body, statements({"endmacro"}));
    loops_ = loops;
    tokens_.take();
    if (tokens_.peek().kind == TokenKind::kName) tokens_.take();  // {% endmacro name %}
    SLUICE_RETURN_IF_ERROR(end_block());
    return stmt;
  }

  Result<std::unique_ptr<Stmt>> group_block(int line) {
    auto stmt = make(StmtKind::kGroup, line);
    SLUICE_RETURN_IF_ERROR(end_block());
    SLUICE_ASSIGN_OR_RETURN(stmt->body, statements({"endgeneration"}));
    tokens_.take();
    SLUICE_RETURN_IF_ERROR(end_block());
    return stmt;
  }

  Result<std::unique_ptr<Stmt>> filter_block(int line) {
    auto stmt = make(StmtKind::kFilterBlock, line);
    stmt->targets = {"the filtered text"};  // with spaces: no template can use the name
    SLUICE_ASSIGN_OR_RETURN(stmt->expr, expressions_.filter_chain(stmt->targets[0], line));
    SLUICE_RETURN_IF_ERROR(end_block());
    SLUICE_ASSIGN_OR_RETURN(stmt->body, statements({"endfilter"}));
    tokens_.take();
    SLUICE_RETURN_IF_ERROR(end_block());
    return stmt;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

Result<Body> parse(const std::string& source) {
  SLUICE_ASSIGN_OR_RETURN(std::vector<Token> tokens, tokenize(source));
  return Parser(std::move(tokens)).run();
}

}  // namespace sluice::jinja
