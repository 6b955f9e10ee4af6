// Hydraulic circuit (equations: gpusim/actuators/hydraulic/circuit.py, circuit_flows.py, circuit_parts.py).
#pragma once
#include "circuit_balance.cuh"

GPUSIM_FN void oil_motor_evaluate(const World& w, int k, ActuatorTerm& term) {
    const double kick = kick_time(w), mass = w.oil_motor_moving_mass(k);
    const double brake = clamped(mean_command(w, w.oil_motor_brake_before(k), w.oil_motor_brake_now(k)), 0.0, 1.0);
    term.friction = kick * (w.oil_motor_dry_friction(k) + brake * w.oil_motor_brake_force(k));
    term.impulse = mass * w.rate()[w.oil_motor_axis()[k]];
    term.slope = mass + kick * w.oil_motor_viscous_friction(k);
}
GPUSIM_FN void oil_cylinder_evaluate(const World& w, int k, ActuatorTerm& term) {
    const double kick = kick_time(w), mass = w.oil_cylinder_moving_mass(k);
    const double brake = clamped(mean_command(w, w.oil_cylinder_brake_before(k), w.oil_cylinder_brake_now(k)), 0.0, 1.0);
    double impulse = 0.0, slope = 0.0;
    term.friction = kick * (w.oil_cylinder_dry_friction(k) + brake * w.oil_cylinder_brake_force(k));
    term.lower = w.oil_cylinder_stroke_min(k) + w.oil_cylinder_length_offset(k);
    term.upper = w.oil_cylinder_stroke_max(k) + w.oil_cylinder_length_offset(k);
    stroke_cushions(w, w.oil_cylinder_axis()[k], oil_cylinder_position(w, k), w.oil_cylinder_stroke_min(k), w.oil_cylinder_stroke_max(k),
                    w.oil_cylinder_cushion_stiffness(k), w.oil_cylinder_cushion_damping(k), w.oil_cylinder_cushion_length(k),
                    &impulse, &slope);
    term.impulse = impulse + mass * w.rate()[w.oil_cylinder_axis()[k]];
    term.slope = slope + mass + kick * w.oil_cylinder_viscous_friction(k);
}

#if GPUSIM_COUPLED
// Return the linearized pressure p^ - M (v - v^) of node i.
GPUSIM_FN double line_pressure(const World& w, int k, const Balance& b, int i, const double* speed) {
    const double* reply = w.oil_circuit_reply() + (k * MAX_OIL_NODES + i) * MAX_OIL_CONSUMERS;
    const double* fitted = w.oil_circuit_speed() + k * MAX_OIL_CONSUMERS;
    double sum = 0.0;
    for (int row = 0; row < b.rows; ++row) sum += reply[row] * (speed[row] - fitted[row]);
    return w.oil_circuit_guess()[k * MAX_OIL_NODES + i] - sum;
}
// Update the slopes of the law by BFGS. ``change``: change of the velocities. ``force_drop``: decrease of the forces.
GPUSIM_FN void update_slopes_by_bfgs(const Balance& b, const double* change, const double* force_drop, const double* speed, const CoupledLaw& law) {
    double slope_change[MAX_OIL_CONSUMERS], curvature_old = 0.0, curvature_new = 0.0;
    for (int row = 0; row < b.rows; ++row) {
        slope_change[row] = 0.0;
        for (int c = 0; c < b.rows; ++c) slope_change[row] += law.slope[row * law.width + c] * change[c];
    }
    for (int row = 0; row < b.rows; ++row) {
        curvature_old += change[row] * slope_change[row];
        curvature_new += change[row] * force_drop[row];
    }
    if (!(curvature_new > curvature_old && curvature_old > 0.0)) return;
    for (int row = 0; row < b.rows; ++row)
        for (int c = 0; c < b.rows; ++c) {
            const double update = force_drop[row] * force_drop[c] / curvature_new - slope_change[row] * slope_change[c] / curvature_old;
            law.slope[row * law.width + c] += update;
            law.impulse[row] += update * speed[c];
        }
}
// Linearize the law at the velocities ``speed`` of cylinders and motors. Newton's method starts at p and computes the
// node pressures. In the first call of a substep, ``is_refit`` is false.
GPUSIM_SHARED void fit_circuit(const World& w, int k, Balance& b, double* p, bool is_refit, const double* speed, const CoupledLaw& law) {
    double error[MAX_OIL_NODES], move[MAX_OIL_NODES], *matrix = w.oil_circuit_matrix() + k * MAX_OIL_NODES * MAX_OIL_NODES;
    double *guess = w.oil_circuit_guess() + k * MAX_OIL_NODES, *fitted = w.oil_circuit_speed() + k * MAX_OIL_CONSUMERS;
    double* reply = w.oil_circuit_reply() + k * MAX_OIL_NODES * MAX_OIL_CONSUMERS;
    double change[MAX_OIL_CONSUMERS], force_drop[MAX_OIL_CONSUMERS];
    bool was_below_vapor = false;
    for (int row = 0; is_refit && row < b.rows; ++row) {
        change[row] = speed[row] - fitted[row];
        force_drop[row] = 0.0;
    }
    for (int i = 0; is_refit && i < b.nodes; ++i) {
        was_below_vapor = was_below_vapor || (!b.fixed[i] && guess[i] <= b.vapor);
        for (int row = 0; row < b.rows; ++row) force_drop[row] += guess[i] * b.area[i][row];
    }
    for (int i = 0; i < b.nodes; ++i) {
        double sum = 0.0;
        for (int row = 0; row < b.rows; ++row) sum += b.area[i][row] * speed[row];
        b.load[i] = sum + b.load[i];
        guess[i] = b.fixed[i] ? b.pressure[i] : p[i];
    }
    for (int n = 0; n < OIL_ITERATIONS && !b.has_void; ++n) {
        balance_error(w, k, b, guess, error);
        balance_matrix(w, k, b, guess, matrix);
        for (int i = 0; i < b.nodes; ++i) move[i] = error[i];
        solve_balance(b.nodes, matrix, move, 1, 1);
        double initial_slope = 0.0, max_move = 0.0, max_pressure = 0.0;
        for (int i = 0; i < b.nodes; ++i) initial_slope += error[i] * move[i];
        const double step_fraction = newton_step_fraction(w, k, b, guess, move, -initial_slope);
        for (int i = 0; i < b.nodes; ++i) {
            guess[i] -= step_fraction * move[i];
            max_move = max_(max_move, abs_(step_fraction * move[i]));
            max_pressure = max_(max_pressure, abs_(guess[i]));
        }
        if (!(max_move > OIL_PRECISION * max_pressure)) break;
    }
    // A wrong first guess of the velocities can give pressures below the vapor pressure. The code therefore assumes
    // cavitation only if two consecutive guesses give such pressures.
    bool is_cavitating = b.has_void;
    for (int i = 0; i < b.nodes; ++i) is_cavitating = is_cavitating || (was_below_vapor && !b.fixed[i] && guess[i] < b.vapor);
    if (is_cavitating) solve_cavitating_balance(w, k, b, guess, error, matrix);
    balance_matrix(w, k, b, guess, matrix);
    for (int i = 0; is_cavitating && i < b.nodes; ++i)
        if (error[i] > 0.0) matrix[i * MAX_OIL_NODES + i] += b.capacity[i] / OIL_STIFFNESS_LEFT;
    for (int i = 0; i < b.nodes; ++i)
        for (int row = 0; row < b.rows; ++row) reply[i * MAX_OIL_CONSUMERS + row] = b.fixed[i] ? 0.0 : b.area[i][row];
    solve_balance(b.nodes, matrix, reply, b.rows, MAX_OIL_CONSUMERS);
    double zero_speed[MAX_OIL_CONSUMERS], kick = kick_time(w);
    for (int row = 0; row < b.rows; ++row) {
        fitted[row] = speed[row];
        zero_speed[row] = 0.0;
        law.impulse[row] = 0.0;
        for (int c = 0; c < b.rows; ++c) law.slope[row * law.width + c] = 0.0;
    }
    for (int i = 0; i < b.nodes; ++i) {
        const double pressure_at_rest = line_pressure(w, k, b, i, zero_speed);
        for (int row = 0; row < b.rows; ++row) {
            law.impulse[row] += pressure_at_rest * b.area[i][row];
            for (int c = 0; c < b.rows; ++c) law.slope[row * law.width + c] += b.area[i][row] * reply[i * MAX_OIL_CONSUMERS + c];
        }
    }
    if (is_cavitating && is_refit) {
        for (int i = 0; i < b.nodes; ++i)
            for (int row = 0; row < b.rows; ++row) force_drop[row] -= guess[i] * b.area[i][row];
        update_slopes_by_bfgs(b, change, force_drop, speed, law);
    }
    for (int row = 0; row < b.rows; ++row) {
        law.impulse[row] *= kick;
        for (int c = 0; c < b.rows; ++c) law.slope[row * law.width + c] *= kick;
    }
}
GPUSIM_FN void move_spool(const World& w, int n) {
    double spool = w.oil_valve_spool(n), rate = w.oil_valve_spool_rate(n), mean;
    second_order_valve(double(real(w.oil_valve_command_now(n))), w.oil_valve_frequency(n), w.oil_valve_damping(n), w.h, &spool, &rate, &mean);
    w.oil_valve_next_spool(n) = spool;
    w.oil_valve_next_rate(n) = rate;
    const double x = clamped(mean, -1.0, 1.0), supply = w.oil_valve_overlap_supply(n), drain = w.oil_valve_overlap_drain(n);
    w.oil_valve_opened_p_a(n) = w.oil_valve_flow_gain(n) * supply_opening(x, supply);
    w.oil_valve_opened_a_t(n) = w.oil_valve_drain_gain(n) * drain_opening(-x, drain);
    w.oil_valve_opened_p_b(n) = w.oil_valve_flow_gain(n) * supply_opening(-x, supply);
    w.oil_valve_opened_b_t(n) = w.oil_valve_drain_gain(n) * drain_opening(x, drain);
}
GPUSIM_SHARED void oil_circuit_evaluate_coupled(const World& w, int k, const CoupledLaw& law) {
    for (int n = 0; n < w.oil_valve_count(); ++n)
        if (int(w.oil_valve_circuit(n)) == k) move_spool(w, n);
    Balance b;
    start_balance(w, k, b);
    double speed[MAX_OIL_CONSUMERS];
    for (int row = 0; row < b.rows; ++row) speed[row] = w.rate()[law.axis[row]];
    fit_circuit(w, k, b, b.pressure, false, speed, law);
}
GPUSIM_SHARED void oil_circuit_relinearize_coupled(const World& w, int k, const CoupledLaw& law) {
    Balance b;
    start_balance(w, k, b);
    double speed[MAX_OIL_CONSUMERS], start[MAX_OIL_NODES];
    for (int row = 0; row < b.rows; ++row) speed[row] = w.rate_next()[law.axis[row]];
    for (int i = 0; i < b.nodes; ++i) start[i] = line_pressure(w, k, b, i, speed);
    fit_circuit(w, k, b, start, true, speed, law);
}

struct StoreFlow {
    const double* p;
    double supplied;
    MEMBER void operator()(const World& w, const Branch& b, int n, int part) {
        double flow, slope;
        branch_flow(b, p[b.i] - p[b.j], &flow, &slope);
        if (part == 0 || part == 2) supplied = flow;
        if (part == 1) w.oil_valve_flow_a(n) = stored(supplied - flow);
        if (part == 3) w.oil_valve_flow_b(n) = stored(supplied - flow);
        if (part != 4) return;
        w.oil_edge_flow(n) = stored(flow);
        const int kind = int(w.oil_edge_kind(n));
        if (kind != OIL_COUNTERBALANCE && kind != OIL_PIPE_BREAK) return;
        const double poppet = w.oil_edge_poppet(n), pilot = w.oil_edge_node_pilot(n);
        double target;
        if (kind == OIL_COUNTERBALANCE) {
            const double piloted = pilot >= 0.0 ? p[index_in_circuit(w, pilot)] : 0.0;
            target = clamped((p[b.i] + w.oil_edge_pilot_ratio(n) * piloted - w.oil_edge_set_pressure(n)) / w.oil_edge_range(n), 0.0, 1.0);
        } else {
            const bool stays_closed = poppet < 0.5 && p[b.i] - p[b.j] > w.oil_edge_transition_pressure(n);
            Branch open = b;
            open.forth = w.oil_edge_gain(n);
            branch_flow(open, p[b.i] - p[b.j], &flow, &slope);
            target = flow > w.oil_edge_flow_limit(n) || stays_closed ? 0.0 : 1.0;
        }
        const double lag = target > poppet ? w.oil_edge_opening_time(n) : w.oil_edge_time_constant(n);
        w.oil_edge_poppet(n) = stored(poppet - det::expm1(-w.h / max_(lag, 1e-9)) * (target - poppet));
    }
};
// Return the maximum pressure at the outlets of open load-sensing valves.
GPUSIM_FN double sensed_load(const World& w, int k, const double* p) {
    double max_pressure = 0.0;
    for (int n = 0; n < w.oil_valve_count(); ++n) {
        if (int(w.oil_valve_circuit(n)) != k || !(w.oil_valve_senses(n) > 0.5)) continue;
        if (w.oil_valve_opened_p_a(n) > 0.0) max_pressure = max_(max_pressure, p[index_in_circuit(w, w.oil_valve_node_a(n))]);
        if (w.oil_valve_opened_p_b(n) > 0.0) max_pressure = max_(max_pressure, p[index_in_circuit(w, w.oil_valve_node_b(n))]);
    }
    return max_pressure;
}
GPUSIM_SHARED void advance_circuit(const World& w, int k) {
    Balance b;
    start_balance(w, k, b);
    double speed[MAX_OIL_CONSUMERS], p[MAX_OIL_NODES], error[MAX_OIL_NODES], flow_decrease;
    for (int row = 0; row < b.rows; ++row) {
        Consumer c;
        consumer_at(w, k, row, c);
        speed[row] = w.rate_next()[c.cylinder ? w.oil_cylinder_axis()[c.number] : w.oil_motor_axis()[c.number]];
        if (!c.cylinder) continue;
        speed[row] = speed[row] + VOLUME_SYNC * (b.stroke[row] - b.oil[row]) / w.h;
        w.oil_cylinder_oil_stroke(c.number) = stored(b.oil[row] + w.h * speed[row]);
    }
    bool is_cavitating = b.has_void;
    for (int i = 0; i < b.nodes; ++i) {
        p[i] = b.fixed[i] ? b.pressure[i] : line_pressure(w, k, b, i, speed);
        error[i] = 0.0;
        is_cavitating = is_cavitating || (!b.fixed[i] && (p[i] < b.vapor || w.oil_circuit_guess()[k * MAX_OIL_NODES + i] == b.vapor));
    }
    for (int i = 0; is_cavitating && i < b.nodes; ++i) {
        double sum = 0.0;
        for (int row = 0; row < b.rows; ++row) sum += b.area[i][row] * speed[row];
        b.load[i] = sum + b.load[i];
    }
    if (is_cavitating) solve_cavitating_balance(w, k, b, p, error, w.oil_circuit_matrix() + k * MAX_OIL_NODES * MAX_OIL_NODES);
    for (int n = 0; n < w.oil_node_count(); ++n)
        if (int(w.oil_node_circuit(n)) == k) {
            w.oil_node_pressure(n) = stored(p[int(w.oil_node_index(n))]);
            w.oil_node_void(n) = stored(w.h * error[int(w.oil_node_index(n))]);
            watch_void(w, w.oil_node_void(n), n);
        }
    StoreFlow store = {p, 0.0};
    visit_branches(w, k, store);
    for (int n = 0; n < w.oil_valve_count(); ++n) {
        if (int(w.oil_valve_circuit(n)) != k) continue;
        w.oil_valve_spool(n) = stored(w.oil_valve_next_spool(n));
        w.oil_valve_spool_rate(n) = stored(w.oil_valve_next_rate(n));
    }
    for (int n = 0; n < w.oil_pump_count(); ++n) {
        if (int(w.oil_pump_circuit(n)) != k) continue;
        const int at = index_in_circuit(w, w.oil_pump_node(n));
        w.oil_pump_flow(n) = stored(pump_flow(w, n, p[at], &flow_decrease));
        w.oil_pump_pressure_now(n) = stored(p[at]);
        const double before = w.oil_pump_load_pressure(n);
        w.oil_pump_load_pressure(n) =
            stored(before - det::expm1(-w.h / max_(w.oil_pump_time_constant(n), 1e-9)) * (sensed_load(w, k, p) - before));
    }
}
#endif
GPUSIM_FN void oil_circuit_advance(const World& w, int k) {
#if GPUSIM_COUPLED
    advance_circuit(w, k);
#else
    (void)w, (void)k;
#endif
}
