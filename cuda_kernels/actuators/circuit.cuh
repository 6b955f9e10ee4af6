// Hydraulic circuit: the pressures of its nodes with the consumers' rows (gpusim/actuators/circuit.py, where the equations
// stand; flows of its branches: circuit_flows.py; its parts: circuit_parts.py).
#pragma once
#include "hydraulic_cylinder.cuh"

// Consumers: friction, brake, moving mass and stops on their own axis.
GPUSIM_FN void oil_motor_contribute(const World& w, int k, ActuatorTerm& own) {
    const double kick = kick_time(w), mass = w.oil_motor_moving_mass(k);
    const double brake = clamped(mean_command(w, w.oil_motor_brake_before(k), w.oil_motor_brake_now(k)), 0.0, 1.0);
    own.friction = kick * (w.oil_motor_dry_friction(k) + brake * w.oil_motor_brake_force(k));
    own.impulse = mass * w.rate()[w.oil_motor_axis()[k]];
    own.slope = mass + kick * w.oil_motor_viscous_friction(k);
}
GPUSIM_FN double oil_cylinder_position(const World& w, int k) {
    return double(w.axis_position()[w.oil_cylinder_axis()[k]]) - w.oil_cylinder_length_offset(k);
}
GPUSIM_FN void oil_cylinder_contribute(const World& w, int k, ActuatorTerm& own) {
    const double kick = kick_time(w), mass = w.oil_cylinder_moving_mass(k);
    const double brake = clamped(mean_command(w, w.oil_cylinder_brake_before(k), w.oil_cylinder_brake_now(k)), 0.0, 1.0);
    double impulse = 0.0, slope = 0.0;
    own.friction = kick * (w.oil_cylinder_dry_friction(k) + brake * w.oil_cylinder_brake_force(k));
    own.lower = w.oil_cylinder_stroke_min(k) + w.oil_cylinder_length_offset(k);
    own.upper = w.oil_cylinder_stroke_max(k) + w.oil_cylinder_length_offset(k);
    stroke_cushions(w, w.oil_cylinder_axis()[k], oil_cylinder_position(w, k), w.oil_cylinder_stroke_min(k), w.oil_cylinder_stroke_max(k),
                    w.oil_cylinder_cushion_stiffness(k), w.oil_cylinder_cushion_damping(k), w.oil_cylinder_cushion_length(k),
                    &impulse, &slope);
    own.impulse = impulse + mass * w.rate()[w.oil_cylinder_axis()[k]];
    own.slope = slope + mass + kick * w.oil_cylinder_viscous_friction(k);
}

#if GPUSIM_COUPLED
// Which actuator of its kind serves row ``row`` of circuit k; nodes by their place in the circuit.
struct Consumer {
    int number, cylinder, node[2];
    double area[2];
};
GPUSIM_FN int node_place(const World& w, double node) { return int(w.oil_node_place(int(node))); }
GPUSIM_SHARED void consumer_at(const World& w, int k, int row, Consumer& c) {
    for (c.number = 0; c.number < w.oil_cylinder_count(); ++c.number)
        if (int(w.oil_cylinder_circuit(c.number)) == k && int(w.oil_cylinder_row(c.number)) == row) break;
    c.cylinder = c.number < w.oil_cylinder_count();
    if (c.cylinder) {
        c.node[0] = node_place(w, w.oil_cylinder_node_a(c.number));
        c.node[1] = node_place(w, w.oil_cylinder_node_b(c.number));
        c.area[0] = w.oil_cylinder_area_a(c.number);
        c.area[1] = w.oil_cylinder_area_b(c.number);
        return;
    }
    for (c.number = 0; int(w.oil_motor_circuit(c.number)) != k || int(w.oil_motor_row(c.number)) != row;) ++c.number;
    c.node[0] = node_place(w, w.oil_motor_node_a(c.number));
    c.node[1] = node_place(w, w.oil_motor_node_b(c.number));
    c.area[0] = w.oil_motor_area_a(c.number);
    c.area[1] = w.oil_motor_area_b(c.number);
}

// One way of the oil from node i to node j.
struct Branch {
    int i, j;
    double forth, back, start, transition, most_drop;
    bool linear;
};
GPUSIM_SHARED void branch_flow(const Branch& b, double drop, double* flow, double* slope) {
    const bool ahead = drop > b.start;
    const double gain = ahead ? b.forth : (drop < 0.0 ? b.back : 0.0), d = ahead ? drop - b.start : smaller(drop, 0.0);
    if (b.linear) {
        *flow = gain * d;
        *slope = gain;
        return;
    }
    const double kept = smaller(d, b.most_drop), square = kept * kept + b.transition * b.transition;
    const double whole = gain / square_root(square_root(square));
    *flow = whole * kept;
    *slope = d > b.most_drop ? 0.0 : whole * (0.5 * kept * kept + b.transition * b.transition) / square;
}
// Branches of circuit k in order: four of each valve, one of each edge. ``visit`` takes each and the valve or edge it is of.
template <class Visit>
GPUSIM_FN void visit_branches(const World& w, int k, Visit& visit) {
    const double infinite = 1.0 / 0.0;
    for (int n = 0; n < w.oil_valve_count(); ++n) {
        if (int(w.oil_valve_circuit(n)) != k) continue;
        const int p = node_place(w, w.oil_valve_node_p(n)), t = node_place(w, w.oil_valve_node_t(n));
        const int a = node_place(w, w.oil_valve_node_a(n)), b = node_place(w, w.oil_valve_node_b(n));
        const double opened[4] = {w.oil_valve_opened_p_a(n), w.oil_valve_opened_a_t(n), w.oil_valve_opened_p_b(n), w.oil_valve_opened_b_t(n)};
        const int from[4] = {p, a, p, b}, to[4] = {a, t, b, t};
        const bool check = w.oil_valve_load_check(n) > 0.5;
        for (int part = 0; part < 4; ++part) {
            const bool supply = part % 2 == 0;
            visit(w, {from[part], to[part], opened[part], supply && check ? 0.0 : opened[part], 0.0, w.oil_valve_transition_pressure(n),
                   supply ? w.oil_valve_compensator_pressure(n) : infinite, false}, n, part);
        }
    }
    for (int n = 0; n < w.oil_edge_count(); ++n) {
        if (int(w.oil_edge_circuit(n)) != k) continue;
        const int kind = int(w.oil_edge_kind(n));
        const double gain = w.oil_edge_gain(n);
        Branch b = {node_place(w, w.oil_edge_node_a(n)), node_place(w, w.oil_edge_node_b(n)), gain, gain, 0.0,
                    w.oil_edge_transition_pressure(n), infinite, kind == OIL_RELIEF || kind == OIL_LEAK};
        if (kind == OIL_ORIFICE) b.forth = b.back = gain * clamped(double(real(w.oil_edge_opening_now(n))), 0.0, 1.0);
        if (kind == OIL_CHECK || kind == OIL_RELIEF) {
            b.back = 0.0;
            b.start = w.oil_edge_set_pressure(n);
        }
        if (kind == OIL_COUNTERBALANCE || kind == OIL_PIPE_BREAK) b.forth = gain * double(w.oil_edge_poppet(n));
        visit(w, b, n, 4);
    }
}
// Flow of pump n into its node at the pressure p, and how it falls with it.
GPUSIM_SHARED double pump_flow(const World& w, int n, double p, double* fall) {
    const double most = w.oil_pump_most_flow(n), band = w.oil_pump_band(n), power = w.oil_pump_power(n);
    double flow = most * clamped(double(real(w.oil_pump_displacement_now(n))), 0.0, 1.0);
    const double sensed = w.oil_pump_load_sensing(n) > 0.5 ? double(w.oil_pump_load_pressure(n)) + w.oil_pump_margin(n) : 1.0 / 0.0;
    *fall = 0.0;
    for (int part = 0; part < 2; ++part) {
        const double share = clamped(((part == 0 ? w.oil_pump_pressure(n) : sensed) - p) / band, 0.0, 1.0);
        if (!(most * share < flow)) continue;
        flow = most * share;
        *fall = share > 0.0 ? most / band : 0.0;
    }
    if (p > 0.0 && power / p < flow) {
        flow = power / p;
        *fall = power / (p * p);
    }
    return flow;
}

// A circuit within a substep.
struct Balance {
    int nodes, rows;
    double pressure[MOST_OIL_NODES], capacity[MOST_OIL_NODES], load[MOST_OIL_NODES];
    double area[MOST_OIL_NODES][MOST_OIL_CONSUMERS], stroke[MOST_OIL_CONSUMERS], oil[MOST_OIL_CONSUMERS];
    bool fixed[MOST_OIL_NODES];
};
GPUSIM_SHARED void start_balance(const World& w, int k, Balance& b) {
    b.nodes = b.rows = 0;
    for (int n = 0; n < w.oil_cylinder_count(); ++n) b.rows += int(w.oil_cylinder_circuit(n)) == k;
    for (int n = 0; n < w.oil_motor_count(); ++n) b.rows += int(w.oil_motor_circuit(n)) == k;
    double volume[MOST_OIL_NODES], bulk[MOST_OIL_NODES];
    for (int n = 0; n < w.oil_node_count(); ++n) {
        if (int(w.oil_node_circuit(n)) != k) continue;
        const int at = int(w.oil_node_place(n));
        b.nodes = larger(b.nodes, at + 1);
        b.pressure[at] = w.oil_node_pressure(n);
        b.fixed[at] = w.oil_node_fixed(n) > 0.5;
        volume[at] = w.oil_node_volume(n);
        bulk[at] = w.oil_node_bulk_modulus(n);
        for (int row = 0; row < b.rows; ++row) b.area[at][row] = 0.0;
    }
    for (int row = 0; row < b.rows; ++row) {
        Consumer c;
        consumer_at(w, k, row, c);
        b.area[c.node[0]][row] += c.area[0];
        b.area[c.node[1]][row] -= c.area[1];
        if (!c.cylinder) continue;
        b.stroke[row] = oil_cylinder_position(w, c.number);
        b.oil[row] = is_nan(w.oil_cylinder_oil_stroke(c.number)) ? b.stroke[row] : double(w.oil_cylinder_oil_stroke(c.number));
        volume[c.node[0]] += c.area[0] * b.oil[row];
        volume[c.node[1]] -= c.area[1] * b.oil[row];
    }
    for (int i = 0; i < b.nodes; ++i) b.capacity[i] = volume[i] / bulk[i] / w.h;
}

struct AddFlow {
    const double* p;
    double* inflow;
    MEMBER void operator()(const World&, const Branch& b, int, int) {
        double flow, slope;
        branch_flow(b, p[b.i] - p[b.j], &flow, &slope);
        inflow[b.i] -= flow;
        inflow[b.j] += flow;
    }
};
struct AddSlope {
    const double* p;
    double* matrix;
    MEMBER void operator()(const World&, const Branch& b, int, int) {
        double flow, slope;
        branch_flow(b, p[b.i] - p[b.j], &flow, &slope);
        matrix[b.i * MOST_OIL_NODES + b.i] += slope;
        matrix[b.j * MOST_OIL_NODES + b.j] += slope;
        matrix[b.i * MOST_OIL_NODES + b.j] -= slope;
        matrix[b.j * MOST_OIL_NODES + b.i] -= slope;
    }
};
// What the balance of the nodes misses at the pressures p.
GPUSIM_SHARED void balance_error(const World& w, int k, const Balance& b, const double* p, double* error) {
    double inflow[MOST_OIL_NODES], fall;
    for (int i = 0; i < b.nodes; ++i) inflow[i] = 0.0;
    AddFlow add = {p, inflow};
    visit_branches(w, k, add);
    for (int n = 0; n < w.oil_pump_count(); ++n)
        if (int(w.oil_pump_circuit(n)) == k) {
            const int at = node_place(w, w.oil_pump_node(n));
            inflow[at] += pump_flow(w, n, p[at], &fall);
        }
    for (int i = 0; i < b.nodes; ++i)
        error[i] = b.fixed[i] ? 0.0 : b.capacity[i] * (p[i] - b.pressure[i]) - inflow[i] + b.load[i];
}
GPUSIM_SHARED void balance_matrix(const World& w, int k, const Balance& b, const double* p, double* matrix) {
    double fall;
    for (int i = 0; i < b.nodes; ++i)
        for (int j = 0; j < b.nodes; ++j) matrix[i * MOST_OIL_NODES + j] = 0.0;
    AddSlope add = {p, matrix};
    visit_branches(w, k, add);
    for (int n = 0; n < w.oil_pump_count(); ++n)
        if (int(w.oil_pump_circuit(n)) == k) {
            const int at = node_place(w, w.oil_pump_node(n));
            pump_flow(w, n, p[at], &fall);
            matrix[at * MOST_OIL_NODES + at] += fall;
        }
    for (int i = 0; i < b.nodes; ++i) {
        for (int j = 0; b.fixed[i] && j < b.nodes; ++j) matrix[i * MOST_OIL_NODES + j] = 0.0;
        matrix[i * MOST_OIL_NODES + i] += b.fixed[i] ? 1.0 : b.capacity[i];
    }
}
// A x = b in place for ``columns`` right sides; A is diagonally dominant, so that no pivots are sought.
GPUSIM_SHARED void solve_balance(int nodes, double* matrix, double* right, int columns, int width) {
    for (int p = 0; p < nodes; ++p)
        for (int i = p + 1; i < nodes; ++i) {
            const double factor = matrix[i * MOST_OIL_NODES + p] / matrix[p * MOST_OIL_NODES + p];
            if (factor == 0.0) continue;
            for (int j = p; j < nodes; ++j) matrix[i * MOST_OIL_NODES + j] -= factor * matrix[p * MOST_OIL_NODES + j];
            for (int c = 0; c < columns; ++c) right[i * width + c] -= factor * right[p * width + c];
        }
    for (int i = nodes - 1; i >= 0; --i)
        for (int c = 0; c < columns; ++c) {
            double sum = right[i * width + c];
            for (int j = i + 1; j < nodes; ++j) sum -= matrix[i * MOST_OIL_NODES + j] * right[j * width + c];
            right[i * width + c] = sum / matrix[i * MOST_OIL_NODES + i];
        }
}
// p^ - M (v - v^) of node i.
GPUSIM_FN double line_pressure(const World& w, int k, const Balance& b, int i, const double* speed) {
    const double* reply = w.oil_circuit_reply() + (k * MOST_OIL_NODES + i) * MOST_OIL_CONSUMERS;
    const double* fitted = w.oil_circuit_speed() + k * MOST_OIL_CONSUMERS;
    double sum = 0.0;
    for (int row = 0; row < b.rows; ++row) sum += reply[row] * (speed[row] - fitted[row]);
    return w.oil_circuit_guess()[k * MOST_OIL_NODES + i] - sum;
}
// Slope along -move of the convex function whose slope the balance is, at a share of the way.
GPUSIM_SHARED double slope_along(const World& w, int k, const Balance& b, const double* p, const double* move, double share) {
    double ahead[MOST_OIL_NODES], error[MOST_OIL_NODES], sum = 0.0;
    for (int i = 0; i < b.nodes; ++i) ahead[i] = p[i] - share * move[i];
    balance_error(w, k, b, ahead, error);
    for (int i = 0; i < b.nodes; ++i) sum += error[i] * move[i];
    return -sum;
}
// How far to go along -move, 0 to 1: the slope falls below a share of the first one.
GPUSIM_SHARED double newton_share(const World& w, int k, const Balance& b, const double* p, const double* move, double first) {
    const double most = OIL_OVERSHOOT * magnitude(first);
    double low = 0.0, slope_low = first, high = 1.0, slope_high = slope_along(w, k, b, p, move, 1.0), share = 1.0;
    for (int n = 0; n < OIL_SECANTS && slope_high > most; ++n) {
        share = low + clamped(-slope_low / (slope_high - slope_low), OIL_MARGIN, 1.0 - OIL_MARGIN) * (high - low);
        const double now = slope_along(w, k, b, p, move, share);
        if (magnitude(now) <= most) break;
        if (now > 0.0) {
            high = share;
            slope_high = now;
        } else {
            low = share;
            slope_low = now;
        }
    }
    return share;
}
// Newton's method from the pressures p at the consumers' velocities; the slopes there, and the law.
GPUSIM_SHARED void fit_circuit(const World& w, int k, Balance& b, double* p, const double* speed, const CoupledLaw& law) {
    double error[MOST_OIL_NODES], move[MOST_OIL_NODES], *matrix = w.oil_circuit_matrix() + k * MOST_OIL_NODES * MOST_OIL_NODES;
    double *guess = w.oil_circuit_guess() + k * MOST_OIL_NODES, *fitted = w.oil_circuit_speed() + k * MOST_OIL_CONSUMERS;
    double* reply = w.oil_circuit_reply() + k * MOST_OIL_NODES * MOST_OIL_CONSUMERS;
    for (int i = 0; i < b.nodes; ++i) {
        double sum = 0.0;
        for (int row = 0; row < b.rows; ++row) sum += b.area[i][row] * speed[row];
        b.load[i] = sum;
        guess[i] = b.fixed[i] ? b.pressure[i] : p[i];
    }
    for (int n = 0; n < OIL_ITERATIONS; ++n) {
        balance_error(w, k, b, guess, error);
        balance_matrix(w, k, b, guess, matrix);
        for (int i = 0; i < b.nodes; ++i) move[i] = error[i];
        solve_balance(b.nodes, matrix, move, 1, 1);
        double first = 0.0, moved = 0.0, most = 0.0;
        for (int i = 0; i < b.nodes; ++i) first += error[i] * move[i];
        const double share = newton_share(w, k, b, guess, move, -first);
        for (int i = 0; i < b.nodes; ++i) {
            guess[i] -= share * move[i];
            moved = larger(moved, magnitude(share * move[i]));
            most = larger(most, magnitude(guess[i]));
        }
        if (!(moved > OIL_PRECISION * most)) break;
    }
    balance_matrix(w, k, b, guess, matrix);
    for (int i = 0; i < b.nodes; ++i)
        for (int row = 0; row < b.rows; ++row) reply[i * MOST_OIL_CONSUMERS + row] = b.fixed[i] ? 0.0 : b.area[i][row];
    solve_balance(b.nodes, matrix, reply, b.rows, MOST_OIL_CONSUMERS);
    double still[MOST_OIL_CONSUMERS], kick = kick_time(w);
    for (int row = 0; row < b.rows; ++row) {
        fitted[row] = speed[row];
        still[row] = 0.0;
        law.impulse[row] = 0.0;
        for (int c = 0; c < b.rows; ++c) law.slope[row * law.width + c] = 0.0;
    }
    for (int i = 0; i < b.nodes; ++i) {
        const double rest = line_pressure(w, k, b, i, still);
        for (int row = 0; row < b.rows; ++row) {
            law.impulse[row] += rest * b.area[i][row];
            for (int c = 0; c < b.rows; ++c) law.slope[row * law.width + c] += b.area[i][row] * reply[i * MOST_OIL_CONSUMERS + c];
        }
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
GPUSIM_SHARED void oil_circuit_couple(const World& w, int k, const CoupledLaw& law) {
    for (int n = 0; n < w.oil_valve_count(); ++n)
        if (int(w.oil_valve_circuit(n)) == k) move_spool(w, n);
    Balance b;
    start_balance(w, k, b);
    double speed[MOST_OIL_CONSUMERS];
    for (int row = 0; row < b.rows; ++row) speed[row] = w.rate()[law.axis[row]];
    fit_circuit(w, k, b, b.pressure, speed, law);
}
GPUSIM_SHARED void oil_circuit_recouple(const World& w, int k, const CoupledLaw& law) {
    Balance b;
    start_balance(w, k, b);
    double speed[MOST_OIL_CONSUMERS], start[MOST_OIL_NODES];
    for (int row = 0; row < b.rows; ++row) speed[row] = w.rate_next()[law.axis[row]];
    for (int i = 0; i < b.nodes; ++i) start[i] = line_pressure(w, k, b, i, speed);
    fit_circuit(w, k, b, start, speed, law);
}

// Flows at the new pressures, and what follows them.
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
            const double piloted = pilot >= 0.0 ? p[node_place(w, pilot)] : 0.0;
            target = clamped((p[b.i] + w.oil_edge_pilot_ratio(n) * piloted - w.oil_edge_set_pressure(n)) / w.oil_edge_range(n), 0.0, 1.0);
        } else {
            const bool held = poppet < 0.5 && p[b.i] - p[b.j] > w.oil_edge_transition_pressure(n);
            Branch open = b;
            open.forth = w.oil_edge_gain(n);
            branch_flow(open, p[b.i] - p[b.j], &flow, &slope);
            target = flow > w.oil_edge_flow_limit(n) || held ? 0.0 : 1.0;
        }
        const double lag = target > poppet ? w.oil_edge_opening_time(n) : w.oil_edge_time_constant(n);
        w.oil_edge_poppet(n) = stored(poppet - det::expm1(-w.h / larger(lag, 1e-9)) * (target - poppet));
    }
};
// Greatest pressure at the ports that open valves feed.
GPUSIM_FN double sensed_load(const World& w, int k, const double* p) {
    double most = 0.0;
    for (int n = 0; n < w.oil_valve_count(); ++n) {
        if (int(w.oil_valve_circuit(n)) != k || !(w.oil_valve_senses(n) > 0.5)) continue;
        if (w.oil_valve_opened_p_a(n) > 0.0) most = larger(most, p[node_place(w, w.oil_valve_node_a(n))]);
        if (w.oil_valve_opened_p_b(n) > 0.0) most = larger(most, p[node_place(w, w.oil_valve_node_b(n))]);
    }
    return most;
}
GPUSIM_SHARED void advance_circuit(const World& w, int k) {
    Balance b;
    start_balance(w, k, b);
    double speed[MOST_OIL_CONSUMERS], p[MOST_OIL_NODES], fall;
    for (int row = 0; row < b.rows; ++row) {
        Consumer c;
        consumer_at(w, k, row, c);
        speed[row] = w.rate_next()[c.cylinder ? w.oil_cylinder_axis()[c.number] : w.oil_motor_axis()[c.number]];
        if (!c.cylinder) continue;
        speed[row] = speed[row] + VOLUME_SYNC * (b.stroke[row] - b.oil[row]) / w.h;
        w.oil_cylinder_oil_stroke(c.number) = stored(b.oil[row] + w.h * speed[row]);
    }
    for (int i = 0; i < b.nodes; ++i) p[i] = b.fixed[i] ? b.pressure[i] : line_pressure(w, k, b, i, speed);
    for (int n = 0; n < w.oil_node_count(); ++n)
        if (int(w.oil_node_circuit(n)) == k) w.oil_node_pressure(n) = stored(p[int(w.oil_node_place(n))]);
    StoreFlow store = {p, 0.0};
    visit_branches(w, k, store);
    for (int n = 0; n < w.oil_valve_count(); ++n) {
        if (int(w.oil_valve_circuit(n)) != k) continue;
        w.oil_valve_spool(n) = stored(w.oil_valve_next_spool(n));
        w.oil_valve_spool_rate(n) = stored(w.oil_valve_next_rate(n));
    }
    for (int n = 0; n < w.oil_pump_count(); ++n) {
        if (int(w.oil_pump_circuit(n)) != k) continue;
        const int at = node_place(w, w.oil_pump_node(n));
        w.oil_pump_flow(n) = stored(pump_flow(w, n, p[at], &fall));
        w.oil_pump_pressure_now(n) = stored(p[at]);
        const double before = w.oil_pump_load_pressure(n);
        w.oil_pump_load_pressure(n) =
            stored(before - det::expm1(-w.h / larger(w.oil_pump_time_constant(n), 1e-9)) * (sensed_load(w, k, p) - before));
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
