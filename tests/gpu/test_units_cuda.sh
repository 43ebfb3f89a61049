#!/usr/bin/env bash
# tests/device/test_units on the device "cuda".
. "$BERTH_SRC/tests/gpu/fake_cuda.sh" device/test_units
