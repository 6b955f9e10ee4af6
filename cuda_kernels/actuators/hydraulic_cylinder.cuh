// Hydraulic cylinder with spool valve, brake and end stops (equations:
// gpusim/actuators/hydraulic/hydraulic_cylinder.py, hydraulics.py).
#pragma once
#include "hydraulics.cuh"

// Sum G and G * (outer pressure) over the edges of chamber n. G is flow / pressure drop at ``guess``.
GPUSIM_FN void chamber_edges(const World& w, int k, int n, double guess, double* total, double* inflow) {
    const double supply = w.cylinder_supply_pressure(k), tank = w.cylinder_tank_pressure(k);
    const double transition = w.cylinder_transition_pressure(k), check = w.cylinder_anticavitation_gain(k);
    const bool linear = w.cylinder_linear_orifice(k) > 0.5;
    const double opened = n == 0 ? w.cylinder_supply_a(k) : w.cylinder_supply_b(k), drained = n == 0 ? w.cylinder_drain_a(k) : w.cylinder_drain_b(k);
    const double from_supply = edge_conductance(opened, supply - guess, transition, linear);
    const double to_tank = edge_conductance(drained, tank - guess, transition, linear);
    *total = from_supply + to_tank;
    *inflow = from_supply * supply + to_tank * tank;
    // A check valve only lets oil into the chamber.
    if (check > 0.0 && tank - guess > 0.0) {
        const double valve = edge_conductance(check, tank - guess, transition, linear);
        *total += valve;
        *inflow += valve * tank;
    }
}
// Chamber n at the start of a step of length h.
struct Chamber {
    int n;
    double pressure, void_volume, compliance, area, h;
};
// Compute a and b of the pressure p+ = a - b v after the step, linearized at a guessed pressure.
GPUSIM_FN void chamber_line(const World& w, int k, const Chamber& c, double guess, double* a, double* b) {
    double total, inflow;
    chamber_edges(w, k, c.n, guess, &total, &inflow);
    chamber(c.pressure, c.compliance, c.area, total, inflow - c.void_volume / c.h, c.h, a, b);
}
// Return the flow into the void, m3/s, at a pressure and a velocity (gpusim/actuators/hydraulic/cavitation.py).
GPUSIM_FN double chamber_balance(const World& w, int k, const Chamber& c, double p, double velocity) {
    double total, inflow;
    chamber_edges(w, k, c.n, p, &total, &inflow);
    return (c.compliance * (p - c.pressure) + c.void_volume) / c.h - (inflow - total * p) + c.area * velocity;
}
// Refine the guess of the pressure at a velocity, and linearize at the new guess. ``guess`` and ``speed`` are from the
// previous pass. As long as a void is open, the pressure is the vapor pressure.
GPUSIM_FN void refit_chamber(const World& w, int k, const Chamber& c, double guess, double speed, double velocity, double* p, double* a, double* b) {
    const double vapor = w.cylinder_vapor_pressure(k), change = velocity - speed;
    const bool near_vapor = c.void_volume != 0.0 || guess == vapor || (*p < vapor && guess < vapor);
    const bool has_void = near_vapor && chamber_balance(w, k, c, vapor, velocity) > 0.0;
    if (near_vapor) *p = has_void ? vapor : max_(*p, vapor);
    chamber_line(w, k, c, *p, a, b);
    if (!has_void) return;
    const bool crossed_vapor = guess > vapor && guess < 1.0 / 0.0 && change * c.area > 0.0;
    *b = crossed_vapor ? (guess - vapor) / change : 0.0;
    *a = vapor + *b * velocity;
}
// Compute the pressure after the step at a velocity. Near the vapor pressure, use bisection. Return the volume of the
// void.
GPUSIM_SHARED double solve_chamber(const World& w, int k, const Chamber& c, double guess, double velocity, double* p) {
    const double vapor = w.cylinder_vapor_pressure(k);
    if (!(c.void_volume != 0.0 || *p < vapor || guess == vapor)) return 0.0;
    const double void_flow = chamber_balance(w, k, c, vapor, velocity);
    // Upper bound: the pressure of a closed chamber, or the maximum pressure outside an edge.
    const double closed = c.pressure - (c.h * c.area * velocity + c.void_volume) / c.compliance;
    double below = vapor, above = max_(max_(closed, max_(w.cylinder_supply_pressure(k), w.cylinder_tank_pressure(k))), vapor);
    for (int n = 0; n < OIL_HALVINGS && above - below > OIL_PRECISION * above; ++n) {
        const double middle = 0.5 * (below + above);
        if (chamber_balance(w, k, c, middle, velocity) > 0.0) above = middle;
        else below = middle;
    }
    *p = void_flow > 0.0 ? vapor : 0.5 * (below + above);
    return void_flow > 0.0 ? c.h * void_flow : 0.0;
}
GPUSIM_FN Chamber cylinder_chamber(const World& w, int k, int n) {
    Chamber c = {n, w.cylinder_pressure_a(k), w.cylinder_void_a(k), w.cylinder_compliance_a(k), w.cylinder_area_a(k), w.h};
    if (n == 1) c = {n, w.cylinder_pressure_b(k), w.cylinder_void_b(k), w.cylinder_compliance_b(k), -w.cylinder_area_b(k), w.h};
    return c;
}
// Compute volume/bulk modulus of both chambers and their hoses at the stroke x.
GPUSIM_FN void cylinder_compliances(const World& w, int k, double x, double* out) {
    const double bulk = w.cylinder_bulk_modulus(k), hose = w.cylinder_hose_bulk_modulus(k);
    out[0] = (w.cylinder_volume_a(k) + w.cylinder_area_a(k) * x) / bulk + w.cylinder_hose_volume_a(k) / hose;
    out[1] = (w.cylinder_volume_b(k) - w.cylinder_area_b(k) * x) / bulk + w.cylinder_hose_volume_b(k) / hose;
}
// Compute the law P - D u at refined guesses of the pressures. At the start of a step, the previous guesses are
// infinite.
GPUSIM_FN void cylinder_law(const World& w, int k, double* p, bool is_refit, double velocity, ActuatorTerm& term) {
    const int axis = w.cylinder_axis()[k];
    const double guess[2] = {is_refit ? w.cylinder_guess_a(k) : 1.0 / 0.0, is_refit ? w.cylinder_guess_b(k) : 1.0 / 0.0};
    const double speed = is_refit ? w.cylinder_guess_speed(k) : velocity;
    double a[2], b[2];
    for (int n = 0; n < 2; ++n) refit_chamber(w, k, cylinder_chamber(w, k, n), guess[n], speed, velocity, p + n, a + n, b + n);
    w.cylinder_guess_a(k) = p[0];
    w.cylinder_guess_b(k) = p[1];
    w.cylinder_guess_speed(k) = velocity;
    w.cylinder_line_a(k) = a[0];
    w.cylinder_line_b(k) = a[1];
    w.cylinder_slope_a(k) = b[0];
    w.cylinder_slope_b(k) = b[1];
    const double kick = kick_time(w), mass = w.cylinder_piston_mass(k), area_a = w.cylinder_area_a(k), area_b = w.cylinder_area_b(k);
    const bool papers = w.cylinder_papers_coupling(k) > 0.5;
    const double constant = area_a * a[0] - area_b * a[1];
    const double slope = area_a * b[0] - area_b * b[1] + w.cylinder_viscous_friction(k);
    term.impulse = (papers ? mass * w.cylinder_free_velocity(k) : kick * constant + mass * w.rate()[axis]) + w.cylinder_cushion_impulse(k);
    term.slope = (papers ? mass : kick * slope + mass) + w.cylinder_cushion_slope(k);
}
GPUSIM_FN void cylinder_cushions(const World& w, int k, double x) {
    double impulse = 0.0, slope = 0.0;
    stroke_cushions(w, w.cylinder_axis()[k], x, w.cylinder_stroke_min(k), w.cylinder_stroke_max(k), w.cylinder_cushion_stiffness(k),
                    w.cylinder_cushion_damping(k), w.cylinder_cushion_length(k), &impulse, &slope);
    w.cylinder_cushion_impulse(k) = impulse;
    w.cylinder_cushion_slope(k) = slope;
}
// With ``papers_coupling``, integrate the piston separately in substeps of 0.1 ms (paper 2023, eq. 6 to 9).
GPUSIM_FN void cylinder_free_piston(const World& w, int k, double x) {
    int count = int(w.h / PAPERS_SUBSTEP - 1e-9) + 1;
    if (count < 1) count = 1;
    const double h = w.h / count, mass = w.cylinder_piston_mass(k), area_a = w.cylinder_area_a(k), area_b = w.cylinder_area_b(k);
    double velocity = w.rate()[w.cylinder_axis()[k]], position = x;
    Chamber c[2] = {cylinder_chamber(w, k, 0), cylinder_chamber(w, k, 1)};
    double compliance[2], guess[2], a[2], b[2];
    for (int n = 0; n < count; ++n) {
        cylinder_compliances(w, k, position, compliance);
        for (int side = 0; side < 2; ++side) {
            c[side].compliance = compliance[side];
            c[side].h = h;
            guess[side] = c[side].pressure;
            refit_chamber(w, k, c[side], 1.0 / 0.0, velocity, velocity, guess + side, a + side, b + side);
        }
        const double force = area_a * a[0] - area_b * a[1];
        const double drag = area_a * b[0] - area_b * b[1] + w.cylinder_viscous_friction(k);
        velocity = (mass * velocity + h * force) / (mass + h * drag);
        const double new_position = clamped(position + h * velocity, w.cylinder_stroke_min(k), w.cylinder_stroke_max(k));
        velocity = (new_position - position) / h;
        position = new_position;
        for (int side = 0; side < 2; ++side) {
            double p = a[side] - b[side] * velocity;
            c[side].void_volume = solve_chamber(w, k, c[side], guess[side], velocity, &p);
            c[side].pressure = p;
        }
    }
    w.cylinder_free_velocity(k) = velocity;
    w.cylinder_free_pressure_a(k) = c[0].pressure;
    w.cylinder_free_pressure_b(k) = c[1].pressure;
    w.cylinder_free_void_a(k) = c[0].void_volume;
    w.cylinder_free_void_b(k) = c[1].void_volume;
}
GPUSIM_FN double cylinder_stroke(const World& w, int k) {
    return double(w.axis_position()[w.cylinder_axis()[k]]) - w.cylinder_length_offset(k);
}
// Compute the law at the start of a step, and move the valve.
GPUSIM_FN void cylinder_evaluate(const World& w, int k, ActuatorTerm& term) {
    double spool = w.cylinder_spool(k), rate = w.cylinder_spool_rate(k), mean;
    const double target = w.cylinder_valve_gain(k) * double(real(w.cylinder_command_now(k)));
    if (w.cylinder_valve_order(k) < 1.5) {
        first_order_valve(target, w.cylinder_valve_time_constant(k), w.h, &spool, &mean);
        rate = 0.0;
    } else {
        second_order_valve(target, w.cylinder_valve_frequency(k), w.cylinder_valve_damping(k), w.h, &spool, &rate, &mean);
    }
    w.cylinder_next_spool(k) = spool;
    w.cylinder_next_rate(k) = rate;
    const double open = clamped(mean, -1.0, 1.0), gain = w.cylinder_flow_gain(k);
    w.cylinder_supply_a(k) = supply_opening(open, w.cylinder_overlap_supply(k)) * gain;
    w.cylinder_supply_b(k) = supply_opening(-open, w.cylinder_overlap_supply(k)) * gain;
    w.cylinder_drain_a(k) = drain_opening(-open, w.cylinder_overlap_drain(k)) * gain;
    w.cylinder_drain_b(k) = drain_opening(open, w.cylinder_overlap_drain(k)) * gain;
    const double x = cylinder_stroke(w, k), oil = is_nan(w.cylinder_oil_stroke(k)) ? x : double(w.cylinder_oil_stroke(k));
    double compliance[2];
    const double speed = w.rate()[w.cylinder_axis()[k]];
    cylinder_compliances(w, k, middle_stroke(oil, speed, w.cylinder_stroke_min(k), w.cylinder_stroke_max(k), w.h), compliance);
    w.cylinder_oil(k) = oil;
    w.cylinder_compliance_a(k) = compliance[0];
    w.cylinder_compliance_b(k) = compliance[1];
    const double brake = clamped(mean_command(w, w.cylinder_brake_before(k), w.cylinder_brake_now(k)), 0.0, 1.0);
    term.friction = double(kick_time(w)) * (w.cylinder_dry_friction(k) + brake * w.cylinder_brake_force(k));
    term.lower = w.cylinder_stroke_min(k) + w.cylinder_length_offset(k);
    term.upper = w.cylinder_stroke_max(k) + w.cylinder_length_offset(k);
    cylinder_cushions(w, k, x);
    if (w.cylinder_papers_coupling(k) > 0.5) cylinder_free_piston(w, k, x);
    double p[2] = {w.cylinder_pressure_a(k), w.cylinder_pressure_b(k)};
    cylinder_law(w, k, p, false, w.rate()[w.cylinder_axis()[k]], term);
}
// Linearize the law again at the newest velocity.
GPUSIM_FN void cylinder_relinearize(const World& w, int k, ActuatorTerm& term) {
    const double velocity = w.rate_next()[w.cylinder_axis()[k]];
    double p[2] = {w.cylinder_line_a(k) - w.cylinder_slope_a(k) * velocity, w.cylinder_line_b(k) - w.cylinder_slope_b(k) * velocity};
    cylinder_law(w, k, p, true, velocity, term);
}
// Update the pressures with the solved velocity. The oil volumes slowly approach the volumes that follow from the
// geometry.
GPUSIM_FN void cylinder_advance(const World& w, int k) {
    const double oil = w.cylinder_oil(k), speed = w.rate_next()[w.cylinder_axis()[k]];
    const double velocity = speed + VOLUME_SYNC * (cylinder_stroke(w, k) - oil) / w.h;
    const bool papers = w.cylinder_papers_coupling(k) > 0.5;
    double p_a = w.cylinder_line_a(k) - w.cylinder_slope_a(k) * velocity, p_b = w.cylinder_line_b(k) - w.cylinder_slope_b(k) * velocity;
    const double void_a = solve_chamber(w, k, cylinder_chamber(w, k, 0), w.cylinder_guess_a(k), velocity, &p_a);
    const double void_b = solve_chamber(w, k, cylinder_chamber(w, k, 1), w.cylinder_guess_b(k), velocity, &p_b);
    w.cylinder_pressure_a(k) = stored(papers ? w.cylinder_free_pressure_a(k) : p_a);
    w.cylinder_pressure_b(k) = stored(papers ? w.cylinder_free_pressure_b(k) : p_b);
    w.cylinder_void_a(k) = stored(papers ? w.cylinder_free_void_a(k) : void_a);
    w.cylinder_void_b(k) = stored(papers ? w.cylinder_free_void_b(k) : void_b);
    watch_void(w, w.cylinder_void_a(k), FIRST_VOID_A + k);
    watch_void(w, w.cylinder_void_b(k), FIRST_VOID_B + k);
    w.cylinder_spool(k) = stored(w.cylinder_next_spool(k));
    w.cylinder_spool_rate(k) = stored(w.cylinder_next_rate(k));
    w.cylinder_oil_stroke(k) = stored(oil + w.h * velocity);
}
