// Ray against a height field: traverse the grid cells along the line (gpusim/shapes/height_field.py). The height of the
// line above a triangle is a linear function of s.
#pragma once
#include "ray.cuh"

#define FIELD_BOTTOM 5  // number of the bottom face. Side faces have 0 to 3, as for a box

// Line on the grid. Column and row at s are at[k] + s rate[k].
struct FieldLine {
    double at[2], rate[2];
    int cells[2];
};
GPUSIM_FN FieldLine field_line(const Shape& s, const Ray& r) {
    FieldLine g;
    for (int k = 0; k < 2; ++k) {
        g.cells[k] = int(s.size[k]) - 1;
        g.at[k] = r.origin[k] / s.size[2 + k] + 0.5 * (s.size[k] - 1.0);
        g.rate[k] = r.direction[k] / s.size[2 + k];
    }
    return g;
}
GPUSIM_FN int field_cell(const FieldLine& g, int k, double s) {
    const int cell = int(clamped(g.at[k] + s * g.rate[k], 0.0, double(g.cells[k])));
    return cell < g.cells[k] ? cell : g.cells[k] - 1;
}
// Plane of a triangle: its height at the corner of the cell, and its slopes along columns and rows.
struct FieldPlane {
    double corner, slope[2];
};
// Return the plane of the triangle below the line at ``at``.
GPUSIM_FN FieldPlane field_plane(const Shape& s, const FieldLine& g, const int* cell, double at) {
    const int columns = g.cells[0] + 1;
    const double* h = s.points + cell[1] * columns + cell[0];
    const double x = g.at[0] - cell[0] + at * g.rate[0], y = g.at[1] - cell[1] + at * g.rate[1];
    const double across = h[columns + 1];
    FieldPlane p = {h[0], {h[1] - h[0], across - h[1]}};
    if (x < y) {
        p.slope[0] = across - h[columns];
        p.slope[1] = h[columns] - h[0];
    }
    return p;
}
GPUSIM_FN double height_over(const FieldPlane& p, const FieldLine& g, const int* cell, const Ray& r, double s) {
    const double x = g.at[0] - cell[0] + s * g.rate[0], y = g.at[1] - cell[1] + s * g.rate[1];
    return along(r, 2, s) - (p.corner + p.slope[0] * x + p.slope[1] * y);
}
// Return the s at which the line crosses the plane of a triangle between two points. The line crosses from above, or if
// ``sign`` is -1 from below.
GPUSIM_FN double cross_triangle(const Shape& s, const FieldLine& g, const int* cell, const Ray& r, double sign, double from,
                                double to, double* normal) {
    const FieldPlane p = field_plane(s, g, cell, 0.5 * (from + to));
    const double before = sign * height_over(p, g, cell, r, from), after = sign * height_over(p, g, cell, r, to);
    if (before > 0.0 && after > 0.0) return NO_HIT;
    normal[0] = -p.slope[0] / s.size[2];
    normal[1] = -p.slope[1] / s.size[3];
    normal[2] = 1.0;
    return before > 0.0 ? from + (to - from) * (before / (before - after)) : from;
}
// Return the s at which the line crosses the triangles of a cell, between two points above the cell.
GPUSIM_FN double cross_cell(const Shape& s, const FieldLine& g, const int* cell, const Ray& r, double sign, double from,
                            double to, double* normal) {
    const double offset = (g.at[0] - cell[0]) - (g.at[1] - cell[1]), rate = g.rate[0] - g.rate[1];
    const double split = rate != 0.0 ? -offset / rate : NO_HIT;
    if (!(split > from && split < to)) return cross_triangle(s, g, cell, r, sign, from, to, normal);
    const double found = cross_triangle(s, g, cell, r, sign, from, split, normal);
    return found < NO_HIT ? found : cross_triangle(s, g, cell, r, sign, split, to, normal);
}
// Return the s at which the line leaves a cell along axis k.
GPUSIM_FN double cell_end(const FieldLine& g, int k, int cell) {
    if (g.rate[k] == 0.0) return NO_HIT;
    return ((g.rate[k] > 0.0 ? cell + 1 : cell) - g.at[k]) / g.rate[k];
}
// Traverse all cells between two points of the line.
GPUSIM_FN double cross_field(const Shape& s, const FieldLine& g, const Ray& r, double sign, double from, double to,
                             double* normal) {
    int cell[2] = {field_cell(g, 0, from), field_cell(g, 1, from)};
    for (int step = 0; step < 2 * (g.cells[0] + g.cells[1]); ++step) {
        const double ends[2] = {cell_end(g, 0, cell[0]), cell_end(g, 1, cell[1])};
        const int k = ends[0] <= ends[1] ? 0 : 1;
        const double end = clamped(ends[k], from, to);
        const double found = cross_cell(s, g, cell, r, sign, from, end, normal);
        if (found < NO_HIT || !(ends[k] < to)) return found;
        cell[k] += g.rate[k] > 0.0 ? 1 : -1;
        if (cell[k] < 0 || cell[k] >= g.cells[k]) return NO_HIT;
        from = end;
    }
    return NO_HIT;
}
GPUSIM_SHARED double ray_height_field(const Shape& s, const Ray& r, double* normal) {
    const FieldLine g = field_line(s, r);
    Span walls = whole_line();
    for (int k = 0; k < 2; ++k) cut_slab(walls, r, k, 0.5 * (s.size[k] - 1.0) * s.size[2 + k]);
    cut_half(walls, s.size[4] - r.origin[2], -r.direction[2], FIELD_BOTTOM);
    if (is_empty(walls) || walls.leave < r.start) return NO_HIT;
    double from = max_(walls.enter, r.start), to = walls.leave;
    const int cell[2] = {field_cell(g, 0, from), field_cell(g, 1, from)};
    const bool solid = height_over(field_plane(s, g, cell, from), g, cell, r, from) <= 0.0;
    if (solid && walls.enter >= r.start) {
        face_normal_of(walls.enter_face, normal);
        return walls.enter;
    }
    // Above the highest point, the ray hits nothing.
    const double top = r.direction[2] != 0.0 ? (s.size[6] - r.origin[2]) / r.direction[2] : 0.0;
    if (!solid && r.direction[2] < 0.0) from = max_(from, top);
    if (r.direction[2] > 0.0) to = min_(to, max_(top + 1.0, from));
    const double found = from <= to ? cross_field(s, g, r, solid ? -1.0 : 1.0, from, to, normal) : NO_HIT;
    if (found < NO_HIT || !solid) return found;
    face_normal_of(walls.leave_face, normal);
    return walls.leave;
}
