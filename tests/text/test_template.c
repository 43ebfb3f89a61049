/* Chat templates. What is expected here was checked with Jinja 3.1. */
#include "text/template.h"

#include <stdio.h>
#include <stdlib.h>

#include "support.h"
#include "text/jinja.h"

static char *render(berth_context *ctx, const char *text, const char *json, berth_error *err) {
  char *out;
  size_t size;
  const berth_status status =
      berth__template_render(ctx, text, strlen(text), json, strlen(json), 1751800000, &out, &size, err);
  assert_int_equal(status == BERTH_OK, out != NULL);
  if (out != NULL) assert_int_equal(strlen(out), size);
  return out;
}

typedef struct template_case {
  const char *text, *json, *want;
} template_case;

static void run_cases(const template_case *cases, size_t count) {
  berth_context *ctx = test_context();
  for (size_t i = 0; i < count; i++) {
    berth_error err = {BERTH_OK, ""};
    char *out = render(ctx, cases[i].text, cases[i].json, &err);
    if (out == NULL || strcmp(out, cases[i].want) != 0) print_error("%s\n%s\n", cases[i].text, err.message);
    assert_non_null(out);
    assert_string_equal(out, cases[i].want);
    berth__free(ctx, out);
  }
  berth_context_destroy(ctx);
}

#define RUN_CASES(cases) run_cases(cases, sizeof(cases) / sizeof(cases)[0])

/* As templates in real files have them. */
static void lines_and_formats_are_those_of_jinja(void **state) {
  (void)state;
  static const template_case cases[] = {
      {"a\r\n{% if true %}\r\nb{% endif %}\r\nc\rd\r\n", "{}", "a\nbc\nd"},
      {"{{ 'x\r\ny'|length }}", "{}", "3"},
      {"a{% raw %}\n{{ b }}\n{% endraw %}\nc", "{}", "a\n{{ b }}\nc"},
      {"a{% raw -%}\n b{% endraw %}", "{}", "ab"},
      {"{{ '%s is %d%%, %s' | format(a, 7, none) }}", "{\"a\": [1, \"b\"]}", "[1, 'b'] is 7%, None"},
      {"{{ 'plain' | format }} {{ '%d%i' | format(true, -3) }}", "{}", "plain 1-3"},
      {"{{ '%s|%d|%i' | format(nobody, 3.9, -3.9) }}", "{}", "|3|-3"},
      {"a{% raw %}b{% endraw +%}\nc", "{}", "ab\nc"},
  };
  RUN_CASES(cases);
}

static void expressions_have_their_values(void **state) {
  (void)state;
  static const template_case cases[] = {
      {"{{ 1 + 2 * 3 - 4 // 3 }} {{ 7 % 3 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }}", "{}",
       "6 1 -4 2 3.5 1024"},
      {"{{ 1.5 }} {{ 2.0 }} {{ true }} {{ none }} {{ nobody }}|", "{}", "1.5 2.0 True None |"},
      {"{{ 'a' 'b' + \"c\" ~ 1 }} {{ 'ab' * 3 }} {{ '\\n\\'\\u00e9\\x41' }}", "{}",
       "abc1 ababab \n'\xC3\xA9"
       "A"},
      {"{{ [1, 'a', none] }} {{ {'k': 1.0, 'b': [true]} }} {{ ['it\\'s'] }}", "{}",
       "[1, 'a', None] {'k': 1.0, 'b': [True]} [\"it's\"]"},
      {"{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 'a' < 'b' }} {{ 1 == 1.0 }} {{ [1, 2] == [1, 2] }} {{ 1 != '1' }}", "{}",
       "True False True True True True"},
      {"{{ 'b' in 'abc' }} {{ 2 in [1, 2] }} {{ 'k' in {'k': 1} }} {{ 'x' not in 'abc' }}", "{}",
       "True True True True"},
      {"{{ not true or true and 0 }} {{ '' or 'x' }} {{ 'a' and 'b' }} {{ not nobody }}", "{}", "0 x b True"},
      {"{{ 'y' if a else 'n' }}{{ 'z' if b }}|", "{\"a\": 1, \"b\": 0}", "y|"},
      {"{{ a.b.c }} {{ a['b']['c'] }} {{ a.x }}| {{ l[0] }} {{ l[-1] }} {{ l.1 }} {{ l[9] }}|",
       "{\"a\": {\"b\": {\"c\": 7}}, \"l\": [1, 2, 3]}", "7 7 | 1 3 2 |"},
      {"{{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[1:2] }} {{ s[1:3] }} {{ s[-1] }} {{ s[::2] }}",
       "{\"l\": [1, 2, 3], \"s\": \"a\\u00e9bc\"}",
       "[2, 3] [1, 2] [3, 2, 1] [2] \xC3\xA9"
       "b c ab"},
      {"{{ (1, 2)[1] }} {{ (1) }} {{ -(l|length) }} {{ 3 - 1|int }} {{ -1|abs }}", "{\"l\": [1, 2]}", "2 1 -2 2 1"},
  };
  RUN_CASES(cases);
}

static void filters_tests_and_methods(void **state) {
  (void)state;
  static const template_case cases[] = {
      {"{{ '  a '|trim }}|{{ 'ab'|length }} {{ 'aB'|upper }} {{ 'aB'|lower }} {{ 'hello world'|title }} {{ "
       "'aB'|capitalize }}",
       "{}", "a|2 AB ab Hello World Ab"},
      {"{{ x|default('d') }} {{ ''|default('d', true) }} {{ ''|default('d') }}| {{ [1, 2]|join(', ') }}", "{}",
       "d d | 1, 2"},
      {"{{ d|tojson }}\n{{ d|tojson(indent=2) }}",
       "{\"d\": {\"a\": [1, null, true, 1.5], \"b\": \"x\\\"\\n\\u00e9<\", \"c\": {}}}",
       "{\"a\": [1, null, true, 1.5], \"b\": \"x\\\"\\n\xC3\xA9<\", \"c\": {}}\n"
       "{\n  \"a\": [\n    1,\n    null,\n    true,\n    1.5\n  ],\n  \"b\": \"x\\\"\\n\xC3\xA9<\",\n  \"c\": {}\n}"},
      {"{{ [3, 1, 2]|sort }} {{ ['b', 'A']|sort|first }} {{ [1, 2]|last }} {{ [1, 2, 1]|unique|list }} {{ [1, "
       "2]|reverse|list }} {{ "
       "[4, 5]|sum }} {{ [4, 5]|max }} {{ [4, 5]|min }}",
       "{}", "[1, 2, 3] A 2 [1, 2] [2, 1] 9 5 4"},
      {"{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}{% for k, v in d|dictsort %}{{ k }}{% endfor %}",
       "{\"d\": {\"b\": 1, \"a\": 2}}", "b=1;a=2;ab"},
      {"{{ m|selectattr('role', 'equalto', 'user')|map(attribute='n')|list }} {{ m|rejectattr('x')|list|length }} {{ "
       "[1, none, 2]|reject('none')|list }} {{ ['a']|map('upper')|list }}",
       "{\"m\": [{\"role\": \"user\", \"n\": 1}, {\"role\": \"system\", \"n\": 2, \"x\": 1}]}", "[1] 1 [1, 2] ['A']"},
      {"{{ 'a\\nb'|indent(2) }} {{ 'a-b'|replace('-', '+') }} {{ '12'|int + 1 }} {{ 3|string + 'x' }} {{ '<'|e }} {{ "
       "'1.5'|float }}",
       "{}", "a\n  b a+b 13 3x &lt; 1.5"},
      {"{{ x is defined }} {{ x is not defined }} {{ 'a' is string }} {{ {} is mapping }} {{ [] is iterable }} {{ 1 is "
       "number }} "
       "{{ none is none }} {{ true is boolean }} {{ 3 is odd }} {{ 4 is divisibleby 2 }} {{ 1 is in [1] }} {{ 2 is "
       "gt(1) }}",
       "{}", "False True True True True True True True True True True True"},
      {"{{ ' a b '.strip() }}|{{ 'xxaxx'.strip('x') }} {{ 'a,b,c'.split(',') }} {{ ' a  b '.split() }} {{ "
       "'a,b,c'.split(',', 1) }} {{ "
       "'a,b,c'.rsplit(',', 1) }} {{ 'a\\nb'.splitlines() }}",
       "{}", "a b|a ['a', 'b', 'c'] ['a', 'b'] ['a', 'b,c'] ['a,b', 'c'] ['a', 'b']"},
      {"{{ 'a,b,c'.rsplit(',', 0) }} {{ ''.rsplit(',', 0) }} {{ 'a,b,c'.rsplit(',', 2) }} {{ 'a,b'.rsplit(',', "
       "4294967296) }} {{ 'a'.rsplit(',', 0) }}",
       "{}", "['a,b,c'] [''] ['a', 'b', 'c'] ['a', 'b'] ['a']"},
      {"{{ '\\u00e9x-\\u00e9a\\u00e9x'.strip('x\\u00e9') }} {{ 'abca'.lstrip('ba') }} {{ 'abca'.rstrip('ba') }} {{ "
       "'ab'.strip('') }} {{ 'ab'.strip('ba') }}|",
       "{}",
       "-\xC3\xA9"
       "a ca abc ab |"},
      {"{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abcb'.find('b') }} {{ 'abcb'.rfind('b') }} "
       "{{ "
       "'abcb'.count('b') }} {{ 'aXbX'.replace('X', '', 1) }} {{ ','.join(['a', 'b']) }} {{ '12'.isdigit() }}",
       "{}", "True True 1 3 2 abX a,b True"},
      {"{{ d.get('a') }} {{ d.get('x') }} {{ d.get('x', 5) }} {{ d.keys()|list }} {{ d.values()|list }} {{ "
       "d.items()|list|length }}",
       "{\"d\": {\"a\": 1}}", "1 None 5 ['a'] [1] 1"},
      {"{% set l = [] %}{% do l.append(1) %}{{ l }}{% set _ = l.append(2) %}{{ l.pop() }}{{ l|length }}", "{}",
       "[1]21"},
      {"{{ range(3)|list }} {{ range(1, 6, 2)|list }} {{ dict(a=1).a }} {{ strftime_now('%d %b %Y, %-H:%M, %A %j') }}",
       "{}", "[0, 1, 2] [1, 3, 5] 1 06 Jul 2025, 11:06, Sunday 187"},
      {"{{ ('{\"a\": [1, \"\\\\u00e9\"]}'|from_json).a[1] }}", "{}", "\xC3\xA9"},
  };
  RUN_CASES(cases);
}

static void statements_run(void **state) {
  (void)state;
  static const template_case cases[] = {
      {"{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% else "
       "%}none{% endfor %}",
       "{\"l\": [5, 6]}", "10TrueFalse2 21FalseTrue2 "},
      {"{% for x in [] %}x{% else %}none{% endfor %} {% for x in [1, 2, 3, 4] if x is even %}{{ x }}{{ loop.revindex "
       "}}{% endfor %}",
       "{}", "none 2241"},
      {"{% for x in range(9) %}{% if x == 1 %}{% continue %}{% elif x > 3 %}{% break %}{% else %}{{ x }}{% endif %}{% "
       "endfor %}",
       "{}", "023"},
      {"{% for x in 'ab' %}{{ loop.previtem }}{{ x }}{{ loop.nextitem }},{{ loop.cycle('o', 'e') }};{% endfor %}", "{}",
       "ab,o;ab,e;"},
      {"{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 3 %}{% endif "
       "%}{{ x }}",
       "{}", "213"},
      {"{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "{}", "3"},
      {"{% set a, b = 1, 2 %}{{ b }}{% set c %}<{{ a }}>{% endset %}{{ c }}{% set d | upper %}x{% endset %}{{ d }}",
       "{}", "2<1>X"},
      {"{% macro m(a, b='d') %}[{{ a }},{{ b }}]{% endmacro %}{{ m(1) }}{{ m(b=2, a=1) }}{{ m() }}", "{}",
       "[1,d][1,2][,d]"},
      {"{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{}", "321"},
      {"{% filter upper %}a{{ 'b' }}{% endfilter %}{% generation %}g{% endgeneration %}", "{}", "ABg"},
      {"{% raw %}{{ x }}{% endraw %}{# a comment {{ x }} #}.", "{}", "{{ x }}."},
      {"{{ {'a': {'b': 1}}['a']['b'] }}{{ {} }}", "{}", "1{}"},
  };
  RUN_CASES(cases);
}

static void white_space_is_trimmed(void **state) {
  (void)state;
  static const template_case cases[] = {
      {"a\n{% if true %}\nb\n{% endif %}\nc\n", "{}", "a\nb\nc"},
      {"a \n  {% if true %} \n b{% endif %}", "{}", "a \n \n b"},
      {"a  {%- if true -%}  b  {%- endif -%}  c", "{}", "abc"},
      {"a\n  {%+ if true %}b{% endif +%}\nc", "{}", "a\n  b\nc"},
      {"x {{- 1 -}} y {{ 2 }}\nz", "{}", "x1y 2\nz"},
      {"a\n {# c #}\nb {#- d -#} e", "{}", "a\nbe"},
      {"a {% if true %}b{% endif %}\n\n", "{}", "a b"},
      {"\n", "{}", ""},
      {"", "{}", ""},
  };
  RUN_CASES(cases);
}

/* ---- Conversations, in the style of the usual families ---- */

static const char chatml[] =
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
static const char llama2[] =
    "{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set sys = messages[0]['content'] %}"
    "{% else %}{% set rest = messages %}{% set sys = false %}{% endif %}"
    "{% for m in rest %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must "
    "alternate') }}"
    "{% endif %}{% if loop.index0 == 0 and sys != false %}{% set text = '<<SYS>>\\n' + sys + '\\n<</SYS>>\\n\\n' + "
    "m['content'] %}"
    "{% else %}{% set text = m['content'] %}{% endif %}"
    "{% if m['role'] == 'user' %}{{ bos_token + '[INST] ' + text.strip() + ' [/INST]' }}"
    "{% elif m['role'] == 'assistant' %}{{ ' ' + text.strip() + ' ' + eos_token }}{% endif %}{% endfor %}";
static const char llama3[] =
    "{% for m in messages %}{% set text = '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content|trim "
    "+ '<|eot_id|>' %}"
    "{% if loop.first %}{% set text = bos_token + text %}{% endif %}{{ text }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";
static const char gemma[] =
    "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "{% for m in messages %}{% set role = 'model' if m.role == 'assistant' else m.role %}"
    "{{ '<start_of_turn>' + role + '\\n' + (m.content | trim) + '<end_of_turn>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}";
static const char phi3[] =
    "{% for m in messages %}{% if m.role == 'user' %}{{ '<|user|>\\n' + m.content + '<|end|>\\n<|assistant|>\\n' }}"
    "{% elif m.role == 'assistant' %}{{ m.content + '<|end|>\\n' }}{% endif %}{% endfor %}";
static const char thinking[] =
    "{%- set ns = namespace(last=-1) %}\n"
    "{%- for m in messages[::-1] %}\n"
    "    {%- set index = (messages|length - 1) - loop.index0 %}\n"
    "    {%- if ns.last < 0 and m.role == \"user\" and not m.content.startswith('<tool') %}\n"
    "        {%- set ns.last = index %}\n"
    "    {%- endif %}\n"
    "{%- endfor %}\n"
    "{%- for m in messages %}\n"
    "    {%- set content = m.content %}\n"
    "    {%- if m.role == 'assistant' and '</think>' in content and loop.index0 < ns.last %}\n"
    "        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}\n"
    "    {%- endif %}\n"
    "    {{- '<|im_start|>' + m.role + '\\n' + content + '<|im_end|>\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\\n' }}\n"
    "    {%- if enable_thinking is defined and enable_thinking is false %}\n"
    "        {{- '<think>\\n\\n</think>\\n\\n' }}\n"
    "    {%- endif %}\n"
    "{%- endif %}\n";
static const char harmony[] =
    "{%- macro system(effort) -%}\n"
    "Knowledge cutoff: 2024-06\n"
    "Current date: {{ strftime_now('%Y-%m-%d') }}\n\n"
    "Reasoning: {{ effort }}\n"
    "{%- endmacro -%}\n"
    "<|start|>system<|message|>{{ system(reasoning_effort|default('medium')) }}<|end|>\n"
    "{%- for m in messages -%}\n"
    "{%- if m.role == 'assistant' -%}\n"
    "<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>\n"
    "{%- else -%}\n"
    "<|start|>{{ 'developer' if m.role == 'system' else m.role }}<|message|>{{ m.content }}<|end|>\n"
    "{%- endif -%}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt %}<|start|>assistant{% endif %}";

static const berth__chat_message conversation[] = {{"system", "Be brief"},
                                                   {"user", "Hi"},
                                                   {"assistant", "<think>\nwell\n</think>\n\nHello "},
                                                   {"user", "Say \"x\"\n\\"}};

static void conversations_become_text(void **state) {
  (void)state;
  static const struct {
    const char *text, *variables, *want;
  } cases[] = {
      {chatml, NULL,
       "<|im_start|>system\nBe "
       "brief<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\nwell\n</think>\n\nHello "
       "<|im_end|>\n<|im_start|>user\nSay \"x\"\n\\<|im_end|>\n<|im_start|>assistant\n"},
      {llama2, NULL,
       "<s>[INST] <<SYS>>\nBe brief\n<</SYS>>\n\nHi [/INST] <think>\nwell\n</think>\n\nHello </s><s>[INST] Say "
       "\"x\"\n\\ [/INST]"},
      {llama3, NULL,
       "<s><|start_header_id|>system<|end_header_id|>\n\nBe "
       "brief<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\n<think>\nwell\n</"
       "think>\n\nHello<|eot_id|><|start_header_id|>user"
       "<|end_header_id|>\n\nSay \"x\"\n\\<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
      /* refuses a system message: it is the beginning of what the user says */
      {gemma, NULL,
       "<s><start_of_turn>user\nBe "
       "brief\nHi<end_of_turn>\n<start_of_turn>model\n<think>\nwell\n</think>\n\nHello<end_of_turn>\n"
       "<start_of_turn>user\nSay \"x\"\n\\<end_of_turn>\n<start_of_turn>model\n"},
      /* drops one: the same */
      {phi3, NULL,
       "<|user|>\nBe brief\nHi<|end|>\n<|assistant|>\n<think>\nwell\n</think>\n\nHello <|end|>\n<|user|>\nSay "
       "\"x\"\n\\<|end|>\n"
       "<|assistant|>\n"},
      {thinking, "{\"enable_thinking\": false}",
       "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello "
       "<|im_end|>\n"
       "<|im_start|>user\nSay \"x\"\n\\<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"},
      {harmony, NULL,
       "<|start|>system<|message|>Knowledge cutoff: 2024-06\nCurrent date: 2025-07-06\n\nReasoning: "
       "medium<|end|><|start|>developer"
       "<|message|>Be "
       "brief<|end|><|start|>user<|message|>Hi<|end|><|start|>assistant<|channel|>final<|message|><think>\nwell\n"
       "</think>\n\nHello <|end|><|start|>user<|message|>Say \"x\"\n\\<|end|><|start|>assistant"},
  };
  berth_context *ctx = test_context();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    berth_error err = {BERTH_OK, ""};
    const berth__chat chat = {conversation, 4, true, "<s>", "</s>", 1751800000, cases[i].variables};
    char *out;
    size_t size;
    TEST_OK(berth__chat_apply(ctx, cases[i].text, strlen(cases[i].text), &chat, &out, &size, &err));
    assert_string_equal(out, cases[i].want);
    berth__free(ctx, out);
  }
  berth_context_destroy(ctx);
}

static void wrong_templates_say_where(void **state) {
  (void)state;
  static const struct {
    const char *text, *part;
  } cases[] = {
      {"a\n{% if x %}\nb", "line 2: the block that begins here has no {% else %}"},
      {"{% for x in y %}", "endfor"},
      {"{{ 1 + }}", "line 1: there is '}}' where an expression was expected"},
      {"a\nb\n{{ x", "line 3: {{ has no }}"},
      {"{{ 'a }}", "a string has no end"},
      {"{# a", "{# has no #}"},
      {"{% raw %}a", "endraw"},
      {"{{ '%s %s' | format(1, k=2) }}", "format has 1 value, fewer"},
      {"{% include 'x' %}", "the tag 'include' is not known"},
      {"{% endif %}", "the tag 'endif'"},
      {"{{ 1 ? 2 }}", "'?' means nothing"},
      {"{{ x|nofilter }}", "the filter 'nofilter' is not known"},
      {"{{ x is notest }}", "the test 'notest' is not known"},
      {"{{ 'a'.nomethod() }}", "no method 'nomethod'"},
      {"\n{{ x.y.z }}", "line 2: 'x' is not defined"},
      {"{{ x() }}", "'x' is not defined"},
      {"{{ 'a' + 1 }}", "+ does not go with values of types string and int"},
      {"{{ 1 // 0 }}", "has no result"},
      {"{{ 9223372036854775807 + 1 }}", "has no result"},
      {"{{ 99999999999999999999 }}", "too large"},
      {"{{ raise_exception('only users') }}", "it says: only users"},
      {"{% set x.y = 1 %}", "only members of a namespace can be set"},
      {"{% for a, b in [[1, 2, 3]] %}{% endfor %}", "3 values"},
      {"{{ loop }}", NULL},
      {"{{ range }}", "a function is not text"},
      {"{{ 'x'|from_json }}", "JSON"},
  };
  berth_context *ctx = test_context();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    berth_error err = {BERTH_OK, ""};
    char *out = render(ctx, cases[i].text, "{}", &err);
    if (cases[i].part == NULL) {
      assert_non_null(out);
      berth__free(ctx, out);
      continue;
    }
    assert_null(out);
    test_expect_error(err.status, BERTH_MALFORMED, &err, cases[i].part);
  }
  berth_context_destroy(ctx);
}

/* What the search finds is what comparing at every place finds; texts of two letters are full of periods. */
static void a_search_finds_the_first_place(void **state) {
  (void)state;
  uint64_t seed = 7;
  for (int i = 0; i < 30000; i++) {
    char in[300], what[48];
    const size_t in_size = 1 + test_random(&seed) % sizeof in, size = 1 + test_random(&seed) % sizeof what;
    const size_t period = 1 + test_random(&seed) % 9, rare = 2 + test_random(&seed) % 40;
    for (size_t k = 0; k < in_size; k++) {
      const bool repeats = k >= period && test_random(&seed) % rare != 0;
      in[k] = repeats ? in[k - period] : (char)('a' + test_random(&seed) % 2);
    }
    const size_t from = test_random(&seed) % in_size;
    for (size_t k = 0; k < size; k++) what[k] = in[(from + k) % in_size];
    if (i % 3 == 0) what[test_random(&seed) % size] ^= 3;
    size_t begin = test_random(&seed) % 4, want = begin, at = 0;
    while (want + size <= in_size && memcmp(in + want, what, size) != 0) want++;
    const bool there =
        berth__jinja_find((berth__jinja_string){in, in_size}, (berth__jinja_string){what, size}, begin, &at);
    assert_int_equal(there, want + size <= in_size);
    if (there) assert_int_equal(at, want);
  }
}

/* Searches that would take minutes if each place were compared anew. `s` is a megabyte of x. */
#define MEGABYTE "{% set s = ('x' * 1024) * 1024 %}"
/* After this a template has few steps left, so that what counts too little shows soon. */
#define MOST_STEPS \
  MEGABYTE "{% set a = s + 'a' %}{% set b = s + 'b' %}{% for i in range(1000) %}{% set c = a == b %}{% endfor %}"
static void searches_take_little_time(void **state) {
  (void)state;
  static const template_case cases[] = {
      {MEGABYTE "{{ s + 'y' in s + s + s }} {{ 'y' + s in s + s + s }} {{ s + 'y' in s + s + 'y' }}", "{}",
       "False False True"},
      {MEGABYTE
       "{% set h = (s + s + s + 'z').replace(s + 'y', '') %}{{ h|length }} {{ h.count(s + 'y') }} {{ h.rfind(s) }} "
       "{{ h.split('y' + s)|length }}",
       "{}", "3145729 0 2097152 1"},
      {MEGABYTE "{{ s.strip(s.replace('x', 'y') + 'x') }}|{{ ('z' + s).rstrip(s.replace('x', 'y') + 'x') }}", "{}",
       "|z"},
  };
  RUN_CASES(cases);
}

/* Nothing that a template does takes forever, or more memory than it may have. */
static void hostile_templates_end(void **state) {
  (void)state;
  static const char *const texts[] = {
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% for i in range(1000000000) %}x{% endfor %}",
      "{% for i in range(99999) %}{% for k in range(99999) %}{% endfor %}{% endfor %}",
      "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s }}",
      "{{ 'x' * 99999999999 }}",
      "{{ '' * 99999999999 }}",
      "{% set l = [] %}{% do l.append(l) %}{{ l }}",
      "{% set l = [] %}{% do l.append(l) %}{{ l|tojson }}",
      "{% set l = [] %}{% do l.append(l) %}{% set m = [] %}{% do m.append(m) %}{{ l == m }}",
      "{% set l = [1] %}{% for x in l %}{% do l.extend(l) %}{% do l.extend(l) %}{% do l.extend(l) %}{% do l.extend(l) "
      "%}{% endfor %}"
      "{% for x in l %}{% for y in l %}{% for z in l %}{% for w in l %}{% for v in l %}{% for u in l %}{% endfor %}{% "
      "endfor %}"
      "{% endfor %}{% endfor %}{% endfor %}{% endfor %}",
      "{{ 'x'|indent(999999999) }}{{ 'a\\nb'|indent(999999999) }}",
      /* work on much text or many values, for few words */
      MEGABYTE "{% set a = s + 'a' %}{% set b = s + 'b' %}{% for i in range(20000) %}{{ a == b }}{% endfor %}",
      MEGABYTE "{% set a = s + 'a' %}{% for i in range(20000) %}{{ a.startswith(s) }}{{ a.endswith(s) }}{% endfor %}",
      MEGABYTE
      "{% set d = {s + 'a': 1, s + 'b': 2} %}{% set c = s + 'c' %}{% for i in range(20000) %}{{ d[c] }}{% endfor %}",
      MEGABYTE "{% set e = s.replace('x', '\\u00e9') %}{{ e.strip(s + '\\u00e9') }}",
      MOST_STEPS "{% set j = s.replace('x', ' ') + '1' %}{% for i in range(20000) %}{{ j|from_json }}{% endfor %}",
      "{% set l = range(100000)|list %}{% for i in range(99999) %}{{ l.insert(0, l.pop(0)) }}{% endfor %}",
      MOST_STEPS
      "{% set l = range(1, 100000)|list %}{% for i in range(999) %}{{ l|reject|list }}{{ 'a'.endswith(l) }}{% endfor "
      "%}",
      MOST_STEPS "{% set l = range(100000)|map(attribute='x')|list %}{% for i in range(999) %}{{ l|join }}{% endfor %}",
      MOST_STEPS
      "{% set d = {} %}{% for i in range(1000) %}{% do d.update({i|string: 1}) %}{% endfor %}{% for i in range(200000) "
      "%}{{ d.x }}{% endfor %}",
  };
  berth_context *ctx = test_context();
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    berth_error err = {BERTH_OK, ""};
    char *out = render(ctx, texts[i], "{}", &err);
    if (out != NULL) print_error("%s\n", texts[i]);
    assert_null(out);
    test_expect_error(err.status, BERTH_MALFORMED, &err, " more than ");
  }
  /* Names that are looked for behind many others. */
  char *many = malloc(1 << 17), *end = many;
  assert_non_null(many);
  for (int i = 0; i < 4000; i++) end += sprintf(end, "{%% set v%d = 1 %%}", i);
  sprintf(end, "{%% for i in range(99999) %%}{{ v0 }}{%% endfor %%}");
  berth_error behind = {BERTH_OK, ""};
  assert_null(render(ctx, many, "{}", &behind));
  test_expect_error(behind.status, BERTH_MALFORMED, &behind, "steps");
  free(many);
  /* Nesting of the text itself. */
  static const char *const open[] = {"{{ (", "{{ [", "{{ -", "{{ not ", "{% if x %}", "{{ a if ", "{{ x[", "{{ x|f("};
  for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
    char *text = malloc(1 << 17), *at = text;
    assert_non_null(text);
    const char *part = open[i];
    for (size_t k = 0; k < 5000; k++) {
      if (k == 1 && open[i][1] == '{') part += 3;
      at += sprintf(at, "%s", part);
    }
    berth_error err = {BERTH_OK, ""};
    assert_null(render(ctx, text, "{}", &err));
    test_expect_error(err.status, BERTH_MALFORMED, &err, NULL);
    free(text);
  }
  char json[20001]; /* and of the variables */
  memset(json, '[', sizeof json - 1);
  json[sizeof json - 1] = '\0';
  berth_error err = {BERTH_OK, ""};
  assert_null(render(ctx, "", json, &err));
  test_expect_error(err.status, BERTH_MALFORMED, &err, "nested more than");
  berth_context_destroy(ctx);
}

static berth_status apply(berth_context *ctx, berth_error *err, void *user) {
  const berth__chat chat = {conversation, 4, true, "<s>", "</s>", 0, "{\"x\": [1, {\"y\": \"z\"}]}"};
  char *out;
  size_t size;
  const berth_status status = berth__chat_apply(ctx, user, strlen(user), &chat, &out, &size, err);
  assert_int_equal(status == BERTH_OK, out != NULL);
  berth__free(ctx, out);
  return status;
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  char text[1 << 15] = "{{ messages|tojson }}{{ x }}{% set l = 'a' * 20000 %}{{ l|length }}";
  assert_true(test_fail_each_allocation(apply, text) > 4);
  strcpy(text, gemma);
  assert_true(test_fail_each_allocation(apply, text) > 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(expressions_have_their_values),
      cmocka_unit_test(lines_and_formats_are_those_of_jinja),
      cmocka_unit_test(filters_tests_and_methods),
      cmocka_unit_test(statements_run),
      cmocka_unit_test(white_space_is_trimmed),
      cmocka_unit_test(conversations_become_text),
      cmocka_unit_test(wrong_templates_say_where),
      cmocka_unit_test(a_search_finds_the_first_place),
      cmocka_unit_test(searches_take_little_time),
      cmocka_unit_test(hostile_templates_end),
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
