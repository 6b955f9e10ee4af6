"""``gpusim``: the commands and their options. ``cli/commands`` contains the implementations."""

from __future__ import annotations

from gpusim.interrupts import QuietImports

with QuietImports():
    from pathlib import Path
    from typing import Annotated

    import typer

    from gpusim.cli.arguments import (
        Backend,
        BackendOption,
        CameraOption,
        DecorationOption,
        DrawnArgument,
        DtOption,
        FixedBaseOption,
        FloatingOption,
        FloorOption,
        FollowOption,
        HostOption,
        JointSolver,
        MappingOption,
        MaxDtOption,
        MaxWorldsOption,
        MotionOption,
        NumWorldsOption,
        OutOption,
        OverlayOption,
        PanelOption,
        PolicyOption,
        PortOption,
        PoseOption,
        Precision,
        Quality,
        QualityOption,
        RateOption,
        ReplayOption,
        RerunOption,
        ResumeOption,
        SaveOption,
        Scheme,
        SeedOption,
        SettingsOption,
        SignalsOption,
        TargetArgument,
        TargetsArgument,
        UdpOption,
        VisualsOption,
        WebOption,
        WorldOption,
        pick,
    )
    from gpusim.cli.commands.convert import convert_command
    from gpusim.cli.commands.fmu import fmu_command
    from gpusim.cli.exit_codes import CommandGroup

# The commands import heavy modules (scipy, matplotlib) themselves, so that help and errors appear at once.

app = typer.Typer(
    name="gpusim",
    cls=CommandGroup,
    help="Real-time multibody simulator for robots and heavy machines.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(requested: bool) -> None:
    if requested:
        from gpusim import __version__

        typer.echo(f"gpusim {__version__}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("run")
def _run(
    target: TargetArgument,
    settings: SettingsOption = None,
    duration: Annotated[float | None, typer.Option(help="Time to simulate, s (default: the scene's).")] = None,
    dt: DtOption = None,
    substeps: Annotated[int | None, typer.Option(help="Substeps in a step.")] = None,
    iterations: Annotated[int | None, typer.Option(help="Maximum number of solver sweeps.")] = None,
    backend: BackendOption = Backend.auto,
    dtype: Annotated[Precision, typer.Option(help="Precision of velocities and impulses.")] = Precision.float64,
    joint_solver: Annotated[JointSolver | None, typer.Option(help="How joints are solved.")] = None,
    scheme: Annotated[Scheme | None, typer.Option(help="Time-stepping scheme.")] = None,
    num_worlds: NumWorldsOption = 1,
    seed: SeedOption = None,
    signals: SignalsOption = None,
    out: OutOption = None,
    rate: RateOption = None,
    out_dtype: Annotated[Precision, typer.Option(help="Type of the numbers in this file.")] = Precision.float64,
    plot: Annotated[
        Path | None, typer.Option(metavar="RUN.PNG", help="Draw the signals into this .png, .pdf or .svg file.")
    ] = None,
    fixed_base: FixedBaseOption = False,
    floating: FloatingOption = False,
    pose: PoseOption = None,
    floor: FloorOption = False,
    replay: ReplayOption = None,
    policy: PolicyOption = None,
    save: SaveOption = None,
    resume: ResumeOption = None,
    clock: Annotated[bool, typer.Option("--clock", help="Run in real time, and report delays of steps.")] = False,
    udp: UdpOption = None,
) -> None:
    """Simulate a scene or a file, show a summary, record signals, and draw plots.

    The scene's checks run after a full run of one world with default parameters, commands and signals. If the checks do
    not run, the summary shows the reason. Exit code 0: the run succeeded. Exit code 1: a world failed, a joint error
    exceeded 1 cm or 0.02 rad, or a check of the scene failed. Exit code 2: invalid input. Exit code 130: the user
    stopped the run.
    """
    given = locals()
    from gpusim.cli.commands.run import run
    from gpusim.cli.options import RunOptions

    run(pick(RunOptions, given))


@app.command("sweep")
def _sweep(
    target: TargetArgument,
    out: Annotated[Path, typer.Option(metavar="SWEEP.PARQUET", help="Write a table with all points to this file.")],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUES", help="Values of a parameter: LO:HI:N, A,B,C, or LO:HI with --sample."
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(metavar="N", help="Draw N points at random instead of all combinations.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of --sample.")] = 0,
    signals: SignalsOption = None,
    duration: Annotated[float | None, typer.Option(help="Time to simulate, s (default: the scene's).")] = None,
    rate: Annotated[
        float | None, typer.Option(metavar="HZ", help="Samples per second (default: only the end of each run).")
    ] = None,
    backend: BackendOption = Backend.auto,
    dtype: Annotated[Precision, typer.Option(help="Precision of velocities and impulses.")] = Precision.float64,
    together: Annotated[int, typer.Option(metavar="N", help="Maximum number of points in one simulation.")] = 256,
    ray: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on this Ray cluster; 'local' starts one here.")
    ] = None,
) -> None:
    """Simulate a scene with many values of its parameters, and write a table.

    Parameter combinations whose models differ only in numeric values run in one simulation. The results are
    bit-identical to separate runs. To continue after an interruption, run the same command again.
    """
    given = locals()
    from gpusim.cli.commands.sweep import SweepOptions, sweep
    from gpusim.cli.options import RunOptions

    run = pick(RunOptions, given, seed=None, rate=None, out=None)
    sweep(pick(SweepOptions, given, run=run))


@app.command("render")
def _render(
    target: DrawnArgument,
    out: Annotated[Path, typer.Option(metavar="X.PNG|X.MP4", help="Write a picture or a film to this file.")],
    time: Annotated[float, typer.Option(help="Start time of the film, or time of the picture, s.")] = 0.0,
    duration: Annotated[float | None, typer.Option(help="Length of a film, s (default: the scene's).")] = None,
    fps: Annotated[float, typer.Option(help="Frames per second of a film.")] = 30.0,
    camera: CameraOption = None,
    follow: FollowOption = None,
    size: Annotated[str, typer.Option(metavar="WIDTHxHEIGHT", help="Size of the picture, pixels.")] = "640x360",
    quality: QualityOption = Quality.auto,
    overlays: OverlayOption = None,
    visuals: VisualsOption = True,
    glass: Annotated[bool, typer.Option(help="Show walls that hide bodies as glass.")] = True,
    decoration: DecorationOption = None,
    settings: SettingsOption = None,
    dt: DtOption = None,
    backend: BackendOption = Backend.auto,
    num_worlds: NumWorldsOption = 1,
    world: WorldOption = None,
    max_worlds: MaxWorldsOption = 16,
    seed: SeedOption = None,
    fixed_base: FixedBaseOption = False,
    floating: FloatingOption = False,
    pose: PoseOption = None,
    floor: FloorOption = False,
    replay: ReplayOption = None,
    policy: PolicyOption = None,
) -> None:
    """Draw a picture or a film of a scene, a file or a recorded motion, without a screen."""
    given = locals()
    from gpusim.cli.commands.render import RenderOptions, render
    from gpusim.cli.options import RunOptions
    from gpusim.cli.pictures import PictureOptions

    run = pick(RunOptions, given, out=None)
    render(pick(RenderOptions, given, run=run, picture=pick(PictureOptions, given)))


@app.command("view")
def _view(
    target: DrawnArgument,
    settings: SettingsOption = None,
    backend: BackendOption = Backend.auto,
    dt: DtOption = None,
    speed: Annotated[float, typer.Option(help="Simulated time divided by real time, 0.1 to 4.")] = 1.0,
    max_dt: MaxDtOption = None,
    camera: CameraOption = None,
    follow: FollowOption = None,
    overlays: OverlayOption = None,
    visuals: VisualsOption = True,
    decoration: DecorationOption = None,
    num_worlds: NumWorldsOption = 1,
    world: WorldOption = None,
    max_worlds: MaxWorldsOption = 16,
    size: Annotated[str, typer.Option(metavar="WIDTHxHEIGHT", help="Size of the window, pixels.")] = "960x540",
    quality: QualityOption = Quality.auto,
    paused: Annotated[bool, typer.Option("--paused", help="Start paused. The space bar continues.")] = False,
    duration: Annotated[float | None, typer.Option(help="Close after this time, s.")] = None,
    record: MotionOption = None,
    panel: PanelOption = True,
    mapping: MappingOption = "auto",
    web: WebOption = False,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    rerun: RerunOption = None,
    seed: SeedOption = None,
    fixed_base: FixedBaseOption = False,
    floating: FloatingOption = False,
    pose: PoseOption = None,
    floor: FloorOption = False,
    replay: ReplayOption = None,
    policy: PolicyOption = None,
    udp: UdpOption = None,
) -> None:
    """Show a scene, a file or a recorded motion in a window.

    Mouse: left orbits, middle or Shift+left pans, the wheel zooms, a click selects a body, Ctrl+left pulls a body.
    Keys: Space pauses, Right steps, [ and ] set the speed, R resets, Shift+R restarts, F follows a body, H resets the
    camera, E starts the emergency stop, Shift+E ends the emergency stop, Tab hides the panel, Esc quits.
    """
    given = locals()
    from gpusim.cli.commands.view import view
    from gpusim.cli.options import RunOptions
    from gpusim.cli.pictures import PictureOptions
    from gpusim.cli.view_options import ViewOptions

    run = pick(RunOptions, given, duration=None)
    view(pick(ViewOptions, given, run=run, picture=pick(PictureOptions, given)))


@app.command("list")
def _list(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[SCENE|FILE]", help="Show the parameters of this scene, or the content of this file."),
    ] = None,
) -> None:
    """List the scenes, the parameters of one scene, or the joints, commands, sensors and shapes of a file."""
    from gpusim.cli.commands.list_scenes import show_target

    show_target(target)


@app.command("check")
def _check(
    targets: TargetsArgument,
    settings: SettingsOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also fail if a finding affects motion or contacts.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, including errors.")] = False,
    against: Annotated[
        str | None, typer.Option(metavar="mujoco", help="Compare poses, mass matrix and motion (MJCF and URDF).")
    ] = None,
    backend: BackendOption = Backend.auto,
    fixed_base: FixedBaseOption = False,
    floating: FloatingOption = False,
    pose: PoseOption = None,
    floor: FloorOption = False,
) -> None:
    """Check files: report lost features and likely model errors, and run each model for 2 s.

    The exit code is 0 if the check passed, 1 if the run or the comparison failed, and 2 if the file cannot be read.
    With --strict, the exit code is also 1 if a finding affects motion or contacts. For several files, the exit code is
    the highest of all files, and --json prints a list.
    """
    given = locals()
    from gpusim.cli.commands.check import CheckOptions, check_target, check_targets
    from gpusim.cli.options import RunOptions

    runs = [pick(RunOptions, given, target=target) for target in targets]
    options = [CheckOptions(run, strict, json, against) for run in runs]
    raise typer.Exit(check_target(options[0]) if len(options) == 1 else check_targets(options))


@app.command("diagram")
def _diagram(
    target: Annotated[
        str, typer.Argument(metavar="SCENE|FILE", help="A scene (see 'gpusim list') or a diagram's .yaml file.")
    ],
    label: Annotated[
        str | None, typer.Option(metavar="NAME", help="Label of the diagram, if the scene has several.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="X.SVG|X.YAML", help="Draw it into an .svg file, or write it to a .yaml file."),
    ] = None,
    settings: SettingsOption = None,
) -> None:
    """Draw a block diagram, or list the diagrams of a scene."""
    given = locals()
    from gpusim.cli.commands.diagram import DiagramOptions, diagram

    diagram(pick(DiagramOptions, given))


app.command("convert")(convert_command)
app.command("fmu")(fmu_command)


@app.command("bench")
def _bench(
    workloads: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORKLOAD|SCENE|FILE]...", help="Workloads, or one scene or file (default: all workloads)."
        ),
    ] = None,
    backend: BackendOption = Backend.auto,
    dtype: Annotated[Precision, typer.Option(help="Precision of velocities and impulses.")] = Precision.float32,
    threads: Annotated[int | None, typer.Option(help="Threads of the native backend (default: all cores).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter, less precise runs with fewer worlds.")] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Also print the time of each stage of a step (fused and staged launch).")
    ] = False,
    json: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the results to this file.")] = None,
    show: Annotated[bool, typer.Option("--list", help="Show the workloads and exit.")] = False,
) -> None:
    """Measure the speed of this computer on named workloads, or on a scene or a file."""
    from gpusim.bench.main import bench, show_workloads
    from gpusim.bench.runner import Options
    from gpusim.cli.commands.bench_target import bench_target, is_target

    if show:
        show_workloads()
        return
    if workloads and is_target(workloads):
        bench_target(workloads[0], backend.value, dtype.value, threads, quick, profile)
        return
    raise typer.Exit(bench(workloads or [], Options(backend.value, dtype.value, threads, quick, profile), json))


@app.command("doctor")
def _doctor(
    headers: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Only write the kernels' generated sources to this folder."),
    ] = None,
) -> None:
    """Check this computer's setup: Python packages, compiler, GPU, and which backends work."""
    from gpusim.cli.commands.doctor import doctor, print_headers

    raise typer.Exit(doctor() if headers is None else print_headers(headers))


def main() -> None:
    """Run the ``gpusim`` command, and raise SystemExit with a code of :mod:`gpusim.cli.exit_codes`."""
    app()


if __name__ == "__main__":
    main()
