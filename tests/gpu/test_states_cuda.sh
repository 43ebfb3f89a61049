#!/usr/bin/env bash
# tests/session/test_states on the device "cuda".
. "$BERTH_SRC/tests/gpu/fake_cuda.sh" session/test_states
