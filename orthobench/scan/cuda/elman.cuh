// The Elman and the scalar-gated recurrence, h_t = act(p_t + W h_{t-1}) + beta h_{t-1}.

KERNEL(elman_forward)(const real* P, const real* W, const real* bias, const real* betas, real* H, real* A, int T, int B) {
    SHARED;
    const long long m = member();
    const Place place(B);
    P += m * T * B * N, H += m * (T + 1) * B * N, A += m * (T + 1) * B * N;
    Weights w;
    read_weights(w, W + m * N * N);
    Vectors<1> vectors(shared, place);
    const real b = place.parameter(bias + m * N, ACTIVATION == MODRELU), beta = GATED ? betas[m] : real(0);
    real h[OWN], p[DEPTH][OWN];
    place.read(h, H, 0, N);
    vectors.send(place, 0, h);
    for (int d = 0; d < DEPTH; d++) place.read(p[d], P, d, N, d < T);
    vectors.wait(1);
    for (int start = 0; start < T; start += DEPTH)
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const int t = start + d;
            if (t >= T) break;
            real z[1][OWN] = {}, a[OWN];
            vectors.products<0, 1>(z, w, place);
            EACH {
                a[e] = kept(z[0][e] + p[d][e], b);
                h[e] = value(a[e]) + (GATED ? beta * h[e] : real(0));
            }
            vectors.send(place, 0, h);
            place.read(p[d], P, t + DEPTH, N, t + DEPTH < T);
            place.write(H, h, t + 1, N);
            if (KEPT) place.write(A, a, t + 1, N);
            vectors.wait(1);
        }
}

KERNEL(elman_backward)(const real* dH, const real* dlast, const real* W, const real* betas, const real* H, const real* A,
                       real* dP, real* G0, real* dbetas, real* dbias, int T, int B) {
    SHARED;
    const long long m = member(), states = m * (T + 1) * B * N, first = m * B * N;
    const Place place(B);
    const bool own_values = GATED || ACTIVATION == ABS;  // else act(z) is the state
    dH += m * T * B * N, H += states, dP += m * T * B * N;
    A = own_values ? A + states : H;
    Weights w;
    read_weights(w, W + m * N * N);
    Vectors<1> vectors(shared, place);
    const real beta = GATED ? betas[m] : real(0);
    real G[OWN], dbeta[OWN] = {}, db[OWN] = {}, outside[DEPTH][OWN], a[DEPTH][OWN], h[DEPTH][OWN];
    place.read_last(G, dH, dlast + first, T);
    for (int d = 0; d < DEPTH; d++) {
        const int t = T - 1 - d;
        place.read_outside(outside[d], dH, t);
        place.read(a[d], A, t + 1, N, t >= 0);
        if (GATED) place.read(h[d], H, t, N, t >= 0);
    }
    for (int start = T - 1; start >= 0; start -= DEPTH)
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const int t = start - d, later = t - DEPTH;
            if (t < 0) break;
            real dz[OWN];
            EACH dz[e] = G[e] * derivative(a[d][e]);
            vectors.send(place, 0, dz);
            EACH {
                if (ACTIVATION == MODRELU) db[e] += signed_by(dz[e], a[d][e]);
                if (GATED) dbeta[e] += G[e] * h[d][e];
                G[e] = outside[d][e] + (GATED ? beta * G[e] : real(0));
            }
            place.read_outside(outside[d], dH, later);
            place.read(a[d], A, later + 1, N, later >= 0);
            if (GATED) place.read(h[d], H, later, N, later >= 0);
            place.write(dP, dz, t, N);
            vectors.wait(1);
            vectors.add_products<0, 1>(G, w, place);
        }
    place.write(G0 + first, G, 0, N);
    if (GATED) place.write(dbetas + first, dbeta, 0, N);
    if (ACTIVATION == MODRELU) place.write(dbias + first, db, 0, N);
}
