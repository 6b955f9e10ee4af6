// Tables of a triangle mesh (gpusim/meshes/triangle_tree.py), and its tree of boxes.
#pragma once
#include "shape.cuh"

#define MESH_LEAF 4      // triangles in a leaf
#define MESH_GRID 65535.0  // number of grid steps along each side of the mesh. Boxes are on this grid

// The tree contains the first num_solid triangles. All later triangles belong to neighbor shapes.
struct MeshTables {
    const int* corners;    // three vertices of each triangle
    const int* opposite;   // for each edge, the far vertex of the adjacent triangle, or -1
    const int* fan_start;  // vertex v has the triangles fan[fan_start[v] .. fan_start[v + 1])
    const int* nodes;      // tree of boxes
    const int* fan;        // triangles around each vertex
    int num_solid, num_nodes;
};
GPUSIM_FN void mesh_tables(const Shape& mesh, MeshTables& m) {
    const int triangles = int(mesh.size[6]), vertices = int(mesh.size[7]);
    m.num_solid = mesh.face_vertex[0];
    m.num_nodes = 2 * ((m.num_solid + MESH_LEAF - 1) / MESH_LEAF) - 1;
    m.corners = mesh.face_vertex + 1;
    m.opposite = m.corners + 3 * triangles;
    m.fan_start = m.opposite + 3 * triangles;
    m.nodes = m.fan_start + vertices + 1;
    m.fan = m.nodes + 4 * m.num_nodes;
}
// Return the grid step along axis k (m). The step is also positive for flat meshes.
GPUSIM_FN double mesh_step(const double* size, int k) {
    const double max_side = max_(max_(size[3] - size[0], size[4] - size[1]), size[5] - size[2]);
    return max_(size[3 + k] - size[k], max_(1e-6 * max_side, 1e-12)) / MESH_GRID;
}
// Get side k of the box of a node, in grid steps. k is 0 to 2 for lower sides, and 3 to 5 for upper sides.
GPUSIM_FN int mesh_box_side(const int* node, int k) {
    const unsigned word = unsigned(node[k / 2]);
    return int(k % 2 ? word >> 16 : word & 65535u);
}
