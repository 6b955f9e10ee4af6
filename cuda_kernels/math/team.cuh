// Tests only: a team of CPU threads runs a block as a GPU does. Every barrier checks that all threads come from the
// same line. A GPU only counts arrivals, so threads that diverge corrupt data silently, or hang.
#pragma once
#include <omp.h>
#include <unistd.h>

#define TEAM_MOST 64
// Threads other than 0 sleep after about one in this many barriers, so that thread 0 gets ahead.
#define TEAM_LAG 64
// Report: threads of the last run, number of runs that ended at barriers that did not agree, and two of their lines.
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
// Join before the first barrier of a run.
static inline void join_team(int tid, int threads) {
    team_member = TeamMember{0, 12345u + unsigned(tid)};
    if (tid == 0) team_report[0] = threads;
}
// Lines of this barrier stay valid until all threads reach the next one. Two barriers in a row use separate arrays.
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
