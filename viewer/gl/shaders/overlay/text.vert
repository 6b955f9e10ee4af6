// Letters: rectangles of whole pixels that show a part of the atlas.

layout(location = 0) in vec4 box; // upper left corner, width and height, pixels
layout(location = 1) in vec2 texel; // upper left corner in the atlas
layout(location = 2) in vec4 letter_color;
layout(location = 3) in vec4 letter_halo;

uniform vec2 screen; // pixels

out vec2 from;
flat out vec4 color;
flat out vec4 halo;

void main() {
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * box.zw;
    vec2 pixel = box.xy + corner;
    from = texel + corner;
    color = letter_color;
    halo = letter_halo;
    gl_Position = vec4(2.0 * pixel.x / screen.x - 1.0, 1.0 - 2.0 * pixel.y / screen.y, 0.0, 1.0);
}
