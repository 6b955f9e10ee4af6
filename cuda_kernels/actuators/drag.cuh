// Drag of bodies in a fluid, with MuJoCo's inertia-box model (equations: gpusim/actuators/drag.py).
#pragma once
#include "../actuate.cuh"

// Return the part of the relative velocity change in a kick (factor * response) that exceeds 1/2.
GPUSIM_FN double excess_over_half(double factor, double response) { return max_(factor * response - 0.5, 0.0); }
// Return the force or torque along one axis of the box.
GPUSIM_FN double resistance(double viscous, double quadratic, double response, double last, double change) {
    const double v = last + change / (1.0 + excess_over_half(viscous + quadratic * abs_(last), response));
    const double factor = viscous + quadratic * abs_(v);
    return -factor / (1.0 + excess_over_half(factor, response)) * v;
}
// Get (v, w) of a body at the previous half step, and extrapolate the change up to t.
GPUSIM_FN void drag_velocity(const World& w, int body, const double* inverse, double* last, double* change) {
    const double kick = *w.kick_before();
    const bool known = kick > 0.0 && !w.semi_implicit();
    const double extrapolation = known ? 0.5 * double(h_prev(w)) / kick : 0.0;
    double last_but_one[6], spin[3];
    for (int k = 0; k < 6; ++k) last_but_one[k] = double(w.velocity_before()[6 * body + k]);
    rotate3(inverse, last_but_one + 3, spin);
    for (int k = 0; k < 3; ++k) last_but_one[3 + k] = spin[k];
    for (int k = 0; k < 6; ++k) {
        last[k] = double(w.twist_before()[6 * body + k]);
        change[k] = extrapolation * (last[k] - last_but_one[k]);
    }
}
GPUSIM_SHARED void drag_push(const World& w, int n, double* force, double* torque) {
    const int body = w.drag_axis()[n];
    const double size[3] = {w.drag_size_x(n), w.drag_size_y(n), w.drag_size_z(n)};
    const double wind[3] = {w.drag_wind_x(n), w.drag_wind_y(n), w.drag_wind_z(n)};
    const double q[4] = {w.drag_rotation_x(n), w.drag_rotation_y(n), w.drag_rotation_z(n), w.drag_rotation_w(n)};
    const double density = w.drag_density(n), viscosity = w.drag_viscosity(n), kick = kick_time(w);
    double box_rotation[9], box[9], last[6], change[6], inverse[9], v[6], ahead[6], box_force[3], box_torque[3];
    matrix_from_quaternion(q, box_rotation);
    product33(w.rotation() + 9 * body, box_rotation, box);
    for (int k = 0; k < 9; ++k) inverse[k] = double(w.inertia_inverse()[9 * body + k]);
    drag_velocity(w, body, inverse, last, change);
    for (int k = 0; k < 3; ++k) last[k] = last[k] - wind[k];
    for (int part = 0; part < 6; part += 3) {
        rotate_back3(box, last + part, v + part);
        rotate_back3(box, change + part, ahead + part);
    }
    const double diameter = (size[0] + size[1] + size[2]) / 3.0, cube = diameter * diameter * diameter;
    for (int k = 0; k < 3; ++k) {
        const double i = size[(k + 1) % 3], j = size[(k + 2) % 3], quartic = i * i * i * i + j * j * j * j;
        const double axis[3] = {box[k], box[3 + k], box[6 + k]};
        double response[3];
        rotate3(inverse, axis, response);
        box_force[k] = resistance(3.0 * det::PI * diameter * viscosity, 0.5 * density * i * j, kick * double(w.inverse_mass()[body]), v[k], ahead[k]);
        box_torque[k] = resistance(det::PI * cube * viscosity, density * size[k] * quartic / 64.0, kick * dot3(axis, response), v[3 + k], ahead[3 + k]);
    }
    rotate3(box, box_force, box_force);
    rotate3(box, box_torque, box_torque);
    for (int k = 0; k < 3; ++k) {
        force[k] += box_force[k];
        torque[k] += box_torque[k];
    }
}
