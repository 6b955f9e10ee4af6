// Definitions that let NVRTC and a C++ compiler compile the same sources. On a CPU, a block is one
// thread, and barriers do nothing.
#pragma once

#if defined(__CUDACC__)
#define GPUSIM_GPU 1
#define GPUSIM_FN static __device__ __forceinline__
#define GPUSIM_PHASE static __device__ __noinline__
#define MEMBER __device__ __forceinline__
// Do not inline long functions with several callers. Inlining would only increase the compile time.
#define GPUSIM_SHARED static __device__ __noinline__
#define GPUSIM_KERNEL extern "C" __global__
// At most 256 threads per block. Two blocks must fit into the registers of a multiprocessor.
#define GPUSIM_BOUNDED_KERNEL extern "C" __global__ __launch_bounds__(256, 2)
// Some threads of a warp (a tile) or all threads of a block compute a world.
#define GPUSIM_BARRIER()                    \
    do {                                    \
        if (threads <= 32) __syncwarp(tile); \
        else __syncthreads();               \
    } while (0)
// Do not unroll loops over items. Unrolling would increase the compile time without faster steps.
#define GPUSIM_ROLLED _Pragma("unroll 1")
#else
#define GPUSIM_GPU 0
#include <cmath>
#include <cstdint>
#include <cstring>
#define GPUSIM_FN static inline
#define GPUSIM_PHASE static inline
#define MEMBER inline
#define GPUSIM_SHARED static inline
#define GPUSIM_KERNEL extern "C"
#if defined(GPUSIM_TEAM)
#include "team.cuh"
#else
#define GPUSIM_BARRIER()
#endif
#define GPUSIM_ROLLED
#endif
// GPUSIM_LINKED is 1 for a build that links to collide.cu, and 2 for collide.cu. The linker finds functions by name.
#if !defined(GPUSIM_LINKED)
#define GPUSIM_LINKED 0
#endif
#if GPUSIM_LINKED && GPUSIM_GPU
#define GPUSIM_OUTER extern "C" __device__ __noinline__
#elif GPUSIM_LINKED
#define GPUSIM_OUTER extern "C" __attribute__((visibility("hidden")))
#else
#define GPUSIM_OUTER GPUSIM_PHASE
#endif
#if !defined(GPUSIM_SHARED_SLAB)
#define GPUSIM_SHARED_SLAB 0
#endif
// Pointer to global memory outside the slab.
#if GPUSIM_GPU
template <class T> GPUSIM_FN T* in_global(T* p) {
    __builtin_assume(__isGlobal(p));
    return p;
}
#else
template <class T> GPUSIM_FN T* in_global(T* p) { return p; }
#endif
// Start of the slab of a world. Builds with GPUSIM_SHARED_SLAB have slabs in shared memory.
#if GPUSIM_GPU && GPUSIM_SHARED_SLAB
extern __shared__ double shared_slab[];
#define GPUSIM_SLAB (reinterpret_cast<char*>(shared_slab) + slab_offset)
#elif GPUSIM_GPU
#define GPUSIM_SLAB in_global(base)
#else
#define GPUSIM_SLAB base
#endif
// Array of a slab. In global memory, arrays are aligned to 16 bytes, so that the compiler may load two numbers at once.
template <class T> GPUSIM_FN T* slab_array(char* bytes) {
#if GPUSIM_GPU && !GPUSIM_SHARED_SLAB
    __builtin_assume(reinterpret_cast<unsigned long long>(bytes) % 16 == 0);
#endif
    return reinterpret_cast<T*>(bytes);
}
// Pointer into a slab, which may be in shared or global memory.
#if GPUSIM_GPU && GPUSIM_SHARED_SLAB
template <class T> GPUSIM_FN T* in_slab(T* p) {
    __builtin_assume(__isShared(p));
    return p;
}
#else
template <class T> GPUSIM_FN T* in_slab(T* p) { return in_global(p); }
#endif
// Number of the source line that calls a barrier, for builds that check barriers.
#if !defined(GPUSIM_CALLER)
#define GPUSIM_CALLER
#endif

// Number types: ``real`` for the work arrays of a substep, ``stored`` for the arrays of the state.
typedef GPUSIM_REAL real;
typedef GPUSIM_STORED stored;
// Types of conditions and integers that may differ between worlds. Code for groups of worlds (simd.cuh) uses the types
// without branches.
typedef bool mask;
typedef int whole;

// Items of a phase are independent. Tests reverse the order of the items, to check the independence.
#if defined(GPUSIM_REVERSED)
#define GPUSIM_ITEMS(count, first, stride) for (int i = (count) - 1 - (first); i >= 0; i -= (stride))
#else
#define GPUSIM_ITEMS(count, first, stride) for (int i = (first); i < (count); i += (stride))
#endif

#if GPUSIM_GPU
GPUSIM_FN double sqrt_(double x) { return sqrt(x); }
GPUSIM_FN float sqrt_(float x) { return sqrtf(x); }
GPUSIM_FN double abs_(double x) { return fabs(x); }
GPUSIM_FN float abs_(float x) { return fabsf(x); }
#else
GPUSIM_FN double sqrt_(double x) { return std::sqrt(x); }
GPUSIM_FN float sqrt_(float x) { return std::sqrt(x); }
GPUSIM_FN double abs_(double x) { return std::fabs(x); }
GPUSIM_FN float abs_(float x) { return std::fabs(x); }
#endif

// Copy ``count`` numbers with the threads of a world.
template <class T> GPUSIM_FN void copy_numbers(const T* from, T* to, int count, int tid, int threads) {
#if defined(GPUSIM_ONE_THREAD)
    (void)tid, (void)threads;
    if (count) std::memcpy(to, from, (std::size_t)count * sizeof(T));
#else
    GPUSIM_ROLLED for (int i = tid; i < count; i += threads) to[i] = from[i];
#endif
}

// Return the world of an item, with ``each`` items per world. Use 32 bits if possible, because a 64-bit division takes
// as long as a small phase.
GPUSIM_FN int world_of(long long item, int each) {
    return item <= 0x7fffffffll ? int(unsigned(item) / unsigned(each)) : int(item / each);
}

template <class T> GPUSIM_FN T max_(T a, T b) { return a > b ? a : b; }
template <class T> GPUSIM_FN T min_(T a, T b) { return a < b ? a : b; }
#if GPUSIM_GPU
// NVRTC would replace comparisons with constants by max and min, which may return +0 instead of -0 or vice versa.
#define GPUSIM_CHOICE(name, comparison, type, form, letter)                                     \
    GPUSIM_FN type name(type a, type b) {                                                       \
        type chosen;                                                                            \
        asm("{ .reg .pred %%first; setp." comparison "." form " %%first, %1, %2; selp." form " %0, %1, %2, %%first; }" \
            : "=" letter(chosen)                                                                \
            : letter(a), letter(b));                                                            \
        return chosen;                                                                          \
    }
GPUSIM_CHOICE(max_, "gt", double, "f64", "d")
GPUSIM_CHOICE(max_, "gt", float, "f32", "f")
GPUSIM_CHOICE(min_, "lt", double, "f64", "d")
GPUSIM_CHOICE(min_, "lt", float, "f32", "f")
#undef GPUSIM_CHOICE
#endif
template <class T> GPUSIM_FN T clamped(T x, T low, T high) { return x < low ? low : (x > high ? high : x); }

// Return a command after limits, factor and offset. map: lower limit, upper limit, factor, offset.
template <class T> GPUSIM_FN T mapped_command(T command, const T* map) {
    return map[2] * clamped(command, map[0], map[1]) + map[3];
}
template <class T> GPUSIM_FN bool is_nan(T x) { return x != x; }
template <class T> GPUSIM_FN T choose(bool mask, T yes, T no) { return mask ? yes : no; }
// Read one of two memory locations. The other location may be unwritten.
template <class T> GPUSIM_FN T choose_at(bool mask, const T* yes, const T* no) { return mask ? *yes : *no; }
GPUSIM_FN bool any(bool mask) { return mask; }
GPUSIM_FN bool all(bool mask) { return mask; }

// Atomic maximum of non-negative numbers, where NaN is the greatest. The result does not depend on the order. The bits
// of non-negative floating-point numbers have the same order as integers.
#if GPUSIM_GPU
GPUSIM_FN void raise_to(double* target, double value) {
    atomicMax(reinterpret_cast<unsigned long long*>(target), static_cast<unsigned long long>(__double_as_longlong(abs_(value))));
}
GPUSIM_FN void raise_to(float* target, float value) {
    atomicMax(reinterpret_cast<unsigned int*>(target), static_cast<unsigned int>(__float_as_int(abs_(value))));
}
GPUSIM_FN double with_last_bits(double value, int mask, int bits) {
    return __longlong_as_double((__double_as_longlong(value) & ~(long long)mask) | (long long)bits);
}
GPUSIM_FN void lower_to(int* target, int value) { atomicMin(target, value); }
GPUSIM_FN void raise_to(int* target, int value) { atomicMax(target, value); }
GPUSIM_FN void set_flag(int* target) { atomicOr(target, 1); }
GPUSIM_FN void count_one(int* target) { atomicAdd(target, 1); }
GPUSIM_FN int take_number(int* target) { return atomicAdd(target, 1); }
// Synchronization between blocks of a launch. A block writes data, and then a number with ``release``. Another block
// reads the number with ``fresh``, calls ``acquire``, and then sees the data.
GPUSIM_FN int fresh(const int* at) { return *const_cast<const volatile int*>(at); }
GPUSIM_FN void store_shared(int* at, int value) { *const_cast<volatile int*>(at) = value; }
GPUSIM_FN void acquire() { __threadfence(); }
GPUSIM_FN void release() { __threadfence(); }
#else
template <class U, class T> GPUSIM_FN void raise_bits(T* target, T value) {
    U bits, old;
    value = abs_(value);
    std::memcpy(&bits, &value, sizeof(T));
#if defined(GPUSIM_ONE_THREAD)  // an atomic exchange takes as long as twenty additions
    std::memcpy(&old, target, sizeof(T));
    if (old < bits) std::memcpy(target, &bits, sizeof(T));
#else
    U* at = reinterpret_cast<U*>(target);
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    while (old < bits && !__atomic_compare_exchange(at, &old, &bits, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
#endif
}
GPUSIM_FN double with_last_bits(double value, int mask, int bits) {
    std::uint64_t all;
    std::memcpy(&all, &value, sizeof(double));
    all = (all & ~std::uint64_t(mask)) | std::uint64_t(bits);
    std::memcpy(&value, &all, sizeof(double));
    return value;
}
GPUSIM_FN void raise_to(double* target, double value) { raise_bits<std::uint64_t>(target, value); }
GPUSIM_FN void raise_to(float* target, float value) { raise_bits<std::uint32_t>(target, value); }
GPUSIM_FN void lower_to(int* target, int value) {
    int old = __atomic_load_n(target, __ATOMIC_RELAXED);
    while (value < old && !__atomic_compare_exchange_n(target, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}
GPUSIM_FN void raise_to(int* target, int value) {
    int old = __atomic_load_n(target, __ATOMIC_RELAXED);
    while (value > old && !__atomic_compare_exchange_n(target, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}
GPUSIM_FN void set_flag(int* target) { __atomic_store_n(target, 1, __ATOMIC_RELAXED); }
GPUSIM_FN void count_one(int* target) { __atomic_fetch_add(target, 1, __ATOMIC_RELAXED); }
// Increment a counter and return its old value. The old value depends on the order of threads, so sort the entries
// later.
GPUSIM_FN int take_number(int* target) { return __atomic_fetch_add(target, 1, __ATOMIC_RELAXED); }
GPUSIM_FN int fresh(const int* at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
GPUSIM_FN void store_shared(int* at, int value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
GPUSIM_FN void acquire() { __atomic_thread_fence(__ATOMIC_ACQUIRE); }
GPUSIM_FN void release() { __atomic_thread_fence(__ATOMIC_RELEASE); }
#endif
GPUSIM_FN void publish(int* at, int value) {
    release();
    store_shared(at, value);
}
template <class T> GPUSIM_FN void raise_where(bool mask, T* target, T value) {
    if (mask) raise_to(target, value);
}
