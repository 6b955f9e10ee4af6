// Profile of a fused step (gpusim/bench/routine_clock.py): clock cycles of each routine, including called routines, in
// every CLOCKED_WORLDS-th world.
#pragma once
#include "math/platform.cuh"
#if !GPUSIM_GPU
#include <chrono>
#endif

#define MAX_ROUTINES 96
#define CLOCKED_WORLDS 8

typedef unsigned long long Cycles;
extern "C" {
#if GPUSIM_GPU
__device__ Cycles routine_cycles[MAX_ROUTINES];
#else
Cycles routine_cycles[MAX_ROUTINES];
#endif
}
#if GPUSIM_GPU
GPUSIM_FN Cycles cycles_now() { return Cycles(clock64()); }
GPUSIM_FN void add_cycles(int routine, Cycles spent) { atomicAdd(routine_cycles + routine, spent); }
#else
// Measure nanoseconds, because some systems do not allow programs to read the cycle counter.
GPUSIM_FN Cycles cycles_now() { return Cycles(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1)); }
GPUSIM_FN void add_cycles(int routine, Cycles spent) { __atomic_fetch_add(routine_cycles + routine, spent, __ATOMIC_RELAXED); }
#endif
// Clock that runs until the end of the enclosing block.
struct RoutineClock {
    const int routine;
    const bool counts;
    const Cycles began;
    MEMBER RoutineClock(const World& w, int number)
        : routine(number), counts(w.tid == 0 && w.id % CLOCKED_WORLDS == 0), began(cycles_now()) {}
    MEMBER ~RoutineClock() {
        if (counts) add_cycles(routine, cycles_now() - began);
    }
};
