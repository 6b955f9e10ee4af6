#!/usr/bin/env bash
# All checks that need a GPU, in one call of at most ten minutes, from a checkout that is not installed.
#
#   ci/gpu_check.sh [--backend native] [--quick] [--only compile,launch,bench,profile,...]
#
#   --backend native   a rehearsal without a GPU on the native backend, which skips everything that needs a GPU
#
# Steps, in this order: compile (builds of the first launches and of the benchmarks), launch, bench, profile,
# compile_rest (all other builds), bits, sanitize, tests.
#
# It needs Python with numpy, CuPy with NVRTC, and a C++ compiler for the comparison of bits. It skips and
# reports some scenes without scipy, the tests without pytest, and the sanitize step without compute-sanitizer. Cases
# whose builds are not ready in time are left out and counted. It writes gpu_check.json and gpu_check.md into $OUT
# (default ./gpu_check_out). The exit code is 1 if a step failed; the other steps run anyway.
# Environment: PYTHON (default python3), GPU_CHECK_SECONDS (default 570), GPUSIM_CACHE.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export OUT="${OUT:-$PWD/gpu_check_out}"
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONUNBUFFERED=1 MPLBACKEND=Agg
seconds="${GPU_CHECK_SECONDS:-570}"
mkdir -p "$OUT"

# The steps normally stop before this limit, which is for a step that hangs in the driver.
exec timeout --kill-after=10 "$((seconds + 15))" "${PYTHON:-python3}" ci/gpu_check.py --seconds "$seconds" "$@"
