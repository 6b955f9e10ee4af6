#include "light.glsl"

in vec3 direction;
out vec4 picture;

void main() { picture = vec4(tone_mapped(sky(normalize(direction))), 1.0); }
