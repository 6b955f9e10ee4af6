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
GPUSIM_FN void begin_law(const World& w, const Law& law, int axis, const LawGuess& last, ActuatorTerm& term) {
    last.rate = w.rate()[axis];
    last.move = 0.0;
    law.kick(w, axis, last.rate, &last.impulse, &term.slope);
    term.impulse = last.impulse + term.slope * last.rate;
}
// Linearize the law at the velocity that solves the row alone. If the guesses oscillate, use the line through the last
// two guesses.
template <class Law>
GPUSIM_FN void refit_law(const World& w, const Law& law, int axis, const LawGuess& last, ActuatorTerm& term) {
    const double guess = w.rate_next()[axis], law_impulse = term.impulse - term.slope * guess, alone = w.response()[axis];
    // Other forces on the row reduce the response of the row.
    const double others = max_(double(w.law_slope()[axis]) - term.slope, 0.0), response = alone / (1.0 + alone * others);
    double rate = guess, impulse, slope;
    law.kick(w, axis, rate, &impulse, &slope);
    const double impulse_now = impulse, impulse_before = last.impulse, move = guess - last.rate, change = response * (impulse - law_impulse);
    const double min_move = max_(LAW_SWINGING * abs_(last.move), LAW_MIN_SHARE * abs_(guess));
    const bool oscillates = move * last.move < 0.0 && abs_(move) > min_move;
    last.rate = guess;
    last.impulse = impulse_now;
    last.move = move;
    if (oscillates) {
        term.slope = (impulse_before - impulse_now) / move;
        term.impulse = impulse_now + term.slope * guess;
        return;
    }
    const double tolerance = LAW_SETTLED * abs_(change) + LAW_ROUNDING * (abs_(guess) + response * abs_(impulse));
    double low = guess + min_(change, 0.0), high = guess + max_(change, 0.0);
    for (int round = 0; round < LAW_ROUNDS; ++round) {
        const double error = rate - guess - response * (impulse - law_impulse);
        if (!(abs_(error) > tolerance)) break;
        (error > 0.0 ? high : low) = rate;
        rate -= error / (1.0 + response * slope);
        if (!(rate > low && rate < high)) rate = 0.5 * (low + high);
        law.kick(w, axis, rate, &impulse, &slope);
    }
    if (abs_(slope - term.slope) > LAW_KEPT * (slope + others)) term.slope = slope;
    term.impulse = impulse + term.slope * rate;
}
