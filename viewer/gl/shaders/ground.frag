#include "light.glsl"

in vec3 position;
in vec2 ground_offset;

uniform vec3 along_x;
uniform vec3 along_y;
uniform vec3 ground_color;
uniform vec2 grid_offset;  // offset of the foot from a coarsest grid line, m
uniform float grid_spacing;  // spacing of the finest grid lines, m
uniform float grid_strength;
uniform vec2 patch_center;  // center of a small square, from the foot, m
uniform float patch_half;  // half of the square's edge, m; 0: up to the horizon
uniform mat4 to_shade;      // relative position to texture coordinates of the shade
uniform float shade_depth;  // maximum fraction of the sky's light that the shade removes; 0: no shade
uniform sampler2D shade_map;

#ifdef DRESSED
uniform sampler2D surface_map;
uniform vec2 repeat;         // images per m
uniform vec2 texture_offset; // texture coordinates of the foot
#endif

out vec4 picture;

// Fraction of a pixel that grid lines cover. Lines closer than a few pixels fade out.
float lines(vec2 at, vec2 footprint, float spacing, float width) {
    vec2 cell = footprint / spacing;
    vec2 from_line = abs(fract(at / spacing - 0.5) - 0.5) / cell;
    vec2 cover = clamp(0.5 * width + 0.5 - from_line, 0.0, 1.0) * clamp(0.22 / cell - 1.0, 0.0, 1.0);
    return max(cover.x, cover.y);
}

void main() {
    vec3 normal = cross(along_x, along_y);
    vec2 at = ground_offset + grid_offset;
    vec2 footprint = max(fwidth(ground_offset), 1e-7);
    float grid = max(0.5 * lines(at, footprint, grid_spacing, 1.0), lines(at, footprint, 10.0 * grid_spacing, 1.3));
    vec2 from_middle = abs(ground_offset - patch_center);
    if (patch_half > 0.0 && max(from_middle.x, from_middle.y) > patch_half) discard;
    float light = max(dot(normal, to_light), 0.0) * lit(position, normal);
    vec3 direct = sun * light;
#if LIGHTS > 0
    for (int k = 0; k < LIGHTS; ++k) {
        vec3 towards;
        vec3 got = arriving(k, position, towards) * max(dot(normal, towards), 0.0);
        direct += k == 0 && shadowed == 1 ? got * lit(position, normal) : got;
    }
#endif
    vec3 around = mix(horizon, zenith, 0.4);
    float open = 1.0;
    if (shade_depth > 0.0) {
        vec2 at_shade = (to_shade * vec4(position, 1.0)).xy;
        vec2 edge = abs(at_shade - 0.5);
        if (max(edge.x, edge.y) < 0.5) open -= shade_depth * texture(shade_map, at_shade).r;
    }
    vec3 base = ground_color;
#ifdef DRESSED
    base *= texture(surface_map, ground_offset * repeat + texture_offset).rgb;
#endif
    // The ground color of a file is dimmed, since white would be overexposed. tone_mapped removes 0.04.
    if (grid_strength == 0.0) base = DIMMED_GROUND * base + 0.04;
    vec3 color = base * (1.0 - grid_strength * grid) * (around * AMBIENT + direct) * open;
    picture = vec4(tone_mapped(hazed(color, position)), 1.0);
}
