// Instances of a mesh: each has an affine transform to eye-relative world axes, a color and a finish.

layout(location = 0) in vec3 vertex;
layout(location = 1) in vec3 vertex_normal;
layout(location = 2) in vec4 row_x;
layout(location = 3) in vec4 row_y;
layout(location = 4) in vec4 row_z;
layout(location = 5) in vec4 instance_color;  // linear rgb, opacity
layout(location = 6) in vec3 instance_finish; // roughness, metal, difference of tones

#ifdef DRESSED
layout(location = 8) in vec3 vertex_texcoords;
layout(location = 9) in vec4 vertex_color; // sRGB
out vec3 texcoords;
out vec3 painted;
#endif

uniform mat4 to_clip;
uniform int glass;  // 1: glass instances, 0: all other instances

out vec3 position;
out vec3 normal;
flat out vec4 color;
flat out vec3 finish;
out vec2 around_axis;

void main() {
    vec4 local = vec4(vertex, 1.0);
    position = vec3(dot(row_x, local), dot(row_y, local), dot(row_z, local));
    // normals transform with the inverse transpose
    vec3 stretch = row_x.xyz * row_x.xyz + row_y.xyz * row_y.xyz + row_z.xyz * row_z.xyz;
    vec3 n = vertex_normal / stretch;
    normal = vec3(dot(row_x.xyz, n), dot(row_y.xyz, n), dot(row_z.xyz, n));
    color = instance_color;
    finish = instance_finish;
    around_axis = vertex.xy;
#ifdef DRESSED
    texcoords = vertex_texcoords;
    painted = pow(vertex_color.rgb, vec3(2.2));
#endif
    bool drawn = (instance_color.a < 1.0) == (glass == 1);
    gl_Position = drawn ? to_clip * vec4(position, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
}
