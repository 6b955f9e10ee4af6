from __future__ import annotations

import subprocess
import sys


def test_torch_is_not_imported_and_openmp_waits_passively() -> None:
    code = (
        "import os, sys; os.environ.pop('OMP_WAIT_POLICY', None)\nimport gpusim.envs\n"
        "assert 'torch' not in sys.modules and os.environ['OMP_WAIT_POLICY'] == 'passive'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_warning_names_the_order_of_imports() -> None:
    code = (
        "import os, sys, warnings; os.environ.pop('OMP_WAIT_POLICY', None); sys.modules['torch'] = os\n"
        "with warnings.catch_warnings(record=True) as found:\n    import gpusim.envs\n"
        "assert 'PyTorch was imported before' in str(found[0].message)"
    )
    subprocess.run([sys.executable, "-W", "always", "-c", code], check=True)
