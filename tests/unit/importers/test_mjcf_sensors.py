import json

import numpy as np
import pytest

from gpusim import Simulation, SolverConfig
from gpusim.importers import load_mjcf
from tests.backends import FASTEST

from .mjcf_tools import facts, mjcf, solid

mujoco = pytest.importorskip("mujoco", reason='needs pip install "gpusim[mjcf]"')

XML = """<mujoco><option timestep="0.0002" integrator="RK4" gravity="0 0 -9.81"/>
<worldbody><geom name="floor" type="plane" size="9 9 1" pos="0 0 -2"/>
<body name="base" pos="0 0 3"><freejoint name="root"/>
<inertial pos="0.02 0 0.01" mass="2" fullinertia="0.1 0.2 0.25 0.01 0.02 -0.01"/>
<site name="imu" pos="0.1 0.2 0.05" euler="20 -30 40"/><site name="down" pos="-0.2 -0.3 0" euler="170 0 0"/>
<body name="arm" pos="0.3 0.1 0"><joint name="hinge" axis="0 1 0" pos="-0.1 0 0"/>
<inertial pos="0.2 0 0.1" mass="1" diaginertia="0.02 0.03 0.04"/><site name="tip" pos="0.4 0 0" euler="0 70 10"/>
<body name="hand" pos="0.4 0 0"><joint name="wrist" type="ball"/>
<inertial pos="0.05 0.02 0" mass="0.3" diaginertia="0.002 0.003 0.004"/>
<geom name="palm" type="sphere" size="0.05" contype="0" conaffinity="0"/>
<camera name="eye" pos="0 0.1 0" euler="5 6 7"/>
<body name="finger" pos="0.1 0.02 0.03" euler="10 20 30">
<inertial pos="0.01 0.02 0.03" mass="0.05" fullinertia="0.0004 0.0005 0.0006 1e-5 2e-5 3e-5"/></body>
</body></body></body>
<body name="post" pos="1 2 0"><geom type="box" size="0.1 0.1 0.5" mass="4" contype="0" conaffinity="0"/>
</body></worldbody>
<tendon><fixed name="rope"><joint joint="hinge" coef="2"/></fixed></tendon>
<actuator><motor name="m" joint="hinge" gear="3"/></actuator>
<sensor>
<accelerometer name="accelerometer" site="imu"/><gyro name="gyro" site="imu"/>
<velocimeter name="velocimeter" site="tip"/><rangefinder name="range" site="down" cutoff="50"/>
<jointpos name="jointpos" joint="hinge"/><jointvel name="jointvel" joint="hinge"/>
<ballquat name="ballquat" joint="wrist"/>
<tendonpos name="tendonpos" tendon="rope"/><tendonvel name="tendonvel" tendon="rope"/>
<framepos name="framepos" objtype="site" objname="tip"/><framequat name="framequat" objtype="xbody" objname="arm"/>
<framepos name="center" objtype="body" objname="base"/><framepos name="palm_at" objtype="geom" objname="palm"/>
<framexaxis name="framexaxis" objtype="site" objname="tip"/>
<framezaxis name="framezaxis" objtype="geom" objname="palm"/>
<framelinvel name="framelinvel" objtype="site" objname="tip"/>
<frameangvel name="frameangvel" objtype="xbody" objname="hand"/><clock name="clock"/>
<ballangvel name="ballangvel" joint="wrist"/>
<subtreecom name="com" body="world"/><subtreecom name="arm_com" body="arm"/>
<subtreelinvel name="subtreelinvel" body="base"/><subtreelinvel name="arm_linvel" body="arm"/>
<subtreeangmom name="subtreeangmom" body="base"/><subtreeangmom name="finger_angmom" body="finger"/>
<framepos name="rel_pos" objtype="site" objname="tip" reftype="site" refname="imu"/>
<framequat name="rel_quat" objtype="body" objname="hand" reftype="body" refname="base"/>
<framexaxis name="rel_xaxis" objtype="site" objname="tip" reftype="geom" refname="palm"/>
<frameyaxis name="rel_yaxis" objtype="camera" objname="eye" reftype="xbody" refname="arm"/>
<framezaxis name="rel_zaxis" objtype="xbody" objname="finger" reftype="xbody" refname="base"/>
<framelinvel name="rel_linvel" objtype="body" objname="finger" reftype="body" refname="base"/>
<frameangvel name="rel_angvel" objtype="site" objname="tip" reftype="camera" refname="eye"/>
<framelinvel name="rel_still" objtype="geom" objname="floor" reftype="xbody" refname="base"/>
<frameangvel name="clipped" objtype="xbody" objname="hand" cutoff="0.7"/>
<subtreecom name="clipped_com" body="base" cutoff="0.4" noise="0.1"/>
</sensor></mujoco>"""


def _copy(m, d, sim):
    for name in ("base", "arm", "hand"):
        body, rates = m.body(name).id, np.zeros(6)
        sim.write(f"body.{name}.position", d.xpos[body])
        sim.write(f"body.{name}.orientation", d.xquat[body][[1, 2, 3, 0]])
        mujoco.mj_objectVelocity(m, d, mujoco.mjtObj.mjOBJ_XBODY, body, rates, 0)
        arm = d.xmat[body].reshape(3, 3) @ sim.model.bodies[sim.model.labels("body").index(name)].com
        sim.write(f"body.{name}.angular_velocity", rates[:3])
        sim.write(f"body.{name}.linear_velocity", rates[3:] + np.cross(rates[:3], arm))


def _pair():
    m = mujoco.MjModel.from_xml_string(XML)
    d = mujoco.MjData(m)
    d.qvel[:] = [1, 2, 3, 2, -1, 1, 3, 1, -2, 0.5]
    mujoco.mj_forward(m, d)
    builder, report = load_mjcf(m)
    sim = Simulation(builder.finalize(), backend=FASTEST, config=SolverConfig(dt=1e-3))
    _copy(m, d, sim)
    return m, d, sim, report


def _value(m, d, name):
    sensor = m.sensor(name)
    return np.squeeze(d.sensordata[sensor.adr[0] : sensor.adr[0] + sensor.dim[0]])


def test_every_sensor_reads_what_mujoco_reads():
    m, d, sim, report = _pair()
    assert len(report.sensors) == m.nsensor
    for _ in range(1000):
        mujoco.mj_step(m, d)
    mujoco.mj_forward(m, d)
    sim.step(200)
    for name, info in report.sensors.items():
        ours, theirs = np.squeeze(info.read(sim)[0]), _value(m, d, name)
        if name.endswith("quat") and np.dot(ours, theirs) < 0.0:
            ours = -ours
        assert np.allclose(ours, theirs, atol=2e-3 if name == "accelerometer" else 2e-5), name
    assert 1.0 < report.sensors["range"].read(sim)[0] < 49.0
    assert json.loads(report.json())["sensors"]["gyro"]["signal"] == "site.imu.angular_rate"


def test_sums_over_bodies_and_relative_frames_are_those_of_mujoco():
    m, d, sim, report = _pair()
    for _ in range(3):
        mujoco.mj_step(m, d, 300)
        mujoco.mj_forward(m, d)
        _copy(m, d, sim)
        for name, info in report.sensors.items():
            if name in ("accelerometer", "clock", "range"):
                continue
            ours, theirs = np.squeeze(info.read(sim)[0]), _value(m, d, name)
            if name.endswith("quat") and np.dot(ours, theirs) < 0.0:
                ours = -ours
            np.testing.assert_allclose(ours, theirs, atol=1e-9, rtol=1e-9, err_msg=name)
    assert np.abs(_value(m, d, "clipped")).max() == 0.7 and report.sensors["clipped"].upper == 0.7
    json.loads(report.json())


def test_noise_comes_from_a_generator():
    _, report = load_mjcf(XML)
    builder, info = load_mjcf(XML)[0], report.sensors["clipped_com"]
    sim = Simulation(builder.finalize(), 2000, backend="numpy")
    values = info.read(sim, np.random.default_rng(1))
    assert np.ptp(info.read(sim), axis=0).max() == 0.0
    assert values.std(axis=0) == pytest.approx(0.1, rel=0.05)


def test_touch_reads_the_weight_and_noise_is_reported():
    text = """<mujoco><worldbody><geom type="plane" size="5 5 1"/><body pos="0 0 0.1"><freejoint/>
    <geom type="box" size="0.1 0.1 0.1" mass="3"/><site name="sole" size="0.2"/></body></worldbody>
    <sensor><touch name="touch" site="sole" noise="0.1"/><e_potential name="energy"/></sensor></mujoco>"""
    builder, report = load_mjcf(text)
    sim = Simulation(builder.finalize(), backend=FASTEST, config=SolverConfig(dt=2e-3))
    sim.step(100)
    assert np.allclose(report.sensors["touch"].read(sim), 3.0 * 9.81, rtol=1e-3)
    assert "energy" not in report.sensors
    found = {finding.element: finding.what for finding in report.findings if "sensor" in finding.element}
    assert any("noise" in text for text in found.values()) and any("e_potential" in text for text in found.values())
    assert report.exact


def test_delays_of_sensors_are_reported():
    more = "<sensor><jointpos name='late' joint='h' {}/></sensor>"
    body = solid("<joint name='h'/>")
    text = facts(load_mjcf(mjcf(body, more.format("delay='.1' interval='.02' nsample='8'")))[1], "info")
    assert "sensor 'late': a delay or an interval" in text
    assert "a delay" not in facts(load_mjcf(mjcf(body, more.format("")))[1], "info")


def test_rays_without_a_hit_and_beyond_the_cutoff_read_as_in_mujoco():
    eye = "<geom size='.1'/><site name='up'/><site name='down' euler='180 0 0'/>"
    ray = "<rangefinder name='{0}{1}' site='{0}' cutoff='{1}'/>"
    rays = "".join(ray.format(site, cutoff) for site in ("up", "down") for cutoff in (0, 0.4, 2))
    text = mjcf(
        f"<geom type='plane' size='0 0 1'/><body pos='0 0 1'><freejoint/>{eye}</body>",
        f"<sensor>{rays}<rangefinder name='normal' site='down' data='normal'/></sensor>",
    )
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    builder, report = load_mjcf(text)
    sim = Simulation(builder.finalize(), backend="numpy")
    assert len(report.sensors) == 6 and "'normal': sensor type rangefinder" in facts(report, "info")
    for name, info in report.sensors.items():
        assert info.read(sim)[0] == pytest.approx(_value(m, d, name), abs=1e-12), name
    assert "rays" not in facts(report, "info")
    marker = "<geom pos='0 0 3' size='.1' contype='0' conaffinity='0'/><geom type='plane' size='1 1 1'"
    found = facts(load_mjcf(text.replace("<geom type='plane' size='0 0 1'", marker))[1], "info")
    assert "rays that hit geoms without contacts" in found and "rays that pass planes beyond their size" in found


def test_actuator_forces_of_joints_are_mujocos_or_left_out():
    names = ("own", "sprung", "pulled", "pushed", "compensated")
    joints = dict.fromkeys(names, "damping='.3'") | {
        "sprung": "stiffness='5'",
        "compensated": "actuatorgravcomp='true'",
    }
    bodies = "".join(
        solid(f"<joint name='{name}' axis='0 1 0' {more}/><site name='{name}'/>", name=name, pos=f"{k} 0 0")
        for k, (name, more) in enumerate(joints.items())
    ).replace("<body name='compensated'", "<body name='compensated' gravcomp='1'")
    sensors = "".join(f"<jointactuatorfrc name='{name}' joint='{name}'/>" for name in names)
    motors = "".join(f"<motor joint='{name}' gear='3' ctrlrange='-1 1'/>" for name in names)
    more = (
        "<tendon><fixed name='t'><joint joint='pulled' coef='1'/></fixed></tendon>"
        f"<actuator>{motors}<motor tendon='t'/><motor site='pushed' gear='0 0 1 0 0 0'/></actuator>"
        f"<sensor>{sensors}</sensor>"
    )
    text = mjcf(bodies, more)
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    d.ctrl[:] = 0.7
    mujoco.mj_forward(m, d)
    builder, report = load_mjcf(text)
    assert list(report.sensors) == ["own"] and "sensor type jointactfrc" in facts(report, "info")
    sim = Simulation(builder.finalize(), backend="numpy")
    for command in sim.control:
        sim.control[command] = 0.7
    assert report.sensors["own"].read(sim)[0] == pytest.approx(_value(m, d, "own"), abs=1e-9)
