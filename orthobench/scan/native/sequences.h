/* Sequences of a cell whose state is a matrix, from inputs to outputs: windows of some steps, whose projections lie in
 * scratch memory, again in the backward pass. A window has one block of writes or more.
 */

#pragma once

#include "blocks.h"

/* What all cells are given. The sums of a unit of sequences are added one after another. */
#define HEAD_SEQUENCES                                                                                                 \
    int64_t T, B, H, d, e, I, width, N, K, channels, unit; /* I, width, N: of inputs, projections, outputs */          \
    int64_t X_row, X_time, dX_row, dX_time, tokens_row, tokens_time; /* strides */                                     \
    REAL *X, *bias, *UT, *U; /* (B, T, I); (width), or null; packed, or null: X is the projection itself */            \
    int64_t *tokens;         /* (B, T), or null: one-hot vectors in place of X */                                      \
    REAL *table;             /* U^T (I, width) of tokens */                                                            \
    REAL *OT, *O;            /* packed: what mixes the outputs of all heads, or null */                                \
    REAL *kernel, *P0, *P;   /* (K, channels); what is convolved of the K - 1 steps before, and of the last ones */    \
    REAL *Y, *dY;            /* (B, T, N) */                                                                           \
    REAL *dX, *dP;           /* dX as X, or null; dP as P, of P at the start, of P0 at the end */                      \
    REAL *dU, *dbias, *dO, *dkernel; /* (units, ...), zero at first: dU (I, width), dO (N, H e) */

typedef struct { HEAD_SEQUENCES } HeadSequences;

typedef struct {
    const HeadSequences *s;
    int64_t steps, past, W, V;    /* of a window at most; before it; distances of rows of p, of y */
    int64_t row, unit, start, count;
    REAL *p, *dp;                 /* (past + steps, W) */
    REAL *y, *dy;                 /* (steps, V) what the heads read */
    REAL *y_room, *dy_room, *outer;
    Convolution convolution;      /* its steps are rows of p */
} Window;

Window window_of(const HeadSequences *s, int64_t block, int64_t backward, REAL **memory);

/* A sequence begins, from its first step on, or backward from its last. */
void enter(Window *w, int64_t row, int64_t backward);

/* p, and in the backward pass dy, of the steps from `start` on. */
void open_window(Window *w, int64_t start);

void close_window(Window *w);
void close_window_back(Window *w);

/* What the next sequence, or the one before, gets from the convolution. */
void leave(const Window *w, int64_t backward);

/* Where in p and dp step t is. */
static inline int64_t place_of(const Window *w, int64_t t) { return w->past + t - w->start; }

static inline const REAL *row_of(const Window *w, int64_t t) { return w->p + place_of(w, t) * w->W; }
static inline REAL *d_row_of(const Window *w, int64_t t) { return w->dp + place_of(w, t) * w->W; }
static inline REAL *y_of(const Window *w, int64_t t) { return w->y + (t - w->start) * w->V; }
static inline const REAL *dy_of(const Window *w, int64_t t) { return w->dy + (t - w->start) * w->V; }
