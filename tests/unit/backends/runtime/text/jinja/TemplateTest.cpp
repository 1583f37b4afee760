// Templates compared with Jinja2's output, errors, and limits.
#include "backends/runtime/text/jinja/Template.h"

#include "tests/unit/Paths.h"

#include <ctime>
#include <fstream>
#include <gmock/gmock.h>
#include <iterator>
#include <nlohmann/json.hpp>

using namespace mica::rt;
using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::StartsWith;

namespace {
std::string contents(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string clock(const std::string &format) { return "<" + format + ">"; }

/// The text, or `error: ` and the reason.
std::string render(const std::string &source, const Json &context = Json::object(),
                   const jinja::Limits &limits = {}) {
  auto parsed = jinja::Template::parse(source, limits);
  if (!parsed)
    return "error: " + parsed.error().message;
  auto text = parsed->render(Json::object(), context, clock);
  return text ? text->bytes : "error: " + text.error().message;
}

TEST(JinjaTemplates, RenderAsInJinja2) {
  std::string folder = MICA_SOURCE_DIR "/tests/jinja/templates/";
  Json conversations = Json::parse(contents(folder + "conversations.json"));
  Json expected = Json::parse(contents(folder + "expected.json"));
  EXPECT_GE(expected.size(), 12u);
  for (const auto &[file, texts] : expected.items())
    for (const auto &[name, text] : texts.items()) {
      std::string made = render(contents(folder + file), conversations[name]);
      if (text.is_null())
        EXPECT_THAT(made, StartsWith("error: line ")) << file << " with " << name;
      else
        EXPECT_EQ(made, text.get<std::string>()) << file << " with " << name;
    }
}

TEST(JinjaTemplates, LocalTimeHasNoZone) {
  EXPECT_EQ(render("{{ strftime_now('%H%z %Z%%z %%%z%') }}"), "<%H %%z %%%>");
}

TEST(JinjaTemplates, UndefinedIsEmptyWhereJinja2AcceptsIt) {
  EXPECT_EQ(render("<{{ x|truncate(5) }}{{ 'text' % x }}{{ 'a' is sameas x }}>"), "<textFalse>");
}

TEST(JinjaTemplates, LettersHaveTheirCase) {
  EXPECT_EQ(render("{{ '😀Ab'.capitalize() }} {{ '你Ab'|capitalize }} {{ 'aB'|capitalize }}{{ "
                   "''|capitalize }}"),
            "😀ab 你ab Ab");
  EXPECT_EQ(render("{{ 'éCOLE'|capitalize }} {{ 'straße'|upper }} {{ 'ΟΔΟΣ ΟΔΟΣ'|lower }} {{ "
                   "'ǆ ﬁ'|title }} {{ 'ß'.casefold() }} {{ 'aÉ'.swapcase() }}"),
            "École STRASSE οδος οδος Ǆ FI ss Aé");
}

TEST(JinjaTemplates, EscapedTextsAreEscapedOnce) {
  EXPECT_EQ(
      render("{{ '<'|e|e }}{{ '<'|e|forceescape }}{{ '<'|e + '<' }}{{ ['<'|e] }}{{ '<b>'|safe "
             "is escaped }}{{ ('a<'|e).upper() is escaped }}"),
      "&lt;&amp;lt;&lt;&lt;[Markup('&lt;')]TrueTrue");
}

TEST(JinjaTemplates, GroupsHaveNamedParts) {
  EXPECT_EQ(render("{% for g in [{'k': 'b'}, {'k': 'A'}, {'k': 'a'}]|groupby('k') %}{{ g.grouper }}"
                   "{{ g.list|length }}{{ g }}{% endfor %}"),
            "A2('A', [{'k': 'A'}, {'k': 'a'}])b1('b', [{'k': 'b'}])");
}

TEST(JinjaTemplates, CyclersAndJoinersContinue) {
  EXPECT_EQ(render("{% set c = cycler('a', 'b') %}{% set j = joiner('|') %}{% for i in range(3) %}"
                   "{{ j() }}{{ c.next() }}{% endfor %}{{ c.current }}{{ c.reset() }}{{ c.pos }}"),
            "a|b|abNone0");
}

TEST(JinjaTemplates, ComplexNumbersAreRefused) {
  EXPECT_EQ(render("{{ (-8) ** 0.5 }}"),
            "error: line 1: the power of two numbers is complex, which is not supported");
}

TEST(JinjaTemplates, WhiteSpaceIsControlled) {
  EXPECT_EQ(render("a\n  {% if true %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc");
  EXPECT_EQ(render("a {%- if true -%} b {%- endif +%}\nc"), "ab\nc");
  EXPECT_EQ(render(" {%+ if true %}x{% endif %}"), " x");
  EXPECT_EQ(render("a\r\n{# note #}\rb"), "a\nb");
  EXPECT_EQ(render("{% raw %}{{ x }}{% endraw %}{{- 1 -}} \n 2"), "{{ x }}12");
}

TEST(JinjaTemplates, LoopsAndScopesFollowJinja) {
  EXPECT_EQ(render("{% for x in [1, 2, 3] if x != 2 %}{{ loop.index }}/{{ loop.length }}:{{ x }}"
                   "{{ ',' if not loop.last }}{% endfor %}"),
            "1/2:1,2/2:3");
  EXPECT_EQ(render("{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}"), "1");
  EXPECT_EQ(
      render(
          "{% set n = namespace(x=1) %}{% for i in [1] %}{% set n.x = 2 %}{% endfor %}{{ n.x }}"),
      "2");
  EXPECT_EQ(
      render("{% for x in [[1, [2]], [3, []]] recursive %}{{ x[0] if x is not number else x }}"
             "{% if x is not number and x[1] %}({{ loop(x[1]) }}){% endif %}{% endfor %}"),
      "1(2)3");
  EXPECT_EQ(render("{% macro f(a, b=a) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs.c }}{% endmacro %}"
                   "{{ f(1) }} {{ f(1, 2, 3, c=4) }}"),
            "11() 12(3,)4");
}

TEST(JinjaTemplates, VariablesSetInABlockAreUndefinedBefore) {
  Json context = {{"x", "given"}};
  EXPECT_EQ(
      render("{% for i in [1] %}{{ x is defined }}{% endfor %}{% set x = 2 %}{{ x }}", context),
      "False2");
  EXPECT_EQ(
      render("{% macro f() %}<{{ x }}>{% endmacro %}{{ f() }}{% set x = 2 %}{{ f() }}", context),
      "<><2>");
  EXPECT_EQ(render("{{ x }}{% for i in [1] %}{{ x }}{% endfor %}{% set x = 2 %}", context),
            "givengiven");
  EXPECT_EQ(
      render("{% for i in [1] %}{{ x }}{% endfor %}{% if i %}{% set x = 2 %}{% endif %}", context),
      "given");
}

TEST(JinjaTemplates, ErrorsNameLineAndConstruct) {
  const std::pair<const char *, const char *> cases[] = {
      {"\n\n{% include 'x' %}", "line 3: the tag 'include' is not supported here"},
      {"a\n{{ x | urlize }}", "line 2: the filter 'urlize' is not supported"},
      {"{{ x | pprint }}", "line 1: the filter 'pprint' is not supported"},
      {"{{ x | random }}", "line 1: the filter 'random' is not supported"},
      {"{{ x | wordwrap }}", "line 1: the filter 'wordwrap' is not supported"},
      {"{{ x is markup }}", "line 1: the test 'markup' is not supported"},
      {"{{ 'a'.encode() }}", "the method 'encode' is not supported"},
      {"{{ 'a'.translate({}) }}", "the method 'translate' is not supported"},
      {"{{ 'é'.isidentifier() }}", "isidentifier is not supported for 'é'"},
      {"{{ '%s'|e % 1 }}", "the format of an escaped text is not supported"},
      {"{{ '%s'|e|format(1) }}", "the format of an escaped text is not supported"},
      {"{{ ('{}'|e).format(1) }}", "the format of an escaped text is not supported"},
      {"{{ '{}'.format_map([]) }}", "format_map takes a dict, not list"},
      {"{{ '&euro;'|striptags }}", "the entity '&euro' is not supported"},
      {"{{ '&#1;'|striptags }}", "the entity '&#1' is not supported"},
      {"{{ 'a&lt b'|striptags }}", "the entity '&lt without its end' is not supported"},
      {"{{ [[1]]|urlencode }}", "urlencode takes a text, a dict or pairs"},
      {"{{ 1|xmlattr }}", "xmlattr takes a dict, not int"},
      {"{{ {'a b': 1}|xmlattr }}",
       "the name 'a b' of an attribute holds a character that none may have"},
      {"{{ 'a'|filesizeformat }}", "filesizeformat takes a number, not 'a'"},
      {"{{ (-1e300)|filesizeformat }}", "a whole number is beyond 64 bits"},
      {"{{ [1]|groupby }}", "groupby is missing its argument 'attribute'"},
      {"{{ cycler() }}", "cycler takes at least one value, and none with a name"},
      {"{{ 'a'.ljust(3, 'bc') }}", "the fill of ljust, rjust and center is one character"},
      {"{{ [].append(1) }}", "the method 'append' is not supported"},
      {"{% if x %}", "line 1: the tag does not end with 'elif' or 'else' or 'endif'"},
      {"\n{{ x", "line 2: the expression does not end with }}"},
      {"{% if x", "the tag does not end with %}"},
      {"{# x", "line 1: the comment does not end with #}"},
      {"{{ 'x }}", "the string does not end"},
      {"{{ '\\x1' }}", "the string has a truncated escape"},
      {"{{ '\\N{DASH}' }}", "names a character with \\N, which is not supported"},
      {"{{ 1 ? 2 }}", "line 1: the character '?' is unexpected"},
      {"{{ (1] }}", "the bracket ']' closes nothing"},
      {"{{ 1 + }}", "an expression is expected, not the end of the tag"},
      {"{{ 99999999999999999999 }}", "the number 99999999999999999999 is beyond 64 bits"},
      {"{{ 9223372036854775807 + 1 }}", "a whole number is beyond 64 bits"},
      {"{% break %}", "'break' is outside of a loop"},
      {"{% set true = 1 %}", "'true' cannot be assigned to"},
      {"{% for loop in [1] %}{% endfor %}", "'loop' cannot be assigned to within a loop"},
      {"{% set a, b = [1] %}", "1 values cannot be assigned to 2 variables"},
      {"{% set x.y = 1 %}", "'x' is not a namespace, so its attributes cannot be assigned to"},
      {"\n{{ missing.a }}", "line 2: 'missing' is undefined"},
      {"{{ missing() }}", "'missing' is undefined"},
      {"{{ {}.a.b }}", "a value of type dict has no attribute 'a'"},
      {"{{ 1 + 'a' }}", "the operator + does not take int and str"},
      {"{{ 1 / 0 }}", "division by zero"},
      {"{{ 1 < 'a' }}", "'int' and 'str' have no order"},
      {"{% for x in 1 %}{% endfor %}", "a value of type int is not iterable"},
      {"{{ 'a' is divisibleby }}", "the test is missing its argument 'other'"},
      {"{{ 'a'|join(1, 2, 3) }}", "join takes at most 2 arguments"},
      {"{{ 'a'|trim(x=1) }}", "trim has no parameter 'x'"},
      {"{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}",
       "the macro 'f' takes not more than 1 arguments"},
      {"{% macro f(a) %}{% endmacro %}{{ f(1, a=2) }}", "the macro 'f' has two values for 'a'"},
      {"{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", "the macro 'f' has no parameter 'b'"},
      {"{% macro f(a) %}{% endmacro %}{{ f(1, a=2) }}", "the macro 'f' has two values for 'a'"},
      {"{{ [1]|map('upper') }}", "printing a generator is not supported; use |list"},
      {"{{ x.__class__ }}", "'x' is undefined"},
      {"{{ ''.__class__ }}", "the attribute '__class__' is not safe"},
      {"{{ [[]]|tojson }}{{ range|tojson }}",
       "an object of type function is not JSON serializable"},
      {"{{ lipsum() }}", "the function 'lipsum' is not supported"},
      {"a\n{{ raise_exception('turns alternate') }}",
       "line 2: the template refuses this conversation: turns alternate"},
  };
  for (const auto &[source, words] : cases) {
    EXPECT_THAT(render(source), StartsWith("error: line ")) << source;
    EXPECT_THAT(render(source), HasSubstr(words)) << source;
  }
  EXPECT_EQ(render("\xff"), "error: is not UTF-8");
}

TEST(JinjaTemplates, CostsAreBounded) {
  jinja::Limits limits;
  limits.steps = 10'000;
  limits.madeBytes = 1'000'000;
  limits.outputBytes = 1'000;
  auto repeated = [](const std::string &text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i)
      all += text;
    return all;
  };
  const std::pair<std::string, const char *> cases[] = {
      {"{% for a in range(200) %}{% for b in range(200) %}{% endfor %}{% endfor %}",
       "takes more than 10000 steps"},
      {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "runs more than 400 levels deep"},
      {"{{ ('a' * 10000000)|length }}", "makes more than 1000000 bytes of text and lists"},
      {"{{ 'a' * 2000 }}", "writes more than 1000 bytes"},
      {"{{ ([0] * 100000)|length }}", "takes more than 10000 steps"},
      {"{{ range(1000000)|length }}", "a range of more than 100000 numbers is refused"},
      {"{% set n = namespace(x=[]) %}{% for i in range(200) %}{% set n.x = [n.x] %}{% endfor %}",
       "values are nested more than 100 levels deep"},
      {"{{ " + repeated("(", 1000) + "1" + repeated(")", 1000) + "}}",
       "the expression is nested more than 150 levels deep"},
      {"{{ 1" + repeated("+1", 1000) + " }}", "the expression is nested more than 150 levels deep"},
      {"{{ x" + repeated(".a", 1000) + " }}", "the expression is nested more than 150 levels deep"},
      {repeated("{% if 1 %}", 100), "tags are nested more than 60 levels deep"},
      {"{% set " + repeated("(", 100) + "a" + repeated(")", 100) + "= 1 %}",
       "a target is nested more than 60 levels deep"},
      {"{{ '%9999999d' % 1 }}", "the format asks for a width beyond 10000"},
  };
  for (const auto &[source, words] : cases)
    EXPECT_THAT(render(source, Json::object(), limits), HasSubstr(words)) << source.substr(0, 80);
  limits.sourceBytes = 10;
  EXPECT_EQ(render("12345678901", {}, limits), "error: is larger than 10 bytes");
}

/// The costs that are limited: printing, comparing, copying and searching.
TEST(JinjaTemplates, NoBuiltInEscapesTheBudget) {
  const std::string nested = "{% set n = namespace(x=[], y=[]) %}{% for i in range(90) %}"
                             "{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}";
  const std::string tuples = "{% set n = namespace(x=()) %}{% for i in range(90) %}"
                             "{% set n.x = (n.x, n.x) %}{% endfor %}";
  const std::string large = "{% set a = 'a' * 4000000 %}{% set b = 'a' * 2000000 + 'b' %}";
  const std::string many = "{% for i in range(100000) %}{% for j in range(100000) %}";
  const std::string ends = "{% endfor %}{% endfor %}";
  const std::string sources[] = {
      nested + "{{ n.x|tojson }}",
      nested + "{{ n.x }}",
      nested + "{{ n.x|string|length }}",
      nested + "{{ '%s' % (n.x,) }}",
      nested + "{{ n.x == n.y }}",
      nested + "{{ n.x < n.y }}",
      nested + "{{ n.x in [n.y] }}",
      nested + "{{ [n.y].index(n.x) }}",
      tuples + "{{ {n.x: 1} }}",
      large + "{{ b in a }}",
      large + "{{ a.find(b) }}",
      large + "{{ ('b' + a).rfind(b) }}",
      large + "{{ a.count(b) }}",
      large + "{{ a|replace(b, '') }}",
      large + "{{ a.split(b) }}",
      large + many + "{{ a == a + '' }}" + ends,
      large + many + "{{ a|length }}" + ends,
      large + many + "{% if 'b' in a %}{% endif %}" + ends,
      large + "{% set d = {a: 1} %}" + many + "{{ d[a] }}" + ends,
      large + "{{ a|list|length }}",
      "{{ ('a-' * 2000000)|replace('-', 'bc') }}",
      "{{ ('a-' * 2000000).split('-')|length }}",
      "{{ ('a\\n' * 2000000).splitlines()|length }}",
      "{% set l = [1] * 1000000 %}" + many + "{% set x = l + l %}" + ends,
      "{% set l = range(100000)|list %}" + many + "{% set x = l[1:] %}" + ends,
      "{% set n = namespace(x=[1]) %}{% for i in range(64) %}{% set n.x = n.x + n.x %}{% endfor %}",
      "{{ ('\u00e9' * 9000000).isalpha() }}{{ ('\u00e9' * 9000000)|upper|length }}",
  };
  jinja::Limits limits;
  limits.steps /= 10;
  limits.madeBytes /= 10;
  for (const std::string &source : sources) {
    std::clock_t start = std::clock();
    EXPECT_THAT(render(source, Json::object(), limits), StartsWith("error: line 1: the template "))
        << source;
    double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, 5) << source;
  }
}

TEST(JinjaTemplates, CyclicValuesAreFreed) {
  // The leak checker of the sanitizers detects a leak here.
  EXPECT_EQ(render("{% set n = namespace() %}{% set n.n = n %}{% set n.l = [n] %}"
                   "{% macro f() %}{{ f is defined }}{% endmacro %}{% set n.f = f %}{{ n.f() }}"
                   "{% for i in [1] %}{% set n.loop = loop %}{% set n.c = loop.cycle %}{% endfor "
                   "%}{{ n.c(5) }}"),
            "True5");
}
} // namespace
