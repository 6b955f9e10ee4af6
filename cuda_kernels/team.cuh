// Tests only: a team of CPU threads runs a block as a GPU does, and every barrier checks that all of them have come from
// the same line. A GPU counts who arrives, not where, so that threads which part ways do damage silently, or hang.
#pragma once
#include <omp.h>
#include <unistd.h>

#define TEAM_MOST 64
// How often the others let thread 0 go ahead behind a barrier: once in so many.
#define TEAM_LAG 64
// Threads of the last run; how many runs ended at barriers that did not agree, and two of their lines.
extern "C" {
int team_report[4];
}
static int team_line[2][TEAM_MOST];
struct TeamMismatch {};
struct TeamMember {
    int round;
    unsigned seed;
};
static thread_local TeamMember team_member;

#define GPUSIM_CALLER int caller = __builtin_LINE()
#define GPUSIM_BARRIER() team_barrier(tid, threads, caller)
// Before the first barrier of a run.
static inline void join_team(int tid, int threads) {
    team_member = TeamMember{0, 12345u + unsigned(tid)};
    if (tid == 0) team_report[0] = threads;
}
// Lines of this barrier stay until all threads have come to the next one, as those of two in a row lie apart.
static inline void team_barrier(int tid, int threads, int line) {
    TeamMember& own = team_member;
    int* lines = team_line[own.round++ & 1];
    lines[tid] = line;
#pragma omp barrier
    for (int other = 1; other < threads; ++other)
        if (lines[other] != lines[0]) {
            if (tid == 0) {
                team_report[1] += 1;
                team_report[2] = lines[0];
                team_report[3] = lines[other];
            }
            throw TeamMismatch();  // by all threads, so that none waits for another
        }
    own.seed = own.seed * 1664525u + 1013904223u;
    if (tid > 0 && (own.seed >> 16) % TEAM_LAG == 0) usleep(20);
}
