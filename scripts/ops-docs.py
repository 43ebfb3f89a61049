#!/usr/bin/env python3
"""Writes the list of ops in docs/ops.md from src/ops: names, tiers, operands, attributes with their defaults, and what
the rows of ops.def say. Without arguments it rewrites the part between the two markers; with --check it says whether
that part is current."""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BEGIN, END = "<!-- ops: made by scripts/ops-docs.py -->", "<!-- ops: end -->"
OPS = "src/ops/ops.def"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def rows_of(text):
    """The rows of ops.def, each with the names of operands that follow it or another op of its family."""
    rows, operands, family = [], {}, None
    text = re.sub(r"\n\s+(BERTH__)", r" \1", text)
    for line in text.splitlines():
        row = re.match(r"BERTH_OP\((.*?)\)\s*(?:/\*.*)?$", line)
        names = re.match(r"BERTH_OPERANDS\((.*?)\)", line)
        if row:
            rows.append([field.strip() for field in row.group(1).split(",")])
            family = rows[-1][2]
        elif names and family not in operands:
            operands[family] = [name.split("=")[0].strip() for name in names.group(1).split(",")]
    return rows, operands


def operand_names(row, names):
    """As many as the op takes at most, the ones that may be left out with a '?'."""
    least, most = int(row[3]), 255 if row[4] == "BERTH__ANY" else int(row[4])
    given = []
    for position, name in enumerate(names[:most]):
        prefix = os.path.commonprefix(names) if len(names) > 1 else "BERTH__"
        short = name[len(prefix.rsplit("_", 1)[0]) + 1:].removesuffix("_OPERAND").lower()
        given.append(short + ("?" if position >= least else ""))
    return ", ".join(given) + (", ..." if most > len(names) else "")


def default_of(entry):
    value = re.search(r"\.(i|f|s) = ([^,}]+)", entry)
    if value:
        return value.group(2).strip()
    return {"INT": "0", "FLOAT": "0", "STRING": '""'}.get(re.search(r"BERTH_ATTR_(\w+)", entry).group(1), "[]")


def macros_of():
    """Attributes that several families declare by a macro."""
    macros = {}
    for name in sorted(os.listdir(os.path.join(ROOT, "src/ops"))):
        if name.endswith(".h"):
            joined = re.sub(r"\\\n", " ", read("src/ops/" + name))
            for macro, body in re.findall(r"#define (BERTH__\w+)(?:\(\w+\))?[ ]+(.*\.name = .*)", joined):
                macros[macro] = body
    return macros


def attributes_of(family, macros):
    path = "src/ops/family_%s.c" % family
    if not os.path.exists(os.path.join(ROOT, path)):
        path = "src/ops/family_%s.c" % {"pack_winograd": "winograd", "conv_winograd": "winograd", "loop_begin": "loop",
                                        "loop_end": "loop"}[family]
    text = read(path)
    if family == "recurrent":
        text = read("src/ops/recurrent.c")
    name = {"pack_winograd": "pack_attrs", "conv_winograd": "conv_attrs"}.get(family, r"\w+")
    table = re.search(r"berth_attr %s\[[^\]]*\] = \{(.*?)\};" % name, text, re.S)
    shared = re.search(r"\.attrs = berth__(\w+)_attrs\b", text)
    if not table and shared:  # of the op whose gradient it is
        table = re.search(r"berth_attr \w+\[[^\]]*\] = \{(.*?)\};", read("src/ops/family_%s.c" % shared.group(1)), re.S)
    body = table.group(1) if table else ""
    for macro in sorted(macros, key=len, reverse=True):
        body = re.sub(re.escape(macro) + r"\b(\(\w+\))?", lambda _: macros[macro], body)
    return ", ".join("`%s` = %s" % (entry[0], default_of(entry[1]))
                     for entry in re.findall(r'\.name = "(\w+)"([^{]*)', body))


def line_of(row, operands, macros):
    name, tier, family, least, most = row[:5]
    names = operands.get(family)
    if names:
        taken = operand_names(row, names)
    else:
        taken = least if least == most else least + " or more" if most == "BERTH__ANY" else "%s to %s" % (least, most)
    bits = int(row[7].rstrip("u"), 0)
    over = ", ".join(str(k) for k in range(12) if bits >> k & 1) if bits != 0xFFF else "all"
    strided = {"BERTH__ALL": "all", "0u": ""}.get(row[8], "some")
    return "| `%s` | %s | %s | %s | %s | %s |" % (name, taken, attributes_of(family, macros), over, strided,
                                                "yes" if row[9] != "none" else "")


def part():
    rows, operands = rows_of(read(OPS))
    macros = macros_of()
    head = "| op | operands | attributes | in place | strided | on GPUs |\n|---|---|---|---|---|---|\n"
    made = [BEGIN]
    for tier, title in (("PUBLIC", "### Public"), ("MADE", "### Made by rewriting, may change")):
        listed = [line_of(row, operands, macros) for row in rows if row[1] == tier]
        made += ["", "%s (%d)" % (title, len(listed)), "", head + "\n".join(listed)]
    return "\n".join(made + ["", END])


def main():
    path = "docs/ops.md"
    text = read(path)
    begin, end = text.index(BEGIN), text.index(END) + len(END)
    current = part()
    if "--check" in sys.argv[1:]:
        if text[begin:end] == current:
            return 0
        print("docs/ops.md is not what src/ops says: run scripts/ops-docs.py", file=sys.stderr)
        return 1
    with open(os.path.join(ROOT, path), "w", encoding="utf-8") as file:
        file.write(text[:begin] + current + text[end:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
