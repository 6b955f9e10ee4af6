"""gpusim: a real-time multibody simulator for robots and heavy machines."""

from __future__ import annotations

from gpusim.interrupts import QuietImports

with QuietImports():
    import importlib
    import sys
    from typing import TYPE_CHECKING, Any

    import gpusim.actuators  # noqa: F401  (attaches add_dc_motor ... to ModelBuilder)
    import gpusim.builder.command_maps  # noqa: F401  (attaches set_command_map to ModelBuilder)
    import gpusim.builder.poses  # noqa: F401  (attaches add_pose to ModelBuilder)
    import gpusim.joints  # noqa: F401  (attaches add_joint_... to ModelBuilder)
    import gpusim.sensors  # noqa: F401  (attaches add_site ... to ModelBuilder)
    import gpusim.shapes  # noqa: F401  (attaches add_shape_... to ModelBuilder)
    from gpusim.actuators.hydraulic.hydraulics import orifice_gain
    from gpusim.actuators.strut import BumpStop
    from gpusim.builder.builder import ModelBuilder
    from gpusim.contact import ContactLaw, Material, Tire
    from gpusim.description.config import SolverConfig
    from gpusim.description.looks import Texture
    from gpusim.description.rays import Rays
    from gpusim.description.wraps import Wrap
    from gpusim.energy_audit import EnergyAudit, EnergyBalance
    from gpusim.errors import GpusimError, ModelError, SimulationError, UnknownNameError
    from gpusim.importers.load import load  # attaches add_model to ModelBuilder
    from gpusim.joints.spatial_tendon import Pulley
    from gpusim.model.model import Model
    from gpusim.model.state import State
    from gpusim.reference.contacts.contact_report import Contacts
    from gpusim.renamed import OldModules, no_attribute
    from gpusim.signals.saving.snapshot import Snapshot
    from gpusim.signals.signal import SignalInfo
    from gpusim.simulation import Simulation
    from gpusim.solver.assembly import AssemblyReport
    from gpusim.transform import Transform

if TYPE_CHECKING:
    import gpusim.exporters  # noqa: F401
    from gpusim import (  # noqa: F401
        command_schedule,
        control,
        cosim,
        envs,
        importers,
        machines,
        recording,
        robotics,
        scene,
        sensors,
        stage,
        viewer,
    )
    from gpusim.backends.cuda.streams import on_stream
    from gpusim.cosim.clock import run_clock
    from gpusim.recording.stream import record
    from gpusim.sweeps.fit import fit
    from gpusim.sweeps.sweep import sweep

__version__ = "0.3.0"

if not any(isinstance(finder, OldModules) for finder in sys.meta_path):
    sys.meta_path.append(OldModules())  # type: ignore[arg-type]

__all__ = [
    "AssemblyReport",
    "BumpStop",
    "ContactLaw",
    "Contacts",
    "EnergyAudit",
    "EnergyBalance",
    "GpusimError",
    "Material",
    "Model",
    "ModelBuilder",
    "ModelError",
    "Pulley",
    "Rays",
    "SignalInfo",
    "Simulation",
    "SimulationError",
    "Snapshot",
    "SolverConfig",
    "State",
    "Texture",
    "Tire",
    "Transform",
    "UnknownNameError",
    "Wrap",
    "fit",
    "load",
    "on_stream",
    "orifice_gain",
    "record",
    "run_clock",
    "sweep",
]

_ON_DEMAND = (
    *("bench", "command_schedule", "control", "envs", "exporters", "importers", "lint", "machine_files", "machines"),
    *("cosim", "recording"),
    *("robotics", "scene", "scenes", "stage", "viewer"),
)

_FUNCTIONS = {
    "fit": "gpusim.sweeps.fit",
    "on_stream": "gpusim.backends.cuda.streams",
    "record": "gpusim.recording.stream",
    "run_clock": "gpusim.cosim.clock",
    "sweep": "gpusim.sweeps.sweep",
}
"""Module of each function that gpusim imports on first use, by function name."""


def __getattr__(name: str) -> Any:
    """Import a subpackage or a function on first use, for example ``gpusim.viewer`` or ``gpusim.sweep``."""
    if name in _ON_DEMAND:
        return importlib.import_module(f"gpusim.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(_FUNCTIONS[name]), name)
    raise no_attribute("gpusim", name)
