noperspective in vec2 at;
flat in float span;
flat in vec2 radii;
flat in vec4 color;
flat in int style;

uniform float unit; // pixels
uniform float opacity;

out vec4 picture;

void main() {
    float fraction = span > 0.0 ? clamp(at.x / span, 0.0, 1.0) : 0.0;
    float radius = mix(radii.x, radii.y, fraction);
    float outside; // pixels beyond the edge
    if ((style & 2) != 0) outside = max(abs(at.y) - radius, max(-at.x, at.x - span));
    else outside = length(vec2(at.x - fraction * span, at.y)) - radius;
    float cover = clamp(0.5 - outside, 0.0, 1.0) * min(1.0, 2.0 * max(radii.x, radii.y));
    if ((style & 4) != 0 && fract(at.x / (9.0 * unit)) > 0.6) cover = 0.0;
    if (cover <= 0.0) discard;
    vec3 tone = color.rgb;
    float rim = min(unit, 0.4 * radius); // limit the rim of thin strokes, which would otherwise cover them
    if ((style & 8) != 0) tone *= mix(1.0, 0.3, clamp(outside + 0.5 + rim, 0.0, 1.0));
    picture = vec4(tone, color.a * cover * opacity);
}
