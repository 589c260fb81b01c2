// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/jinja.h"

#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"
#include "text/utf8.h"

namespace sluice::jinja {
namespace {

constexpr std::size_t kMaxSourceBytes = std::size_t{4} << 20;

}  // namespace

struct Template::Impl {
  Body body;
};

Template::Template(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Template::~Template() = default;

Result<std::unique_ptr<const Template>> Template::parse(const std::string& source) {
  if (source.size() > kMaxSourceBytes) return invalid_argument("the chat template is longer than 4 MiB");
  if (!is_valid_utf8(source)) return invalid_argument("the chat template is not UTF-8");
  auto impl = std::make_unique<Impl>();
  SLUICE_ASSIGN_OR_RETURN(impl->body, jinja::parse(source));
  return std::unique_ptr<const Template>(new Template(std::move(impl)));
}

Result<MarkedText> Template::render(std::vector<std::pair<std::string, Value>> globals, const RenderLimits& limits) const {
  return Interpreter(std::move(globals), limits.max_steps, limits.now_unix).run(impl_->body);
}

}  // namespace sluice::jinja
