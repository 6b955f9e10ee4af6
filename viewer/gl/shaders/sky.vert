// One triangle that covers the whole picture, at the far plane.

uniform mat4 from_clip;
out vec3 direction;

void main() {
    vec2 corner = vec2(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0);
    direction = (from_clip * vec4(corner, 1.0, 1.0)).xyz;
    gl_Position = vec4(corner, 1.0, 1.0);
}
