// Tables of a triangle mesh (gpusim/meshes/triangle_tree.py), and its tree of boxes.
#pragma once
#include "shape.cuh"

#define MESH_LEAF 4      // triangles in a leaf
#define MESH_GRID 65535.0  // steps of the boxes' grid along each side of the mesh

// The tree holds the first num_solid triangles. The others belong to neighbor shapes, and only end edges and corners.
struct MeshTables {
    const int *corners, *beyond, *fan_start, *nodes, *fan;  // of triangles, triangles, vertices, the tree, vertices
    int num_solid, num_nodes;
};
GPUSIM_FN void mesh_tables(const Shape& mesh, MeshTables& m) {
    const int triangles = int(mesh.size[6]), vertices = int(mesh.size[7]);
    m.num_solid = mesh.face_vertex[0];
    m.num_nodes = 2 * ((m.num_solid + MESH_LEAF - 1) / MESH_LEAF) - 1;
    m.corners = mesh.face_vertex + 1;
    m.beyond = m.corners + 3 * triangles;
    m.fan_start = m.beyond + 3 * triangles;
    m.nodes = m.fan_start + vertices + 1;
    m.fan = m.nodes + 4 * m.num_nodes;
}
// Return the step of the grid along axis k, m. A flat mesh has a grid too.
GPUSIM_FN double mesh_step(const double* size, int k) {
    const double most = max_(max_(size[3] - size[0], size[4] - size[1]), size[5] - size[2]);
    return max_(size[3 + k] - size[k], max_(1e-6 * most, 1e-12)) / MESH_GRID;
}
// Get side k of a node's box, in steps of the grid: 0 to 2 lower, 3 to 5 upper.
GPUSIM_FN int mesh_side(const int* node, int k) {
    const unsigned word = unsigned(node[k / 2]);
    return int(k % 2 ? word >> 16 : word & 65535u);
}
