from __future__ import annotations

import random
import re
import warnings

import pytest

import gpusim
from gpusim import GpusimError, Simulation
from gpusim.importers import load_mjcf, load_sdf, load_urdf, load_usd

MJCF = """<mujoco model="arm"><compiler angle="degree"/><option gravity="0 0 -9.81" density="1.2"/>
<default><geom friction="0.8 0.01 0.001" density="900"/><default class="light"><joint damping="0.2" armature="0.01"/>
</default></default><asset><material name="red" rgba="1 0 0 0.5"/></asset>
<worldbody><light pos="0 0 4"/><camera name="eye" pos="2 0 1"/><geom name="floor" type="plane" size="5 5 0.1"/>
<body name="base" pos="0 0 1"><freejoint/><geom type="box" size="0.2 0.1 0.1" material="red"/><site name="imu"/>
<body name="arm" pos="0.3 0 0" childclass="light"><joint name="hinge" axis="0 1 0" range="-90 90" limited="true"/>
<geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.05"/>
<body name="hand" pos="0.4 0 0"><joint name="wrist" type="ball"/><geom type="sphere" size="0.06"/></body></body>
</body></worldbody>
<equality><weld name="grip" body1="base" body2="hand" active="false"/></equality>
<tendon><fixed name="rope"><joint joint="hinge" coef="2"/></fixed></tendon>
<actuator><position name="servo" joint="hinge" kp="40" ctrlrange="-1 1"/><motor name="pull" tendon="rope" gear="3"/>
</actuator><sensor><gyro name="gyro" site="imu"/><jointpos name="angle" joint="hinge"/></sensor>
<keyframe><key name="home" qpos="0 0 1 1 0 0 0 0.5 1 0 0 0"/></keyframe></mujoco>"""
URDF = """<robot name="arm"><material name="red"><color rgba="1 0 0 1"/></material>
<link name="base"><inertial><origin xyz="0 0 0.1"/><mass value="3"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
<link name="arm"><inertial><mass value="1"/><inertia ixx="0.02" iyy="0.03" izz="0.02" ixy="0" ixz="0" iyz="0"/>
</inertial>
<visual><geometry><cylinder radius="0.05" length="0.4"/></geometry><material name="red"/></visual></link>
<link name="finger"><inertial><mass value="0.2"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.2"/>
<axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="50" velocity="3"/><dynamics damping="0.1" friction="0.2"/>
</joint>
<joint name="slide" type="prismatic"><parent link="arm"/><child link="finger"/><axis xyz="1 0 0"/>
<limit lower="0" upper="0.1" effort="5" velocity="1"/><mimic joint="hinge" multiplier="0.05"/></joint>
<gazebo reference="arm"><mu1>0.7</mu1><selfCollide>true</selfCollide></gazebo>
<transmission name="t"><type>SimpleTransmission</type><joint name="hinge">
<hardwareInterface>EffortJointInterface</hardwareInterface></joint><actuator name="m"><mechanicalReduction>50
</mechanicalReduction></actuator></transmission></robot>"""
SDF = """<sdf version="1.9"><world name="w"><gravity>0 0 -9.8</gravity><model name="arm"><pose>0 0 1 0 0 0.3</pose>
<link name="base"><inertial><mass>3</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial>
<collision name="c"><geometry><box><size>0.2 0.2 0.2</size></box></geometry><surface><friction><ode><mu>0.7</mu>
<mu2>0.6</mu2></ode></friction></surface></collision></link><link name="arm">
<pose relative_to="base">0.3 0 0 0 0 0</pose>
<inertial><mass>1</mass></inertial><visual name="v"><geometry><sphere><radius>0.1</radius></sphere></geometry>
</visual>
</link><joint name="hinge" type="revolute"><parent>base</parent><child>arm</child><axis><xyz>0 1 0</xyz><limit>
<lower>-1</lower><upper>1</upper><effort>50</effort></limit><dynamics><damping>0.1</damping>
<spring_stiffness>2</spring_stiffness></dynamics></axis></joint><frame name="f" attached_to="arm"/></model>
<model name="ground"><static>true</static><link name="l"><collision name="c"><geometry><plane><normal>0 0 1</normal>
</plane></geometry></collision></link></model></world></sdf>"""
USD = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "World"
{
    def PhysicsScene "scene"
    {
        vector3f physics:gravityDirection = (0, 0, -1)
        float physics:gravityMagnitude = 9.81
    }
    def Cube "base" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI"]
    )
    {
        double size = 0.4
        float physics:mass = 3
        double3 xformOp:translate = (0, 0, 1)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Sphere "ball" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]
    )
    {
        double radius = 0.1
        double3 xformOp:translate = (0.5, 0, 1)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def PhysicsRevoluteJoint "hinge" (
        prepend apiSchemas = ["PhysicsDriveAPI:angular"]
    )
    {
        uniform token physics:axis = "Y"
        rel physics:body0 = </World/base>
        rel physics:body1 = </World/ball>
        point3f physics:localPos0 = (0.5, 0, 0)
        float physics:lowerLimit = -90
        float physics:upperLimit = 90
        float drive:angular:physics:stiffness = 10
        float drive:angular:physics:damping = 1
    }
}
"""
NUMBERS = ["nan", "inf", "-inf", "1e400", "-1", "0", "1e-320", "1e30", "", "0x10", "a", "1,5", "١", "2 3 4 5 6 7 8 9"]
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?(?![\w.])")
WORD = re.compile(r'(?<=[<"/ =])[A-Za-z_]\w*')


def mutated(text: str, dice: random.Random) -> str:
    for _ in range(dice.randint(1, 2)):
        kind = dice.choice((0, 0, 0, 1, 2, 3, 4, 5))
        if kind == 0 and (found := list(NUMBER.finditer(text))):
            spot = dice.choice(found)
            text = text[: spot.start()] + dice.choice(NUMBERS) + text[spot.end() :]
        elif kind == 1 and len(found := list(WORD.finditer(text))) > 1:
            spot, other = dice.sample(found, 2)
            text = text[: spot.start()] + other.group() + text[spot.end() :]
        else:
            start = dice.randrange(len(text))
            end = min(len(text), start + dice.choice((1, 1, 5, 40, 200)))
            piece = text[start:end]
            place = dice.randrange(len(text))
            if kind == 2:
                text = text[:start] + text[end:]
            elif kind == 3:
                text = text[:place] + piece + text[place:]
            elif kind == 4:
                noise = "".join(chr(dice.choice((0, 9, 34, 38, 60, 62, 123, 255, 0x1F600))) for _ in piece[:3])
                text = text[:start] + noise + text[end:]
            else:
                lines = text.split("\n")
                at = dice.randrange(len(lines))
                lines.insert(dice.randrange(len(lines)), lines.pop(at))
                text = "\n".join(lines)
    return text


FORMATS = {"mjcf": (load_mjcf, MJCF), "urdf": (load_urdf, URDF), "sdf": (load_sdf, SDF), "usd": (load_usd, USD)}
NEEDS = {"mjcf": "mujoco", "usd": "pxr", "urdf": "yourdfpy"}


def _try(load, text: str) -> str:
    """Load a text and run it for some steps."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            builder, report = load(text)
            model = builder.finalize()
            assert report.json() and report.summary()
            if model.bodies:
                Simulation(model, backend="numpy").step(2)
    except GpusimError as error:
        assert "\n" not in str(error) and len(str(error)) < 2000, f"{error}"
        return "refused"
    return "loaded"


@pytest.mark.parametrize("name", FORMATS)
def test_unchanged_files_load(name: str) -> None:
    pytest.importorskip(NEEDS.get(name, "gpusim"), reason=f'needs pip install "gpusim[{name}]"')
    assert _try(*FORMATS[name]) == "loaded"


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", FORMATS)
def test_mutated_files_load_or_end_in_one_sentence(name: str, seed: int) -> None:
    pytest.importorskip(NEEDS.get(name, "gpusim"), reason=f'needs pip install "gpusim[{name}]"')
    load, text = FORMATS[name]
    count, dice = (25, 500)[seed], random.Random(1000 * seed + len(name))
    found = []
    for k in range(count):
        changed = mutated(text, dice)
        try:
            found.append(_try(load, changed))
        except Exception as error:
            error.add_note(f"{name}, number {k}:\n{changed}")
            raise
    assert set(found) == {"loaded", "refused"}


def test_load_takes_any_text() -> None:
    dice = random.Random(5)
    for k in range(60):
        text = mutated(dice.choice([MJCF, URDF, SDF, USD])[: dice.randrange(1, 400)], dice)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                gpusim.load(text)
        except GpusimError as error:
            assert "\n" not in str(error), k
