// Program of a diagram (gpusim/control). gpusim generates diagram.cuh, which computes a sample. The first stored number
// counts samples, and the second is the index of the world.
#include "math/platform.cuh"
#include "math/detmath.cuh"

#if GPUSIM_GPU
#define GPUSIM_TABLE static __device__ const
#else
#define GPUSIM_TABLE static const
#endif
#define INFINITE det::detail::infinity()
#define NOT_A_NUMBER det::detail::double_nan()

GPUSIM_FN double max_or_nan(double a, double b) { return a > b || a != a ? a : b; }
GPUSIM_FN double min_or_nan(double a, double b) { return a < b || a != a ? a : b; }
// Return the greatest integer that is not above x. All processors give the same bits.
GPUSIM_FN double whole_below(double x) {
    const double near = det::round_even(x);
    return near > x ? near - 1.0 : near;
}
// Return the index of the interval of ascending values that contains x. The first and the last interval are unbounded.
GPUSIM_FN int interval_of(const double* table, int count, double x) {
    int low = 0, high = count - 1;  // table[low] <= x < table[high], or at the ends
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (x < table[middle]) high = middle;
        else low = middle;
    }
    return low;
}

// Return a normal random number that depends only on seed, world, sample and stream (gpusim/control/noise.py).
GPUSIM_FN unsigned long long mix_bits(unsigned long long z) {
    z += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
GPUSIM_SHARED double normal_number(double seed, double world, double sample, double stream) {
    unsigned long long h = mix_bits((unsigned long long)seed);
    h = mix_bits(h + (unsigned long long)world);
    h = mix_bits(h + (unsigned long long)sample);
    h = mix_bits(h + (unsigned long long)stream);
    const double unit = 1.0 / 9007199254740992.0;
    const double first = double((h >> 11) + 1) * unit, second = double(mix_bits(h) >> 11) * unit;
    return sqrt(-2.0 * det::log(first)) * det::cos((2.0 * det::PI) * second);
}

// Minimum number of worlds for which a CPU uses several threads.
#define MANY_WORLDS 64
#include "diagram.cuh"
#include "signals/diagram_clock.cuh"

// Run the program in all worlds with a due sample. Skip failed worlds.
GPUSIM_KERNEL void run_diagram(
    const double* time, const int* health, const double* in, int width, const double* par, int par_stride, double* numbers,
    int count, double* control, int controls, double shortest, int worlds, int threads
) {
#if GPUSIM_GPU
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
#else
    const int first = 0, stride = 1;
#if defined(_OPENMP)
#pragma omp parallel for num_threads(threads) if (threads > 1 && worlds >= MANY_WORLDS)
#endif
#endif
    for (int id = first; id < worlds; id += stride) {
        double* s = numbers + (long long)id * count;
        const double* parameters = par + (long long)id * par_stride;
        const double period = sample_period(parameters, shortest);
        if (!health[id]) take_samples(in + (long long)id * width, parameters, s, control + (long long)id * controls, time[id], period);
    }
}

#if !GPUSIM_GPU
// Return whether a sample is due in a world, or whether the period has changed.
GPUSIM_KERNEL int somewhere_due(
    const double* time, const double* par, int par_stride, const double* numbers, int count, double shortest, int worlds
) {
    for (int id = 0; id < worlds; ++id) {
        const double* s = numbers + (long long)id * count;
        const double period = sample_period(par + (long long)id * par_stride, shortest);
        if (is_due(s, time[id], period) || (s[COUNT] > 0.0 && s[PERIOD] != period)) return 1;
    }
    return 0;
}
#endif
