#!/usr/bin/env bash
# Lint, type-check and test this checkout in a separate virtual environment. Stop at the first failure.
#
#   ci/run_tests.sh [--fresh] [PYTEST ARGUMENTS...]
#
#   --fresh           rebuild the virtual environment instead of updating the one from the last run
#
# Environment: PYTHON (default python3) makes the virtual environment, GPUSIM_CI_VENV (default .venv-ci) is its path,
# GPUSIM_CI_WORKERS (default 2) is the number of test processes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python="${PYTHON:-python3}"
venv="${GPUSIM_CI_VENV:-.venv-ci}"
workers="${GPUSIM_CI_WORKERS:-2}"
# test the kernels that users get (tests/builds.py)
export GPUSIM_TEST_BUILDS=shipped
# with compiled modules, tests of commands start twice as fast
unset PYTHONDONTWRITEBYTECODE
# there is no screen, so matplotlib must draw into files
export MPLBACKEND=Agg

say() { printf '\n== %s\n' "$*"; }

if [[ "${1:-}" == "--fresh" ]]; then
    shift
    say "remove $venv"
    rm -rf -- "$venv"
fi

if [[ ! -x "$venv/bin/python" ]]; then
    say "make the virtual environment $venv with $("$python" --version)"
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --upgrade pip
fi

say "install gpusim[test,docs] from this checkout (editable)"
"$venv/bin/python" -m pip install --quiet --editable ".[test,docs]"

# these take one process each, so they run next to the checks that follow
{
    "$venv/bin/python" ci/ptx/count.py && "$venv/bin/python" ci/ptx/check.py --nvrtc 13 --only "hydraulic_lift fused"
} >"$venv/ptx.log" 2>&1 &
ptx=$!

say "ruff check"
"$venv/bin/python" -m ruff check .

say "the builder's stub is up to date"
"$venv/bin/python" ci/docs/builder_stub.py --check
"$venv/bin/python" ci/docs/machine_schema.py --check

say "mypy"
"$venv/bin/python" -m mypy

say "layers and cycles of imports"
"$venv/bin/lint-imports"

say "documentation site"
"$venv/bin/python" -m mkdocs build --strict --quiet

say "kernels for every GPU generation (NVRTC 12 and 13; needs no GPU)"
"$venv/bin/python" ci/check_kernels.py

say "instructions and memory requests of the GPU's code, and its bits with NVRTC 13"
status=0
wait "$ptx" || status=$?
cat "$venv/ptx.log"
((status == 0))

say "the GPU's code on the CPU: races, unwritten memory, bits"
"$venv/bin/python" ci/ptx/check.py

if (($#)); then
    say "pytest $*"
    "$venv/bin/python" -m pytest -n "$workers" "$@"
else
    say "pytest"
    "$venv/bin/python" -m pytest -n "$workers"
    say "pytest -m nightly"
    "$venv/bin/python" -m pytest -n "$workers" -m nightly
fi

say "all passed"
