// One square of ground around the eye's foot point, in the axes of its plane.

uniform mat4 to_clip;
uniform vec3 foot;    // position of the square's center, relative to the eye
uniform vec3 along_x; // unit vectors of the plane
uniform vec3 along_y;
uniform float half_size;  // half of the square's edge, m

out vec3 position;
out vec2 ground_offset; // position relative to the foot, m

void main() {
    vec2 corner = vec2((gl_VertexID & 1) == 0 ? -1.0 : 1.0, (gl_VertexID & 2) == 0 ? -1.0 : 1.0);
    ground_offset = corner * half_size;
    position = foot + along_x * ground_offset.x + along_y * ground_offset.y;
    gl_Position = to_clip * vec4(position, 1.0);
}
