"""The tests of the Python package, in one process: modules of this folder, and the examples in docstrings.

    run.py [PART]...    only tests whose name contains one of the parts
"""

import contextlib
import doctest
import importlib
import io
import os
import sys
import tempfile
import unittest

import berth
import tap

MODULES = ["graphs", "sessions", "views", "safety", "threads", "texts", "ort_scripts", "wrong_calls", "training", "onnx_nodes"]


def examples():
    """The examples in docstrings, which see the names of berth."""
    os.chdir(os.environ["BERTH_SRC"])
    suite = unittest.TestSuite()
    for name in ("_graph", "_op", "_plan", "_session", "_train"):
        module = importlib.import_module(f"berth.{name}")
        globs = {**vars(berth), **vars(module)}
        suite.addTests(doctest.DocTestSuite(module, globs=globs))
    return suite


class Pages(unittest.TestCase):
    """The examples of the pages: every block that begins with ```python runnable."""

    def test_pages(self):
        blocks = 0
        for page in ("README.md", "docs/python.md"):
            with open(os.path.join(os.environ["BERTH_SRC"], page), encoding="utf-8") as file:
                parts = file.read().split("```python runnable\n")[1:]
            for number, part in enumerate(parts, 1):
                with self.subTest(f"{page}, block {number}"), tempfile.TemporaryDirectory() as folder:
                    os.symlink(os.path.join(os.environ["BERTH_SRC"], "examples"), os.path.join(folder, "examples"))
                    os.chdir(folder)
                    try:
                        with contextlib.redirect_stdout(io.StringIO()):
                            exec(compile(part.split("```")[0], page, "exec"), {"__name__": "__main__"})
                    finally:
                        os.chdir(os.environ["BERTH_SRC"])
                blocks += 1
        self.assertGreater(blocks, 5)


def every(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from every(item)
        else:
            yield item


def main(parts):
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("ok 1 - the Python package # SKIP numpy is not installed\n1..1")
        return 0
    loader = unittest.defaultTestLoader
    found = [loader.loadTestsFromModule(importlib.import_module(name)) for name in MODULES] + [examples()]
    found.append(loader.loadTestsFromTestCase(Pages))
    wanted = [test for test in every(found) if not parts or any(part in test.id() for part in parts)]
    return tap.run(unittest.TestSuite(wanted))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
