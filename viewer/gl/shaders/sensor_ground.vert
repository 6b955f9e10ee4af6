// The ground for camera sensors; see ground.vert.

uniform mat4 to_clip;
uniform vec3 forward;
uniform vec3 foot;
uniform vec3 along_x;
uniform vec3 along_y;
uniform float half_size;

out float depth;
flat out int body;

void main() {
    vec2 corner = vec2((gl_VertexID & 1) == 0 ? -1.0 : 1.0, (gl_VertexID & 2) == 0 ? -1.0 : 1.0) * half_size;
    vec3 position = foot + along_x * corner.x + along_y * corner.y;
    depth = dot(forward, position);
    body = -1;
    gl_Position = to_clip * vec4(position, 1.0);
}
