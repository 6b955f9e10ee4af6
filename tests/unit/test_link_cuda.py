from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from gpusim.backends.cuda import link as link_cuda
from gpusim.backends.cuda.link import DriverLinker, LinkError, link_cubins
from tests.message_snapshot import naming


class Driver:
    def __init__(self, context: int = 1, fails: str = "") -> None:
        self.context, self.fails = context, fails
        self.calls: list[str] = []
        self.parts: list[bytes] = []
        self.log = 0

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name == self.fails:
                if self.log:
                    ctypes.memmove(self.log, b"half is undefined\0", 18)
                return 218
            getattr(self, f"_{name}", lambda *_: None)(*arguments)
            return 0

        return call

    def _cuDriverGetVersion(self, version: Any) -> None:
        version._obj.value = 12090

    def _cuCtxGetCurrent(self, context: Any) -> None:
        context._obj.value = self.context

    def _cuLinkCreate_v2(self, count: Any, options: Any, values: Any, state: Any) -> None:
        assert (count.value, list(options)) == (2, [5, 6]) and values[1] == 8192
        self.log, state._obj.value = values[0], 7

    def _cuLinkAddData_v2(
        self, state: Any, kind: Any, data: bytes, size: Any, name: bytes, count: Any, options: None, values: None
    ) -> None:
        assert count.value == 0 and options is None and values is None
        assert (state.value, kind.value, size.value) == (7, 0, len(data)) and name.endswith(b".cubin")
        self.parts.append(data)

    def _cuLinkComplete(self, state: Any, cubin: Any, size: Any) -> None:
        self.whole = ctypes.create_string_buffer(b"".join(self.parts))
        cubin._obj.value, size._obj.value = ctypes.addressof(self.whole), len(self.whole) - 1


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("GPUSIM_CACHE", str(tmp_path / "cache"))
    files = [tmp_path / "fused.cubin", tmp_path / "collide.cubin"]
    for file in files:
        file.write_bytes(b"\x7fELF" + file.name.encode() + b"\0")
    return files


def use(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> None:
    monkeypatch.setattr(link_cuda, "load_linker", lambda: DriverLinker(driver))


def test_parts_are_linked_once(parts: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    use(monkeypatch, driver)
    linked = link_cubins(parts, "sm_90")
    assert linked.read_bytes() == b"".join(part.read_bytes() for part in parts)
    assert driver.calls[-1] == "cuLinkDestroy" and driver.calls.count("cuLinkAddData_v2") == 2
    assert link_cubins(parts, "sm_90") == linked and driver.calls.count("cuLinkComplete") == 1
    assert link_cubins(parts[:1], "sm_90") != linked


@pytest.mark.parametrize("fails", ["cuLinkAddData_v2", "cuLinkComplete"])
def test_what_the_linker_says_is_reported(parts: list[Path], monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    driver = Driver(fails=fails)
    use(monkeypatch, driver)
    with pytest.raises(LinkError, match=naming(f"{fails} 218 half")):
        link_cubins(parts, "sm_90")
    assert driver.calls[-1] == "cuLinkDestroy"


def test_nothing_is_linked_without_a_gpu(parts: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(context=0)
    use(monkeypatch, driver)
    with pytest.raises(LinkError):
        link_cubins(parts, "sm_90")
    assert "cuLinkCreate_v2" not in driver.calls


def test_a_missing_driver_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_cuda, "LIBRARIES", ("libcuda-that-is-nowhere.so",))
    with pytest.raises(LinkError, match=naming("driver")):
        link_cuda.load_linker.__wrapped__()
