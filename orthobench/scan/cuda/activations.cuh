// Activations by what is kept of them for the backward pass. At a kink the convention is torch's; NaN stays NaN.

#pragma once
enum { TANH, RELU, LEAKY_RELU, MODRELU, ABS };

__device__ inline real sigmoid(real z) { return quotient(real(1), real(1) + exp(-z)); }

// act(z), but for abs, which loses the sign, z itself; b is modReLU's bias.
__device__ inline real kept(real z, real b) {
    if (ACTIVATION == MODRELU) {
        const real size = fabs(z) + b, cut = size < 0 ? real(0) : size;
        return z < 0 ? -cut : z == 0 ? z : cut;
    }
    if (ACTIVATION == RELU) return z < 0 ? real(0) : z;
    if (ACTIVATION == LEAKY_RELU) return z < 0 ? z * real(SLOPE) : z;
    return ACTIVATION == TANH ? tanh(z) : z;
}

__device__ inline real value(real a) { return ACTIVATION == ABS ? fabs(a) : a; }

// What dz gives to modReLU's bias, by the activation's value a.
__device__ inline real signed_by(real dz, real a) { return a > 0 ? dz : a < 0 ? -dz : dz * a; }

__device__ inline real derivative(real a) {
    if (ACTIVATION == MODRELU) return a == 0 ? real(0) : real(1);
    if (ACTIVATION == RELU) return a > 0 ? real(1) : real(0);
    if (ACTIVATION == LEAKY_RELU) return a > 0 ? real(1) : real(SLOPE);
    if (ACTIVATION == TANH) return 1 - a * a;
    return a < 0 ? real(-1) : a > 0 ? real(1) : real(0);
}
