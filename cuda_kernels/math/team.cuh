// Only for tests: a team of CPU threads runs a block like a GPU. Every barrier checks that all threads are at the same
// source line. On a GPU, threads at different barriers corrupt data or hang.
#pragma once
#include <omp.h>
#include <unistd.h>

#define TEAM_MAX 64
// At about one in TEAM_LAG barriers, all threads except thread 0 sleep, so that thread 0 runs ahead.
#define TEAM_LAG 64
// Report: threads of the last run, number of runs with mismatched barriers, and the source lines of one mismatch.
extern "C" {
int team_report[4];
}
static int team_line[2][TEAM_MAX];
struct TeamMismatch {};
struct TeamMember {
    int round;
    unsigned seed;
};
static thread_local TeamMember team_member;

#define GPUSIM_CALLER int caller = __builtin_LINE()
#define GPUSIM_BARRIER() team_barrier(tid, threads, caller)
static inline void join_team(int tid, int threads) {
    team_member = TeamMember{0, 12345u + unsigned(tid)};
    if (tid == 0) team_report[0] = threads;
}
// A thread's line must stay valid until all threads reach the next barrier. Two consecutive barriers therefore use
// separate arrays.
static inline void team_barrier(int tid, int threads, int line) {
    TeamMember& member = team_member;
    int* lines = team_line[member.round++ & 1];
    lines[tid] = line;
#pragma omp barrier
    for (int other = 1; other < threads; ++other)
        if (lines[other] != lines[0]) {
            if (tid == 0) {
                team_report[1] += 1;
                team_report[2] = lines[0];
                team_report[3] = lines[other];
            }
            throw TeamMismatch();  // all threads throw, so that no thread waits
        }
    member.seed = member.seed * 1664525u + 1013904223u;
    if (tid > 0 && (member.seed >> 16) % TEAM_LAG == 0) usleep(20);
}
