// Depth along the view axis and body indices, for camera sensors.

layout(location = 0) in vec3 vertex;
layout(location = 2) in vec4 row_x;
layout(location = 3) in vec4 row_y;
layout(location = 4) in vec4 row_z;
layout(location = 5) in vec4 instance_color;  // sensors ignore instances with an opacity below 0.5
layout(location = 7) in int instance_body;

uniform mat4 to_clip;
uniform vec3 forward;

out float depth;
flat out int body;

void main() {
    vec4 local = vec4(vertex, 1.0);
    vec3 position = vec3(dot(row_x, local), dot(row_y, local), dot(row_z, local));
    depth = dot(forward, position);
    body = instance_body;
    gl_Position = instance_color.a < 0.5 ? vec4(2.0, 2.0, 2.0, 1.0) : to_clip * vec4(position, 1.0);
}
