// Flow balance of the nodes of a hydraulic circuit in a substep. Pressures stay at or above the vapor pressure
// (gpusim/actuators/hydraulic/circuit.py, circuit_flows.py, cavitation.py).
#pragma once
#include "hydraulic_cylinder.cuh"

GPUSIM_FN double oil_cylinder_position(const World& w, int k) {
    return double(w.axis_position()[w.oil_cylinder_axis()[k]]) - w.oil_cylinder_length_offset(k);
}
#if GPUSIM_COUPLED
// Cylinder or motor that belongs to row ``row`` of circuit k. Each circuit numbers its nodes from 0.
struct Consumer {
    int number, cylinder, node[2];
    double area[2];
};
GPUSIM_FN int index_in_circuit(const World& w, double node) { return int(w.oil_node_index(int(node))); }
GPUSIM_SHARED void consumer_at(const World& w, int k, int row, Consumer& c) {
    for (c.number = 0; c.number < w.oil_cylinder_count(); ++c.number)
        if (int(w.oil_cylinder_circuit(c.number)) == k && int(w.oil_cylinder_row(c.number)) == row) break;
    c.cylinder = c.number < w.oil_cylinder_count();
    if (c.cylinder) {
        c.node[0] = index_in_circuit(w, w.oil_cylinder_node_a(c.number));
        c.node[1] = index_in_circuit(w, w.oil_cylinder_node_b(c.number));
        c.area[0] = w.oil_cylinder_area_a(c.number);
        c.area[1] = w.oil_cylinder_area_b(c.number);
        return;
    }
    for (c.number = 0; int(w.oil_motor_circuit(c.number)) != k || int(w.oil_motor_row(c.number)) != row;) ++c.number;
    c.node[0] = index_in_circuit(w, w.oil_motor_node_a(c.number));
    c.node[1] = index_in_circuit(w, w.oil_motor_node_b(c.number));
    c.area[0] = w.oil_motor_area_a(c.number);
    c.area[1] = w.oil_motor_area_b(c.number);
}

// Flow path from node i to node j.
struct Branch {
    int i, j;
    double forth, back, start, transition, max_drop;
    bool linear;
};
GPUSIM_SHARED void branch_flow(const Branch& b, double drop, double* flow, double* slope) {
    const bool is_forward = drop > b.start;
    const double gain = is_forward ? b.forth : (drop < 0.0 ? b.back : 0.0), d = is_forward ? drop - b.start : min_(drop, 0.0);
    if (b.linear) {
        *flow = gain * d;
        *slope = gain;
        return;
    }
    const double limited_drop = min_(d, b.max_drop), square = limited_drop * limited_drop + b.transition * b.transition;
    const double conductance = gain / sqrt_(sqrt_(square));
    *flow = conductance * limited_drop;
    *slope = d > b.max_drop ? 0.0 : conductance * (0.5 * limited_drop * limited_drop + b.transition * b.transition) / square;
}
// Call ``visit`` for each branch of circuit k, with the index of the branch's valve or edge. A valve has four branches,
// and an edge has one branch.
template <class Visit>
GPUSIM_FN void visit_branches(const World& w, int k, Visit& visit) {
    const double infinite = 1.0 / 0.0;
    for (int n = 0; n < w.oil_valve_count(); ++n) {
        if (int(w.oil_valve_circuit(n)) != k) continue;
        const int p = index_in_circuit(w, w.oil_valve_node_p(n)), t = index_in_circuit(w, w.oil_valve_node_t(n));
        const int a = index_in_circuit(w, w.oil_valve_node_a(n)), b = index_in_circuit(w, w.oil_valve_node_b(n));
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
        Branch b = {index_in_circuit(w, w.oil_edge_node_a(n)), index_in_circuit(w, w.oil_edge_node_b(n)), gain, gain, 0.0,
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
// Return the flow of pump n into its node at the pressure p. ``flow_decrease`` is the decrease of the flow per pressure.
GPUSIM_SHARED double pump_flow(const World& w, int n, double p, double* flow_decrease) {
    const double max_flow = w.oil_pump_max_flow(n), band = w.oil_pump_band(n), power = w.oil_pump_power(n);
    double flow = max_flow * clamped(double(real(w.oil_pump_displacement_now(n))), 0.0, 1.0);
    const double sensed = w.oil_pump_load_sensing(n) > 0.5 ? double(w.oil_pump_load_pressure(n)) + w.oil_pump_margin(n) : 1.0 / 0.0;
    *flow_decrease = 0.0;
    for (int part = 0; part < 2; ++part) {
        const double opening = clamped(((part == 0 ? w.oil_pump_pressure(n) : sensed) - p) / band, 0.0, 1.0);
        if (!(max_flow * opening < flow)) continue;
        flow = max_flow * opening;
        *flow_decrease = opening > 0.0 ? max_flow / band : 0.0;
    }
    if (p > 0.0 && power / p < flow) {
        flow = power / p;
        *flow_decrease = power / (p * p);
    }
    return flow;
}

// Circuit in a substep. ``load`` is the flow into cylinders and motors, plus the flow that fills the voids in a step.
struct Balance {
    int nodes, rows;
    bool has_void;
    double vapor;
    double pressure[MAX_OIL_NODES], capacity[MAX_OIL_NODES], load[MAX_OIL_NODES];
    double area[MAX_OIL_NODES][MAX_OIL_CONSUMERS], stroke[MAX_OIL_CONSUMERS], oil[MAX_OIL_CONSUMERS];
    bool fixed[MAX_OIL_NODES];
};
// Return the fraction of a motor's displacement that oil fills in this step. The oil at the inlet limits the fraction.
GPUSIM_FN double motor_filling(const World& w, int n) {
    const double speed = w.rate()[w.oil_motor_axis()[n]];
    const int inlet = int(speed > 0.0 ? w.oil_motor_node_a(n) : w.oil_motor_node_b(n));
    const double void_volume = w.oil_node_void(inlet), liquid = w.oil_node_volume(inlet) - void_volume;
    const double taken = (speed > 0.0 ? w.oil_motor_area_a(n) : w.oil_motor_area_b(n)) * abs_(speed) * w.h;
    return void_volume > 0.0 && liquid < taken ? max_(liquid, OIL_MIN_FILLING * taken) / taken : 1.0;
}
GPUSIM_SHARED void start_balance(const World& w, int k, Balance& b) {
    b.nodes = b.rows = 0;
    b.has_void = false;
    b.vapor = w.oil_circuit_vapor_pressure(k);
    for (int n = 0; n < w.oil_cylinder_count(); ++n) b.rows += int(w.oil_cylinder_circuit(n)) == k;
    for (int n = 0; n < w.oil_motor_count(); ++n) b.rows += int(w.oil_motor_circuit(n)) == k;
    double volume[MAX_OIL_NODES], bulk[MAX_OIL_NODES];
    for (int n = 0; n < w.oil_node_count(); ++n) {
        if (int(w.oil_node_circuit(n)) != k) continue;
        const int at = int(w.oil_node_index(n));
        b.nodes = max_(b.nodes, at + 1);
        b.pressure[at] = w.oil_node_pressure(n);
        b.fixed[at] = w.oil_node_fixed(n) > 0.5;
        const double has_void = w.oil_node_void(n);
        b.load[at] = has_void / w.h;
        if (has_void != 0.0) b.has_void = true;
        volume[at] = w.oil_node_volume(n);
        bulk[at] = w.oil_node_bulk_modulus(n);
        for (int row = 0; row < b.rows; ++row) b.area[at][row] = 0.0;
    }
    for (int row = 0; row < b.rows; ++row) {
        Consumer c;
        consumer_at(w, k, row, c);
        const double filled = c.cylinder ? 1.0 : motor_filling(w, c.number);
        b.area[c.node[0]][row] += c.area[0] * filled;
        b.area[c.node[1]][row] -= c.area[1] * filled;
        if (!c.cylinder) continue;
        b.stroke[row] = oil_cylinder_position(w, c.number);
        b.oil[row] = is_nan(w.oil_cylinder_oil_stroke(c.number)) ? b.stroke[row] : double(w.oil_cylinder_oil_stroke(c.number));
        const double speed = w.rate()[w.oil_cylinder_axis()[c.number]];
        const double middle =
            middle_stroke(b.oil[row], speed, w.oil_cylinder_stroke_min(c.number), w.oil_cylinder_stroke_max(c.number), w.h);
        volume[c.node[0]] += c.area[0] * middle;
        volume[c.node[1]] -= c.area[1] * middle;
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
        matrix[b.i * MAX_OIL_NODES + b.i] += slope;
        matrix[b.j * MAX_OIL_NODES + b.j] += slope;
        matrix[b.i * MAX_OIL_NODES + b.j] -= slope;
        matrix[b.j * MAX_OIL_NODES + b.i] -= slope;
    }
};
// Compute the residual of the nodes' flow balance at the pressures p.
GPUSIM_SHARED void balance_error(const World& w, int k, const Balance& b, const double* p, double* error) {
    double inflow[MAX_OIL_NODES], flow_decrease;
    for (int i = 0; i < b.nodes; ++i) inflow[i] = 0.0;
    AddFlow add = {p, inflow};
    visit_branches(w, k, add);
    for (int n = 0; n < w.oil_pump_count(); ++n)
        if (int(w.oil_pump_circuit(n)) == k) {
            const int at = index_in_circuit(w, w.oil_pump_node(n));
            inflow[at] += pump_flow(w, n, p[at], &flow_decrease);
        }
    for (int i = 0; i < b.nodes; ++i)
        error[i] = b.fixed[i] ? 0.0 : b.capacity[i] * (p[i] - b.pressure[i]) - inflow[i] + b.load[i];
}
GPUSIM_SHARED void balance_matrix(const World& w, int k, const Balance& b, const double* p, double* matrix) {
    double flow_decrease;
    for (int i = 0; i < b.nodes; ++i)
        for (int j = 0; j < b.nodes; ++j) matrix[i * MAX_OIL_NODES + j] = 0.0;
    AddSlope add = {p, matrix};
    visit_branches(w, k, add);
    for (int n = 0; n < w.oil_pump_count(); ++n)
        if (int(w.oil_pump_circuit(n)) == k) {
            const int at = index_in_circuit(w, w.oil_pump_node(n));
            pump_flow(w, n, p[at], &flow_decrease);
            matrix[at * MAX_OIL_NODES + at] += flow_decrease;
        }
    for (int i = 0; i < b.nodes; ++i) {
        for (int j = 0; b.fixed[i] && j < b.nodes; ++j) matrix[i * MAX_OIL_NODES + j] = 0.0;
        matrix[i * MAX_OIL_NODES + i] += b.fixed[i] ? 1.0 : b.capacity[i];
    }
}
// Solve A x = b in place for ``columns`` right-hand sides. A is diagonally dominant, so no pivoting is needed.
GPUSIM_SHARED void solve_balance(int nodes, double* matrix, double* right, int columns, int width) {
    for (int p = 0; p < nodes; ++p)
        for (int i = p + 1; i < nodes; ++i) {
            const double factor = matrix[i * MAX_OIL_NODES + p] / matrix[p * MAX_OIL_NODES + p];
            if (factor == 0.0) continue;
            for (int j = p; j < nodes; ++j) matrix[i * MAX_OIL_NODES + j] -= factor * matrix[p * MAX_OIL_NODES + j];
            for (int c = 0; c < columns; ++c) right[i * width + c] -= factor * right[p * width + c];
        }
    for (int i = nodes - 1; i >= 0; --i)
        for (int c = 0; c < columns; ++c) {
            double sum = right[i * width + c];
            for (int j = i + 1; j < nodes; ++j) sum -= matrix[i * MAX_OIL_NODES + j] * right[j * width + c];
            right[i * width + c] = sum / matrix[i * MAX_OIL_NODES + i];
        }
}
// Return the slope of the line search at the fraction ``fraction`` of the step -move.
GPUSIM_SHARED double slope_along(const World& w, int k, const Balance& b, const double* p, const double* move, double fraction) {
    double ahead[MAX_OIL_NODES], error[MAX_OIL_NODES], sum = 0.0;
    for (int i = 0; i < b.nodes; ++i) ahead[i] = p[i] - fraction * move[i];
    balance_error(w, k, b, ahead, error);
    for (int i = 0; i < b.nodes; ++i) sum += error[i] * move[i];
    return -sum;
}
// Line search: return the fraction (0 to 1) of the step -move to apply.
GPUSIM_SHARED double newton_step_fraction(const World& w, int k, const Balance& b, const double* p, const double* move, double initial_slope) {
    const double tolerance = OIL_OVERSHOOT * abs_(initial_slope);
    double low = 0.0, slope_low = initial_slope, high = 1.0, slope_high = slope_along(w, k, b, p, move, 1.0), fraction = 1.0;
    for (int n = 0; n < OIL_SECANTS && slope_high > tolerance; ++n) {
        fraction = low + clamped(-slope_low / (slope_high - slope_low), OIL_MARGIN, 1.0 - OIL_MARGIN) * (high - low);
        const double slope = slope_along(w, k, b, p, move, fraction);
        if (abs_(slope) <= tolerance) break;
        if (slope > 0.0) {
            high = fraction;
            slope_high = slope;
        } else {
            low = fraction;
            slope_low = slope;
        }
    }
    return fraction;
}
// Compute a Newton step in which no pressure falls below the vapor pressure. Nodes in ``is_at_vapor`` keep the vapor pressure.
GPUSIM_SHARED void bounded_move(const World& w, int k, const Balance& b, const double* p, const double* error, double* matrix, double* move,
                                bool* is_at_vapor) {
    for (int i = 0; i < b.nodes; ++i) is_at_vapor[i] = !b.fixed[i];
    for (bool released = true; released;) {
        balance_matrix(w, k, b, p, matrix);
        for (int i = 0; i < b.nodes; ++i) {
            move[i] = is_at_vapor[i] ? p[i] - b.vapor : error[i];
            for (int j = 0; is_at_vapor[i] && j < b.nodes; ++j) matrix[i * MAX_OIL_NODES + j] = i == j ? 1.0 : 0.0;
        }
        solve_balance(b.nodes, matrix, move, 1, 1);
        balance_matrix(w, k, b, p, matrix);
        released = false;
        for (int i = 0; i < b.nodes; ++i) {
            double sum = 0.0;
            for (int j = 0; is_at_vapor[i] && j < b.nodes; ++j) sum += matrix[i * MAX_OIL_NODES + j] * move[j];
            if (is_at_vapor[i] && error[i] - sum < 0.0) {
                is_at_vapor[i] = false;
                released = true;
            }
        }
    }
}
// Solve for pressures at or above the vapor pressure by Newton's method, in place.
// ``error`` is the flow into voids (m3/s).
GPUSIM_SHARED void solve_cavitating_balance(const World& w, int k, const Balance& b, double* p, double* error, double* matrix) {
    double move[MAX_OIL_NODES];
    bool is_at_vapor[MAX_OIL_NODES];
    for (int i = 0; i < b.nodes; ++i)
        if (!b.fixed[i]) p[i] = max_(p[i], b.vapor);
    for (int n = 0; n < OIL_ITERATIONS; ++n) {
        balance_error(w, k, b, p, error);
        bounded_move(w, k, b, p, error, matrix, move, is_at_vapor);
        double initial_slope = 0.0, max_move = 0.0, max_pressure = 0.0;
        for (int i = 0; i < b.nodes; ++i) initial_slope += error[i] * move[i];
        const double fraction = newton_step_fraction(w, k, b, p, move, -initial_slope);
        for (int i = 0; i < b.nodes; ++i) {
            if (!b.fixed[i]) p[i] = is_at_vapor[i] && fraction == 1.0 ? b.vapor : max_(p[i] - fraction * move[i], b.vapor);
            max_move = max_(max_move, abs_(fraction * move[i]));
            max_pressure = max_(max_pressure, abs_(p[i]));
        }
        if (!(max_move > OIL_PRECISION * max_pressure)) break;
    }
    balance_error(w, k, b, p, error);
    for (int i = 0; i < b.nodes; ++i)
        if (b.fixed[i] || p[i] > b.vapor || !(error[i] > 0.0)) error[i] = 0.0;
}
#endif
