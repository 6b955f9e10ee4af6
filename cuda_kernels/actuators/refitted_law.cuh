// Laws that are nonlinear in the row velocity (gpusim/actuators/refitted_law.py). ``kick`` of a law computes the
// impulse p and -dp/du at the row velocity ``rate`` after the kick.
#pragma once
#include "../actuate.cuh"

// Last guess of the velocity, impulse of the law at this guess, and last change of the guess.
struct LawGuess {
    double &rate, &impulse, &move;
};
// Use the tangent of the law at u-.
template <class Law>
GPUSIM_FN void begin_law(const World& w, const Law& law, int axis, const LawGuess& last, ActuatorTerm& own) {
    last.rate = w.rate()[axis];
    last.move = 0.0;
    law.kick(w, axis, last.rate, &last.impulse, &own.slope);
    own.impulse = last.impulse + own.slope * last.rate;
}
// Linearize the law at the velocity that solves the row alone. If the guesses oscillate, use the line through the last
// two guesses.
template <class Law>
GPUSIM_FN void refit_law(const World& w, const Law& law, int axis, const LawGuess& last, ActuatorTerm& own) {
    const double guess = w.rate_next()[axis], given = own.impulse - own.slope * guess, alone = w.response()[axis];
    // Other forces on the row reduce the response of the row.
    const double others = max_(double(w.law_slope()[axis]) - own.slope, 0.0), response = alone / (1.0 + alone * others);
    double rate = guess, impulse, slope;
    law.kick(w, axis, rate, &impulse, &slope);
    const double here = impulse, before = last.impulse, move = guess - last.rate, way = response * (impulse - given);
    const double least = max_(LAW_SWINGING * abs_(last.move), LAW_MIN_SHARE * abs_(guess));
    const bool swings = move * last.move < 0.0 && abs_(move) > least;
    last.rate = guess;
    last.impulse = here;
    last.move = move;
    if (swings) {
        own.slope = (before - here) / move;
        own.impulse = here + own.slope * guess;
        return;
    }
    const double enough = LAW_SETTLED * abs_(way) + LAW_ROUNDING * (abs_(guess) + response * abs_(impulse));
    double low = guess + min_(way, 0.0), high = guess + max_(way, 0.0);
    for (int round = 0; round < LAW_ROUNDS; ++round) {
        const double error = rate - guess - response * (impulse - given);
        if (!(abs_(error) > enough)) break;
        (error > 0.0 ? high : low) = rate;
        rate -= error / (1.0 + response * slope);
        if (!(rate > low && rate < high)) rate = 0.5 * (low + high);
        law.kick(w, axis, rate, &impulse, &slope);
    }
    if (abs_(slope - own.slope) > LAW_KEPT * (slope + others)) own.slope = slope;
    own.impulse = impulse + own.slope * rate;
}
