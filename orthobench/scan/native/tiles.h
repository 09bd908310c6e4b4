/* Tiles: LANES rows of n numbers, one behind the other, which are n whole vectors whatever n is. */

#pragma once

#include "vectors.h"

#define TILE for (int64_t j = 0; j < n * LANES; j += LANES)

/* The numbers that a tile needs in scratch memory, where a vector may reach behind its last row. */
static inline int64_t tile_size(int64_t n) { return (n + 1) * LANES; }

/* `count` rows of a tensor as a tile: where they are, or if they are fewer than LANES a copy, and zeros, in `room`. */
static inline const REAL *tile_of(const REAL *x, int64_t count, int64_t n, REAL *room) {
    if (!x || count == LANES) return x;
    memcpy(room, x, count * n * sizeof(REAL));
    memset(room + count * n, 0, (LANES - count) * n * sizeof(REAL));
    return room;
}

/* Where a tile is written: in a tensor, or if `count` is less than LANES in `room`, for `tile_done`. */
static inline REAL *tile_to(REAL *y, int64_t count, REAL *room) { return y && count < LANES ? room : y; }

static inline void tile_done(const REAL *made, int64_t count, int64_t n, REAL *y) {
    if (made != y) memcpy(y, made, count * n * sizeof(REAL));
}

/* The sum of each row of a tile in scratch memory. */
static inline vector row_sums(const REAL *x, int64_t n) {
    int64_t whole_numbers = n / LANES * LANES;
    lane_index rest = {0};
    for (int64_t i = 0; i < n - whole_numbers; i++) rest[i] = -1;
    vector each[LANES];
    for (int64_t row = 0; row < LANES; row++, x += n) {
        vector sum = {0};
        for (int64_t j = 0; j < whole_numbers; j += LANES) sum += VECTOR(x + j);
        if (whole_numbers < n) sum += (vector)((lane_index)VECTOR(x + whole_numbers) & rest);
        each[row] = sum;
    }
    return sum_each(each);
}

/* A tile in scratch memory whose rows have one number each. */
static inline void spread(vector numbers, int64_t n, REAL *out) {
    REAL each[LANES];
    VECTOR(each) = numbers;
    for (int64_t row = 0; row < LANES; row++, out += n) /* what is behind a row is written after it */
        for (int64_t j = 0; j < n; j += LANES) VECTOR(out + j) = (vector){0} + each[row];
}

/* A tile in scratch memory whose rows are all `row`. */
static inline void repeat_row(const REAL *row, int64_t n, REAL *out) {
    for (int64_t i = 0; i < LANES; i++) memcpy(out + i * n, row, n * sizeof(REAL));
}

/* Adds the sum of a tile's rows to `row`. */
static inline void add_rows(const REAL *x, int64_t n, REAL *row) {
    for (int64_t i = 0; i < LANES; i++)
        for (int64_t j = 0; j < n; j++) row[j] += x[i * n + j];
}

static inline vector inverse_roots(vector x) {
    REAL each[LANES];
    VECTOR(each) = x;
    for (int64_t i = 0; i < LANES; i++)
        each[i] = 1 / square_root(each[i]);
    return VECTOR(each);
}
