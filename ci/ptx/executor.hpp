// Interface of translated PTX: checked memory, barriers, and the operations that C++ does not have.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

typedef std::uint8_t u8;
typedef std::uint16_t u16;
typedef std::uint32_t u32;
typedef std::uint64_t u64;
typedef std::int8_t s8;
typedef std::int16_t s16;
typedef std::int32_t s32;
typedef std::int64_t s64;
typedef float f32;
typedef double f64;
#define INLINE static inline __attribute__((always_inline))
// Functions that access memory are long. Inlining would triple the compile time.
#define ACCESS static __attribute__((noinline))

// One thread of a block. A thread allocates local arrays in its part of the executor's memory, like a stack.
struct Thread {
    u32 tid, ntid, ctaid, nctaid;
    u64 shared;                // address of the block's dynamic shared memory
    u64 local_top, local_end;  // free local memory
    u32 barrier_site;          // site of the barrier at which the thread waits
    u32 barrier_tile;          // bits of the threads in the warp that must also arrive; 0 for the whole block
    u32 state;
    u32 slot;                  // index among the threads of all concurrent blocks
    void* stack_pointer;
    u32* hits;                 // executions of each basic block, or null
};
// Counts an execution of a basic block (translator.py).
#define HIT(block) (++t->hits[block])
typedef void (*KernelFunction)(Thread* t, const u8* params);
struct Kernel {
    const char* name;
    KernelFunction function;
    int param_bytes;
    int waits;  // 1 if the kernel has barriers
    int spins;  // 1 if the kernel polls values that other threads write
};
// An array in global memory with initial values. The host sets its address.
struct Table {
    u64* address;
    const u8* values;
    u64 size;
};
enum Space { GENERIC, GLOBAL, LOCAL, SHARED };
// In the order of KINDS in executor.py.
enum Kind { OUT_OF_BOUNDS, MISALIGNED, UNWRITTEN, RACE, BLOCK_RACE, DIVERGENT_BARRIER, DIVIDE_BY_ZERO, OUTSIDE_OF_RANGE,
            HANG, UNWRITTEN_LOCAL, ZEROS };

extern "C" {
void ptx_barrier(Thread* t, u32 site);
void ptx_tile_barrier(Thread* t, u32 tile, u32 site);
// Checks an access. Returns false if the caller must skip the access.
bool ptx_check_load(Thread* t, u64 at, u32 size, u32 space, u32 site);
bool ptx_check_store(Thread* t, u64 at, u32 size, u32 space, u32 site);
bool ptx_check_atomic(Thread* t, u64 at, u32 size, u32 site);
// Checks a read of a value that other threads may write atomically at the same time. Lets the other threads run first.
bool ptx_check_polled_load(Thread* t, u64 at, u32 size, u32 site);
// Checks an atomic write of a value that other threads may read or write at the same time.
bool ptx_check_polled_store(Thread* t, u64 at, u32 size, u32 site);
// Notes behavior that PTX does not define, or that differs from C++.
void ptx_note(Thread* t, u32 kind, u32 site);
u64 ptx_take_local(Thread* t, u32 size, u32 align);
void ptx_give_local(Thread* t, u64 top, u64 from, u32 size);
}

template <int size, int alignment> struct Bytes {
    alignas(alignment) u8 b[size];
};
template <class T, int n> struct Vector {
    T x[n];
};

template <class T> INLINE T read(const u8* at) {
    T out;
    std::memcpy(&out, at, sizeof out);
    return out;
}
template <class T> INLINE void write(u8* at, T value) { std::memcpy(at, &value, sizeof value); }

template <class T> struct Floating { static const bool value = false; };
template <> struct Floating<f32> { static const bool value = true; };
template <> struct Floating<f64> { static const bool value = true; };
template <class To, class From, bool bits> struct As {
    INLINE To of(From x) { return (To)x; }
};
template <class To, class From> struct As<To, From, true> {
    INLINE To of(From x) {
        static_assert(sizeof(To) == sizeof(From), "bits of another size");
        return read<To>((const u8*)&x);
    }
};
// Converts a register to another type with the same bits. Truncates or extends integers.
template <class To, class From> INLINE To as(From x) {
    return As<To, From, Floating<To>::value != Floating<From>::value>::of(x);
}
INLINE f64 f64_of(u64 bits) { return as<f64>(bits); }
INLINE f32 f32_of(u32 bits) { return as<f32>(bits); }
template <class T, class H> INLINE T pack(H low, H high) { return (T)((T)low | (T)high << (8 * sizeof(H))); }

template <class T, int space> ACCESS T load(Thread* t, u64 at, u32 site) {
    T out;
    if (ptx_check_load(t, at, sizeof(T), space, site)) std::memcpy(&out, (const void*)at, sizeof out);
    else std::memset(&out, 0xff, sizeof out);
    return out;
}
template <class T, int space> ACCESS void store(Thread* t, u64 at, T value, u32 site) {
    if (ptx_check_store(t, at, sizeof(T), space, site)) write<T>((u8*)at, value);
}
// Threads only switch at barriers and before polling loads, so atomic operations need no protection.
template <class T, class F> ACCESS T atomic(Thread* t, u64 at, u32 site, F change) {
    if (!ptx_check_atomic(t, at, sizeof(T), site)) return (T)-1;
    const T old = read<T>((const u8*)at);
    write<T>((u8*)at, change(old));
    return old;
}
#define ATOMIC(name, expression)                                                      \
    template <class T> INLINE T atomic_##name(Thread* t, u64 at, T value, u32 site) { \
        return atomic<T>(t, at, site, [value](T old) { return (T)(expression); });    \
    }
ATOMIC(add, old + value)
ATOMIC(min, old < value ? old : value)
ATOMIC(max, old > value ? old : value)
ATOMIC(or, old | value)
ATOMIC(and, old & value)
ATOMIC(xor, old ^ value)
ATOMIC(exch, value)

// Accesses to values that other threads may read or write at the same time.
template <class T> ACCESS T polled_load(Thread* t, u64 at, u32 site) {
    return ptx_check_polled_load(t, at, sizeof(T), site) ? read<T>((const u8*)at) : (T)-1;
}
template <class T> ACCESS void polled_store(Thread* t, u64 at, T value, u32 site) {
    if (ptx_check_polled_store(t, at, sizeof(T), site)) write<T>((u8*)at, value);
}

// A local array.
struct Local {
    Thread* t;
    u64 top, address;
    u32 size;
    Local(Thread* thread, u32 bytes, u32 align)
        : t(thread), top(t->local_top), address(ptx_take_local(t, bytes, align)), size(bytes) {}
    ~Local() { ptx_give_local(t, top, address, size); }
};

template <class T> INLINE bool is_number(T a, T b) { return a == a && b == b; }
template <class T> INLINE T abs_(T x) { return x < 0 ? (T)(0 - (u64)x) : x; }
INLINE f64 abs_(f64 x) { return __builtin_fabs(x); }
INLINE f32 abs_(f32 x) { return __builtin_fabsf(x); }
INLINE f64 sqrt_(f64 x) { return __builtin_sqrt(x); }
INLINE f32 sqrt_(f32 x) { return __builtin_sqrtf(x); }
// PTX's min and max ignore a NaN. For two zeros of different sign, the function returns the positive zero. PTX does not
// define the result, so the executor reports a note.
template <class T> ACCESS T max_number(Thread* t, T a, T b, u32 site) {
    if (a != a) return b;
    if (b != b) return a;
    if (a != b) return a > b ? a : b;
    if (__builtin_signbit(a) != __builtin_signbit(b)) ptx_note(t, ZEROS, site);
    return __builtin_signbit(a) ? b : a;
}
template <class T> INLINE T min_number(Thread* t, T a, T b, u32 site) {
    return -max_number<T>(t, -a, -b, site);
}

template <class T> INLINE T integer_div(Thread* t, T a, T b, u32 site) {
    if (b == 0) {
        ptx_note(t, DIVIDE_BY_ZERO, site);
        return (T)-1;
    }
    return b == (T)-1 && T(-1) < T(0) ? (T)(0 - (u64)a) : (T)(a / b);
}
template <class T> INLINE T integer_rem(Thread* t, T a, T b, u32 site) {
    if (b == 0) {
        ptx_note(t, DIVIDE_BY_ZERO, site);
        return a;
    }
    return b == (T)-1 && T(-1) < T(0) ? (T)0 : (T)(a % b);
}
template <class T> INLINE T shift_left(T x, u32 by) { return by >= 8 * sizeof(T) ? (T)0 : (T)((u64)x << by); }
template <class T> INLINE T shift_right(T x, u32 by) {
    return by >= 8 * sizeof(T) ? (T)(x < (T)0 ? -1 : 0) : (T)(x >> by);
}
INLINE u32 funnel_l(u32 low, u32 high, u32 by) { return (u32)((((u64)high << 32 | low) << (by & 31)) >> 32); }
INLINE u32 funnel_r(u32 low, u32 high, u32 by) { return (u32)(((u64)high << 32 | low) >> (by & 31)); }
INLINE u32 insert_bits(u32 bits, u32 into, u32 at, u32 size) {
    at &= 255;
    size &= 255;
    if (at > 31 || size == 0) return into;
    const u32 mask = (size > 31 ? 0xffffffffu : (1u << size) - 1) << at;
    return (into & ~mask) | (bits << at & mask);
}
INLINE u64 product_high(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
INLINE s64 product_high(s64 a, s64 b) { return (s64)((__int128)a * b >> 64); }
// Extracts ``size`` bits, starting at bit ``at``. For signed types, fills the other bits with the last extracted bit,
// or with the sign of the number if the range is too long.
template <class T> INLINE T extract_bits(T x, u32 at, u32 size) {
    const bool is_signed = T(-1) < T(0);
    const u32 width = 8 * sizeof(T);
    at &= 255;
    size &= 255;
    const u32 last = at + size - 1 < width - 1 ? at + size - 1 : width - 1;
    const bool ones = is_signed && size && (x >> last & 1);
    u64 found = 0;
    for (u32 k = 0; k < width; ++k) {
        const bool bit = k < size && at + k < width ? (x >> (at + k) & 1) : ones;
        found |= (u64)bit << k;
    }
    return (T)found;
}
// Selects bytes of two words by four digits, whose highest bit selects only the byte's sign.
INLINE u32 choose_bytes(u32 low, u32 high, u32 choice) {
    const u64 both = (u64)high << 32 | low;
    u32 found = 0;
    for (u32 k = 0; k < 4; ++k) {
        const u32 digit = choice >> 4 * k & 15, byte = (u32)(both >> 8 * (digit & 7)) & 255;
        found |= (digit & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * k;
    }
    return found;
}
// Rounds towards zero and clamps to the limits. NaN: 0 from f32, the lowest number from f64.
template <class T, class F> ACCESS T to_integer(Thread* t, F x, u32 site) {
    const bool is_signed = T(-1) < T(0);
    const int width = 8 * sizeof(T);
    const F top = (F)__builtin_ldexp(1.0, width - (is_signed ? 1 : 0));
    const F bottom = is_signed ? -top : (F)0;
    const T lowest = is_signed ? (T)((u64)1 << (width - 1)) : (T)0;
    if (x == x && x < top && x > bottom - 1) return (T)x;
    ptx_note(t, OUTSIDE_OF_RANGE, site);
    if (x != x) return sizeof(F) == 4 && width < 64 ? (T)0 : (T)((u64)1 << (width - 1));
    return x > 0 ? (T)~lowest : lowest;
}
