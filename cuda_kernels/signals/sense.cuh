// Stage sense: sums of forces over the substeps of a step (gpusim/reference/signals/sense.py).
#pragma once
#include "../solve/contact_direct.cuh"
#include "../solve/drift.cuh"

// Compute the mean wrench of the child on the parent over the kicks so far, in the parent's joint frame.
GPUSIM_PHASE void sense_joint(const World& w, int i) {
    const int c = w.joint_sensor_constraint()[i], at = w.joint_sensor_coordinate()[i], n = w.block();
    const int a = w.coordinate_body_a()[at];
    const real* rows = w.jacobian() + (long long)c * w.slots() * n * 6;
    double wrench[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, arm[3], vector[3], frame[9];
    for (int j = 0; j < n; ++j) {
        const double impulse = double(w.solved()[c * n + j]);
        for (int k = 0; k < 6; ++k) wrench[k] += impulse * double(rows[6 * j + k]);
    }
    const double kick = double(kick_time(w)), weight = kick / *w.sensed_time();
    for (int k = 0; k < 6; ++k) wrench[k] = kick > 0.0 ? wrench[k] / kick : 0.0;
    rotate3(w.rotation() + 9 * a, w.coordinate_arm_a() + 3 * at, arm);
    cross3(arm, wrench, vector);
    for (int k = 0; k < 3; ++k) wrench[3 + k] -= vector[k];
    matrix_from_quaternion(w.coordinate_frame_a() + 4 * at, frame);
    for (int part = 0; part < 2; ++part) {
        rotate_back3(w.rotation() + 9 * a, wrench + 3 * part, vector);
        rotate_back3(frame, vector, vector);
        for (int k = 0; k < 3; ++k) {
            stored& mean = w.sensed_wrench()[6 * i + 3 * part + k];
            const double before = double(mean);
            mean = stored(*w.sensed_substeps() == 1 ? vector[k] : before + weight * (vector[k] - before));
        }
    }
}
// Remove the limits of a joint if its mean force or torque in the complete step was too large.
GPUSIM_PHASE void break_joint(const World& w, int i) {
    const stored* load = w.sensed_wrench() + 6 * i;
    for (int part = 0; part < 2 && *w.sensed_substeps() == w.substeps(); ++part, load += 3) {
        const double max_load = w.joint_sensor_break()[2 * i + part];
        const double x = double(load[0]), y = double(load[1]), z = double(load[2]);
        if (x * x + y * y + z * z > max_load * max_load) w.joint_slack()[i] = det::detail::infinity();
    }
}
// Sum the negative impulses along the i-th joint with a tension over the substeps so far (gpusim/model/ropes.py).
GPUSIM_PHASE void sense_pull(const World& w, int i) {
    double total = 0.0, &sum = w.sensed_pull()[i];
    for (int k = w.tension_start()[i]; k < w.tension_start()[i + 1]; ++k)
        total -= w.tension_weight()[k] * double(w.solved()[w.tension_row()[k]]);
    sum = *w.sensed_substeps() == 1 ? total : sum + total;
}
// Add the impulse and angular impulse of a pair on shape A (side 0) or B in this substep, including bounces.
GPUSIM_FN void add_sensed_pair(const World& w, int m, int side, double* total) {
    const ReadLane r = read_record(w, m);
    const double sign = side ? 1.0 : -1.0;
    const int points = w.pair_points()[m];
    double sum[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, middle[3] = {0.0, 0.0, 0.0}, impulse[3], moment[3];
    stored world_impulse[3];
    for (int k = 0; k < points; ++k) {
        const ReadLane p = point_record(r, k);
        double arm[3];
        from_frame(r, p[AT_IMPULSE], p[AT_IMPULSE + 1], p[AT_IMPULSE + 2], world_impulse);
        for (int j = 0; j < 3; ++j) {
            impulse[j] = sign * double(world_impulse[j]);
            arm[j] = double(stored(p[AT_ARM_BEFORE + 3 * side + j]));
            middle[j] += arm[j];
        }
        cross3(arm, impulse, moment);
        for (int j = 0; j < 3; ++j) {
            sum[j] += impulse[j];
            sum[3 + j] += moment[j];
        }
    }
    from_frame(r, real(0), r[AT_SHEAR], r[AT_SHEAR + 1], world_impulse);
    for (int j = 0; j < 3; ++j) {
        middle[j] /= double(points > 1 ? points : 1);
        impulse[j] = sign * double(world_impulse[j]);
    }
    cross3(middle, impulse, moment);
    from_frame(r, r[AT_TORQUE], r[AT_TORQUE + 1], r[AT_TORQUE + 2], world_impulse);
    for (int j = 0; j < 3; ++j) {
        total[j] += sum[j] + impulse[j];
        total[3 + j] += sum[3 + j] + (moment[j] + sign * double(world_impulse[j]));
    }
}
// Sum the impulses and angular impulses of all contacts on a body with a sensor, over the substeps so far.
GPUSIM_PHASE void sense_contact(const World& w, int i) {
    const int body = w.contact_sensor_body()[i];
    double total[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
#if GPUSIM_SHAPES
    for (int m = 0; touches(w) && m < *w.pair_count(); ++m) {
        if (!w.pair_points()[m]) continue;
        for (int side = 0; side < 2; ++side)
            if (w.shape_body()[w.pair_shapes()[2 * m + side]] == body) add_sensed_pair(w, m, side, total);
    }
#endif
    for (int k = 0; k < 6; ++k) {
        double& sum = w.sensed_contact()[6 * i + k];
        sum = *w.sensed_substeps() == 1 ? total[k] : sum + total[k];
    }
}
