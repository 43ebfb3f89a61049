#!/usr/bin/env bash
# tests/fault/test_session_faults on the device "cuda".
. "$BERTH_SRC/tests/gpu/fake_cuda.sh" fault/test_session_faults
