in vec2 from;
flat in vec4 color;
flat in vec4 halo;

uniform sampler2D letters; // coverage of the letter, and of its halo

out vec4 picture;

void main() {
    vec2 cover = texelFetch(letters, ivec2(from), 0).rg;
    float ink = color.a * cover.r;
    float around = halo.a * cover.g * (1.0 - ink);
    float all = ink + around;
    if (all <= 0.0) discard;
    picture = vec4((color.rgb * ink + halo.rgb * around) / all, all);
}
