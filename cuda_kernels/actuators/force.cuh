// Forces and torques on bodies (gpusim/actuators/force.py).
#pragma once
#include "../actuate.cuh"

GPUSIM_FN void in_world_frame(const World& w, int body, bool in_body_frame, double scale, double* vector) {
    if (in_body_frame) rotate3(w.rotation() + 9 * body, vector, vector);
    for (int k = 0; k < 3; ++k) vector[k] = scale * vector[k];
}
GPUSIM_FN void force_push(const World& w, int k, double* force, double* torque) {
    const int body = w.force_axis()[k];
    double applied[3] = {w.force_force_x(k), w.force_force_y(k), w.force_force_z(k)};
    double arm[3] = {w.force_point_x(k), w.force_point_y(k), w.force_point_z(k)}, moment[3];
    double pair[3] = {w.force_torque_x(k), w.force_torque_y(k), w.force_torque_z(k)};
    const double scale = mean_command(w, w.force_scale_before(k), w.force_scale_now(k));
    in_world_frame(w, body, w.force_in_body_frame(k) > 0.5, scale, applied);
    in_world_frame(w, body, w.force_in_body_frame(k) > 0.5, scale, pair);
    rotate3(w.rotation() + 9 * body, arm, arm);
    cross3(arm, applied, moment);
    for (int c = 0; c < 3; ++c) {
        force[c] += applied[c];
        torque[c] += moment[c] + pair[c];
    }
}
GPUSIM_FN void torque_push(const World& w, int k, double* force, double* torque) {
    const int body = w.torque_axis()[k];
    double applied[3] = {w.torque_torque_x(k), w.torque_torque_y(k), w.torque_torque_z(k)};
    in_world_frame(w, body, w.torque_in_body_frame(k) > 0.5, mean_command(w, w.torque_scale_before(k), w.torque_scale_now(k)), applied);
    for (int c = 0; c < 3; ++c) torque[c] += applied[c];
}
