// Linear and torsion spring-dampers (gpusim/actuators/spring.py).
#pragma once
#include "../actuate.cuh"

GPUSIM_FN void spring_evaluate(const World& w, int k, ActuatorTerm& term) {
    const int axis = w.spring_axis()[k];
    const double elongation = double(w.axis_position()[axis]) - w.spring_rest_length(k);
    spring_law(w, axis, w.spring_stiffness(k), w.spring_damping(k), elongation, &term.impulse, &term.slope);
}
GPUSIM_FN void torsion_spring_evaluate(const World& w, int k, ActuatorTerm& term) {
    const int axis = w.torsion_spring_axis()[k];
    const double elongation = double(w.axis_position()[axis]) - w.torsion_spring_rest_length(k);
    spring_law(w, axis, w.torsion_spring_stiffness(k), w.torsion_spring_damping(k), elongation, &term.impulse, &term.slope);
}
