// Tickets for blocks of a staged launch. Blocks take tickets in order. A block only waits for earlier tickets. The
// blocks with earlier tickets are running or have ended. On a CPU, each thread acts as a block.
#pragma once
#include "world.cuh"

GPUSIM_FN void clear_tickets(const World& w) {
    store_shared(w.next_ticket(), 0);
    store_shared(w.tickets_ended(), 0);
    store_shared(w.blocks_ended(), 0);
}
#if GPUSIM_GPU
// Number of polls (half a minute) after which a block stops with an error, so that the GPU does not hang.
#define MAX_LOOKS (1u << 26)
#define TICKET_DRAWN 0
#define TICKET_WAITS 1
extern __shared__ int ticket_shared[];
GPUSIM_FN int draw_ticket(const World& w) {
    __syncthreads();  // all threads have read the last ticket
    if (w.tid == 0) ticket_shared[TICKET_DRAWN] = take_number(w.next_ticket());
    __syncthreads();
    return ticket_shared[TICKET_DRAWN];
}
// Wait until the blocks of ``count`` tickets have finished. All their writes are then visible.
GPUSIM_FN void await_tickets(const World& w, int count) {
    if (w.tid == 0) {
        const int* ended = w.tickets_ended();
        unsigned looks = 0;
        while (fresh(ended) < count && ++looks < MAX_LOOKS) {
        }
        if (looks == MAX_LOOKS) __trap();
        acquire();
    }
    __syncthreads();
}
GPUSIM_FN void end_ticket(const World& w) {
    __syncthreads();
    if (w.tid == 0) {
        release();
        count_one(w.tickets_ended());
    }
}
// The last of ``blocks`` blocks resets the counters for the next launch.
GPUSIM_FN void leave_tickets(const World& w, int blocks) {
    if (w.tid == 0 && take_number(w.blocks_ended()) == blocks - 1) clear_tickets(w);
}
// Return whether any thread of the block waits.
GPUSIM_FN bool any_of_block(const World& w, bool waits) {
    __syncthreads();  // all threads have read the last answer
    if (w.tid == 0) ticket_shared[TICKET_WAITS] = 0;
    __syncthreads();
    if (waits) set_flag(ticket_shared + TICKET_WAITS);
    __syncthreads();
    return ticket_shared[TICKET_WAITS] != 0;
}
#else
GPUSIM_FN int draw_ticket(const World& w) { return take_number(w.next_ticket()); }
GPUSIM_FN bool any_of_block(const World&, bool waits) { return waits; }
#endif
