// Get a shape from the tables (gpusim/backends/contact_tables.py), without its pose.
#pragma once
#include "world.cuh"
#include "../collide/shape.cuh"

GPUSIM_FN void describe_shape(const World& w, int i, Shape& s) {
    const int face = w.shape_face_start()[i], point = w.shape_point_start()[i];
    const int numbers = w.shape_point_start()[i + 1] - point;
    s.kind = w.shape_kind()[i];
    s.num_points = s.kind == SHAPE_HULL ? numbers / 3 : numbers;
    s.num_faces = w.shape_face_start()[i + 1] - face - 1;
    s.size = w.shape_size() + 8 * i;
    s.points = w.shape_points() + point;
    s.face_first = w.face_first() + face;
    s.face_vertex = w.face_vertex() + w.shape_vertex_start()[i];
    s.face_normal = w.face_normal() + 3 * (face - i);
}
