// The gated recurrent unit; gates, projections and matrices in the order r, u, c, without r where there is no reset.

enum { NONE, BEFORE, AFTER };
constexpr int R_GATE = 0, U_GATE = GATES - 2, C_GATE = GATES - 1;

KERNEL(gru_forward)(const real* P, const real* W, const real* bias, const real* late, real* H, real* gates, real* recalled,
                    int T, int B) {
    SHARED;
    constexpr int M = GATES * N;
    const long long m = member();
    const Place place(B);
    P += m * T * B * M, H += m * (T + 1) * B * N, gates += m * T * B * M, recalled += m * T * B * N;
    Weights w;
    read_weights(w, W + m * M * N);
    Vectors<1> vectors(shared, place);
    const real b = place.parameter(bias + m * N, ACTIVATION == MODRELU), b_k = place.parameter(late + m * N, LATE);
    real h[OWN], p[DEPTH][GATES][OWN];
    place.read(h, H, 0, N);
    vectors.send(place, 0, h);
    for (int d = 0; d < DEPTH; d++)
        for (int g = 0; g < GATES; g++) place.read(p[d][g], P + g * N, d, M, d < T);
    vectors.wait(1);
    for (int start = 0; start < T; start += DEPTH)
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const int t = start + d;
            if (t >= T) break;
            real z[GATES][OWN] = {}, r[OWN], u[OWN], c[OWN], k[OWN];
            vectors.products<0, RESET == BEFORE ? GATES - 1 : GATES>(z, w, place);
            EACH {
                u[e] = sigmoid(z[U_GATE][e] + p[d][U_GATE][e]);
                if (RESET != NONE) r[e] = sigmoid(z[R_GATE][e] + p[d][R_GATE][e]);
            }
            if (RESET == BEFORE) {
                EACH k[e] = r[e] * h[e];
                vectors.send(place, 0, k);
                vectors.wait(1);
                vectors.products<C_GATE, GATES>(z, w, place);
            }
            EACH {
                k[e] = z[C_GATE][e] + b_k;
                c[e] = kept(p[d][C_GATE][e] + (RESET == AFTER ? r[e] * k[e] : z[C_GATE][e]), b);
                h[e] = value(c[e]) + u[e] * (h[e] - value(c[e]));
            }
            vectors.send(place, 0, h);
            for (int g = 0; g < GATES; g++) place.read(p[d][g], P + g * N, t + DEPTH, M, t + DEPTH < T);
            place.write(H, h, t + 1, N);
            if (KEPT) {
                if (RESET != NONE) place.write(gates, r, t, M);
                place.write(gates + U_GATE * N, u, t, M);
                place.write(gates + C_GATE * N, c, t, M);
                if (RESET == AFTER) place.write(recalled, k, t, N);
            }
            vectors.wait(1);
        }
}

KERNEL(gru_backward)(const real* dH, const real* dlast, const real* W, const real* H, const real* gates,
                     const real* recalled, real* dP, real* G0, real* dbias, int T, int B) {
    SHARED;
    constexpr int M = GATES * N;
    const long long m = member(), first = m * B * N;
    const Place place(B);
    dH += m * T * B * N, H += m * (T + 1) * B * N, gates += m * T * B * M, recalled += m * T * B * N, dP += m * T * B * M;
    Weights w;
    read_weights(w, W + m * M * N);
    Vectors<GATES> vectors(shared, place);
    real G[OWN], db[OWN] = {}, outside[DEPTH][OWN], before[DEPTH][OWN], own[DEPTH][GATES][OWN], k[DEPTH][OWN];
    auto read = [&](int d, int t) {
        place.read_outside(outside[d], dH, t);
        place.read(before[d], H, t, N, t >= 0);
        for (int g = 0; g < GATES; g++) place.read(own[d][g], gates + g * N, t, M, t >= 0);
        if (RESET == AFTER) place.read(k[d], recalled, t, N, t >= 0);
    };
    place.read_last(G, dH, dlast + first, T);
    for (int d = 0; d < DEPTH; d++) read(d, T - 1 - d);
    for (int start = T - 1; start >= 0; start -= DEPTH)
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const int t = start - d;
            if (t < 0) break;
            real dz_r[OWN], dz_u[OWN], dz_c[OWN], passed[OWN];
            EACH {
                const real u = own[d][U_GATE][e], c = own[d][C_GATE][e], r = own[d][R_GATE][e], h = before[d][e];
                dz_u[e] = G[e] * (h - value(c)) * u * (1 - u);
                dz_c[e] = G[e] * (1 - u) * derivative(c);
                G[e] = outside[d][e] + G[e] * u;
                if (ACTIVATION == MODRELU) db[e] += signed_by(dz_c[e], c);
                if (RESET == AFTER) {
                    dz_r[e] = dz_c[e] * k[d][e] * r * (1 - r);
                    passed[e] = dz_c[e] * r;
                }
            }
            if (RESET == BEFORE) {
                real s[OWN] = {};
                vectors.send(place, 0, dz_c);
                vectors.wait(1);
                vectors.template add_products<C_GATE, GATES>(s, w, place);
                EACH {
                    const real r = own[d][R_GATE][e];
                    dz_r[e] = s[e] * before[d][e] * r * (1 - r);
                    G[e] += s[e] * r;
                }
            }
            if (RESET != NONE) vectors.send(place, R_GATE, dz_r);
            vectors.send(place, U_GATE, dz_u);
            if (RESET == AFTER) vectors.send(place, C_GATE, passed);
            if (RESET == NONE) vectors.send(place, C_GATE, dz_c);
            read(d, t - DEPTH);
            if (RESET != NONE) place.write(dP, dz_r, t, M);
            place.write(dP + U_GATE * N, dz_u, t, M);
            place.write(dP + C_GATE * N, dz_c, t, M);
            constexpr int SENT = RESET == BEFORE ? GATES - 1 : GATES;
            vectors.wait(SENT);
            vectors.template add_products<0, SENT>(G, w, place);
        }
    place.write(G0 + first, G, 0, N);
    if (ACTIVATION == MODRELU) place.write(dbias + first, db, 0, N);
}
