// The functions of device.cuh for a CPU: every thread of a kernel is a thread of this process, a cluster at a time.

#pragma once
#include <algorithm>
#include <barrier>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

typedef double real;
using std::min;
using std::exp;
using std::fabs;
using std::tanh;
#define __device__
#define __launch_bounds__(...)

struct Warp {
    real slot[32];
    std::barrier<> both{32};
};
struct Cluster {
    std::vector<std::vector<double>> memory;
    std::vector<Warp> warps;
    std::barrier<> all;
    long long member;
    int group;
    Cluster(long long member, int group)
        : memory(CLUSTER, std::vector<double>(1 << 17)), warps(CLUSTER * THREADS / 32), all(CLUSTER * THREADS), member(member), group(group) {}
};
inline thread_local Cluster* cluster;
inline thread_local int my_thread, my_rank;

inline int thread() { return my_thread; }
inline long long member() { return cluster->member; }
inline int group() { return cluster->group; }
inline int block_rank() { return my_rank; }
inline real quotient(real a, real b) { return a / b; }
inline real from_lane(real x, int mask) {
    Warp& warp = cluster->warps[(my_rank * THREADS + my_thread) / 32];
    warp.slot[my_thread % 32] = x;
    warp.both.arrive_and_wait();
    const real found = warp.slot[(my_thread % 32) ^ mask];
    warp.both.arrive_and_wait();
    return found;
}
inline void in_order() {}
inline real select(bool first, real a, real b) { return first ? a : b; }
inline void read_chunk(real (&x)[CHUNK], const real* at) {
    for (int q = 0; q < CHUNK; q++) x[q] = at[q];
}

struct Exchange {
    Exchange(void*, int) {}
    void meet() { cluster->all.arrive_and_wait(); }
    void send(real* at, real x, int) {
        const auto place = at - cluster->memory[my_rank].data();
        for (auto& memory : cluster->memory) memory[place] = x;
    }
    void wait(int, int) { cluster->all.arrive_and_wait(); }
};

#define KERNEL(NAME) static void NAME
#define SHARED unsigned char* shared = (unsigned char*)cluster->memory[my_rank].data()

template <class X>
X as(long long value) {
    if constexpr (std::is_pointer_v<X>) return reinterpret_cast<X>(value);
    else return (X)value;
}
template <class... A, size_t... I>
void start(void (*kernel)(A...), const long long* values, int groups, int members, std::index_sequence<I...>) {
    for (int m = 0; m < members; m++)
        for (int g = 0; g < groups; g++) {
            Cluster own(m, g);
            std::vector<std::thread> threads;
            for (int i = 0; i < CLUSTER * THREADS; i++)
                threads.emplace_back([&, i] {
                    cluster = &own, my_thread = i % THREADS, my_rank = i / THREADS;
                    kernel(as<A>(values[I])...);
                });
            for (auto& thread : threads) thread.join();
        }
}
template <class... A>
void start(void (*kernel)(A...), const long long* values, int groups, int members) {
    start(kernel, values, groups, members, std::index_sequence_for<A...>{});
}
#define EXPORT(NAME) \
    extern "C" void run(const long long* values, int groups, int members) { start(NAME, values, groups, members); }
