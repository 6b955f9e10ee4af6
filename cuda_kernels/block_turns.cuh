// Launches whose blocks work in turns (staged launch): a turn may wait for what earlier ones have done. Blocks draw the
// turns' numbers one after another, so that each earlier turn has ended or is with a block that runs: none waits for a
// block that finds no place on the card, however many there are. On a CPU each thread is a block of its own.
#pragma once
#include "world.cuh"

GPUSIM_FN void clear_turns(const World& w) {
    tell(w.turn_next(), 0);
    tell(w.turns_ended(), 0);
    tell(w.blocks_ended(), 0);
}
#if GPUSIM_GPU
// A block that looks so often, about half a minute, waits for one that never ends: an error is better than a card that
// hangs.
#define MOST_LOOKS (1u << 26)
#define TURN_DRAWN 0
#define TURN_WAITS 1
extern __shared__ int turn_shared[];
// Number of this block's next turn.
GPUSIM_FN int draw_turn(const World& w) {
    __syncthreads();  // all have read the last one
    if (w.tid == 0) turn_shared[TURN_DRAWN] = take_number(w.turn_next());
    __syncthreads();
    return turn_shared[TURN_DRAWN];
}
// Until so many turns have ended; what they have written is seen from here on.
GPUSIM_FN void await_turns(const World& w, int count) {
    if (w.tid == 0) {
        const int* ended = w.turns_ended();
        unsigned looks = 0;
        while (fresh(ended) < count && ++looks < MOST_LOOKS) {
        }
        if (looks == MOST_LOOKS) __trap();
        acquire();
    }
    __syncthreads();
}
GPUSIM_FN void end_turn(const World& w) {
    __syncthreads();
    if (w.tid == 0) {
        release();
        count_one(w.turns_ended());
    }
}
// The last one of so many blocks leaves the counters to the next launch.
GPUSIM_FN void leave_turns(const World& w, int blocks) {
    if (w.tid == 0 && take_number(w.blocks_ended()) == blocks - 1) clear_turns(w);
}
// Whether a thread of the block still waits.
GPUSIM_FN bool any_of_block(const World& w, bool waits) {
    __syncthreads();  // all have read the last answer
    if (w.tid == 0) turn_shared[TURN_WAITS] = 0;
    __syncthreads();
    if (waits) set_flag(turn_shared + TURN_WAITS);
    __syncthreads();
    return turn_shared[TURN_WAITS] != 0;
}
#else
GPUSIM_FN int draw_turn(const World& w) { return take_number(w.turn_next()); }
GPUSIM_FN bool any_of_block(const World&, bool waits) { return waits; }
#endif
