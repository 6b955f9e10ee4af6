// Depth seen from the light.

layout(location = 0) in vec3 vertex;
layout(location = 2) in vec4 row_x;
layout(location = 3) in vec4 row_y;
layout(location = 4) in vec4 row_z;
layout(location = 5) in vec4 instance_color;  // instances with an opacity below 0.5 cast no shadow

uniform mat4 to_light_clip;

void main() {
    vec4 local = vec4(vertex, 1.0);
    vec4 clip = to_light_clip * vec4(dot(row_x, local), dot(row_y, local), dot(row_z, local), 1.0);
    gl_Position = instance_color.a < 0.5 ? vec4(2.0, 2.0, 2.0, 1.0) : clip;
}
