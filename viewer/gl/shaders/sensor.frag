in float depth;
flat in int body;

layout(location = 0) out float depth_out;
layout(location = 1) out int body_out;

void main() {
    depth_out = depth;
    body_out = body;
}
