// Loop of steps in one call of the native backend, with commands before each step and recorded signals.
// gpusim/backends/native/step_loop.py has the same structures. All structures contain only pointers and 8-byte numbers.
#include "math/platform.cuh"

typedef void StepKernel(const void* arguments, double h, int steps, int threads);
typedef void ObserveKernel(const void* arguments, const int* entries, double* out, int count, int width);
typedef void CastKernel(const void* arguments, const int* entries, double* out, int count, int width, int threads);
typedef int DueFunction(
    const double* time, const double* par, int par_stride, const double* numbers, int count, double shortest, int worlds
);
typedef void SampleKernel(
    const double* time, const int* health, const double* in, int width, const double* par, int par_stride, double* numbers,
    int count, double* control, int controls, double shortest, int worlds, int threads
);

// Copy of a column of a state array to a column of a reading.
struct Copy {
    const double* from;
    long long stride, column;
};
// Signals of all worlds as columns of one array, (worlds, width).
struct Reading {
    ObserveKernel* observe;
    CastKernel* cast;
    const int *entries, *rays;
    double* out;
    const Copy* copies;
    long long entry_count, ray_count, copy_count, width;
};
struct Program {
    Reading inputs;
    DueFunction* due;
    SampleKernel* sample;
    const double* parameters;
    double* numbers;
    double period;
    long long stride, count, delays;
};
struct Loop {
    const void* arguments;
    StepKernel* step;
    const double* time;
    const int* health;
    double* control;
    const double* held;  // (worlds, 2 * controls): 1 for overridden commands, and the values of overrides
    const Program* programs;
    const double* commands;  // (steps, command_worlds, command_count)
    const int* command_columns;
    Reading record;
    double h;
    long long worlds, controls, threads, program_count, command_count, command_worlds, every;
};

static void read(const Loop& l, const Reading& r, double* out) {
    if (r.entry_count) r.observe(l.arguments, r.entries, out, int(r.entry_count), int(r.width));
    if (r.ray_count) r.cast(l.arguments, r.rays, out, int(r.ray_count), int(r.width), int(l.threads));
    for (long long k = 0; k < r.copy_count; ++k) {
        const Copy& c = r.copies[k];
        for (long long w = 0; w < l.worlds; ++w) out[w * r.width + c.column] = c.from[w * c.stride];
    }
}
static void write_commands(const Loop& l, long long step) {
    const double* row = l.commands + step * l.command_worlds * l.command_count;
    for (long long w = 0; w < l.worlds; ++w)
        for (long long k = 0; k < l.command_count; ++k)
            l.control[w * l.controls + l.command_columns[k]] = row[(l.command_worlds > 1 ? w * l.command_count : 0) + k];
}
static bool any_override(const Loop& l) {
    for (long long w = 0; w < l.worlds; ++w)
        for (long long k = 0; k < l.controls; ++k)
            if (l.held[2 * w * l.controls + k] != 0.0) return true;
    return false;
}
static void apply_overrides(const Loop& l) {
    for (long long w = 0; w < l.worlds; ++w)
        for (long long k = 0; k < l.controls; ++k) {
            const double* override_flag = l.held + 2 * w * l.controls + k;
            if (*override_flag != 0.0) l.control[w * l.controls + k] = override_flag[l.controls];
        }
}
static void sample(const Loop& l, const Program& p) {
    const int stride = int(p.stride), count = int(p.count), worlds = int(l.worlds);
    if (!p.due(l.time, p.parameters, stride, p.numbers, count, p.period, worlds)) return;
    read(l, p.inputs, p.inputs.out);
    p.sample(
        l.time, l.health, p.inputs.out, int(p.inputs.width), p.parameters, stride, p.numbers, count, l.control,
        int(l.controls), p.period, worlds, int(l.threads)
    );
}
// Run ``n`` steps. ``first`` is the index of the first step.
GPUSIM_KERNEL void run_loop(const Loop* loop, long long first, long long n) {
    const Loop& l = *loop;
    const bool overridden = any_override(l), each = l.program_count || l.command_count;
    for (long long t = first, end = first + n; t < end;) {
        if (l.command_count) write_commands(l, t);
        if (overridden) apply_overrides(l);
        for (long long k = 0; k < l.program_count; ++k) {
            if (overridden && l.programs[k].delays) apply_overrides(l);  // the program delays the overridden values
            sample(l, l.programs[k]);
        }
        if (overridden && l.program_count) apply_overrides(l);
        long long count = each ? 1 : end - t;
        if (l.every && count > l.every - t % l.every) count = l.every - t % l.every;
        l.step(l.arguments, l.h, int(count), int(l.threads));
        t += count;
        if (l.every && t % l.every == 0) read(l, l.record, l.record.out + (t / l.every - 1) * l.worlds * l.record.width);
    }
}
