// Brake on a joint coordinate (gpusim/actuators/brake.py).
#pragma once
#include "../actuate.cuh"

GPUSIM_FN void brake_evaluate(const World& w, int k, ActuatorTerm& term) {
    const double command = mean_command(w, w.brake_command_before(k), w.brake_command_now(k));
    term.friction = double(kick_time(w)) * (w.brake_torque(k) * command);
}
