layout(location = 0) in vec3 position; // relative to the eye, m
layout(location = 1) in vec4 area_color;

uniform mat4 to_clip;

out vec4 flat_color;

void main() {
    flat_color = area_color;
    gl_Position = to_clip * vec4(position * 0.997, 1.0);
}
