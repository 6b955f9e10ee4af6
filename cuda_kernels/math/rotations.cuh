// Vectors, 3x3 matrices (row by row) and quaternions (xyzw), as in gpusim/rotations.py.
#pragma once
#include "platform.cuh"
#include "detmath.cuh"

template <class T, class S> GPUSIM_FN void copy3(const S* a, T* out) {
    out[0] = T(a[0]); out[1] = T(a[1]); out[2] = T(a[2]);
}
template <class T> GPUSIM_FN T dot3(const T* a, const T* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
template <class T> GPUSIM_FN T norm3(const T* a) { return sqrt_(dot3(a, a)); }
template <class T> GPUSIM_FN void cross3(const T* a, const T* b, T* out) {
    const T x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
    out[0] = x; out[1] = y; out[2] = z;
}
template <class T> GPUSIM_FN void subtract3(const T* a, const T* b, T* out) {
    out[0] = a[0] - b[0]; out[1] = a[1] - b[1]; out[2] = a[2] - b[2];
}
// out = m v. m and v may have different number types, because poses are always double.
template <class T, class M, class V> GPUSIM_FN void rotate3(const M* m, const V* v, T* out) {
    const T a = T(v[0]), b = T(v[1]), c = T(v[2]);
    const T x = T(m[0]) * a + T(m[1]) * b + T(m[2]) * c;
    const T y = T(m[3]) * a + T(m[4]) * b + T(m[5]) * c;
    const T z = T(m[6]) * a + T(m[7]) * b + T(m[8]) * c;
    out[0] = x; out[1] = y; out[2] = z;
}
// out = m^T v.
template <class T, class M> GPUSIM_FN void rotate_back3(const M* m, const T* v, T* out) {
    const T x = T(m[0]) * v[0] + T(m[3]) * v[1] + T(m[6]) * v[2];
    const T y = T(m[1]) * v[0] + T(m[4]) * v[1] + T(m[7]) * v[2];
    const T z = T(m[2]) * v[0] + T(m[5]) * v[1] + T(m[8]) * v[2];
    out[0] = x; out[1] = y; out[2] = z;
}
template <class T> GPUSIM_FN void product33(const T* a, const T* b, T* out) {
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) out[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
}
// out = a b^T.
template <class T> GPUSIM_FN void product33_transposed(const T* a, const T* b, T* out) {
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            out[3 * i + j] = a[3 * i] * b[3 * j] + a[3 * i + 1] * b[3 * j + 1] + a[3 * i + 2] * b[3 * j + 2];
}
// [v]x with [v]x u = v x u.
template <class T> GPUSIM_FN void skew3(const T* v, T* out) {
    out[0] = T(0); out[1] = -v[2]; out[2] = v[1];
    out[3] = v[2]; out[4] = T(0); out[5] = -v[0];
    out[6] = -v[1]; out[7] = v[0]; out[8] = T(0);
}
// Compute [v]x [v]x with the same sums as product33. Omit products with 0 that do not change the sign of a zero.
template <class T> GPUSIM_FN void skew_square3(const T* v, T* out) {
    const T x = v[0], y = v[1], z = v[2], xx = x * x, yy = y * y, zz = z * z, xy = x * y, xz = x * z, yz = y * z, none = T(0);
    out[0] = none - zz - yy; out[1] = -z * none + xy; out[2] = y * none + xz;
    out[3] = z * none + xy; out[4] = none - zz - xx; out[5] = -x * none + yz;
    out[6] = -y * none + xz; out[7] = x * none + yz; out[8] = none - yy - xx;
}
// Inverse by cofactors. If m is singular, the result is not finite.
template <class T> GPUSIM_FN void inverse33(const T* m, T* out) {
    const T a = m[4] * m[8] - m[5] * m[7], b = m[5] * m[6] - m[3] * m[8], c = m[3] * m[7] - m[4] * m[6];
    const T scale = T(1) / (m[0] * a + m[1] * b + m[2] * c);
    out[0] = a * scale; out[1] = (m[2] * m[7] - m[1] * m[8]) * scale; out[2] = (m[1] * m[5] - m[2] * m[4]) * scale;
    out[3] = b * scale; out[4] = (m[0] * m[8] - m[2] * m[6]) * scale; out[5] = (m[2] * m[3] - m[0] * m[5]) * scale;
    out[6] = c * scale; out[7] = (m[1] * m[6] - m[0] * m[7]) * scale; out[8] = (m[0] * m[4] - m[1] * m[3]) * scale;
}

template <class Q> GPUSIM_FN void matrix_from_quaternion(const Q* q, double* m) {
    const double x = q[0], y = q[1], z = q[2], w = q[3];
    m[0] = x * x - y * y - z * z + w * w; m[1] = 2.0 * (x * y) - 2.0 * (z * w); m[2] = 2.0 * (x * z) + 2.0 * (y * w);
    m[3] = 2.0 * (x * y) + 2.0 * (z * w); m[4] = y * y - x * x - z * z + w * w; m[5] = 2.0 * (y * z) - 2.0 * (x * w);
    m[6] = 2.0 * (x * z) - 2.0 * (y * w); m[7] = 2.0 * (y * z) + 2.0 * (x * w); m[8] = z * z - x * x - y * y + w * w;
}
// Hamilton product a * b: first the rotation b, then a.
template <class A, class B> GPUSIM_FN void quaternion_product(const A* a, const B* b, double* out) {
    const double x = a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1];
    const double y = a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0];
    const double z = a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3];
    const double w = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2];
    out[0] = x; out[1] = y; out[2] = z; out[3] = w;
}
GPUSIM_FN void conjugate4(const double* q, double* out) {
    out[0] = -q[0]; out[1] = -q[1]; out[2] = -q[2]; out[3] = q[3];
}
GPUSIM_FN void normalize4(double* q) {
    const double length = sqrt_(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int k = 0; k < 4; ++k) q[k] = q[k] / length;
}

// Squared angle below which to use a power series, because the quotient is 0 / 0 at 0.
#define SERIES_BELOW 1e-2

// sin(x)/x as a function of x squared.
GPUSIM_FN double sinc(double s) {
    const mask near = !(s > SERIES_BELOW);
    const double series = 1.0 - s / 6.0 * (1.0 - s / 20.0 * (1.0 - s / 42.0 * (1.0 - s / 72.0)));
    if (all(near)) return series;
    const double x = sqrt_(s);
    return choose(near, series, det::sin(x) / x);
}
GPUSIM_FN void quaternion_from_rotation_vector(const double* v, double* q) {
    const double half = 0.5 * norm3(v), factor = 0.5 * sinc(half * half);
    q[0] = factor * v[0]; q[1] = factor * v[1]; q[2] = factor * v[2];
    q[3] = det::cos(half);
}
// The angle is at most pi.
GPUSIM_FN void rotation_vector_from_quaternion(const double* q, double* out) {
    const double sign = choose(q[3] < 0.0, double(-1.0), double(1.0));
    const double v[3] = {sign * q[0], sign * q[1], sign * q[2]};
    const double sine = norm3(v);
    const double factor = choose(sine < 1e-12, double(2.0), 2.0 * det::atan2(sine, sign * q[3]) / sine);
    out[0] = factor * v[0]; out[1] = factor * v[1]; out[2] = factor * v[2];
}
// sin(x)/x - 1 and (1 - cos(x))/x^2 as functions of x squared, without cancellation for small x.
template <class T> GPUSIM_FN void small_rotation_factors(T s, T* sine, T* cosine) {
    *sine = s * (real(-1.0 / 6.0) + s * (real(1.0 / 120.0) - s * (real(1.0 / 5040.0) - s * real(1.0 / 362880.0))));
    *cosine = real(0.5) - s * (real(1.0 / 24.0) - s * (real(1.0 / 720.0) - s * real(1.0 / 40320.0)));
}
GPUSIM_FN void rotation_factors(real s, real* sine, real* cosine) {
    const mask far = s > real(SERIES_BELOW);
    small_rotation_factors(s, sine, cosine);
    if (!any(far)) return;
    const real x = sqrt_(s), half = det::sin(real(0.5) * x);
    *sine = choose(far, det::sin(x) / x - real(1), *sine);
    *cosine = choose(far, real(2) * half * half / (x * x), *cosine);
}
// Add a displacement (m) and a rotation vector (rad, world frame) to a pose.
GPUSIM_FN void move_pose(double* position, double* orientation, const double* shift, const double* rotation_vector) {
    double spin[4];
    quaternion_from_rotation_vector(rotation_vector, spin);
    for (int k = 0; k < 3; ++k) position[k] += shift[k];
    quaternion_product(spin, orientation, orientation);
    normalize4(orientation);
}
