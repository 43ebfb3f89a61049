#!/usr/bin/env bash
# tests/device/test_storages on the device "cuda".
. "$BERTH_SRC/tests/gpu/fake_cuda.sh" device/test_storages
