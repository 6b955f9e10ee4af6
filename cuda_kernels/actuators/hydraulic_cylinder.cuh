// Hydraulic cylinder with spool valve, brake and stroke stops: one implicit composite row
// (gpusim/actuators/hydraulic_cylinder.py; the papers' coupling: hydraulic_papers.py).
#pragma once
#include "hydraulics.cuh"

// Lines p+ = a - b v of both chambers over a step of h from chords at the guessed pressures.
GPUSIM_FN void cylinder_lines(const World& w, int k, const double* pressure, const double* guess, const double* compliance,
                              double h, double* a, double* b) {
    const double supply = w.cylinder_supply_pressure(k), tank = w.cylinder_tank_pressure(k);
    const double transition = w.cylinder_transition_pressure(k), check = w.cylinder_anticavitation_gain(k);
    const bool linear = w.cylinder_linear_orifice(k) > 0.5;
    const double opened[4] = {w.cylinder_supply_a(k), w.cylinder_supply_b(k), w.cylinder_drain_a(k), w.cylinder_drain_b(k)};
    const double area[2] = {w.cylinder_area_a(k), -w.cylinder_area_b(k)};
    for (int n = 0; n < 2; ++n) {
        const double from_supply = edge_conductance(opened[n], supply - guess[n], transition, linear);
        const double to_tank = edge_conductance(opened[2 + n], tank - guess[n], transition, linear);
        double total = from_supply + to_tank, inflow = from_supply * supply + to_tank * tank;
        // A check valve lets oil in only.
        if (check > 0.0 && tank - guess[n] > 0.0) {
            const double valve = edge_conductance(check, tank - guess[n], transition, linear);
            total += valve;
            inflow += valve * tank;
        }
        chamber(pressure[n], compliance[n], area[n], total, inflow, h, a + n, b + n);
    }
}
// V/beta of both chambers with hoses at the stroke x.
GPUSIM_FN void cylinder_compliances(const World& w, int k, double x, double* out) {
    const double bulk = w.cylinder_bulk_modulus(k), hose = w.cylinder_hose_bulk_modulus(k);
    out[0] = (w.cylinder_volume_a(k) + w.cylinder_area_a(k) * x) / bulk + w.cylinder_hose_volume_a(k) / hose;
    out[1] = (w.cylinder_volume_b(k) - w.cylinder_area_b(k) * x) / bulk + w.cylinder_hose_volume_b(k) / hose;
}
// The law P - D u with the present chords.
GPUSIM_FN void cylinder_law(const World& w, int k, ActuatorTerm& own) {
    const int axis = w.cylinder_axis()[k];
    const double pressure[2] = {w.cylinder_pressure_a(k), w.cylinder_pressure_b(k)};
    const double guess[2] = {w.cylinder_guess_a(k), w.cylinder_guess_b(k)};
    const double compliance[2] = {w.cylinder_compliance_a(k), w.cylinder_compliance_b(k)};
    double a[2], b[2];
    cylinder_lines(w, k, pressure, guess, compliance, w.h, a, b);
    w.cylinder_line_a(k) = a[0];
    w.cylinder_line_b(k) = a[1];
    w.cylinder_slope_a(k) = b[0];
    w.cylinder_slope_b(k) = b[1];
    const double kick = kick_time(w), mass = w.cylinder_piston_mass(k), area_a = w.cylinder_area_a(k), area_b = w.cylinder_area_b(k);
    const bool papers = w.cylinder_papers_coupling(k) > 0.5;
    const double constant = area_a * a[0] - area_b * a[1];
    const double slope = area_a * b[0] - area_b * b[1] + w.cylinder_viscous_friction(k);
    own.impulse = (papers ? mass * w.cylinder_free_velocity(k) : kick * constant + mass * w.rate()[axis]) + w.cylinder_cushion_impulse(k);
    own.slope = (papers ? mass : kick * slope + mass) + w.cylinder_cushion_slope(k);
}
GPUSIM_FN void cylinder_cushions(const World& w, int k, double x) {
    double impulse = 0.0, slope = 0.0;
    stroke_cushions(w, w.cylinder_axis()[k], x, w.cylinder_stroke_min(k), w.cylinder_stroke_max(k), w.cylinder_cushion_stiffness(k),
                    w.cylinder_cushion_damping(k), w.cylinder_cushion_length(k), &impulse, &slope);
    w.cylinder_cushion_impulse(k) = impulse;
    w.cylinder_cushion_slope(k) = slope;
}
// The papers' coupling: the piston moves alone in sub-steps of 0.1 ms (paper 2023, eq. 6 to 9).
GPUSIM_FN void cylinder_free_piston(const World& w, int k, double x) {
    int count = int(w.h / PAPERS_SUBSTEP - 1e-9) + 1;
    if (count < 1) count = 1;
    const double h = w.h / count, mass = w.cylinder_piston_mass(k), area_a = w.cylinder_area_a(k), area_b = w.cylinder_area_b(k);
    double velocity = w.rate()[w.cylinder_axis()[k]], position = x;
    double pressure[2] = {w.cylinder_pressure_a(k), w.cylinder_pressure_b(k)}, compliance[2], a[2], b[2];
    for (int n = 0; n < count; ++n) {
        cylinder_compliances(w, k, position, compliance);
        cylinder_lines(w, k, pressure, pressure, compliance, h, a, b);
        const double force = area_a * a[0] - area_b * a[1];
        const double drag = area_a * b[0] - area_b * b[1] + w.cylinder_viscous_friction(k);
        velocity = (mass * velocity + h * force) / (mass + h * drag);
        const double moved = clamped(position + h * velocity, w.cylinder_stroke_min(k), w.cylinder_stroke_max(k));
        velocity = (moved - position) / h;
        position = moved;
        pressure[0] = a[0] - b[0] * velocity;
        pressure[1] = a[1] - b[1] * velocity;
    }
    w.cylinder_free_velocity(k) = velocity;
    w.cylinder_free_pressure_a(k) = pressure[0];
    w.cylinder_free_pressure_b(k) = pressure[1];
}
GPUSIM_FN double cylinder_stroke(const World& w, int k) {
    return double(w.axis_position()[w.cylinder_axis()[k]]) - w.cylinder_length_offset(k);
}
// Valve once a step.
GPUSIM_FN void cylinder_contribute(const World& w, int k, ActuatorTerm& own) {
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
    cylinder_compliances(w, k, oil, compliance);
    w.cylinder_oil(k) = oil;
    w.cylinder_compliance_a(k) = compliance[0];
    w.cylinder_compliance_b(k) = compliance[1];
    w.cylinder_guess_a(k) = w.cylinder_pressure_a(k);
    w.cylinder_guess_b(k) = w.cylinder_pressure_b(k);
    const double brake = clamped(mean_command(w, w.cylinder_brake_before(k), w.cylinder_brake_now(k)), 0.0, 1.0);
    own.friction = double(kick_time(w)) * (w.cylinder_dry_friction(k) + brake * w.cylinder_brake_force(k));
    own.lower = w.cylinder_stroke_min(k) + w.cylinder_length_offset(k);
    own.upper = w.cylinder_stroke_max(k) + w.cylinder_length_offset(k);
    cylinder_cushions(w, k, x);
    if (w.cylinder_papers_coupling(k) > 0.5) cylinder_free_piston(w, k, x);
    cylinder_law(w, k, own);
}
// The chords of the edges again with a better guess of the velocity.
GPUSIM_FN void cylinder_refresh(const World& w, int k, ActuatorTerm& own) {
    const double velocity = w.rate_next()[w.cylinder_axis()[k]];
    w.cylinder_guess_a(k) = w.cylinder_line_a(k) - w.cylinder_slope_a(k) * velocity;
    w.cylinder_guess_b(k) = w.cylinder_line_b(k) - w.cylinder_slope_b(k) * velocity;
    cylinder_law(w, k, own);
}
// Pressures from the row velocity of the last solve, with the volumes pulled to the geometry.
GPUSIM_FN void cylinder_advance(const World& w, int k) {
    const double oil = w.cylinder_oil(k), speed = w.rate_next()[w.cylinder_axis()[k]];
    const double velocity = speed + VOLUME_SYNC * (cylinder_stroke(w, k) - oil) / w.h;
    const bool papers = w.cylinder_papers_coupling(k) > 0.5;
    w.cylinder_pressure_a(k) = stored(papers ? w.cylinder_free_pressure_a(k) : w.cylinder_line_a(k) - w.cylinder_slope_a(k) * velocity);
    w.cylinder_pressure_b(k) = stored(papers ? w.cylinder_free_pressure_b(k) : w.cylinder_line_b(k) - w.cylinder_slope_b(k) * velocity);
    w.cylinder_spool(k) = stored(w.cylinder_next_spool(k));
    w.cylinder_spool_rate(k) = stored(w.cylinder_next_rate(k));
    w.cylinder_oil_stroke(k) = stored(oil + w.h * velocity);
}
