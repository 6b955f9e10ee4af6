// Euler angles (equations: gpusim/model/euler_angles.py).
#pragma once
#include "rotations.cuh"
#include "world.cuh"

// Replace the axis u of a rotation by the direction that gives its rate. ``other`` is the axis in the other body.
GPUSIM_FN void ordered_direction(bool middle, double* u, const double* other) {
    if (middle) {
        double across[3];
        cross3(u, other, across);
        const double length = norm3(across), by = choose(length > 1e-12, length, double(1.0));
        for (int k = 0; k < 3; ++k) u[k] = across[k] / by;
        return;
    }
    const double sine = dot3(u, other), square = 1.0 - sine * sine, by = choose(square > GIMBAL_LOCK, square, double(GIMBAL_LOCK));
    for (int k = 0; k < 3; ++k) u[k] = (u[k] - sine * other[k]) / by;
}
// Return the angle from a to b about the axis, between -pi and pi. All vectors are in the world frame. For the middle
// rotation, return the elevation of b above the plane perpendicular to a.
GPUSIM_FN double reference_angle(bool middle, const double* axis, const double* a, const double* b) {
    double side[3];
    cross3(a, b, side);
    return middle ? det::atan2(dot3(a, b), norm3(side)) : det::atan2(dot3(axis, side), dot3(a, b));
}
