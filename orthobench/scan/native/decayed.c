/* The recurrence of outer.c where nothing is erased and all keys of a head decay alike, by chunks of writes: chunks.h.
 *
 * A line is one head of one sequence, and a call does the lines first..last-1 for all steps. The reverse writes the
 * states before chunks anew and keeps them.
 */

#include "decayed.h"

static inline Head head_of(const DecayedState *s) {
    return (Head){s->d, s->e, padded(s->d), padded(s->e), 0, 1, 0};
}

/* The writes and reads of the steps from t on; numbers behind those that count are zero, as all were at first. */
static void load_chunk(const DecayedState *s, const Head *h, int64_t line, int64_t t, Chunk *c) {
    c->reads = s->T - t < CHUNK ? s->T - t : CHUNK;
    for (int64_t r = 0; r < CHUNK; r++) {
        REAL *key = c->L + r * h->K, *query = key + CHUNK * h->K, *value = c->U + r * h->V;
        c->place[r] = r, c->beta[r] = r < c->reads, c->gate[r] = 1;
        if (r < c->reads) {
            int64_t place = place_of(s, line, t + r);
            padded_copy(s->k + place * s->d, s->d, h->K, key), padded_copy(s->q + place * s->d, s->d, h->K, query);
            padded_copy(s->v + place * s->e, s->e, h->V, value);
            c->gate[r] = exp_negative(s->log_g[place]);
        } else {
            memset(key, 0, h->K * sizeof(REAL)), memset(query, 0, h->K * sizeof(REAL));
            memset(value, 0, h->V * sizeof(REAL));
        }
    }
}

void decayed_forward(const DecayedState *s, int64_t first, int64_t last, REAL *scratch) {
    Head h = head_of(s);
    int64_t d = s->d, e = s->e, V = h.V, size = chunk_size(&h);
    REAL *O = scratch + size;
    Chunk c = chunk_at(&h, scratch);
    memset(scratch, 0, (size + CHUNK * V) * sizeof(REAL));
    for (int64_t line = first; line < last; line++) {
        padded_matrix(s->S0 + line * d * e, d, e, h.K, V, c.S);
        for (int64_t t = 0; t < s->T; t += CHUNK) {
            load_chunk(s, &h, line, t, &c);
            chunk_forward(&h, &c, O, 0, c.S, 0);
            for (int64_t r = 0; r < c.reads; r++) copied(O + r * V, e, s->O + place_of(s, line, t + r) * e);
        }
        narrowed(c.S, d, e, V, s->S + line * d * e);
    }
}

void decayed_backward(const DecayedState *s, int64_t first, int64_t last, REAL *scratch) {
    Head h = head_of(s);
    int64_t d = s->d, e = s->e, K = h.K, V = h.V, size = chunk_size(&h), chunks = chunks_of(s->T);
    ChunkBack back = chunk_back_at(&h, scratch + chunks * size);
    back.G = scratch + chunks * size + chunk_back_size(&h);
    Chunk *found = (Chunk *)(void *)(back.G + K * V);
    memset(scratch, 0, (chunks * size + chunk_back_size(&h) + K * V) * sizeof(REAL));
    for (int64_t i = 0; i < chunks; i++) found[i] = chunk_at(&h, scratch + i * size);
    for (int64_t line = first; line < last; line++) {
        if (chunks) padded_matrix(s->S0 + line * d * e, d, e, K, V, found[0].S);
        for (int64_t i = 0; i < chunks; i++) {
            load_chunk(s, &h, line, i * CHUNK, found + i);
            chunk_forward(&h, found + i, 0, 0, i + 1 < chunks ? found[i + 1].S : 0, 0);
        }
        padded_matrix(s->dS + line * d * e, d, e, K, V, back.G);
        for (int64_t i = chunks - 1; i >= 0; i--) {
            Chunk *c = found + i;
            memset(back.dO, 0, CHUNK * V * sizeof(REAL));
            for (int64_t r = 0; r < c->reads; r++)
                copied(s->dO + place_of(s, line, i * CHUNK + r) * e, e, back.dO + r * V);
            chunk_backward(&h, c, &back);
            for (int64_t r = 0; r < c->reads; r++) {
                int64_t place = place_of(s, line, i * CHUNK + r);
                copied(back.dL + r * K, d, s->dk + place * d), copied(back.dL + (CHUNK + r) * K, d, s->dq + place * d);
                copied(back.dU + r * V, e, s->dv + place * e);
                s->dlog_g[place] = back.dlog[r];
            }
        }
        narrowed(back.G, d, e, V, s->dS + line * d * e);
    }
}

/* Numbers of scratch memory that a pass needs. */
int64_t decayed_scratch(const DecayedState *s, int64_t backward) {
    Head h = head_of(s);
    int64_t size = chunk_size(&h), chunks = chunks_of(s->T);
    if (!backward) return size + CHUNK * h.V;
    return chunks * (size + (int64_t)(sizeof(Chunk) / sizeof(REAL) + 1)) + chunk_back_size(&h) + h.K * h.V;
}
