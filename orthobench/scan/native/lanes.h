/* A complex recurrence whose matrix is applied factor by factor, with a row of the batch in every lane of a vector.
 *
 * So a factor may join any two coordinates without moving anything inside a vector. A block of LANES rows goes through
 * the whole sequence before the next one. What is summed over steps, the gradients of biases and factors, is kept for
 * every row.
 */

#pragma once

#include "complex_modrelu.h"
#include "square.h"

typedef struct { vector *re, *im; } Wave; /* N complex numbers in every lane */

typedef void Apply(const Scan *, Wave h, vector *scratch);
/* From h and G = dL/d(W h): G becomes dL/dh, and the gradients of the factors are added to dfactors. */
typedef void Reverse(const Scan *, Wave h, Wave G, vector *dfactors, vector *scratch);

#define APART 8 /* vectors between two arrays, which would share a few sets of the first cache where N is a power of two */

static inline Wave wave(vector **scratch, int64_t N) {
    Wave found = {*scratch, *scratch + N + APART};
    *scratch += 2 * (N + APART);
    return found;
}

/* Rows that the next step reads or writes, far apart as they are, begin to come. */
static inline void expect(const REAL *rows, int64_t distance, int64_t count, int64_t N) {
    for (int64_t m = 0; m < count; m++)
        for (int64_t j = 0; j < 2 * N; j += 64 / (int64_t)sizeof(REAL)) __builtin_prefetch(rows + m * distance + j, 1);
}

/* `count` rows of N complex numbers, their parts side by side, into lanes; a lane without a row repeats the first. */
static void gather(const REAL *rows, int64_t distance, int64_t count, int64_t N, Wave to) {
    const REAL *row[LANES];
    for (int64_t m = 0; m < LANES; m++) row[m] = rows + (m < count ? m : 0) * distance;
    int64_t j = 0;
#if !defined(__clang__)
    for (; j + LANES / 2 <= N; j += LANES / 2) {
        vector square[LANES];
        UNROLL_LANES for (int m = 0; m < LANES; m++) square[m] = *(const vector *)(row[m] + 2 * j);
        transpose(square);
        UNROLL_LANES for (int i = 0; i < LANES / 2; i++) {
            to.re[j + i] = square[2 * i];
            to.im[j + i] = square[2 * i + 1];
        }
    }
#endif
    for (; j < N; j++)
        for (int64_t m = 0; m < LANES; m++) to.re[j][m] = row[m][2 * j], to.im[j][m] = row[m][2 * j + 1];
}

static void scatter(Wave from, REAL *rows, int64_t distance, int64_t count, int64_t N) {
    int64_t j = 0;
#if !defined(__clang__)
    for (; j + LANES / 2 <= N; j += LANES / 2) {
        vector square[LANES];
        UNROLL_LANES for (int i = 0; i < LANES / 2; i++) {
            square[2 * i] = from.re[j + i];
            square[2 * i + 1] = from.im[j + i];
        }
        transpose(square);
        for (int64_t m = 0; m < count; m++) *(vector *)(rows + m * distance + 2 * j) = square[m];
    }
#endif
    for (; j < N; j++)
        for (int64_t m = 0; m < count; m++) {
            rows[m * distance + 2 * j] = from.re[j][m];
            rows[m * distance + 2 * j + 1] = from.im[j][m];
        }
}

/* y[j] = x[j] d[j] for d's N real parts, then N imaginary ones; y may be x. */
static inline void scale(Wave x, const REAL *d, Wave y, int64_t N) {
    for (int64_t j = 0; j < N; j++) {
        vector re = x.re[j], im = x.im[j];
        y.re[j] = d[j] * re - d[N + j] * im;
        y.im[j] = d[j] * im + d[N + j] * re;
    }
}

/* dd += conj(x) dy and dx = conj(d) dy, which may be dy. */
static inline void scale_back(Wave x, Wave dy, const REAL *d, Wave dx, vector *dd, int64_t N) {
    for (int64_t j = 0; j < N; j++) {
        vector re = dy.re[j], im = dy.im[j];
        dd[j] += x.re[j] * re + x.im[j] * im;
        dd[N + j] += x.re[j] * im - x.im[j] * re;
        dx.re[j] = d[j] * re + d[N + j] * im;
        dx.im[j] = d[j] * im - d[N + j] * re;
    }
}

/* The sums of every row, (count, K). */
static void write_sums(const vector *sums, REAL *rows, int64_t count, int64_t K) {
    for (int64_t m = 0; m < count; m++)
        for (int64_t k = 0; k < K; k++) rows[m * K + k] = sums[k][m];
}

static inline void lanes_forward(const Scan *s, int64_t first, int64_t last, vector *scratch, Apply *apply) {
    int64_t B = s->B, N = s->N, width = 2 * N;
    REAL e = (REAL)s->slope;
    Wave h = wave(&scratch, N), p = wave(&scratch, N);
    for (int64_t row = first; row < last; row += LANES) {
        int64_t count = last - row < LANES ? last - row : LANES;
        gather(s->h0 + row * width, width, count, N, h);
        for (int64_t t = 0; t < s->T; t++) {
            if (t + 1 < s->T) expect(AT(s->P, t + 1, row, width), width, count, N);
            apply(s, h, scratch);
            gather(AT(s->P, t, row, width), width, count, N, p);
            for (int64_t j = 0; j < N; j++) {
                REAL x[LANES], y[LANES], b = s->b[j];
                *(vector *)x = h.re[j] + p.re[j];
                *(vector *)y = h.im[j] + p.im[j];
                for (int64_t m = 0; m < LANES; m++) modulate(x + m, y + m, b, e);
                h.re[j] = *(vector *)x;
                h.im[j] = *(vector *)y;
            }
            scatter(h, AT(s->P, t, row, width), width, count, N);
        }
    }
}

static inline void lanes_backward(const Scan *s, int64_t first, int64_t last, vector *scratch, Reverse *reverse) {
    int64_t B = s->B, N = s->N, width = 2 * N, K = s->parameters;
    REAL e = (REAL)s->slope;
    Wave h = wave(&scratch, N), G = wave(&scratch, N), outside = wave(&scratch, N);
    vector *db = scratch, *dfactors = db + N;
    scratch = dfactors + K;
    for (int64_t row = first; row < last; row += LANES) {
        int64_t count = last - row < LANES ? last - row : LANES;
        memset(db, 0, (N + K) * sizeof *db);
        gather(s->G + row * width, width, count, N, G);
        gather(AT(s->P, s->T - 1, row, width), width, count, N, h);
        for (int64_t t = s->T - 1; t >= 0; t--) {
            if (t > 1) expect(AT(s->P, t - 2, row, width), width, count, N);
            if (t > 1 && s->dH) expect(OUTSIDE(t - 2, row), s->dH_row, count, N);
            if (t > 0) expect(AT(s->dZ, t - 1, row, width), width, count, N);
            for (int64_t j = 0; j < N; j++) {
                REAL Gx[LANES], Gy[LANES], x[LANES], y[LANES], sum[LANES], b = s->b[j];
                *(vector *)Gx = G.re[j], *(vector *)Gy = G.im[j], *(vector *)x = h.re[j], *(vector *)y = h.im[j];
                *(vector *)sum = db[j];
                if (b > 0) /* outside of the loop, which then divides less */
                    for (int64_t m = 0; m < LANES; m++) demodulate(Gx + m, Gy + m, x[m], y[m], b, 1, e, sum + m);
                else
                    for (int64_t m = 0; m < LANES; m++) demodulate(Gx + m, Gy + m, x[m], y[m], b, 0, e, sum + m);
                G.re[j] = *(vector *)Gx, G.im[j] = *(vector *)Gy, db[j] = *(vector *)sum;
            }
            scatter(G, AT(s->dZ, t, row, width), width, count, N);
            gather(t ? AT(s->P, t - 1, row, width) : s->h0 + row * width, width, count, N, h);
            reverse(s, h, G, dfactors, scratch);
            if (t && s->dH) {
                gather(OUTSIDE(t - 1, row), s->dH_row, count, N, outside);
                for (int64_t j = 0; j < N; j++) G.re[j] += outside.re[j], G.im[j] += outside.im[j];
            }
        }
        scatter(G, s->G + row * width, width, count, N);
        write_sums(db, s->db + row * N, count, N);
        write_sums(dfactors, s->dfactors + row * K, count, K);
    }
}
