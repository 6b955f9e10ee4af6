#include "light.glsl"

in vec3 position;
in vec3 normal;
flat in vec4 color;
flat in vec3 finish;
in vec2 around_axis;

#ifdef DRESSED
in vec3 texcoords;
in vec3 painted;
uniform sampler2D surface_map;
uniform samplerCube cube_map;
uniform int cube; // 1: the texture is a cube
#endif

out vec4 picture;

void main() {
    vec3 view = -normalize(position);
    vec3 n = normalize(normal);
    if (dot(n, view) < 0.0 && !gl_FrontFacing) n = -n;
    float facing = max(dot(n, view), 1e-3);
    float slant = dot(n, to_light);
    float light = max(slant, 0.0);
    if (light > 0.0 && color.a == 1.0) light *= lit(position, n);

    vec3 base = color.rgb;
#ifdef DRESSED
    vec4 texel = cube == 1 ? texture(cube_map, texcoords) : texture(surface_map, texcoords.xy);
    if (texel.a < 0.5) discard;
    base *= texel.rgb * painted;
    float peak = max(base.r, max(base.g, base.b));
    if (peak > BRIGHT) base *= (BRIGHT + BRIGHTER * (peak - BRIGHT)) / peak; // see dimmed in gpusim/stage/materials.py
#endif
    if (finish.z > 0.0) {
        // four sectors about the axis of the mesh, with edges one pixel wide
        vec2 side = clamp(around_axis / max(fwidth(around_axis), 1e-6), -1.0, 1.0);
        base *= 1.0 + finish.z * side.x * side.y;
    }
    float roughness = finish.x, metal = finish.y;
    vec3 diffuse = base * (1.0 - metal);
    vec3 mirror = mix(vec3(0.04), base, metal);

    // GGX. FINE_SHINE adds the visibility term of Karis and a mirrored sky.
    vec3 half_vector = normalize(view + to_light);
    float a = roughness * roughness;
    float d = max(dot(n, half_vector), 0.0);
    d = d * d * (a * a - 1.0) + 1.0;
    float gloss = 0.25 * a * a / (d * d);
    float rim = 1.0 - facing;
    rim *= rim;
    rim *= rim * (1.0 - facing);
    float above = 0.5 + 0.5 * dot(n, up);
    vec3 around = mix(bounce, mix(horizon, zenith, 0.4), above);
#if FINE_SHINE
    float k = 0.5 * a + 0.125;
    gloss /= (facing * (1.0 - k) + k) * (max(slant, 0.0) * (1.0 - k) + k);
    vec3 bounced = reflect(-view, n);
    vec3 mirrored = mix(bounce, sky(bounced), smoothstep(-0.35, 0.35, dot(bounced, up)));
    mirrored = mix(around, mirrored, 1.0 - a);
#else
    vec3 mirrored = around;
#endif
    vec3 shine = (mirror + (max(vec3(1.0 - roughness), mirror) - mirror) * rim) * mirrored;

    vec3 total = diffuse * (around * AMBIENT + sun * light) + shine * (0.4 + 0.5 * metal) + mirror * gloss * sun * light;
#if LIGHTS > 0
    for (int k = 0; k < LIGHTS; ++k) {
        vec3 towards;
        vec3 got = arriving(k, position, towards) * max(dot(n, towards), 0.0);
        if (k == 0 && shadowed == 1 && color.a == 1.0) got *= lit(position, n);
        float h = max(dot(n, normalize(view + towards)), 0.0);
        h = h * h * (a * a - 1.0) + 1.0;
        total += got * (diffuse + mirror * (0.25 * a * a / (h * h)));
    }
#endif
    picture = vec4(tone_mapped(hazed(total, position)), color.a);
}
