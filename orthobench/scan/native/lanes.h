/* A complex recurrence whose matrix is applied factor by factor, with a row of the batch in every lane of a vector.
 *
 * So a factor may join any two coordinates without moving anything inside a vector. A block of LANES rows goes through
 * the whole sequence before the next one; blocks are shared out, not rows. What is summed over steps, the gradients of
 * biases and factors, is kept for every row.
 *
 * Inputs x_t are projected here, where they are given, so that no projection is written or read. s->U has for every
 * WIDEST_LANES of the 2 N numbers, the last of them filled up with zeros, those of each input. Of tokens, U x_t is a row
 * of s->U. In the backward pass dL/dz of WINDOW rows is kept until it is multiplied with their inputs.
 */

#pragma once

#include "complex_modrelu.h"
#include "square.h"

typedef struct { vector *re, *im; } Wave; /* N complex numbers in every lane */
typedef struct { vector re, im; } Number;

typedef void Apply(const Scan *, Wave h, vector *scratch);
/* From h and G = dL/d(W h): G becomes dL/dh, and the gradients of the factors are added to dfactors. */
typedef void Reverse(const Scan *, Wave h, Wave G, vector *dfactors, vector *scratch);

#define APART 8 /* vectors between two arrays, which would share a few sets of the first cache where N is a power of two */

static inline Wave wave(vector **scratch, int64_t N) {
    Wave found = {*scratch, *scratch + N + APART};
    *scratch += 2 * (N + APART);
    return found;
}

static inline Number at(Wave x, int64_t j) { return (Number){x.re[j], x.im[j]}; }

static inline void put(Wave x, int64_t j, Number z) { x.re[j] = z.re, x.im[j] = z.im; }

/* (x, y) rotated by the angle of c + is, and back: products of x + iy with that number, and with its conjugate. */
static inline void turn(REAL c, REAL s, vector *x, vector *y) {
    vector before = *x;
    *x = c * before - s * *y;
    *y = c * *y + s * before;
}

static inline void turn_back(REAL c, REAL s, vector *x, vector *y) {
    vector after = *x;
    *x = c * after + s * *y;
    *y = c * *y - s * after;
}

/* The gradient of the angle, from both numbers and their gradients (p, q), all before or all after the rotation. */
static inline vector dangle(vector x, vector y, vector p, vector q) { return q * x - p * y; }

/* y = D x of unit numbers, given as cosines and sines. */
static inline void diagonal(const REAL *turns, Wave x, Wave y, int64_t N) {
    for (int64_t j = 0; j < N; j++) {
        Number z = at(x, j);
        turn(turns[2 * j], turns[2 * j + 1], &z.re, &z.im);
        put(y, j, z);
    }
}

/* The gradient of a number z that was turned, from that of what it became; the angle's is added to. */
static inline Number turned_back(const REAL *turns, Number z, Number g, vector *dangles, int64_t j) {
    turn_back(turns[2 * j], turns[2 * j + 1], &g.re, &g.im);
    dangles[j] += dangle(z.re, z.im, g.re, g.im);
    return g;
}

#define PART (LANES / 2) /* complex numbers of a row that one vector holds */

/* Rows of a block, from its first one on; a lane without a row has the first one's numbers. */
typedef struct { int64_t count, row[LANES]; } Places;

static inline Places places(int64_t count, int64_t distance) {
    Places found = {.count = count};
    for (int64_t m = 0; m < LANES; m++) found.row[m] = (m < count ? m : 0) * distance;
    return found;
}

/* A share of rows that the next step reads or writes, in the order of memory, begins to come: that of some units, if all
 * of them ask. */
static inline void expect(const REAL *rows, const Places *at, int64_t j, int64_t units) {
    int64_t first = 2 * j * at->count, numbers = 2 * units * at->count;
    for (int64_t k = 0; k < numbers; k += 64 / (int64_t)sizeof(REAL)) __builtin_prefetch(rows + first + k, 0, 2);
}

/* `units` numbers of every row, real and imaginary parts side by side, into lanes. */
static inline __attribute__((always_inline)) void gather_part(const REAL *rows, const Places *at, int64_t units, Wave to) {
#if !defined(__clang__)
    if (units == PART) {
        vector square[LANES];
        UNROLL_LANES for (int m = 0; m < LANES; m++) square[m] = *(const vector *)(rows + at->row[m]);
        transpose(square);
        UNROLL_LANES for (int i = 0; i < PART; i++) put(to, i, (Number){square[2 * i], square[2 * i + 1]});
        return;
    }
#endif
    for (int64_t i = 0; i < units; i++)
        for (int64_t m = 0; m < LANES; m++)
            to.re[i][m] = rows[at->row[m] + 2 * i], to.im[i][m] = rows[at->row[m] + 2 * i + 1];
}

static inline __attribute__((always_inline)) void scatter_part(Wave from, REAL *rows, const Places *at, int64_t units) {
#if !defined(__clang__)
    if (units == PART) {
        vector square[LANES];
        UNROLL_LANES for (int i = 0; i < PART; i++) square[2 * i] = from.re[i], square[2 * i + 1] = from.im[i];
        transpose(square);
        if (at->count == LANES) {
            UNROLL_LANES for (int m = 0; m < LANES; m++) *(vector *)(rows + at->row[m]) = square[m];
        } else {
            vector found[LANES];
            memcpy(found, square, sizeof found);
            for (int m = 0; m < at->count; m++) *(vector *)(rows + at->row[m]) = found[m];
        }
        return;
    }
#endif
    for (int64_t i = 0; i < units; i++)
        for (int64_t m = 0; m < at->count; m++)
            rows[at->row[m] + 2 * i] = from.re[i][m], rows[at->row[m] + 2 * i + 1] = from.im[i][m];
}

#define EACH_PART for (int64_t j = 0, units; units = N - j < PART ? N - j : PART, j < N; j += PART)

static inline Wave from(Wave x, int64_t j) { return (Wave){x.re + j, x.im + j}; }

static __attribute__((noinline)) void gather(const REAL *rows, const Places *at, int64_t N, Wave to) {
    EACH_PART gather_part(rows + 2 * j, at, units, from(to, j));
}

static __attribute__((noinline)) void scatter(Wave x, REAL *rows, const Places *at, int64_t N) {
    EACH_PART scatter_part(from(x, j), rows + 2 * j, at, units);
}

/* The sums of every row, (count, K). */
static void write_sums(const vector *sums, REAL *rows, int64_t count, int64_t K) {
    for (int64_t m = 0; m < count; m++)
        for (int64_t k = 0; k < K; k++) rows[m * K + k] = sums[k][m];
}

/* The inputs of a block in lanes: the even ones as real parts, the odd ones as imaginary parts. */
static inline void gather_inputs(const Scan *s, int64_t t, int64_t row, const Places *at, Wave x) {
    const REAL *rows = s->x + t * s->x_time + row * s->x_row;
    int64_t pairs = s->I / 2;
    gather(rows, at, pairs, x);
    if (s->I % 2) for (int64_t m = 0; m < LANES; m++) x.re[pairs][m] = rows[at->row[m] + s->I - 1];
}

static inline int64_t token(const Scan *s, int64_t t, int64_t row) {
    return s->tokens[t * s->tokens_time + row * s->tokens_row];
}

/* The rows of U that the tokens of a block name. */
static inline Places rows_of_tokens(const Scan *s, int64_t t, int64_t row, int64_t count) {
    Places found = {.count = count};
    for (int64_t m = 0; m < LANES; m++) found.row[m] = token(s, t, row + (m < count ? m : 0)) * 2 * s->N;
    return found;
}

/* U x of one part of the units, from unit j on. */
static inline __attribute__((always_inline)) void project_part(const Scan *s, Wave x, int64_t j, Wave to) {
    const REAL *U = s->U + 2 * j / WIDEST_LANES * WIDEST_LANES * s->I + 2 * j % WIDEST_LANES;
    vector sum[LANES];
    UNROLL_LANES for (int k = 0; k < LANES; k++) sum[k] = (vector){0};
    for (int64_t i = 0; i < s->I; i++, U += WIDEST_LANES) {
        vector input = i % 2 ? x.im[i / 2] : x.re[i / 2];
        UNROLL_LANES for (int k = 0; k < LANES; k++) sum[k] += U[k] * input;
    }
    UNROLL_LANES for (int k = 0; k < PART; k++) put(to, k, (Number){sum[2 * k], sum[2 * k + 1]});
}

static inline void lanes_forward(const Scan *s, int64_t first, int64_t end, vector *scratch, Apply *apply) {
    int64_t B = s->B, N = s->N, width = 2 * N;
    REAL e = (REAL)s->slope;
    Wave h = wave(&scratch, N), inputs = wave(&scratch, s->x ? s->I / 2 + 1 : 0);
    for (int64_t row = first; row < end; row += LANES) {
        int64_t count = end - row < LANES ? end - row : LANES;
        Places rows = places(count, width), input_rows = places(count, s->x_row);
        gather(s->h0 + row * width, &rows, N, h);
        for (int64_t t = 0; t < s->T; t++) {
            REAL *block = AT(s->P, t, row, width);
            apply(s, h, scratch);
            const REAL *projected = s->tokens ? s->U : block;
            if (s->x) gather_inputs(s, t, row, &input_rows, inputs);
            if (s->tokens) input_rows = rows_of_tokens(s, t, row, count);
            EACH_PART {
                vector re[PART], im[PART];
                if (t + 1 < s->T) expect(AT(s->P, t + 1, row, width), &rows, j, units);
                if (s->x) project_part(s, inputs, j, (Wave){re, im});
                else gather_part(projected + 2 * j, s->tokens ? &input_rows : &rows, units, (Wave){re, im});
                for (int64_t i = 0; i < units; i++) {
                    REAL x[LANES], y[LANES], b = s->b[j + i];
                    *(vector *)x = h.re[j + i] + re[i];
                    *(vector *)y = h.im[j + i] + im[i];
                    for (int64_t m = 0; m < LANES; m++) modulate(x + m, y + m, b, e);
                    put(h, j + i, (Number){*(vector *)x, *(vector *)y});
                }
                scatter_part(from(h, j), block + 2 * j, &rows, units);
            }
        }
    }
}

#define WINDOW 128 /* rows, whole steps of a block: as many as one panel of add_outer has */

/* dL/dz of the last steps that were done, (rows, 2 N), in the order in which they were; x and dx of the same rows. */
typedef struct { int64_t rows; REAL *dz, *x, *dx, *outer; } Window;

static inline Window window_of(const Scan *s, vector **scratch) {
    int64_t inputs = s->x ? s->I : 0, numbers = WINDOW * 2 * (s->N + inputs) + outer_scratch(2 * s->N);
    Window w = {0, (REAL *)*scratch};
    w.x = w.dz + WINDOW * 2 * s->N, w.dx = w.x + WINDOW * inputs, w.outer = w.dx + WINDOW * inputs;
    if (!s->dZ) *scratch += (numbers + LANES - 1) / LANES;
    return w;
}

/* The window begins with the block's step t + steps - 1 and ends with t: its part of dU, and its dx. */
static void close_window(const Scan *s, Window *w, int64_t t, int64_t row, int64_t count) {
    int64_t B = s->B, I = s->I, width = 2 * s->N;
    REAL *dU = s->dU + row / WIDEST_LANES * I * width;
    for (int64_t r = 0; r < w->rows; r++) {
        int64_t time = t + (w->rows - 1 - r) / count, place = row + r % count;
        if (s->x) memcpy(w->x + r * I, s->x + time * s->x_time + place * s->x_row, I * sizeof(REAL));
        else add_to(dU + token(s, time, place) * width, w->dz + r * width, width);
    }
    if (s->x) add_outer(w->x, I, w->dz, width, w->rows, width, dU, w->outer, 0, I);
    if (s->dx) {
        product((Product){width, w->dz, width, 0, 0, w->dx, I, 0}, w->rows, I, s->weights[0]);
        for (int64_t r = 0; r < w->rows; r += count)
            memcpy(AT(s->dx, t + (w->rows - 1 - r) / count, row, I), w->dx + r * I, count * I * sizeof(REAL));
    }
    w->rows = 0;
}

static inline void lanes_backward(const Scan *s, int64_t first, int64_t end, vector *scratch, Reverse *reverse) {
    int64_t B = s->B, N = s->N, width = 2 * N, K = s->parameters;
    REAL e = (REAL)s->slope;
    Wave h = wave(&scratch, N), G = wave(&scratch, N);
    vector *db = scratch, *dfactors = db + N;
    scratch = dfactors + K;
    Window window = window_of(s, &scratch);
    for (int64_t row = first; row < end; row += LANES) {
        int64_t count = end - row < LANES ? end - row : LANES;
        memset(db, 0, (N + K) * sizeof *db);
        Places rows = places(count, width), outside_rows = places(count, s->dH_row);
        gather(s->G + row * width, &rows, N, G);
        gather(AT(s->P, s->T - 1, row, width), &rows, N, h);
        for (int64_t t = s->T - 1; t >= 0; t--) {
            const REAL *before = t ? AT(s->P, t - 1, row, width) : s->h0 + row * width;
            const REAL *outside = t < s->T - 1 ? OUTSIDE(t, row) : 0;
            REAL *dz = s->dZ ? AT(s->dZ, t, row, width) : window.dz + window.rows * width;
            EACH_PART {
                vector re[PART], im[PART];
                if (t > 1) expect(AT(s->P, t - 2, row, width), &rows, j, units);
                if (t > 0 && s->dH) expect(OUTSIDE(t - 1, row), &outside_rows, j, units);
                if (t > 0 && s->dZ) expect(AT(s->dZ, t - 1, row, width), &rows, j, units);
                if (outside) {
                    gather_part(outside + 2 * j, &outside_rows, units, (Wave){re, im});
                    for (int64_t i = 0; i < units; i++) G.re[j + i] += re[i], G.im[j + i] += im[i];
                }
                for (int64_t i = 0; i < units; i++) {
                    REAL Gx[LANES], Gy[LANES], x[LANES], y[LANES], sum[LANES], b = s->b[j + i];
                    *(vector *)Gx = G.re[j + i], *(vector *)Gy = G.im[j + i];
                    *(vector *)x = h.re[j + i], *(vector *)y = h.im[j + i], *(vector *)sum = db[j + i];
                    for (int64_t m = 0; m < LANES; m++) demodulate(Gx + m, Gy + m, x[m], y[m], b, e, sum + m);
                    put(G, j + i, (Number){*(vector *)Gx, *(vector *)Gy});
                    db[j + i] = *(vector *)sum;
                }
                scatter_part(from(G, j), dz + 2 * j, &rows, units);
                gather_part(before + 2 * j, &rows, units, from(h, j));
            }
            if (!s->dZ && ((window.rows += count) + count > WINDOW || !t)) close_window(s, &window, t, row, count);
            reverse(s, h, G, dfactors, scratch);
        }
        scatter(G, s->G + row * width, &rows, N);
        write_sums(db, s->db + row * N, count, N);
        write_sums(dfactors, s->dfactors + row * K, count, K);
    }
}

/* Where the rows end that whole vectors do, of those before `end`: not those of a last block that half of one can do. */
static inline int64_t end_of_wholes(int64_t end) {
    int64_t left = end % LANES;
    return BYTES >= 32 && left <= LANES / 2 ? end - left : end;
}

/* The two loops of a matrix, for some blocks of LANES rows; with HALVES for the rows from `first` on, a few. */
#ifdef HALVES
#define LOOPS(name, apply, reverse)                                                                                    \
    void name##_few_forward(const Scan *s, int64_t first, int64_t end, vector *scratch) {                              \
        lanes_forward(s, first, end, scratch, apply);                                                                  \
    }                                                                                                                  \
    void name##_few_backward(const Scan *s, int64_t first, int64_t end, vector *scratch) {                             \
        lanes_backward(s, first, end, scratch, reverse);                                                               \
    }
#else
#define LOOP(name, way, apply)                                                                                         \
    void name##_few_##way(const Scan *s, int64_t first, int64_t end, vector *scratch);                                 \
    void name##_##way(const Scan *s, int64_t first, int64_t last, vector *scratch) {                                   \
        int64_t end = LANES * last < s->B ? LANES * last : s->B, wholes = end_of_wholes(end);                          \
        lanes_##way(s, LANES * first, wholes, scratch, apply);                                                         \
        if (wholes < end) name##_few_##way(s, wholes, end, scratch);                                                   \
    }
#define LOOPS(name, apply, reverse) LOOP(name, forward, apply) LOOP(name, backward, reverse)
#endif
