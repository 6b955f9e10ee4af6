// Fraction of the sky that bodies hide from a level ground, from height samples around each point. A sample hides as
// much sky as a small disk at the height and distance of the sample.

in vec2 uv;

uniform sampler2D heights; // depth from below: 0 on the ground, 1 at the top
uniform float top;         // m above the ground
uniform float width;       // width of the map, m

out float shade;

const int RINGS = 5;
const float EDGES[6] = float[6](0.0, 0.08, 0.22, 0.44, 0.7, 1.0);

void main() {
    float sum = 0.0, all = 0.0;
    float radius = 0.22 * width;
    for (int ring = 0; ring < RINGS; ++ring) {
        float inner = radius * EDGES[ring];
        float outer = radius * EDGES[ring + 1];
        float distance = 0.5 * (inner + outer);
        float area = outer * outer - inner * inner;
        for (int spoke = 0; spoke < SPOKES; ++spoke) {
            float angle = 6.2831853 * float(spoke) / float(SPOKES) + 2.4 * float(ring);
            float depth = texture(heights, uv + distance * vec2(cos(angle), sin(angle)) / width).r;
            if (depth >= 1.0) continue;
            float height = depth * top + 0.02 * radius;
            float slant = distance * distance + height * height;
            // solid angle of a patch that faces down, weighted with the cosine at the ground
            sum += area / float(SPOKES) * height * height / (slant * slant);
        }
    }
    shade = clamp(sum, 0.0, 1.0);
}
