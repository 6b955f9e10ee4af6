"""Operation counter: a build of the kernels in which every number counts its operations.

The kernels are compiled for the CPU with ``float`` and ``double`` replaced by a type of the same size that adds one to
a counter at every + - * / and square root. So the counts follow what the kernels do, including iterations and branches,
and need no maintenance. Comparisons, conversions and integer operations do not count.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from typing import Any

from gpusim.backends.codegen.variants import model_variant
from gpusim.backends.native.backend import NativeBackend, load_library
from gpusim.errors import ModelError

_PRELUDE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>
#include <math.h>
#include <string.h>
#include <type_traits>

namespace counting {
static long long operations[2];  // of float, of double
// Of a phase, whose items are spread over a world's threads, the busiest thread's operations; what is between phases
// all threads do. By the number of threads, 1, 2, 4 ... 256; and how many phases there were.
const int WIDTHS = 9;
static long long critical[WIDTHS], phases, mark_, lane[WIDTHS][1 << (WIDTHS - 1)];
inline long long now() { return operations[0] + operations[1]; }
inline long long since() {
    const long long spent = now() - mark_;
    mark_ += spent;
    return spent;
}
inline void end_serial() {
    const long long spent = since();
    for (int k = 0; k < WIDTHS; ++k) critical[k] += spent;
}
struct Phase {
    int count, i = 0;
    explicit Phase(int n) : count(n) {
        end_serial();
        ++phases;
    }
    bool on() const { return i < count; }
    void next() {
        const long long spent = since();
        for (int k = 0; k < WIDTHS; ++k) lane[k][i & ((1 << k) - 1)] += spent;
        ++i;
    }
    ~Phase() {
        for (int k = 0; k < WIDTHS; ++k) {
            long long most = 0;
            for (int l = 0; l < 1 << k && l < count; ++l) {
                most = lane[k][l] > most ? lane[k][l] : most;
                lane[k][l] = 0;
            }
            critical[k] += most;
        }
    }
};
template <class T> constexpr int kind_of() { return sizeof(T) == sizeof(double); }
template <class T> struct is_plain : std::is_arithmetic<T> {};
template <class T, class U = void> using if_plain = typename std::enable_if<is_plain<T>::value, U>::type;

template <class T> struct Number {
    T v;
    Number() = default;
    template <class U, class = if_plain<U>> constexpr Number(U x) : v(static_cast<T>(x)) {}
    template <class U> constexpr Number(Number<U> x) : v(static_cast<T>(x.v)) {}
    template <class U, class = if_plain<U>> constexpr explicit operator U() const { return static_cast<U>(v); }
    constexpr Number operator-() const { return Number(-v); }
    constexpr Number operator+() const { return *this; }
    template <class U> Number& operator+=(U x) { return *this = *this + x; }
    template <class U> Number& operator-=(U x) { return *this = *this - x; }
    template <class U> Number& operator*=(U x) { return *this = *this * x; }
    template <class U> Number& operator/=(U x) { return *this = *this / x; }
};
#define COUNTED(op)                                                                                          \
    template <class T, class U, class R = typename std::common_type<T, U>::type>                            \
    inline Number<R> operator op(Number<T> a, Number<U> b) {                                                \
        ++operations[kind_of<R>()];                                                                         \
        return Number<R>(a.v op b.v);                                                                       \
    }                                                                                                       \
    template <class T, class U, class = if_plain<U>, class R = typename std::common_type<T, U>::type>       \
    inline Number<R> operator op(Number<T> a, U b) { return a op Number<R>(b); }                            \
    template <class T, class U, class = if_plain<U>, class R = typename std::common_type<T, U>::type>       \
    inline Number<R> operator op(U a, Number<T> b) { return Number<R>(a) op b; }
COUNTED(+)
COUNTED(-)
COUNTED(*)
COUNTED(/)
#define COMPARED(op)                                                                                         \
    template <class T, class U> constexpr bool operator op(Number<T> a, Number<U> b) { return a.v op b.v; } \
    template <class T, class U, class = if_plain<U>>                                                        \
    constexpr bool operator op(Number<T> a, U b) { return a.v op b; }                                       \
    template <class T, class U, class = if_plain<U>>                                                        \
    constexpr bool operator op(U a, Number<T> b) { return a op b.v; }
COMPARED(<)
COMPARED(>)
COMPARED(<=)
COMPARED(>=)
COMPARED(==)
COMPARED(!=)
template <class T> inline Number<T> sqrt(Number<T> x) {
    ++operations[kind_of<T>()];
    return Number<T>(::sqrt(x.v));
}
template <class T> constexpr Number<T> fabs(Number<T> x) { return Number<T>(x.v < 0 ? -x.v : x.v); }
// what the kernels' own templates, which take two of one type, do with a literal
template <class T, class U, class = if_plain<U>> Number<T> max_(Number<T> a, U b) { return a.v > b ? a.v : T(b); }
template <class T, class U, class = if_plain<U>> Number<T> max_(U a, Number<T> b) { return T(a) > b.v ? T(a) : b.v; }
template <class T, class U, class = if_plain<U>> Number<T> min_(Number<T> a, U b) { return a.v < b ? a.v : T(b); }
template <class T, class U, class = if_plain<U>> Number<T> min_(U a, Number<T> b) { return T(a) < b.v ? T(a) : b.v; }
template <class T, class U, class = if_plain<U>> Number<T> clamped(Number<T> x, U low, U high) {
    return x.v < low ? T(low) : (x.v > high ? T(high) : x.v);
}
}  // namespace counting
using counting::fabs;
using counting::Number;
using counting::sqrt;
inline Number<float> sqrtf(Number<float> x) { return counting::sqrt(x); }
namespace std {
using counting::fabs;
using counting::sqrt;
}

extern "C" void take_operations(long long* out) {
    counting::end_serial();
    for (int k = 0; k < 2; ++k) out[k] = counting::operations[k];
    out[2] = counting::phases;
    for (int k = 0; k < counting::WIDTHS; ++k) out[3 + k] = counting::critical[k];
    counting::operations[0] = counting::operations[1] = counting::phases = counting::mark_ = 0;
    for (int k = 0; k < counting::WIDTHS; ++k) counting::critical[k] = 0;
}
#define GPUSIM_COUNTED_ITEMS(count) \
    for (counting::Phase phase_(count); phase_.on(); phase_.next()) if (int i = phase_.i; true)
#define float Number<float>
#define double Number<double>
"""


WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Numbers of threads per world for which critical paths are counted."""


@dataclass(frozen=True)
class Operations:
    """Floating-point operations (+ - * / sqrt) by number type.

    Attributes:
        phases: phases that ran with items, each followed by a barrier.
        critical: operations of the busiest thread, summed over the phases, for each number of threads in WIDTHS.
    """

    float32: float = 0.0
    float64: float = 0.0
    phases: float = 0.0
    critical: tuple[float, ...] = ()

    def __truediv__(self, n: float) -> Operations:
        return Operations(self.float32 / n, self.float64 / n, self.phases / n, tuple(c / n for c in self.critical))

    @property
    def total(self) -> float:
        """Operations of both types."""
        return self.float32 + self.float64


class Counter:
    """Replacement of a native simulation's kernels by counting ones.

    Args:
        sim: on the native backend with ``threads=1``; from now on it steps slowly, and counts.

    Raises:
        CompileError: the kernels do not compile.
    """

    def __init__(self, sim: Any) -> None:
        backend = sim.backend
        if not isinstance(backend, NativeBackend) or backend.threads != 1:
            raise ModelError("Counter: simulation must run on the native backend with one thread; make it so")
        main = "staged.cu" if backend.staged else "fused.cu"
        variant = model_variant(main, backend.real, backend.stored, backend.sizes, backend.direct, backend.kinds)
        source = f'{_PRELUDE}\n#define GPUSIM_PLAIN\n#include "{variant.main}"\n'
        counting = f"counted_{variant.main}"
        library = load_library(replace(variant, main=counting, generated=variant.generated | {counting: source}))
        backend._library = library
        self._library = library
        self.take()

    def take(self) -> Operations:
        """Return the operations since the last call."""
        counts = (ctypes.c_longlong * (3 + len(WIDTHS)))()
        self._library.take_operations(counts)
        numbers = [float(x) for x in counts]
        return Operations(numbers[0], numbers[1], numbers[2], tuple(numbers[3:]))
