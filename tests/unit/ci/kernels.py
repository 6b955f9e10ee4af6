"""Small kernels for the tests of ci/ptx: arithmetic, and one fault each."""

ARITHMETIC = """
#include "math/platform.cuh"
template <class T> __device__ void all(const T* a, const T* b, T* out, double* wide, float* narrow, int* whole) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const T x = a[i], y = b[i];
    T* o = out + 12 * i;
    o[0] = x + y; o[1] = x - y; o[2] = x * y; o[3] = x / y; o[4] = sqrt(x); o[5] = -x; o[6] = fabs(x); o[7] = T(1) / x;
    o[8] = x > T(0.5) ? x : T(0.5); o[9] = x < T(-0.5) ? x : T(-0.5);
    o[10] = max_(x, T(0)); o[11] = min_(x, T(0));
    wide[i] = x; narrow[i] = x;
    int* w = whole + 12 * i;
    w[0] = x < y; w[1] = x <= y; w[2] = x == y; w[3] = x != y; w[4] = !(x < y); w[5] = !(x >= y); w[6] = x > y ? 3 : 5;
    w[7] = !(x > y); w[8] = !(x <= y); w[9] = x != x; w[10] = x == x && y == y; w[11] = int(x);
}
#define KERNEL(name, T)                                                                                         \\
    extern "C" __global__ void name(const T* a, const T* b, T* out, double* wide, float* narrow, int* whole) { \\
        all(a, b, out, wide, narrow, whole);                                                                    \\
    }
KERNEL(doubles, double)
KERNEL(floats, float)
extern "C" __global__ void integers(const int* a, const int* b, int* out, long long* wide) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, x = a[i], y = b[i];
    int* o = out + 14 * i;
    o[0] = x + y; o[1] = x * y; o[2] = y ? x / y : 0; o[3] = y ? x % y : 0; o[4] = x << (y & 31); o[5] = x >> (y & 31);
    o[6] = unsigned(x) >> (y & 31); o[7] = x & y; o[8] = x ^ ~y; o[9] = x / 3; o[10] = x < y; o[11] = max(x, y);
    o[12] = min(x, y); o[13] = abs(x);
    wide[2 * i] = (long long)x * y; wide[2 * i + 1] = y ? (long long)x * 1000003 / y : 0;
}
"""

# What NVRTC writes for sm_100 and newer alone.
BITS = """
#define TAKE(to, form, letter, x, at, size) \\
    asm(form " %0, %1, %2, %3;" : "=" letter(to) : letter(x), "r"(at), "r"(size))
extern "C" __global__ void bits(const unsigned* a, const unsigned* at, const unsigned* size, unsigned* out,
                                const unsigned long long* wide, unsigned long long* wide_out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned* o = out + 3 * i;
    int own;
    TAKE(o[0], "bfe.u32", "r", a[i], at[i], size[i]);
    TAKE(own, "bfe.s32", "r", int(a[i]), at[i], size[i]);
    o[1] = own;
    const unsigned choice = at[i] * 257u + size[i] * 4099u;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(o[2]) : "r"(a[i]), "r"(unsigned(wide[i])), "r"(choice));
    unsigned long long* w = wide_out + 4 * i;
    const unsigned long long x = wide[i], y = x * 6364136223846793005ull + a[i];
    long long wide_own;
    TAKE(w[0], "bfe.u64", "l", x, at[i], size[i]);
    TAKE(wide_own, "bfe.s64", "l", (long long)x, at[i], size[i]);
    w[1] = wide_own;
    w[2] = __umul64hi(x, y);
    w[3] = __mul64hi(x, y);
}
"""

FAULTS = """
#define TURN(name, barrier)                                                        \\
    extern "C" __global__ void name(double* x) {                                   \\
        extern __shared__ double s[];                                              \\
        s[threadIdx.x] = x[threadIdx.x];                                           \\
        barrier;                                                                   \\
        x[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];                          \\
    }
TURN(good, __syncthreads())
TURN(no_barrier, )
#define THREAD(number) if (threadIdx.x == number)
extern "C" __global__ void all_write(int* x) { x[0] = threadIdx.x; }
extern "C" __global__ void written_then_read(int* x) {
    THREAD(0) x[0] = 1;
    THREAD(1) x[1] = x[0];
}
extern "C" __global__ void read_then_written(int* x) {
    THREAD(0) x[1] = x[0];
    THREAD(1) x[0] = 1;
}
extern "C" __global__ void written_then_added(int* x) {
    THREAD(0) x[0] = 1;
    THREAD(1) atomicAdd(x, 1);
}
extern "C" __global__ void written_and_added(int* x) {
    THREAD(0) { x[0] = 1; atomicAdd(x, 1); }
    THREAD(1) atomicAdd(x, 1);
}
extern "C" __global__ void blocks_read(int* x) {
    x[1 + blockIdx.x] = x[0];
    if (blockIdx.x == 1) x[0] = 1;
}
extern "C" __global__ void one_reads(int* x) {
    atomicAdd(x, 1);
    if (threadIdx.x == 31) x[1] = x[0];
}
extern "C" __global__ void blocks_add(int* x) { x[0] += 1; }
extern "C" __global__ void atomics(int* x) {
    atomicAdd(x, 1);
    atomicMin(x + 1, int(threadIdx.x));
    atomicMax(x + 2, int(threadIdx.x));
    atomicOr(x + 3, 1 << threadIdx.x);
}
// Blocks of one thread draw numbers, and each adds to what the one before has left.
#define RELAY(name, ahead, known)                                       \\
    extern "C" __global__ void name(int* x) {                           \\
        for (int turn; (turn = atomicAdd(x, 1)) < 8; __syncthreads()) { \\
            while (*(volatile int*)(x + 1) < turn + ahead) {            \\
            }                                                           \\
            x[2] += known;                                              \\
            x[3 + turn] = x[2];                                         \\
            __threadfence();                                            \\
            atomicAdd(x + 1, 1);                                        \\
        }                                                               \\
    }
RELAY(relay, 0, turn)
RELAY(early, -8, turn)
RELAY(late, 1, turn)
extern "C" __global__ void impatient(int* x) {
    for (int looks = 0; *(const volatile int*)x < 1; ++looks)
        if (looks == 9) __trap();
    x[1] = 1;
}
extern "C" __global__ void unwritten(double* x) {
    extern __shared__ double s[];
    if (threadIdx.x) s[threadIdx.x] = 1.0;
    __syncthreads();
    if (threadIdx.x == 0) x[0] = s[0];
}
extern "C" __global__ void ones(double* x) { x[threadIdx.x] = 1.0; }
extern "C" __global__ void shared_ones(double* x) {
    extern __shared__ double s[];
    s[threadIdx.x] = x[0];
}
extern "C" __global__ void through(double** x) { x[0][0] = 1.0; }
extern "C" __global__ void odd(char* x) { *(double*)(x + 4) = 1.0; }
extern "C" __global__ void in_part(int* x) {
    if (threadIdx.x < 16) return;
    __syncthreads();
    x[threadIdx.x] = 1;
}
extern "C" __global__ void two_barriers(int* x) {
    if (threadIdx.x < 16) { x[threadIdx.x] = 1; __syncthreads(); }
    else { x[threadIdx.x] = 2; __syncthreads(); x[threadIdx.x] = 3; }
}
extern "C" __global__ void local(int* at, double* x) {
    double own[8];
    for (int k = 0; k < at[0]; ++k) own[k] = k;
    x[0] = own[at[1]];
}
static __device__ __noinline__ double next_to(const int* at) {
    double own[8];
    for (int k = 0; k < 8; ++k) own[k] = at[0];
    return own[at[1]];
}
extern "C" __global__ void local_below(const int* at, double* x) {
    double own[8];
    for (int k = 0; k < 8; ++k) own[k] = k + next_to(at);
    x[0] = own[at[0] & 7];
}
extern "C" __global__ void quotient(int* x) { x[0] = x[1] / x[2]; }
extern "C" __global__ void whole(double* x, int* y) { y[0] = int(x[0]); }
"""
