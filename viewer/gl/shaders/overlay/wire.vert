// Edges of the meshes of all instances; see solid.vert.

layout(location = 0) in vec3 vertex;
layout(location = 2) in vec4 row_x;
layout(location = 3) in vec4 row_y;
layout(location = 4) in vec4 row_z;

uniform mat4 to_clip;
uniform vec4 color;

out vec4 flat_color;

void main() {
    vec4 local = vec4(vertex, 1.0);
    vec3 position = vec3(dot(row_x, local), dot(row_y, local), dot(row_z, local));
    flat_color = color;
    gl_Position = to_clip * vec4(position * 0.999, 1.0);
}
