#!/usr/bin/env bash
# All checks that need a GPU, in one call of at most ten minutes, from a checkout that is not installed.
#
#   ci/gpu_check.sh [--backend native] [--quick] [--only compile,launch,bench,profile,...]
#
#   --backend native   a rehearsal without a GPU: the native backend stands in, what needs a GPU is skipped
#
# Steps, in this order: compile (builds of the first launches and of the benchmarks), launch, bench, profile,
# compile_rest (all other builds), bits, sanitize, tests.
#
# Needs Python with numpy and numba, CuPy with NVRTC, and a C++ compiler for the comparison of bits. Without scipy some
# scenes, without pytest the tests, without compute-sanitizer its step are skipped, and told. Cases whose builds are not
# there in time are left out, and counted. Writes gpu_check.json and gpu_check.md into $OUT (default ./gpu_check_out).
# Exit code 1 where a step failed; the others run all the same. Environment: PYTHON (default python3), GPU_CHECK_SECONDS (default 570), GPUSIM_CACHE.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export OUT="${OUT:-$PWD/gpu_check_out}"
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONUNBUFFERED=1 MPLBACKEND=Agg
seconds="${GPU_CHECK_SECONDS:-570}"
mkdir -p "$OUT"

# The steps stop on their own before that; this is for one that hangs in the driver.
exec timeout --kill-after=10 "$((seconds + 15))" "${PYTHON:-python3}" ci/gpu_check.py --seconds "$seconds" "$@"
