/* DeltaNet and DeltaProduct from projections to what the heads read: the equations are in cells/deltaproduct.py.
 *
 * A call does the sequences first..last-1, block by block of some steps. The forward pass keeps the states before every
 * block, and the backward pass does a block again, the last one first, so that all it needs stays in cache.
 */

#include "sequences.h"

typedef struct {
    union { HeadSequences shared; struct { HEAD_SEQUENCES }; }; /* p: what is convolved, beta, both gates */
    int64_t writes, gated, shown;
    double reach, query_scale;
    REAL *A, *dt, *scale;             /* (H), (H), (e) */
    REAL *S0, *S, *kept;              /* (B, H, d, e); (B, blocks, H, d, e), null where no gradient is needed */
    REAL *dA, *ddt, *dscale;          /* (units, ...), zero at first */
    REAL *dS;                         /* dL/dS at the start, dL/dS0 at the end */
} DeltaHeads;

#define EPSILON ((REAL)1e-5)

typedef struct {
    Head h;
    Window w;
    int64_t steps, chunks, M;         /* of a block; channels */
    REAL *x, *slope, *dx, *rows;      /* (steps, M) behind SiLU, its derivative, the gradient; (CHUNK, V) */
    REAL *beta, *gate, *dbeta, *dlog; /* (steps, writes, H), (steps, H) */
    REAL *rate, *log;                 /* (H) exp(A); (steps, H) the logarithms of the gates */
} Block;

static Block block_of(const DeltaHeads *s, int64_t backward, REAL **memory) {
    Block b = {.h = {s->d, s->e, padded(s->d), padded(s->e), 1, s->gated, 0}};
    b.steps = steps_of_block(s->writes), b.chunks = chunks_of(b.steps * s->writes);
    b.M = s->channels;
    b.w = window_of(&s->shared, b.steps, backward, memory);
    b.x = take(memory, b.steps * b.M), b.dx = take(memory, b.steps * b.M), b.slope = take(memory, b.steps * b.M);
    b.rows = take(memory, CHUNK * b.h.V);
    b.beta = take(memory, b.steps * s->writes * s->H), b.dbeta = take(memory, b.steps * s->writes * s->H);
    b.gate = take(memory, b.steps * s->H), b.dlog = take(memory, b.steps * s->H);
    b.rate = take(memory, s->H), b.log = take(memory, b.steps * s->H);
    return b;
}

static inline REAL softplus(REAL x) {
    REAL e = exp_negative(-magnitude(x));
    return (x > 0 ? x : 0) + (sizeof(REAL) == 8 ? (REAL)log1p((double)e) : (REAL)log1pf((float)e));
}

static void read_rates(const DeltaHeads *s, Block *b) {
    for (int64_t head = 0; s->gated && head < s->H; head++) b->rate[head] = (REAL)exp((double)s->A[head]);
}

/* x, beta and the gate of the steps t ... t + count - 1. */
static void read_block(const DeltaHeads *s, Block *b, int64_t t, int64_t count) {
    int64_t n = s->writes * s->H;
    for (int64_t i = 0; i < count; i++) {
        const REAL *p = row_of(&b->w, t + i) + b->M;
        convolve(&b->w.convolution, place_of(&b->w, t + i), 0, b->x + i * b->M, b->w.dp ? b->slope + i * b->M : 0);
        for (int64_t j = 0; j < n; j++) b->beta[i * n + j] = (REAL)s->reach * sigmoid(p[j]);
        for (int64_t head = 0; s->gated && head < s->H; head++) {
            REAL log = -b->rate[head] * softplus(p[n + head] + s->dt[head]);
            b->log[i * s->H + head] = log;
            b->gate[i * s->H + head] = exp_negative(log);
        }
    }
}

/* Chunk i of a head of a block of `count` steps, ready for `chunk_forward`. */
static void load_chunk(const DeltaHeads *s, const Block *b, int64_t i, int64_t head, int64_t count, Chunk *c) {
    const Head *h = &b->h;
    int64_t first = i * CHUNK, writes = count * s->writes - first, N = s->H * s->d;
    c->reads = 0;
    for (int64_t r = 0; r < CHUNK; r++) {
        int64_t step = (first + r) / s->writes, j = (first + r) % s->writes;
        const REAL *x = b->x + step * b->M;
        REAL *key = c->L + r * h->K, *value = c->U + r * h->V;
        if (r >= writes) {
            memset(key, 0, h->K * sizeof(REAL)), memset(value, 0, h->V * sizeof(REAL));
            c->beta[r] = 0, c->gate[r] = 1;
            continue;
        }
        padded_copy(x + (1 + j) * N + head * s->d, s->d, h->K, key);
        padded_copy(x + (1 + s->writes) * N + (j * s->H + head) * s->e, s->e, h->V, value);
        c->beta[r] = b->beta[(first + r) * s->H + head];
        c->gate[r] = s->gated && j == 0 ? b->gate[step * s->H + head] : 1;
        if (j + 1 < s->writes) continue;
        padded_copy(x + head * s->d, s->d, h->K, c->L + (CHUNK + c->reads) * h->K);
        c->place[c->reads++] = r;
    }
    memset(c->L + (CHUNK + c->reads) * h->K, 0, (CHUNK - c->reads) * h->K * sizeof(REAL));
    row_dots(c->L, c->L, STACK, h->K, c->factor);
    for (int64_t r = 0; r < STACK; r++) c->factor[r] = 1 / square_root(c->factor[r] + (REAL)1e-6);
    scale_rows(c->L, c->factor, STACK, h->K, c->L);
}

/* The factor that brings a head's output to a mean square of one, from the square of its length. */
static inline REAL normalising(const DeltaHeads *s, REAL squared) {
    REAL f = (REAL)s->query_scale;
    return f / square_root(f * f * squared / (REAL)s->e + EPSILON);
}

/* O: what chunk i of a head reads, from step t on. */
static void write_outputs(const DeltaHeads *s, const Block *b, const Chunk *c, int64_t t, int64_t i, int64_t head,
                          const REAL *O) {
    int64_t e = s->e, V = b->h.V, N = s->H * e;
    REAL squared[CHUNK];
    row_dots(O, O, CHUNK, V, squared);
    for (int64_t q = 0; q < c->reads; q++) {
        int64_t at = t + (i * CHUNK + c->place[q]) / s->writes;
        const REAL *shown = row_of(&b->w, at) + s->width - N + head * e, *o = O + q * V;
        REAL *y = y_of(&b->w, at) + head * e, factor = normalising(s, squared[q]);
        if (s->shown) gated_row(o, s->scale, shown, factor, y, e);
        else scaled_row(o, s->scale, factor, y, e);
    }
}

/* O becomes dL/dO, and the gradients of the output gate and the scale are written, and again the outputs. */
static void read_gradients(const DeltaHeads *s, const Block *b, const Chunk *c, int64_t t, int64_t i, int64_t head,
                           REAL *O) {
    int64_t e = s->e, V = b->h.V, N = s->H * e;
    REAL squared[CHUNK], factor[CHUNK], along[CHUNK];
    row_dots(O, O, CHUNK, V, squared);
    for (int64_t q = 0; q < c->reads; q++) {
        int64_t at = t + (i * CHUNK + c->place[q]) / s->writes, place = s->width - N + head * e;
        const REAL *dy = dy_of(&b->w, at) + head * e;
        factor[q] = normalising(s, squared[q]);
        outputs_back(O + q * V, s->scale, s->shown ? row_of(&b->w, at) + place : 0, dy, factor[q],
                     s->shown ? d_row_of(&b->w, at) + place : 0, s->dscale + b->w.unit * e, y_of(&b->w, at) + head * e,
                     b->rows + q * V, e);
    }
    row_dots(O, b->rows, CHUNK, V, along);
    for (int64_t q = 0; q < c->reads; q++) {
        scaled(-factor[q] * factor[q] * factor[q] * along[q] / (REAL)e, O + q * V, V, O + q * V);
        add_scaled(factor[q], b->rows + q * V, V, O + q * V);
    }
}

void deltaproduct_forward(const DeltaHeads *s, int64_t first, int64_t last, REAL *scratch) {
    Block b = block_of(s, 0, &scratch);
    Chunk c = chunk_at(&b.h, take(&scratch, chunk_size(&b.h)));
    int64_t K = b.h.K, V = b.h.V, size = s->d * s->e;
    REAL *O = take(&scratch, CHUNK * V), *states = take(&scratch, s->H * K * V);
    memset(b.x, 0, (scratch - b.x) * sizeof(REAL));
    read_rates(s, &b);
    for (int64_t row = first * s->unit; row < last * s->unit && row < s->B; row++) {
        REAL *kept = s->kept + row * blocks_of(s->T, b.steps) * s->H * size;
        enter(&b.w, row, 0);
        for (int64_t head = 0; head < s->H; head++)
            padded_matrix(s->S0 + (row * s->H + head) * size, s->d, s->e, K, V, states + head * K * V);
        for (int64_t t = 0; t < s->T; t += b.steps) {
            int64_t count = s->T - t < b.steps ? s->T - t : b.steps;
            if (t == b.w.start + b.w.count) open_window(&b.w, t);
            read_block(s, &b, t, count);
            for (int64_t head = 0; head < s->H; head++) {
                c.S = states + head * K * V;
                if (s->kept) narrowed(c.S, s->d, s->e, V, kept), kept += size;
                for (int64_t i = 0; i < chunks_of(count * s->writes); i++) {
                    load_chunk(s, &b, i, head, count, &c);
                    chunk_forward(&b.h, &c, O, 0, c.S, 0);
                    write_outputs(s, &b, &c, t, i, head, O);
                }
            }
            if (t + count == b.w.start + b.w.count) close_window(&b.w);
        }
        leave(&b.w, 0);
        for (int64_t head = 0; head < s->H; head++)
            narrowed(states + head * K * V, s->d, s->e, V, s->S + (row * s->H + head) * size);
    }
}

/* What chunk i got from its keys, queries and values, into dx, dbeta and dlog. */
static void store_gradients(const DeltaHeads *s, const Block *b, int64_t i, int64_t head, int64_t count,
                            const Chunk *c, ChunkBack *back) {
    const Head *h = &b->h;
    int64_t first = i * CHUNK, writes = count * s->writes - first, N = s->H * s->d, q = 0;
    REAL along[STACK];
    row_dots(c->L, back->dL, STACK, h->K, along);
    for (int64_t r = 0; r < STACK; r++) add_scaled(-along[r], c->L + r * h->K, h->K, back->dL + r * h->K);
    scale_rows(back->dL, c->factor, STACK, h->K, back->dL);
    for (int64_t r = 0; r < CHUNK && r < writes; r++) {
        int64_t step = (first + r) / s->writes, j = (first + r) % s->writes;
        REAL *dx = b->dx + step * b->M;
        copied(back->dL + r * h->K, s->d, dx + (1 + j) * N + head * s->d);
        copied(back->dU + r * h->V, s->e, dx + (1 + s->writes) * N + (j * s->H + head) * s->e);
        b->dbeta[(first + r) * s->H + head] = back->dbeta[r];
        if (j == 0) b->dlog[step * s->H + head] = back->dlog[r];
        if (j + 1 == s->writes) copied(back->dL + (CHUNK + q++) * h->K, s->d, dx + head * s->d);
    }
}

/* The reverse of `read_block`. */
static void block_back(const DeltaHeads *s, Block *b, int64_t t, int64_t count) {
    int64_t n = s->writes * s->H;
    convolve_block_back(&b->w.convolution, place_of(&b->w, t), count, 0, b->dx, b->slope, b->M);
    for (int64_t i = count - 1; i >= 0; i--) {
        const REAL *p = row_of(&b->w, t + i) + b->M;
        REAL *dp = d_row_of(&b->w, t + i) + b->M;
        for (int64_t j = 0; j < n; j++) {
            REAL y = sigmoid(p[j]);
            dp[j] = (REAL)s->reach * y * (1 - y) * b->dbeta[i * n + j];
        }
        for (int64_t head = 0; s->gated && head < s->H; head++) {
            REAL dlog = b->dlog[i * s->H + head], da = -dlog * b->rate[head] * sigmoid(p[n + head] + s->dt[head]);
            dp[n + head] = da;
            s->ddt[b->w.unit * s->H + head] += da;
            s->dA[b->w.unit * s->H + head] += dlog * b->log[i * s->H + head];
        }
    }
}

void deltaproduct_backward(const DeltaHeads *s, int64_t first, int64_t last, REAL *scratch) {
    Block b = block_of(s, 1, &scratch);
    ChunkBack back = chunk_back_at(&b.h, take(&scratch, chunk_back_size(&b.h)));
    int64_t K = b.h.K, V = b.h.V, H = s->H, size = s->d * s->e, own = chunk_size(&b.h);
    REAL *chunks = take(&scratch, b.chunks * H * own), *N = take(&scratch, b.chunks * H * STACK * V);
    REAL *G = take(&scratch, H * K * V);
    memset(b.x, 0, (scratch - b.x) * sizeof(REAL));
    read_rates(s, &b);
    Chunk *found = (Chunk *)(void *)scratch;
    for (int64_t i = 0; i < b.chunks * H; i++) found[i] = chunk_at(&b.h, chunks + i * own);
    for (int64_t row = first * s->unit; row < last * s->unit && row < s->B; row++) {
        int64_t blocks = blocks_of(s->T, b.steps);
        enter(&b.w, row, 1);
        for (int64_t head = 0; head < H; head++)
            padded_matrix(s->dS + (row * H + head) * size, s->d, s->e, K, V, G + head * K * V);
        for (int64_t block = blocks - 1; block >= 0; block--) {
            int64_t t = block * b.steps, count = s->T - t < b.steps ? s->T - t : b.steps;
            int64_t chunked = chunks_of(count * s->writes);
            const REAL *kept = s->kept + (row * blocks + block) * H * size;
            foresee(kept, H * size);
            if (t < b.w.start || b.w.count == 0) open_window(&b.w, t / b.w.steps * b.w.steps);
            read_block(s, &b, t, count);
            for (int64_t head = 0; head < H; head++) {
                Chunk *c = found + head * b.chunks;
                padded_matrix(kept + head * size, s->d, s->e, K, V, c->S);
                for (int64_t i = 0; i < chunked; i++) {
                    REAL *O = N + (head * b.chunks + i) * STACK * V + CHUNK * V;
                    load_chunk(s, &b, i, head, count, c + i);
                    chunk_forward(&b.h, c + i, O, 0, i + 1 < chunked ? c[i + 1].S : 0, 0);
                    read_gradients(s, &b, c + i, t, i, head, O);
                }
                back.G = G + head * K * V;
                for (int64_t i = chunked - 1; i >= 0; i--) {
                    back.N = N + (head * b.chunks + i) * STACK * V, back.dO = back.N + CHUNK * V;
                    chunk_backward(&b.h, c + i, &back);
                    store_gradients(s, &b, i, head, count, c + i, &back);
                }
            }
            block_back(s, &b, t, count);
            if (t == b.w.start) close_window_back(&b.w);
        }
        leave(&b.w, 1);
        for (int64_t head = 0; head < H; head++)
            narrowed(G + head * K * V, s->d, s->e, V, s->dS + (row * H + head) * size);
    }
}

/* Numbers of scratch memory that a pass needs. */
int64_t deltaproduct_scratch(const DeltaHeads *s, int64_t backward) {
    REAL *end = 0;
    Block b = block_of(s, backward, &end);
    int64_t K = b.h.K, V = b.h.V, own = (int64_t)(end - (REAL *)0) + s->H * K * V + 4 * LANES;
    if (!backward) return own + chunk_size(&b.h) + CHUNK * V;
    int64_t chunks = b.chunks * s->H, structs = chunks * (int64_t)(sizeof(Chunk) / sizeof(REAL) + 1);
    return own + chunk_back_size(&b.h) + chunks * (chunk_size(&b.h) + STACK * V) + structs;
}
