"""Runs unittest's cases and prints a line of TAP for each."""

import sys
import traceback
import unittest


class TapResult(unittest.TestResult):
    def __init__(self, quiet=()):
        super().__init__()
        self.count = 0
        self.is_bad = False

    def _line(self, is_ok, test, note=""):
        self.count += 1
        name = test.id().split(".", 1)[-1].replace("#", "")
        print(f"{'ok' if is_ok else 'not ok'} {self.count} - {name}{note}", flush=True)

    def addSuccess(self, test):
        self._line(True, test)

    def addSkip(self, test, reason):
        self._line(True, test, f" # SKIP {reason}")

    def _bad(self, test, err):
        self.is_bad = True
        self._line(False, test)
        for line in "".join(traceback.format_exception(*err)).splitlines():
            print(f"# {line}")

    def addFailure(self, test, err):
        self._bad(test, err)

    def addError(self, test, err):
        self._bad(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._bad(subtest, err)


def run(suite):
    result = TapResult()
    suite.run(result)
    print(f"1..{result.count}", flush=True)
    sys.stdout.flush()
    return 1 if result.is_bad else 0
