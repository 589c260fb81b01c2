// SPDX-License-Identifier: GPL-3.0-or-later
// Limits, error messages and the marks that tell data from template; what constructs mean is in the golden test.
#include "text/jinja.h"

#include <gtest/gtest.h>

namespace sluice::jinja {
namespace {

using Globals = std::vector<std::pair<std::string, Value>>;

Value data(std::string text) { return Value(MarkedText(std::move(text), kFromData)); }

Result<MarkedText> render(const std::string& source, Globals globals = {}, std::int64_t steps = 4'000'000) {
  SLUICE_ASSIGN_OR_RETURN(auto parsed, Template::parse(source));
  return parsed->render(std::move(globals), {.max_steps = steps});
}

std::string error(const std::string& source, Globals globals = {}) {
  const auto text = render(source, std::move(globals));
  return text.ok() ? "" : text.status().message();
}

// Data in brackets, template text as it is.
std::string marks(const std::string& source, Globals globals) {
  const auto text = render(source, std::move(globals));
  EXPECT_TRUE(text.ok()) << (text.ok() ? "" : text.status().message());
  if (!text.ok()) return {};
  std::string out;
  for (std::size_t i = 0; i < text->size(); ++i) {
    const bool is_data = text->mark(i) != kFromTemplate;
    const bool was_data = i > 0 && text->mark(i - 1) != kFromTemplate;
    if (is_data && !was_data) out += '[';
    if (!is_data && was_data) out += ']';
    out += text->text()[i];
  }
  if (text->size() > 0 && text->mark(text->size() - 1) != kFromTemplate) out += ']';
  return out;
}

TEST(JinjaMarks, EveryStringOperationKeepsThem) {
  const Globals globals = {{"x", data("  ab,cd  ")}, {"y", data("hi")}};
  EXPECT_EQ(marks("<{{ y }}>", globals), "<[hi]>");
  EXPECT_EQ(marks("{{ 'a' + y + 'b' ~ y }}", globals), "a[hi]b[hi]");
  EXPECT_EQ(marks("{{ x | trim }}", globals), "[ab,cd]");
  EXPECT_EQ(marks("{{ x.strip().split(',') | join('|') }}", globals), "[ab]|[cd]");
  EXPECT_EQ(marks("{{ ('<' + y + '>') | upper }}", globals), "<[HI]>");
  EXPECT_EQ(marks("{{ ('<' + y + '>').title() }}", globals), "<[Hi]>");
  EXPECT_EQ(marks("{{ ('<' + y + '>')[1:] }}{{ ('<' + y)[::-1] }}", globals), "[hi]>[ih]<");
  EXPECT_EQ(marks("{{ y | replace('h', 'H') }}{{ 'a-b' | replace('-', y) }}", globals), "H[i]a[hi]b");
  EXPECT_EQ(marks("{{ ['<', y] | join }}{{ y * 2 }}", globals), "<[hihihi]");
  EXPECT_EQ(marks("{% set z %}<{{ y }}>{% endset %}{{ z }}", globals), "<[hi]>");
  EXPECT_EQ(marks("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(y) | trim }}", globals), "<[hi]>");
  EXPECT_EQ(marks("{% for c in y %}{{ c }}.{% endfor %}", globals), "[h].[i].");
  EXPECT_EQ(marks("{{ nope | default(y) }}{{ y if true else 'n' }}{{ y[0] }}{{ y | first }}", globals), "[hihihh]");
  EXPECT_EQ(marks("{{ y | tojson }}{{ {'k': y} | tojson }}", globals), "[\"hi\"]{\"k\": [\"hi\"]}");
  EXPECT_EQ(marks("{{ [y] }}{{ y | indent(2, true) }}", globals), "[['hi']]  [hi]");
  EXPECT_EQ(marks("{{ {'a': y}.a }}{{ {'a': y}.values() | list | first }}", globals), "[hihi]");
}

TEST(JinjaErrors, NameTheLine) {
  EXPECT_EQ(error("a\nb {{ nope.x }}"), "chat template, line 2: 'nope' is undefined");
  EXPECT_EQ(error("\n\n{% frobnicate %}"), "chat template, line 3: the block \"frobnicate\" is unknown or out of place");
  EXPECT_EQ(error("{{ 1 | frob }}"), "chat template, line 1: the filter \"frob\" is unknown");
  EXPECT_EQ(error("{{ 1 is frob }}"), "chat template, line 1: the test \"frob\" is unknown");
  EXPECT_EQ(error("x\n{{ raise_exception('Roles must alternate') }}"), "Roles must alternate");
  EXPECT_EQ(error("{% if x %}\n"), "chat template, line 1: unexpected the end of the template, wanted {% endif %}");
  EXPECT_EQ(error("{% macro m(a) %}\n\n{{ a + 1 }}{% endmacro %}\n{{ m('x') }}"),
            "chat template, line 3: \"+\" can't join str and int");
  EXPECT_NE(error("\xFF"), "");
}

// Jinja knows these, chat templates do without.
TEST(JinjaErrors, WhatTheSubsetLacksIsNamedWithItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"{% block b %}{% endblock %}", "block"},       {"{% include 'x' %}", "include"},
      {"{% extends 'x' %}", "extends"},               {"{% import 'x' as y %}", "import"},
      {"{% from 'x' import y %}", "from"},            {"{% call m() %}{% endcall %}", "call"},
      {"{% filter frob %}x{% endfilter %}", "frob"},  {"{% with a = 1 %}{% endwith %}", "with"},
      {"{% autoescape true %}{% endautoescape %}", "autoescape"}, {"{% do x %}", "do"},
      {"{% for x in [1] recursive %}{% endfor %}", "recursive"}, {"{{ [1] | groupby('a') }}", "groupby"},
      {"{{ 'a'.format(1) }}", "format"},              {"{{ f(*a) }}", "*"},
      {"{{ 1 is escaped }}", "escaped"}};
  for (const auto& [source, named] : cases) {
    const std::string message = error(std::string("\n\n") + source);
    EXPECT_NE(message.find("line 3"), std::string::npos) << source << ": " << message;
    EXPECT_NE(message.find(named), std::string::npos) << source << ": " << message;
  }
}

TEST(JinjaErrors, TruncatedTemplatesNeverCrash) {
  const std::string whole =
      "a{# c #}{% raw %}{{{% endraw %}{%- set x = {'a': [1, (2, 3)], \"b\\x41\": -1.5e3} -%}{% for k, v in x.items() if v %}"
      "{{ k | default('d', true) ~ v[0:1:-1] }}{% elif %}{% endfor %}{% macro m(a, b=2) %}{{ a }}{% endmacro %}{{ m(1, b=3) }}";
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    (void)render(whole.substr(0, n));
    (void)render(whole.substr(n));
    (void)render(whole.substr(0, n) + whole.substr(std::min(n + 1, whole.size())));
  }
}

TEST(JinjaLimits, EndlessWorkStops) {
  EXPECT_NE(error("{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}{% endfor %}{% endfor %}").find("too many steps"),
            std::string::npos);
  EXPECT_NE(error("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").find("nests too deeply"), std::string::npos);
  EXPECT_NE(error("{{ range(100001) }}"), "");
}

TEST(JinjaLimits, GrowthStops) {
  const std::string doubling = "{% set n = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(99) %}{% set n.s = n.s ";
  EXPECT_NE(error(doubling + "+ n.s %}{% endfor %}"), "");
  EXPECT_NE(error(doubling + "| replace('x', 'xxxxxxxxxxxxxxxx') %}{% endfor %}"), "");
  EXPECT_NE(error(doubling + "* 1000 %}{% endfor %}"), "");
  EXPECT_NE(error("{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s }}"), "");
  EXPECT_NE(error("{% set n = namespace(s=[1]) %}{% for i in range(999) %}{% set n.s = [n.s] %}{% endfor %}"), "");
  EXPECT_NE(error("{{ 9223372036854775807 + 1 }}"), "");
  EXPECT_NE(error("{{ 2 ** 64 }}"), "");
  EXPECT_NE(error("{{ 9223372036854775808 }}"), "");
}

TEST(JinjaLimits, DeepSyntaxIsRefused) {
  const auto repeat = [](const std::string& text, int n) {
    std::string out;
    for (int i = 0; i < n; ++i) out += text;
    return out;
  };
  for (const std::string& source :
       {"{{ " + repeat("(", 5000) + "1" + repeat(")", 5000) + " }}", "{{ " + repeat("[", 5000) + repeat("]", 5000) + " }}",
        "{{ " + repeat("not ", 5000) + "1 }}", "{{ " + repeat("- ", 5000) + "1 }}", "{{ 1" + repeat(" + 1", 5000) + " }}",
        "{{ x" + repeat(".a", 5000) + " }}", "{{ 1" + repeat(" | string", 5000) + " }}", "{{ x" + repeat("[0]", 5000) + " }}",
        "{{ " + repeat("1 if 1 else ", 5000) + "1 }}", repeat("{% if 1 %}", 5000) + repeat("{% endif %}", 5000),
        "{{ x" + repeat("()", 5000) + " }}", "{{ " + repeat("{1:", 5000) + "1" + repeat("}", 5000) + " }}"}) {
    EXPECT_NE(error(source).find("deep"), std::string::npos) << source.substr(0, 40) << error(source);
  }
  const std::string flat = repeat("{% if x %}a{% elif y %}b{% endif %}{{ x }}", 5000);
  EXPECT_EQ(error(flat), "");
}

// As jinja2 3.1 renders it in an environment without automatic escaping.
TEST(Jinja, WhatTheFilterSafeMarksEscapesWhatIsAddedToIt) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({{ "<a>"|safe + x }})", "<a>&lt;&amp;&#39;&#34;&gt;"},
      {R"({{ x + "<a>"|safe }})", "&lt;&amp;&#39;&#34;&gt;<a>"},
      {R"({{ "<a>"|safe ~ x ~ 1 }})", "<a><&'\">1"},
      {R"({{ "<a>"|safe + "<b>"|safe }})", "<a><b>"},
      {R"({{ ("<a> "|safe)|trim + x }})", "<a>&lt;&amp;&#39;&#34;&gt;"},
      {R"({{ ("<a>"|safe)[0] + x }})", "<&lt;&amp;&#39;&#34;&gt;"},
      {R"({{ "<a>" + x }})", "<a><&'\">"},
      {R"({{ ("<a>"|safe + x) + x }})", "<a>&lt;&amp;&#39;&#34;&gt;&lt;&amp;&#39;&#34;&gt;"},
      {R"({{ ("<a>"|safe|string) + "<" }})", "<a>&lt;"},
      {R"({{ ("<a>"|safe).upper() + "<" }})", "<A>&lt;"},
      {R"({{ ("<a>"|safe).replace("a", "<") }})", "<<>"},
      {R"({{ ("<a>"|safe) * 2 + "<" }})", "<a><a>&lt;"},
  };
  for (const auto& [source, want] : cases) {
    const auto text = render(source, {{"x", data("<&'\">")}});
    ASSERT_TRUE(text.ok()) << source << ": " << text.status().message();
    EXPECT_EQ(text->text(), want) << source;
  }
  EXPECT_EQ(marks(R"({{ "<a>"|safe + x }})", {{"x", data("<")}}), "<a>[&lt;]");
  const std::string quotes(std::size_t{20} << 20, '"');  // 100 MiB once they are escaped
  EXPECT_NE(error(R"({{ ("<a>"|safe + x)|length }})", {{"x", data(quotes)}}).find("64 MiB"), std::string::npos);
}

TEST(JinjaLimits, ANamespaceMayHoldItself) {
  EXPECT_EQ(error("{% set n = namespace(a=1) %}{% set n.a = [n] %}{% set n.b = n %}ok"), "");
}

TEST(JinjaLimits, ACyclicNamespaceIsPrintedComparedAndWrittenWithoutEnd) {
  const std::string cycle = "{% set n = namespace() %}{% set m = namespace(n=n) %}{% set n.m = m %}{% set n.l = [m, {'n': n}] %}";
  EXPECT_EQ(error(cycle + "{{ n }}{{ n.l }}{{ n == m }}{{ n.l == m.n.l }}{{ n.m.n.m.n.l | length }}{{ n.l | join }}"), "");
  EXPECT_NE(error(cycle + "{{ n.l | tojson }}").find("JSON"), std::string::npos);
}

TEST(JinjaLimits, MacrosThatCallEachOtherDeeplyEndInAnError) {
  EXPECT_NE(error("{% macro a(n) %}{{ b([n]) if n else '' }}{% endmacro %}{% macro b(n) %}{% for x in n %}{{ a(n) }}{% endfor %}"
                  "{% endmacro %}{{ a(1) }}"), "");
  EXPECT_EQ(error("{% macro down(n) %}{{ down(n - 1) if n > 0 else 'end' }}{% endmacro %}{{ down(50) }}"), "");
}

TEST(JinjaLimits, LargeDictsAndManyNamesCostSteps) {
  DataValue::Dict large;
  for (int i = 0; i < 200'000; ++i) large.emplace_back("key" + std::to_string(i), i);
  const Globals globals = {{"d", *from_data(large, kFromData)}};
  EXPECT_EQ(error("{{ d == d }}{{ d.key199999 }}{% for k, v in d.items() %}{{ v }}{% endfor %}", globals), "");
  EXPECT_NE(error("{% for k in d %}{{ d[k] }}{% endfor %}", globals).find("too many steps"), std::string::npos);
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "{% set v" + std::to_string(i) + " = 1 %}";
  EXPECT_NE(error(many).find("too many steps"), std::string::npos);
}

TEST(JinjaLimits, HostileSearchesAreLinear) {
  const std::string many(1'000'000, 'a');
  const Globals globals = {{"x", data(many)}, {"y", data(many.substr(0, 500'000) + "b")}};
  EXPECT_EQ(render("{{ y in x }}{{ x.count(y) }}{{ x.find(y) }}{{ x.split(y) | length }}", globals)->text(), "False0-11");
}

}  // namespace
}  // namespace sluice::jinja
