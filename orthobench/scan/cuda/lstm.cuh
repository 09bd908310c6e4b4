// Long short-term memory; gates, projections and matrices in the order i, f, g, o.

KERNEL(lstm_forward)(const real* P, const real* W, real* H, real* last, real* gates, real* C, int T, int B) {
    SHARED;
    constexpr int M = 4 * N;
    const long long m = member();
    const Place place(B);
    P += m * T * B * M, H += m * (T + 1) * B * N, last += m * B * N, gates += m * T * B * M, C += m * T * B * N;
    Weights w;
    read_weights(w, W + m * M * N);
    Vectors<1> vectors(shared, place);
    real h[OWN], c[OWN], p[DEPTH][4][OWN];
    place.read(h, H, 0, N);
    place.read(c, last, 0, N);
    vectors.send(place, 0, h);
    for (int d = 0; d < DEPTH; d++)
        for (int g = 0; g < 4; g++) place.read(p[d][g], P + g * N, d, M, d < T);
    vectors.wait(1);
    for (int start = 0; start < T; start += DEPTH)
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const int t = start + d;
            if (t >= T) break;
            real z[GATES][OWN] = {}, before[OWN];
            vectors.template products<0, 4>(z, w, place);
            EACH {
                for (int g = 0; g < 4; g++) z[g][e] += p[d][g][e];
                for (int g = 0; g < 4; g++) z[g][e] = g == 2 ? tanh(z[g][e]) : sigmoid(z[g][e]);
                before[e] = c[e];
                c[e] = z[1][e] * c[e] + z[0][e] * z[2][e];
                h[e] = z[3][e] * tanh(c[e]);
            }
            vectors.send(place, 0, h);
            for (int g = 0; g < 4; g++) place.read(p[d][g], P + g * N, t + DEPTH, M, t + DEPTH < T);
            place.write(H, h, t + 1, N);
            if (KEPT) {
                place.write(C, before, t, N);
                for (int g = 0; g < 4; g++) place.write(gates + g * N, z[g], t, M);
            }
            vectors.wait(1);
        }
    place.write(last, c, 0, N);
}

KERNEL(lstm_backward)(const real* dH, const real* dlast, const real* dmemory, const real* W, const real* last,
                      const real* gates, const real* C, real* dP, real* G0, real* S0, int T, int B) {
    SHARED;
    constexpr int M = 4 * N;
    const long long m = member(), first = m * B * N;
    const Place place(B);
    dH += m * T * B * N, gates += m * T * B * M, C += m * T * B * N, dP += m * T * B * M;
    Weights w;
    read_weights(w, W + m * M * N);
    Vectors<4> vectors(shared, place);
    real G[OWN], S[OWN], c[OWN], outside[DEPTH][OWN], before[DEPTH][OWN], own[DEPTH][4][OWN];
    auto read = [&](int d, int t) {
        place.read_outside(outside[d], dH, t);
        place.read(before[d], C, t, N, t >= 0);
        for (int g = 0; g < 4; g++) place.read(own[d][g], gates + g * N, t, M, t >= 0);
    };
    place.read_last(G, dH, dlast + first, T);
    place.read(S, dmemory + first, 0, N);
    place.read(c, last + first, 0, N);
    for (int d = 0; d < DEPTH; d++) read(d, T - 1 - d);
    for (int start = T - 1; start >= 0; start -= DEPTH)
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const int t = start - d;
            if (t < 0) break;
            real dz[4][OWN];
            EACH {
                const real i = own[d][0][e], f = own[d][1][e], g = own[d][2][e], o = own[d][3][e];
                const real s = tanh(c[e]), D = S[e] + G[e] * o * (1 - s * s);
                dz[0][e] = D * g * i * (1 - i);
                dz[1][e] = D * before[d][e] * f * (1 - f);
                dz[2][e] = D * i * (1 - g * g);
                dz[3][e] = G[e] * s * o * (1 - o);
                S[e] = D * f;
                c[e] = before[d][e];
                G[e] = outside[d][e];
            }
            for (int g = 0; g < 4; g++) vectors.send(place, g, dz[g]);
            read(d, t - DEPTH);
            for (int g = 0; g < 4; g++) place.write(dP + g * N, dz[g], t, M);
            vectors.wait(4);
            vectors.template add_products<0, 4>(G, w, place);
        }
    place.write(G0 + first, G, 0, N);
    place.write(S0 + first, S, 0, N);
}
