#!/usr/bin/env python3
"""Writes src/text/unicode_tables.h from Python's unicodedata.

    python3.13 scripts/unicode-tables.py >src/text/unicode_tables.h

The tables are those of Unicode 15.1, which the tokenizers of the models agree with; Python 3.13 has that version. Another
one is refused, because a code point that changes its category changes how texts are split.
"""
import sys
import unicodedata

VERSION = "15.1.0"
CATEGORIES = "CLMNPSZ"  # in the order of berth__unicode_category; Cn is 7, "unassigned"
HANGUL = range(0xAC00, 0xD7A4)
SURROGATES = range(0xD800, 0xE000)


def categories():
    """(first code point, category) of every run."""
    runs = []
    for c in range(0x110000):
        name = unicodedata.category(chr(c))
        category = 7 if name == "Cn" else CATEGORIES.index(name[0])
        if not runs or runs[-1][1] != category:
            runs.append((c, category))
    return runs


def lower():
    """(first, last, step, difference): c in the run, a multiple of step from first, becomes c + difference."""
    runs = []
    for c in range(0x110000):
        # The first code point is enough: only U+0130 becomes two, and its dot is an accent.
        low = ord(chr(c).lower()[0])
        if low == c:
            continue
        difference = low - c
        if runs:
            first, last, step, of = runs[-1]
            if of == difference and (c - last == step or (step == 0 and c - last in (1, 2))):
                runs[-1] = (first, c, c - last, of)
                continue
        runs.append((c, c, 0, difference))
    return [(first, last, max(step, 1), of) for first, last, step, of in runs]


def base():
    """(code point, first code point of its canonical decomposition); Hangul is arithmetic and not in the table."""
    pairs = []
    for c in range(0x110000):
        if c in HANGUL or c in SURROGATES:
            continue
        first = ord(unicodedata.normalize("NFD", chr(c))[0])
        if first != c:
            pairs.append((c, first))
    return pairs


def array(kind, name, items):
    print(f"static const {kind} {name}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > 118:
            print(line)
            line = "   "
        line += " " + item + ","
    print(line)
    print("};\n")


if unicodedata.unidata_version != VERSION:
    sys.exit(f"this needs Unicode {VERSION} (Python 3.13); this Python has {unicodedata.unidata_version}")
print("/* Written by scripts/unicode-tables.py from Unicode %s; do not edit. */" % VERSION)
print("#ifndef BERTH_TEXT_UNICODE_TABLES_H\n#define BERTH_TEXT_UNICODE_TABLES_H\n\n#include <stdint.h>\n")
print("/* clang-format off */")
print("/* Runs of one category: the first code point times 8, and the category. */")
array("uint32_t", "unicode_categories", ["0x%x" % (c << 3 | category) for c, category in categories()])
print("/* Runs with one difference to their lower case: first, last, step, difference. */")
array("int32_t", "unicode_lower", ["0x%x, 0x%x, %d, %d" % run for run in lower()])
pairs = base()
print("/* Code points with a canonical decomposition, and the first code point of each. */")
array("uint32_t", "unicode_composed", ["0x%x" % c for c, _ in pairs])
array("uint32_t", "unicode_base", ["0x%x" % first for _, first in pairs])
print("/* clang-format on */\n#endif")
