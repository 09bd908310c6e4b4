/* Damped oscillators that drive each other, and independent ones: the equations are in fused/cornn.py and unicornn.py. */

#include "scan.h"

/* The force f of a row in place, and the new states. */
ROW swing(REAL *restrict f, const REAL *restrict physics, const REAL *restrict y, const REAL *restrict z,
          REAL *restrict new_y, REAL *restrict new_z, int64_t n) {
    REAL dt = physics[0], gamma = physics[1], epsilon = physics[2];
    EACH {
        f[j] = hyperbolic_tangent(f[j]);
        new_z[j] = z[j] + dt * (f[j] - gamma * y[j] - epsilon * z[j]);
        new_y[j] = y[j] + dt * new_z[j];
    }
}

void cornn_forward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, rows = last - first;
    for (int64_t t = 0; t < s->T; t++) {
        const REAL *y = t ? AT(s->H, t - 1, first, N) : s->h0 + first * N;
        const REAL *z = t ? AT(s->K, t - 1, first, N) : s->X + first * N;
        REAL *f = AT(s->P, t, first, N);
        product((Product){N, y, N, f, N, f, N, 0}, rows, N, s->weights[0]);
        product((Product){N, z, N, f, N, f, N, 0}, rows, N, s->weights[1]);
        swing(f, s->beta, y, z, AT(s->H, t, first, N), AT(s->K, t, first, N), rows * N);
    }
}

/* From G and S the gradient of the force's argument; G and S become what reaches y and z of the step before directly. */
ROW swing_back(REAL *restrict G, REAL *restrict S, const REAL *restrict physics, const REAL *restrict f,
               REAL *restrict dp, int64_t n) {
    REAL dt = physics[0], gamma = physics[1], epsilon = physics[2];
    EACH {
        REAL both = S[j] + dt * G[j];
        dp[j] = dt * both * (1 - f[j] * f[j]);
        G[j] -= dt * gamma * both;
        S[j] = (1 - dt * epsilon) * both;
    }
}

void cornn_backward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N, rows = last - first;
    REAL *G = s->G + first * N, *S = s->S + first * N;
    for (int64_t t = s->T - 1; t >= 0; t--) {
        REAL *dp = AT(s->dZ, t, first, N);
        swing_back(G, S, s->beta, AT(s->P, t, first, N), dp, rows * N);
        if (t && s->dH)
            for (int64_t i = first; i < last; i++) add_to(s->G + i * N, OUTSIDE(t - 1, i), N);
        product((Product){N, dp, N, G, N, G, N, 0}, rows, N, s->weights[0]);
        product((Product){N, dp, N, S, N, S, N, 0}, rows, N, s->weights[1]);
    }
}

/* f in place, and the new states, of oscillators that do not see each other: w and pace are (N). */
ROW turn(REAL *restrict f, const REAL *restrict w, const REAL *restrict pace, REAL alpha, const REAL *restrict y,
         const REAL *restrict z, REAL *restrict new_y, REAL *restrict new_z, int64_t n) {
    EACH {
        f[j] = hyperbolic_tangent(f[j] + w[j] * y[j]);
        new_z[j] = z[j] - pace[j] * (f[j] + alpha * y[j]);
        new_y[j] = y[j] + pace[j] * new_z[j];
    }
}

void unicornn_forward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N;
    for (int64_t t = 0; t < s->T; t++)
        for (int64_t i = first; i < last; i++) {
            const REAL *y = t ? AT(s->H, t - 1, i, N) : s->h0 + i * N, *z = t ? AT(s->K, t - 1, i, N) : s->X + i * N;
            turn(AT(s->P, t, i, N), s->b, s->late, (REAL)s->slope, y, z, AT(s->H, t, i, N), AT(s->K, t, i, N), N);
        }
}

/* The same of independent oscillators, and their parts of the gradients of w and pace. */
ROW turn_back(REAL *restrict G, REAL *restrict S, const REAL *restrict w, const REAL *restrict pace, REAL alpha,
              const REAL *restrict f, const REAL *restrict y, const REAL *restrict new_z, const REAL *restrict outside,
              REAL *restrict dp, REAL *restrict dw, REAL *restrict dpace, int64_t n) {
    EACH {
        REAL both = S[j] + pace[j] * G[j], own = -both * pace[j] * (1 - f[j] * f[j]);
        dp[j] = own;
        dw[j] += own * y[j];
        dpace[j] += G[j] * new_z[j] - both * (f[j] + alpha * y[j]);
        G[j] += own * w[j] - alpha * pace[j] * both;
        S[j] = both;
    }
    if (outside) EACH G[j] += outside[j];
}

void unicornn_backward(const Scan *s, int64_t first, int64_t last) {
    int64_t B = s->B, N = s->N;
    for (int64_t t = s->T - 1; t >= 0; t--)
        for (int64_t i = first; i < last; i++) {
            const REAL *y = t ? AT(s->H, t - 1, i, N) : s->h0 + i * N;
            turn_back(s->G + i * N, s->S + i * N, s->b, s->late, (REAL)s->slope, AT(s->P, t, i, N), y,
                      AT(s->K, t, i, N), OUTSIDE(t - 1, i), AT(s->dZ, t, i, N), s->db + i * N, s->dbeta + i * N, N);
        }
}
