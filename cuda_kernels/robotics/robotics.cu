// Inverse kinematics of many worlds, with one thread per world: damped least squares with priority levels (equations:
// gpusim/robotics/steps.py).
#include "robotics_tree.cuh"
#if !GPUSIM_GPU && defined(_OPENMP)
#include <omp.h>
// Vectorize a loop with independent iterations. The results do not change.
#define VECTORIZE _Pragma("omp simd")
#else
#define VECTORIZE
#endif
#define RESTRICT __restrict__

// Compute the errors and rows of all tasks and loops.
GPUSIM_FN void find_rows(const Robot& r, const RobotWork& w, const double* target) {
    for (int k = 0; k < r.rows * r.freedoms; ++k) w.jacobian[k] = 0.0;
    for (int e = 0; e < r.elements; ++e) w.error[e] = -element_row(r, w, e, true);
    for (int goal = 0; goal < r.goals; ++goal) goal_rows(r, w, goal, target + r.goal_target[goal]);
}
// For each level, compute the products of posture weights and distances to the target postures.
GPUSIM_FN void find_pulls(const Robot& r, const RobotWork& w, const double* targets) {
    for (int k = 0; k < r.levels * r.freedoms; ++k) w.pull[k] = 0.0;
    for (int p = 0; p < r.postures; ++p) {
        const double *target = targets + p * r.size, *weight = r.posture_weight + p * r.freedoms;
        double* pull = w.pull + r.posture_level[p] * r.freedoms;
        for (int m = 0; m < r.node_motion[r.nodes]; ++m) {
            const int at = r.motion_at[m], rate = r.motion_rate[m];
            if (r.motion_kind[m] != MOTION_BALL) {
                pull[rate] += weight[rate] * (target[at] - w.posture[at]);
                continue;
            }
            double from[4], to[4], rotation[3];
            for (int k = 0; k < 4; ++k) from[k] = w.posture[at + k];
            for (int k = 0; k < 4; ++k) to[k] = target[at + k];
            normalize4(from);
            normalize4(to);
            conjugate4(from, from);
            quaternion_product(to, from, to);
            rotation_vector_from_quaternion(to, rotation);
            for (int k = 0; k < 3; ++k) pull[rate + k] += weight[rate + k] * rotation[k];
        }
    }
}
// Compute the distances to the limits. Fix coordinates at a limit if the errors push the coordinates beyond the limit.
GPUSIM_FN void find_limits(const Robot& r, const RobotWork& w, int levels) {
    for (int j = 0; j < r.freedoms; ++j) {
        const int at = r.rate_at[j];
        w.low[j] = at < 0 ? -1e300 : min_(r.lower[j] - w.posture[at], 0.0);
        w.high[j] = at < 0 ? 1e300 : max_(r.upper[j] - w.posture[at], 0.0);
        double push = 0.0;
        for (int run = r.rate_run[j]; run < r.rate_run[j + 1]; ++run)
            for (int a = r.run_start[run]; a < r.run_end[run]; ++a)
                push += w.jacobian[j * r.rows + a] * (r.row_weight[a] * w.error[a]);
        for (int level = 0; level < levels; ++level) push += w.pull[level * r.freedoms + j];
        const bool held = (w.low[j] >= 0.0 && push < 0.0) || (w.high[j] <= 0.0 && push > 0.0);
        w.free[j] = r.rate_moves[j] && !held ? 1.0 : 0.0;
        w.fixed[j] = 0.0;
    }
}
GPUSIM_FN void find_levers(const Robot& r, const RobotWork& w) {
    for (int j = 0; j < r.freedoms; ++j)
        for (int at = r.rate_group_start[j]; at < r.rate_group_start[j + 1]; ++at) {
            const int group = r.rate_group[at];
            double square = 0.0;
            for (int a = r.group[group]; a < r.group[group + 1]; ++a) {
                const double entry = w.jacobian[j * r.rows + a];
                square += entry * entry;
            }
            w.lever[j * r.groups + group] = sqrt_(square);
        }
}
GPUSIM_FN double group_length(const Robot& r, int group, const double* vectors, const double* weight) {
    double square = 0.0;
    for (int a = r.group[group]; a < r.group[group + 1]; ++a) {
        const double entry = weight ? weight[a] * vectors[a] : vectors[a];
        square += entry * entry;
    }
    return sqrt_(square);
}
// Compute the damping D of a level. ``column`` contains the weight of each group.
GPUSIM_FN void find_damping(const Robot& r, const RobotWork& w, int level, double caution) {
    for (int group = 0; group < r.groups; ++group) {
        const int first = r.group_level[group];
        double count = 0.0;
        if (first == level) count = r.own_curvature * group_length(r, group, w.error, r.row_weight);
        if (first < level) count = r.kept_curvature * group_length(r, group, w.force + level * r.rows, nullptr);
        w.column[group] = count;
    }
    for (int j = 0; j < r.freedoms; ++j) {
        double sum = 0.0;
        for (int at = r.rate_group_start[j]; at < r.rate_group_start[j + 1]; ++at)
            sum += w.column[r.rate_group[at]] * w.lever[j * r.groups + r.rate_group[at]];
        w.damping[level * r.freedoms + j] = r.damping * r.damping + caution * sum;
    }
}
// Compute the lower triangle of C G C^T, and the right-hand side in ``force``.
GPUSIM_FN void assemble(const Robot& r, const RobotWork& w, int above, int end, double* y) {
    for (int a = 0; a < end; ++a) {
        y[a] = a < above ? 0.0 : w.error[a];
        for (int b = 0; b <= a; ++b) w.matrix[a * end + b] = 0.0;
    }
    for (int j = 0; j < r.freedoms; ++j) {
        const double *RESTRICT column = w.jacobian + j * r.rows, compliance = w.compliance[j], start = w.start[j];
        const double change = w.step[j] - start;
        const int first = r.rate_run[j], last = r.rate_run[j + 1];
        for (int run = first; run < last && r.run_start[run] < end; ++run) {
            const int low = r.run_start[run], high = r.run_end[run];
            for (int a = low; a < high; ++a) {
                y[a] += column[a] * (a < above ? change : -start);
                if (compliance == 0.0) continue;
                const double scaled = compliance * column[a];
                double* RESTRICT row = w.matrix + a * end;
                for (int other = first; other <= run; ++other) {
                    const int stop = other < run ? r.run_end[other] : a + 1;
                    VECTORIZE
                    for (int b = r.run_start[other]; b < stop; ++b) row[b] += scaled * column[b];
                }
            }
        }
    }
    for (int a = 0; a < end; ++a) {
        double& diagonal = w.matrix[a * end + a];
        diagonal += a < above ? r.kept * diagonal + 1e-200 : 1.0 / r.row_weight[a];
    }
}
// Solve matrix x = y in place by L D L^T. Two columns per loop halve the number of loads and stores.
GPUSIM_FN void solve_rows(const RobotWork& w, int n, double* RESTRICT y) {
    double *m = w.matrix, *RESTRICT first = w.column, *RESTRICT second = w.column + n;
    for (int k = 0; k < n; k += 2) {
        const double inverse = 1.0 / m[k * n + k];
        for (int i = k + 1; i < n; ++i) first[i] = m[i * n + k];
        if (k + 1 == n) break;
        const double next = first[k + 1] * inverse;
        m[(k + 1) * n + k] = next;
        m[(k + 1) * n + k + 1] -= next * first[k + 1];
        y[k + 1] -= next * y[k];
        for (int i = k + 2; i < n; ++i) second[i] = m[i * n + k + 1] - next * first[i];
        const double inverse_next = 1.0 / m[(k + 1) * n + k + 1];
        for (int i = k + 2; i < n; ++i) {
            const double f = first[i] * inverse, g = second[i] * inverse_next;
            double* RESTRICT row = m + i * n;
            row[k] = f;
            row[k + 1] = g;
            VECTORIZE
            for (int j = k + 2; j <= i; ++j) row[j] -= f * first[j] + g * second[j];
            y[i] -= f * y[k] + g * y[k + 1];
        }
    }
    for (int k = 0; k < n; ++k) y[k] = y[k] / m[k * n + k];
    for (int k = n - 1; k > 0; --k) {
        const double* RESTRICT row = m + k * n;
        const double known = y[k];
        VECTORIZE
        for (int i = 0; i < k; ++i) y[i] -= row[i] * known;
    }
}
// Compute the step of a level, starting from the step of the higher levels.
GPUSIM_SHARED void solve_level(const Robot& r, const RobotWork& w, int level) {
    const int above = r.level_start[level], end = r.level_start[level + 1];
    if (above == end && !r.level_pulls[level]) return;
    const double *damping = w.damping + level * r.freedoms, *stiffness = r.stiffness + level * r.freedoms;
    for (int j = 0; j < r.freedoms; ++j) {
        w.compliance[j] = w.free[j] != 0.0 ? 1.0 / (damping[j] + stiffness[j]) : 0.0;
        const double start = w.compliance[j] * (w.pull[level * r.freedoms + j] + damping[j] * w.step[j]);
        w.start[j] = w.free[j] != 0.0 ? start : w.fixed[j];
    }
    double* y = w.force + level * r.rows;
    if (end > 0) {
        assemble(r, w, above, end, y);
        solve_rows(w, end, y);
    }
    for (int j = 0; j < r.freedoms; ++j) {
        double sum = 0.0;
        for (int run = r.rate_run[j]; run < r.rate_run[j + 1] && r.run_start[run] < end; ++run)
            for (int a = r.run_start[run]; a < r.run_end[run]; ++a) sum += w.jacobian[j * r.rows + a] * y[a];
        w.step[j] = w.start[j] + w.compliance[j] * sum;
    }
}
// Fix coordinates that the step moves beyond a limit. Return whether the function fixed a coordinate.
GPUSIM_FN bool fix_at_limits(const Robot& r, const RobotWork& w) {
    bool reached = false;
    for (int j = 0; j < r.freedoms; ++j) {
        const bool under = w.step[j] < w.low[j], over = w.step[j] > w.high[j];
        if (w.free[j] == 0.0 || !(under || over)) continue;
        w.fixed[j] = under ? w.low[j] : w.high[j];
        w.free[j] = 0.0;
        reached = true;
    }
    return reached;
}
// Compute dq for tasks with one priority.
GPUSIM_FN void find_step(const Robot& r, const RobotWork& w, int levels, double caution) {
    find_levers(r, w);
    for (int level = 0; level < levels; ++level) find_damping(r, w, level, caution);
    for (int pass = 1; pass <= r.max_passes; ++pass) {
        for (int j = 0; j < r.freedoms; ++j) w.step[j] = w.fixed[j];
        for (int level = 0; level < levels; ++level) solve_level(r, w, level);
        if (pass == r.max_passes) break;
        if (!fix_at_limits(r, w)) break;
    }
    for (int j = 0; j < r.freedoms; ++j) w.step[j] = clamped(w.step[j], w.low[j], w.high[j]);
}
GPUSIM_FN void move_posture(const Robot& r, const RobotWork& w) {
    for (int m = 0; m < r.node_motion[r.nodes]; ++m) {
        double* q = w.posture + r.motion_at[m];
        const int rate = r.motion_rate[m];
        if (r.motion_kind[m] != MOTION_BALL) {
            *q = clamped(*q + w.step[rate], r.lower[rate], r.upper[rate]);
            continue;
        }
        double rotation[4], unit[4] = {q[0], q[1], q[2], q[3]};
        normalize4(unit);
        quaternion_from_rotation_vector(w.step + rate, rotation);
        quaternion_product(rotation, unit, q);
        normalize4(q);
    }
}
// Compute the errors after ``step``. The nodes then contain the poses after the step.
GPUSIM_FN void try_step(const Robot& r, const RobotWork& w, const double* target, const double* mass) {
    for (int k = 0; k < r.size; ++k) w.before[k] = w.posture[k];
    move_posture(r, w);
    move_nodes(r, w);
    accumulate_masses(r, w, mass);
    for (int e = 0; e < r.elements; ++e) w.trial_error[e] = -element_row(r, w, e, false);
    double position[3], errors[6];
    for (int goal = 0; goal < r.goals; ++goal) {
        goal_errors(r, w, goal, target + r.goal_target[goal], position, errors);
        for (int k = 0; k < (r.goal_kind[goal] == GOAL_POSE ? 6 : 3); ++k)
            if (r.goal_row[6 * goal + k] >= 0) w.trial_error[r.goal_row[6 * goal + k]] = errors[k];
    }
    for (int k = 0; k < r.size; ++k) w.posture[k] = w.before[k];
}
// Return the fraction of the step that a level may add. ``trial_error``: errors after the whole step. ``linear_gain``:
// error reduction by the higher levels, to first order.
GPUSIM_FN double allowed_fraction(const Robot& r, const RobotWork& w, int level, double leak, double fraction) {
    double ratio = 1.0;
    for (int other = 0; other < level; ++other) {
        double better = 0.0, cost = 0.0;
        for (int a = r.level_start[other]; a < r.level_start[other + 1]; ++a) {
            const double off = w.trial_error[a] - (w.full_error[a] - w.linear_gain[a]);
            better += w.linear_gain[a] * w.linear_gain[a];
            cost += off * off;
        }
        const double allowed = leak + fraction * sqrt_(better);
        ratio = min_(ratio, allowed / max_(sqrt_(cost), allowed));
    }
    return sqrt_(ratio);
}
// Shorten the step that a level adds to ``step_above``, to limit the increase of errors of higher levels.
GPUSIM_SHARED void shorten_step(const Robot& r, const RobotWork& w, int level, int remaining, const double* target,
                                const double* mass) {
    const int rows = r.level_start[level];
    // A level with more levels above it stops disturbing them earlier.
    const int final_iterations = r.finishing * (level - 1), half = (r.iterations + 1) / 2;
    const int finish_count = (final_iterations < half ? final_iterations : half) - remaining + 1;
    double leak = r.leak, fraction = 1.0;
    for (int k = 0; k < finish_count && k < r.finishing; ++k) leak = leak * r.finer;
    for (int a = 0; a < rows; ++a) w.linear_gain[a] = 0.0;
    for (int j = 0; j < r.freedoms; ++j) {
        const double start = w.step_above[j], added = w.step[j] - start, size = abs_(added);
        const double room = added < 0.0 ? start - w.low[j] : w.high[j] - start;
        if (size > room) fraction = min_(fraction, room / size);
        for (int a = 0; a < rows; ++a) w.linear_gain[a] += w.jacobian[j * r.rows + a] * start;
        w.added[j] = added;
    }
    for (int j = 0; j < r.freedoms; ++j) w.step[j] = w.step_above[j] + fraction * w.added[j];
    try_step(r, w, target, mass);
    fraction = fraction * allowed_fraction(r, w, level, leak, finish_count > 0 ? 0.0 : r.leak_share);
    for (int j = 0; j < r.freedoms; ++j) w.step[j] = w.step_above[j] + fraction * w.added[j];
}
// Limit the joint rotations in the step of a level to max_rotation.
GPUSIM_FN void limit_rotations(const Robot& r, const RobotWork& w) {
    double largest = r.max_rotation;
    for (int j = 0; j < r.freedoms; ++j)
        if (r.rate_rotates[j]) largest = max_(largest, abs_(w.step[j] - w.step_above[j]));
    const double scale = r.max_rotation / largest;
    for (int j = 0; j < r.freedoms; ++j) w.step[j] = w.step_above[j] + scale * (w.step[j] - w.step_above[j]);
}
// Find the free coordinates of a level. All other coordinates are at limits, and the level pushes these coordinates
// against the limits.
GPUSIM_FN void find_free(const Robot& r, const RobotWork& w, int level) {
    const int above = r.level_start[level], end = r.level_start[level + 1];
    const double* force = w.force + level * r.rows;
    for (int j = 0; j < r.freedoms; ++j) {
        double push = w.pull[level * r.freedoms + j];
        for (int run = r.rate_run[j]; run < r.rate_run[j + 1] && r.run_start[run] < end; ++run)
            for (int a = r.run_start[run]; a < r.run_end[run]; ++a)
                push += w.jacobian[j * r.rows + a] * (a < above ? force[a] : r.row_weight[a] * w.error[a]);
        const bool held = (w.low[j] >= -r.at_limit && push < 0.0) || (w.high[j] <= r.at_limit && push > 0.0);
        w.free[j] = r.rate_moves[j] && !held ? 1.0 : 0.0;
        w.fixed[j] = w.step_above[j] = w.step[j];
    }
}
// Limit the errors of all priorities after the first to max_way. The array ``full_error`` stores the original errors.
GPUSIM_FN void limit_errors(const Robot& r, const RobotWork& w) {
    for (int a = 0; a < r.rows; ++a) w.full_error[a] = w.error[a];
    for (int level = 2; level < r.levels; ++level) {
        double square = 0.0;
        for (int a = r.level_start[level]; a < r.level_start[level + 1]; ++a) square += w.error[a] * w.error[a];
        const double scale = r.max_way / max_(sqrt_(square), r.max_way);
        for (int a = r.level_start[level]; a < r.level_start[level + 1]; ++a) w.error[a] = w.error[a] * scale;
    }
}
// Compute dq for tasks with several priorities. Each level has separate limits, and must not increase errors of higher
// levels.
GPUSIM_FN void find_step_in_order(
    const Robot& r, const RobotWork& w, int levels, double caution, int remaining, const double* target,
    const double* mass) {
    limit_errors(r, w);
    find_levers(r, w);
    for (int level = 0; level < levels; ++level) find_damping(r, w, level, caution);
    for (int j = 0; j < r.freedoms; ++j) w.step[j] = 0.0;
    for (int level = 0; level < levels; ++level) {
        if (r.level_start[level] == r.level_start[level + 1] && !r.level_pulls[level]) continue;
        find_free(r, w, level);
        for (int pass = 1; pass <= r.max_passes; ++pass) {
            for (int j = 0; j < r.freedoms; ++j) w.step[j] = w.step_above[j];
            solve_level(r, w, level);
            if (level > 1) limit_rotations(r, w);
            if (pass == r.max_passes || !fix_at_limits(r, w)) break;
        }
        if (level > 1) shorten_step(r, w, level, remaining, target, mass);
        for (int j = 0; j < r.freedoms; ++j) {
            const double found = w.step[j];
            w.step[j] = found < w.low[j] + r.at_limit ? w.low[j] : (found > w.high[j] - r.at_limit ? w.high[j] : found);
        }
    }
}
GPUSIM_PHASE void solve_world(const Robot& r, int world, double* memory) {
    RobotWork w;
    assign_memory(r, memory, r.posture + (long long)world * r.size, w);
    const double* target = r.target + (long long)world * r.numbers;
    const double* postures = r.posture_target + (long long)world * r.postures * r.size;
    const double* mass = r.node_mass + (long long)world * r.nodes;
    for (int k = 0; k < r.levels * r.rows; ++k) w.force[k] = 0.0;
    for (int j = 0; j < r.freedoms; ++j) w.last[j] = w.step[j] = 0.0;
    double caution = 1.0;
    for (int number = 0; number < r.iterations; ++number) {
        const int levels = number >= r.iterations - r.without ? r.task_levels : r.levels;
        move_nodes(r, w);
        accumulate_masses(r, w, mass);
        find_rows(r, w, target);
        find_pulls(r, w, postures);
        find_limits(r, w, levels);
        if (r.guarded) find_step_in_order(r, w, levels, caution, r.iterations - number, target, mass);
        else find_step(r, w, levels, caution);
        double alignment = 0.0;
        for (int j = 0; j < r.freedoms; ++j) alignment += w.step[j] * w.last[j];
        caution = alignment < 0.0 ? min_(r.raised * caution, r.max_caution) : max_(r.lowered * caution, 1.0);
        for (int j = 0; j < r.freedoms; ++j) w.last[j] = w.step[j];
        move_posture(r, w);
    }
    move_nodes(r, w);
    accumulate_masses(r, w, mass);
    double greatest = 0.0, gap = 0.0, position[3];
    for (int j = 0; j < r.freedoms; ++j) greatest = max_(greatest, abs_(w.step[j]));
    for (int e = 0; e < r.elements; ++e) gap = max_(gap, abs_(element_row(r, w, e, false)));
    double* errors = r.error + (long long)world * r.errors;
    for (int goal = 0; goal < r.goals; ++goal)
        goal_errors(r, w, goal, target + r.goal_target[goal], position, errors + r.goal_error[goal]);
    r.step[world] = greatest;
    r.loops[world] = gap;
}

#if GPUSIM_GPU
GPUSIM_KERNEL void solve_worlds(const Robot* r, int threads) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int world = first; world < r->worlds; world += threads) solve_world(*r, world, r->memory + (long long)first * r->work);
}
#else
// Each thread has a part of the memory.
GPUSIM_KERNEL void solve_worlds(const Robot* r, int threads) {
#if defined(_OPENMP)
    if (threads > 1) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 8)
        for (int world = 0; world < r->worlds; ++world)
            solve_world(*r, world, r->memory + (long long)omp_get_thread_num() * r->work);
        return;
    }
#endif
    for (int world = 0; world < r->worlds; ++world) solve_world(*r, world, r->memory);
}
#endif
