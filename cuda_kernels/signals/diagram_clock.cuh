// Sample times of a program, and its readings at these times. gpusim/description/program_clock.py computes the same
// bits. gpusim generates the constants (COUNT ..., EARLY, DRIFT, READINGS, INPUTS, RINGS) with the program.
#pragma once

GPUSIM_FN double sample_time(const double* s, double period) { return s[ORIGIN] + (s[COUNT] - s[BASE]) * period; }
GPUSIM_FN bool is_due(const double* s, double time, double period) {
    return time >= s[ORIGIN] + (s[COUNT] - s[BASE] - EARLY) * period;
}
// Resample a ring buffer in place. If the period becomes longer, start at the newest entry. If the period becomes
// shorter, start at the oldest entry.
GPUSIM_FN void resample_ring(double* s, int cursor_index, int first, int capacity, double ratio) {
    const int at = int(s[cursor_index]);
    for (int k = 1; k <= capacity; ++k) {
        const int ago = ratio > 1.0 ? k : capacity + 1 - k;
        const double near = det::round_even(ago * ratio);
        const int before = int(near < 1.0 ? 1.0 : (near > double(capacity) ? double(capacity) : near));
        s[first + (at - ago + 2 * capacity) % capacity] = s[first + (at - before + 2 * capacity) % capacity];
    }
}
GPUSIM_FN void take_period(double* s, double period) {
    const double next_time = sample_time(s, s[PERIOD]), ratio = period / s[PERIOD];
    for (int k = 0; k < RING_COUNT; ++k) resample_ring(s, RINGS[3 * k], RINGS[3 * k + 1], RINGS[3 * k + 2], ratio);
    s[ORIGIN] = next_time;
    s[BASE] = s[COUNT];
    s[PERIOD] = period;
}
GPUSIM_FN double reading_fraction(const double* s, double time, double period) {
    const double at = sample_time(s, period), read = s[READ];
    if (!(s[COUNT] > 0.0 && read < time && time - at > EARLY * period)) return 1.0;
    const double fraction = (at - read) / (time - read);
    return max_(fraction, 0.0);
}
GPUSIM_FN void count_sample(double* s, double time, double period) {
    const double error = fabs(time - sample_time(s, period));
    if (error > 0.25 * EARLY * period && error < DRIFT * period) {
        s[ORIGIN] = time;
        s[BASE] = s[COUNT];
    }
    s[COUNT] += 1.0;
}
GPUSIM_FN void skip_samples(double* s, double time, double period) {
    const double due = whole_below((time - s[ORIGIN]) / period + EARLY) + 1.0 - (s[COUNT] - s[BASE]);
    s[BASE] -= max_(due - MAX_AT_ONCE, 0.0);
}
GPUSIM_FN void end_samples(double* s, double time, double period) {
    if (is_due(s, time, period)) s[BASE] = s[COUNT] - (whole_below((time - s[ORIGIN]) / period + EARLY) + 1.0);
    s[READ] = time;
    s[PERIOD] = period;
}
// Run all due samples.
GPUSIM_FN void take_samples(const double* in, const double* par, double* s, double* control, double time, double period) {
    if (s[COUNT] > 0.0 && s[PERIOD] != period) take_period(s, period);
    if (!is_due(s, time, period)) return;
    skip_samples(s, time, period);
    bool due = true;
    for (int k = 0; due && k < MAX_AT_ONCE; ++k) {
        const double fraction = reading_fraction(s, time, period);
        const double* readings = in;
        double interpolated[INPUTS + 1];
        if (fraction < 1.0) {
            for (int n = 0; n < INPUTS; ++n) interpolated[n] = s[READINGS + n] + fraction * (in[n] - s[READINGS + n]);
            readings = interpolated;
        }
        due = k + 1 < MAX_AT_ONCE && time >= s[ORIGIN] + (s[COUNT] + 1.0 - s[BASE] - EARLY) * period;
        sample(readings, par, s, control, !due);
        count_sample(s, time, period);
    }
    end_samples(s, time, period);
    for (int n = 0; n < INPUTS; ++n) s[READINGS + n] = in[n];
}
