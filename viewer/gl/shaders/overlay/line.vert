// Stroke with round or flat ends and two end widths, drawn as a rectangle that faces the eye.

layout(location = 0) in vec3 a; // relative to the eye, m; or pixels from the upper left corner
layout(location = 1) in vec3 b;
layout(location = 2) in vec2 radius; // pixels, at either end
layout(location = 3) in vec4 stroke_color;
layout(location = 4) in float stroke_style; // sum of 1: pixels, 2: flat ends, 4: dashed, 8: rimmed

uniform mat4 to_clip;
uniform vec2 screen; // pixels

noperspective out vec2 at; // pixels along and across, from a
flat out float span;
flat out vec2 radii;
flat out vec4 color;
flat out int style;

const float LIFT = 0.003;  // shift towards the eye, as a fraction of the distance, for strokes on surfaces

void main() {
    style = int(stroke_style);
    bool pixels = (style & 1) != 0;
    vec4 from = vec4(a, 1.0), to = vec4(b, 1.0);
    if (pixels) {
        from = vec4(2.0 * a.x / screen.x - 1.0, 1.0 - 2.0 * a.y / screen.y, 0.0, 1.0);
        to = vec4(2.0 * b.x / screen.x - 1.0, 1.0 - 2.0 * b.y / screen.y, 0.0, 1.0);
    } else {
        from = to_clip * vec4(a * (1.0 - LIFT), 1.0);
        to = to_clip * vec4(b * (1.0 - LIFT), 1.0);
    }
    // clip the part behind the eye
    float near_w = 1e-3 * max(from.w, to.w);
    bool behind = from.w < near_w && to.w < near_w || max(from.w, to.w) <= 0.0;
    if (from.w < near_w) from = mix(from, to, (near_w - from.w) / (to.w - from.w));
    else if (to.w < near_w) to = mix(to, from, (near_w - to.w) / (from.w - to.w));

    vec2 start = 0.5 * screen * from.xy / from.w;
    vec2 end = 0.5 * screen * to.xy / to.w;
    vec2 along = end - start;
    span = length(along);
    vec2 x = span > 1e-4 ? along / span : vec2(1.0, 0.0);
    vec2 y = vec2(-x.y, x.x);
    bool far = (gl_VertexID & 1) != 0;
    float wide = max(radius.x, radius.y) + 1.0;
    vec2 corner = vec2(far ? span + wide : -wide, (gl_VertexID & 2) != 0 ? wide : -wide);
    at = corner;
    radii = radius;
    color = stroke_color;
    vec2 clip_xy = (start + corner.x * x + corner.y * y) / (0.5 * screen);
    vec4 end_clip = far ? to : from;
    gl_Position = behind ? vec4(2.0, 2.0, 2.0, 1.0) : vec4(clip_xy, end_clip.z / end_clip.w, 1.0);
}
