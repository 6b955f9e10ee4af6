// Light, sky, haze and tone mapping for all shaders. Positions are relative to the eye, in world axes.

uniform vec3 up;            // unit vector against gravity
uniform vec3 to_light;      // unit vector
uniform vec3 sun;           // color of the key light
uniform vec3 horizon;       // sky at eye level
uniform vec3 zenith;        // sky above
uniform vec3 bounce;        // light from below
uniform float haze_start;   // m
uniform float haze_end;     // m
uniform mat4 to_shadow;     // relative position to texture coordinates and depth
uniform float shadow_texel; // m
uniform vec2 shadow_pixel;  // a texel in texture coordinates
uniform sampler2DShadow shadow_map;

#if LIGHTS > 0
// Lights of the model. The first light may cast shadows.
uniform int shadowed;  // 1: the first light casts shadows
uniform vec4 light_position[LIGHTS]; // relative position and 1, or a unit vector to a directional light and 0
uniform vec4 light_aim[LIGHTS];   // unit vector along which a spot shines, and the cosine of its cutoff
uniform vec4 light_fade[LIGHTS];  // three factors of the attenuation, and the exponent of a spot
uniform vec3 light_color[LIGHTS];

// Color of a light at a point, without shadows and without the cosine of the incidence angle.
vec3 arriving(int k, vec3 position, out vec3 towards) {
    if (light_position[k].w == 0.0) {
        towards = light_position[k].xyz;
        return light_color[k];
    }
    vec3 arm = light_position[k].xyz - position;
    float distance = length(arm);
    towards = arm / max(distance, 1e-6);
    float intensity = 1.0 / dot(light_fade[k].xyz, vec3(1.0, distance, distance * distance));
    if (light_aim[k].w > -1.5) {
        float cosine = dot(-towards, light_aim[k].xyz);
        float edge = max(fwidth(cosine), 1e-4);
        intensity *= clamp((cosine - light_aim[k].w) / edge + 0.5, 0.0, 1.0);
        intensity *= pow(max(cosine, 1e-6), light_fade[k].w);
    }
    return intensity * light_color[k];
}
#endif

vec3 sky(vec3 direction) {
    float height = clamp(dot(direction, up) * 1.8, 0.0, 1.0);
    return mix(horizon, zenith, height * (2.0 - height));
}

vec3 hazed(vec3 color, vec3 position) {
    float distance = length(position);
    float haze = clamp((distance - haze_start) / (haze_end - haze_start), 0.0, 1.0);
    haze = haze * haze * (3.0 - 2.0 * haze);
    return mix(color, sky(position / distance), haze);
}

// Weighted sum of 3 x 3 or 5 x 5 texels from few bilinear reads. The weights vary smoothly over a texel
// (after Castano, Shadow Mapping Summary Part 1, 2013).
float shadow_sum(vec3 shadow_point) {
    vec2 texel = shadow_point.xy / shadow_pixel + 0.5;
    vec2 base = floor(texel);
    vec2 f = texel - base;
    base -= 0.5;
#if SHADOW_TAPS == 4
    vec2 w0 = 3.0 - 2.0 * f, w1 = 1.0 + 2.0 * f;
    vec2 o0 = (2.0 - f) / w0 - 1.0, o1 = f / w1 + 1.0;
    float sum = w0.x * w0.y * texture(shadow_map, vec3((base + o0) * shadow_pixel, shadow_point.z));
    sum += w1.x * w0.y * texture(shadow_map, vec3((base + vec2(o1.x, o0.y)) * shadow_pixel, shadow_point.z));
    sum += w0.x * w1.y * texture(shadow_map, vec3((base + vec2(o0.x, o1.y)) * shadow_pixel, shadow_point.z));
    sum += w1.x * w1.y * texture(shadow_map, vec3((base + o1) * shadow_pixel, shadow_point.z));
    return sum / 16.0;
#else
    vec2 w[3] = vec2[3](4.0 - 3.0 * f, vec2(7.0), 1.0 + 3.0 * f);
    vec2 o[3] = vec2[3]((3.0 - 2.0 * f) / w[0] - 2.0, (3.0 + f) / w[1], f / w[2] + 2.0);
    float sum = 0.0;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            sum += w[i].x * w[j].y
                 * texture(shadow_map, vec3((base + vec2(o[i].x, o[j].y)) * shadow_pixel, shadow_point.z));
    return sum / 144.0;
#endif
}

#if SHADOW_RINGS > 0
// A wide soft edge: the filter above at points of a disk with the penumbra's radius.
float shadow_disk(vec3 shadow_point) {
    float sum = shadow_sum(shadow_point);
    for (int k = 0; k < 6 * SHADOW_RINGS; ++k) {
        float radius = SHADOW_RADIUS * sqrt((float(k) + 1.0) / float(6 * SHADOW_RINGS));
        float angle = 2.39996323 * float(k);
        sum += shadow_sum(shadow_point + vec3(radius * vec2(cos(angle), sin(angle)) * shadow_pixel, 0.0));
    }
    return sum / float(6 * SHADOW_RINGS + 1);
}
#endif

// Fraction of the key light that arrives, 0 to 1. An offset along the normal (lookup distance times the sine of the
// angle between light and normal) prevents surfaces that shade themselves.
float lit(vec3 position, vec3 normal) {
    float cosine = dot(normal, to_light);
    float sine = sqrt(max(1.0 - cosine * cosine, 0.0));
    vec3 lifted = position + normal * shadow_texel * (0.7 + (SHADOW_RADIUS + 0.5 * float(SHADOW_TAPS)) * sine);
    // error of a point at grazing view angles: the pixel's footprint
    vec3 footprint = fwidth(position);
    lifted += to_light * min(max(footprint.x, max(footprint.y, footprint.z)), 8.0 * shadow_texel);
    vec3 shadow_point = (to_shadow * vec4(lifted, 1.0)).xyz;
    vec2 edge = abs(shadow_point.xy - 0.5);
    if (max(edge.x, edge.y) > 0.499) return 1.0;
    shadow_point.z = min(shadow_point.z, 0.99999);  // far ground points are behind all objects that cast shadows
#if SHADOW_RINGS > 0
    return shadow_disk(shadow_point);
#else
    return shadow_sum(shadow_point);
#endif
}

// Khronos PBR Neutral: colors below the shoulder do not change, highlights roll off without turning gray.
vec3 tone_mapped(vec3 color) {
    float lowest = min(color.r, min(color.g, color.b));
    color -= lowest < 0.08 ? lowest - 6.25 * lowest * lowest : 0.04;
    float peak = max(color.r, max(color.g, color.b));
    if (peak > 0.76) {
        float reduced = 1.0 - 0.0576 / (peak + 0.24 - 0.76);
        color *= reduced / peak;
        color = mix(color, vec3(reduced), 1.0 - 1.0 / (0.15 * (peak - reduced) + 1.0));
    }
    // sRGB's curve from square roots, accurate to 0.001. The function pow takes software renderers three times as long.
    vec3 s1 = sqrt(max(color, 0.0)), s2 = sqrt(s1), s3 = sqrt(s2);
    return 0.585122381 * s1 + 0.783140355 * s2 - 0.368262736 * s3;
}
