from __future__ import annotations

import pytest

from ci.ptx.forms import check_forms, why_not
from ci.ptx.reader import Module, PtxError, join, read_module
from ci.ptx.translator import translate

HEAD = """
.version 8.8
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 memory[];
"""
TEXT = """
.func  (.param .b64 func_retval0) twice(
    .param .b64 twice_param_0
)
{
    .reg .f64 %fd<4>;
    .reg .b64 %rd<3>;
    .loc 1 7 3
    ld.param.f64    %fd1, [twice_param_0];
    .loc 1 8 3, function_name $L__info_string0, inlined_at 2 30 5
    INSTRUCTION
    st.param.f64    [func_retval0+0], %fd2;
    ret;
}
.visible .entry step(
    .param .u64 step_param_0
)
{
    .reg .pred %p<2>;
    .reg .f64 %fd<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [step_param_0];  // a comment; with { everything
    { // callseq 0, 0
    .reg .b32 temp_param_reg;
    .param .b64 param0;
    st.param.f64 [param0+0], %fd1;
    .param .b64 retval0;
    call.uni (retval0),
    CALL,
    (
    param0
    );
    ld.param.f64 %fd2, [retval0+0];
    }
    setp.eq.f64 %p1, %fd2, 0d0000000000000000;
    @%p1 bra $L__BB1_2;
    st.global.f64 [%rd1], %fd2;
$L__BB1_2:
    ret;
}
    .file 1 "rows.cuh"
    .file 2 "deep/factor.cuh"
"""


def module(instruction: str = "add.rn.f64 %fd2, %fd1, %fd1;", call: str = "twice") -> Module:
    return read_module(HEAD + TEXT.replace("INSTRUCTION", instruction).replace("CALL", call))


def test_a_module_is_read() -> None:
    found = module()
    assert list(found.functions) == ["twice", "step"] and found.shared == ["memory"]
    twice, step = found.functions.values()
    assert step.entry and not twice.entry
    assert [(p.name, p.size) for p in (*twice.results, *twice.params)] == [("func_retval0", 8), ("twice_param_0", 8)]
    assert twice.registers == {"%fd": "f64", "%rd": "b64"}
    add = next(s for s in twice.instructions() if s.name == "add.rn.f64")
    assert found.where(add.position) == "rows.cuh:8, inlined at factor.cuh:30"
    guarded = [s for s in step.instructions() if s.guard]
    assert [(s.guard, s.text) for s in guarded] == [("%p1", "bra $L__BB1_2")]
    assert found.reached("step") == {"step", "twice"} and found.reached("twice") == {"twice"}
    assert not check_forms(found)
    assert "v_fd2 = (f64)(v_fd1 + v_fd1);" in translate(found)


def test_what_newer_compilers_write_out_is_the_same() -> None:
    assert not check_forms(module("atom.relaxed.gpu.shared.min.s32 %r1, [%rd1], %r2;"))
    (fault,) = check_forms(module("atom.acquire.sys.shared.min.s32 %r1, [%rd1], %r2;"))
    assert "unknown form" in fault.reason


@pytest.mark.parametrize("constant", ["0d3FF0000000000000", "0dBFF8000000000000", "0d0000000000000001"])
def test_the_greater_of_a_constant_is_allowed(constant: str) -> None:
    assert not check_forms(module(f"max.f64 %fd2, %fd1, {constant};"))


@pytest.mark.parametrize(
    "reader, allowed",
    [
        ("setp.lt.f64 %p1, %fd2, %fd1;", True),
        ("max.f64 %fd3, %fd1, %fd2; setp.gt.f64 %p1, %fd3, %fd1;", True),
        ("setp.lt.f64 %p1, %fd2, %fd1; add.rn.f64 %fd3, %fd2, %fd1;", False),
        ("max.f64 %fd3, %fd1, %fd2; add.rn.f64 %fd3, %fd3, %fd1;", False),
        ("st.global.f64 [%rd1], %fd2;", False),
    ],
)
def test_the_greater_of_two_that_is_only_compared_is_allowed(reader: str, allowed: bool) -> None:
    text = TEXT.replace("st.param.f64    [func_retval0+0], %fd2;", "st.param.f64    [func_retval0+0], %fd1;")
    text = text.replace("INSTRUCTION", f"min.f64 %fd2, %fd1, %fd1; {reader}".replace("; ", ";\n    "))
    faults = check_forms(read_module(HEAD + text.replace("CALL", "twice")))
    assert not faults if allowed else "another zero" in faults[0].reason


@pytest.mark.parametrize(
    "instruction, reason",
    [
        ("fma.rn.f64 %fd2, %fd1, %fd1, %fd1;", "--fmad=false"),
        ("mad.rn.f32 %fd2, %fd1, %fd1, %fd1;", "--fmad=false"),
        ("add.f64 %fd2, %fd1, %fd1;", "may fuse"),
        ("mul.f32 %fd2, %fd1, %fd1;", "may fuse"),
        ("add.rn.ftz.f32 %fd2, %fd1, %fd1;", "denormal"),
        ("sqrt.approx.f32 %fd2, %fd1;", "IEEE 754"),
        ("div.full.f32 %fd2, %fd1, %fd1;", "IEEE 754"),
        ("add.rz.f64 %fd2, %fd1, %fd1;", "another direction"),
        ("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;", "warp"),
        ("vote.sync.any.pred %p1, %p1, -1;", "warp"),
        ("atom.global.add.f64 %fd2, [%rd1], %fd1;", "order"),
        ("brx.idx %r1, $L__table;", "jump table"),
        ("add.rn.f16 %h1, %h1, %h1;", "unknown form"),
        ("bar.red.popc.u32 %r1, 0, %p1;", "unknown form"),
        ("brkpt;", "unknown form"),
        ("max.f64 %fd2, %fd1, 0d0000000000000000;", "another zero"),
        ("min.f32 %f2, %f1, 0f80000000;", "another zero"),
        ("max.f64 %fd2, %fd1, %fd1;", "another zero"),
    ],
)
def test_other_instructions_are_reported(instruction: str, reason: str) -> None:
    found = module(instruction)
    (fault,) = check_forms(found)
    assert reason in fault.reason
    assert str(fault).startswith("kernel step, rows.cuh:8, inlined at factor.cuh:30, in twice: `" + instruction[:-1])
    with pytest.raises(PtxError, match="kernel step"):
        translate(found)


@pytest.mark.parametrize("call, reason", [("%rd1", "indirect"), ("vprintf", "do not hold")])
def test_other_calls_are_reported(call: str, reason: str) -> None:
    (fault,) = check_forms(module(call=call))
    assert reason in fault.reason and "kernel step" in fault.kernels and call in fault.text


def test_parts_are_joined_as_a_linker_does() -> None:
    calling = module(call="halve")
    assert check_forms(calling, ("halve",)) == []
    with pytest.raises(PtxError, match="halve"):
        translate(calling)
    own = TEXT.replace("twice", "halve").replace("step", "other").replace("rows.cuh", "halves.cuh")
    halving = read_module(HEAD + own.replace("INSTRUCTION", "mul.rn.f64 %fd2, %fd1, %fd1;").replace("CALL", "halve"))
    whole = join([calling, halving])
    assert check_forms(whole) == [] and "halve" in whole.reached("step") and whole.shared == ["memory"]
    places = [whole.where(next(whole.functions[name].instructions()).position) for name in ("twice", "halve")]
    assert places == ["rows.cuh:7", "halves.cuh:7"]
    assert translate(whole).count("void halve(") == 2, "declared and defined"
    with pytest.raises(PtxError, match="twice is in two modules"):
        join([calling, calling])


def test_what_is_not_read_is_refused() -> None:
    for wrong in (".branchtargets $L1;", ".reg .v4 .f32 %v;", "<nonsense>"):
        with pytest.raises(PtxError, match=r"to ci/ptx/reader\.py"):
            module(wrong)


def test_names_alone_decide() -> None:
    for name in ("add.s32", "mul.lo.s64", "mad.wide.u32", "cvt.rn.f32.f64", "ld.global.nc.v2.f32", "bar.sync"):
        assert not why_not(name), name
    for name in ("cvt.f32.f64", "cvt.rz.f32.f64", "cvt.rni.s32.f64", "mul.f64", "ld.volatile.f64", "bar.arrive"):
        assert why_not(name), name
