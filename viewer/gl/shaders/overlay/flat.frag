in vec4 flat_color;

out vec4 picture;

void main() {
    picture = flat_color;
}
