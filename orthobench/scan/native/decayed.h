/* What the loops have in common whose heads each decay as a whole: a line is one head of one sequence. */

#pragma once

#include "blocks.h"

typedef struct {
    int64_t T, B, H, d, e;        /* d keys, e values of a head */
    REAL *log_g, *q, *k, *v, *O;  /* (B, T, H), (B, T, H, d) twice, (B, T, H, e) twice */
    REAL *S0, *S, *dS;            /* (B, H, d, e); dS is dL/dS_T at the start, dL/dS_0 at the end */
    REAL *dO, *dlog_g, *dq, *dk, *dv;
    REAL *wanted;                 /* (B, T), zero where nobody reads o, or null; for orthogonal.c alone */
} DecayedState;

static inline int64_t place_of(const DecayedState *s, int64_t line, int64_t t) {
    return ((line / s->H) * s->T + t) * s->H + line % s->H;
}
