// Runs blocks of translated PTX on the CPU. Each thread of a block is a fiber. A thread runs until it reaches a barrier
// or ends. Then the next thread continues, in a selectable order. The memory of the kernels is an arena. A shadow cell
// for each word records its last writer and reader. Two threads must not access a word between two barriers if one of
// them writes, unless both accesses are atomic. For threads of different blocks, the same is true in a whole launch.
//
// Blocks run one after another. If threads wait for values from other blocks, about every second launch runs several
// blocks concurrently. The threads of these blocks alternate at random. The executor then does not check races, because
// the values define the order of accesses.
#include "counts.hpp"
#include "executor.hpp"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sys/mman.h>
#include <tuple>
#include <utility>
#include <vector>

namespace {

const u64 MEMORY_BYTES = 1ull << 29;  // memory for allocations of the host
const u64 SHARED_BYTES = 1ull << 18;
const u64 LOCAL_BYTES = 1ull << 16;   // of one thread
const u64 STACK_BYTES = 1ull << 18;   // of one fiber, for C++
const u32 MAX_THREADS = 1024;
const u32 RED_ZONE = 32;              // unused bytes around local arrays
const u16 MANY = 0xffff;
const u32 NO_SITE = 0xffffffff;
const u32 WARP = 32;
const u32 MAX_PASSES = 1u << 20; // maximum passes over the threads of unfinished blocks, which then count as hanging

// One word of memory. ``allocated`` and ``written`` have a bit for each byte.
struct Cell {
    u32 write_epoch, read_epoch;
    u32 block_read_launch;  // last launch in which an earlier block has read the word
    u32 write_site, read_site;
    u16 writer, reader;
    u8 allocated : 4, written : 4;
    bool atomic;
};
struct Finding {
    u64 count;
    u32 thread, other, block;
};

struct Executor {
    u8* memory = nullptr;
    u64 bytes = 0;
    Cell* cells = nullptr;
    u64 shared = 0, local = 0;  // addresses
    u8* stacks = nullptr;
    std::vector<Thread> threads;
    // Epochs count barriers, block starts and launch starts.
    u32 epoch = 1, block_begin = 1, launch_begin = 1;
    u64 random = 0;  // 0: threads and blocks run in order of their numbers
    u8 poison = 0xff;
    std::map<std::tuple<u32, u32, u32, u32>, Finding> findings;  // by module, kind, site, other site
    u32 module = 0;
    const Kernel* kernel = nullptr;
    const u8* params = nullptr;
    void* scheduler = nullptr;
    Thread* running = nullptr;
    u32 launches = 0;
    bool together = false;  // blocks run concurrently
    std::map<u32, std::unique_ptr<Counts>> counted;  // by module
    Counts* counts = nullptr;                        // of the running module
} x;
// Threads of a running block.
struct Block {
    u32 number, first, count;
};

// Saves the callee-saved registers, and continues the fiber ``to``.
extern "C" void ptx_switch(void** from, void* to);
asm(R"(
.text
.globl ptx_switch
.type ptx_switch,@function
ptx_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size ptx_switch,.-ptx_switch
)");
const int SAVED_REGISTERS = 6;

enum State { READY, WAITING, ENDED };

u64 next_random() {
    x.random ^= x.random << 13;
    x.random ^= x.random >> 7;
    x.random ^= x.random << 17;
    return x.random;
}
void shuffle(std::vector<u32>& order) {
    if (!x.random) return;
    for (size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[next_random() % k]);
}
std::vector<u32> numbers(u32 count) {
    std::vector<u32> out(count);
    for (u32 k = 0; k < count; ++k) out[k] = k;
    return out;
}

void report(u32 kind, u32 site, u32 other_site, const Thread& t, u32 other) {
    Finding& f = x.findings[{x.module, kind, site, other_site}];
    if (!f.count++) f = {1, t.tid, other, t.ctaid};
}

// Shadow memory.

Cell& cell_of(u64 at) { return x.cells[(at - (u64)x.memory) / 4]; }
bool inside(u64 at, u32 size) { return at - (u64)x.memory < x.bytes && at + size - (u64)x.memory <= x.bytes; }
// Returns a mask of the bytes of a word that an access uses.
u8 byte_mask(u64 word, u64 at, u64 size) {
    const u64 first = std::max(word, at), last = std::min(word + 4, at + size);
    return (u8)(((1u << (last - word)) - 1) & ~((1u << (first - word)) - 1));
}

void mark(u64 at, u64 size, bool allocated, bool written) {
    for (u64 word = at & ~3ull; word < at + size; word += 4) {
        const u8 mask = byte_mask(word, at, size);
        const Cell old = cell_of(word);
        Cell& c = cell_of(word) = Cell();
        c.allocated = allocated ? old.allocated | mask : old.allocated & ~mask;
        c.written = written ? old.written | mask : old.written & ~mask;
    }
}

// Checks bounds, alignment and ownership. Returns false if the caller must skip the access.
bool check_access(const Thread& t, u64 at, u32 size, u32 space, u32 site) {
    bool good = inside(at, size);
    for (u64 word = at & ~3ull; good && word < at + size; word += 4)
        good = !(byte_mask(word, at, size) & ~cell_of(word).allocated);
    const u32 home = at >= x.local ? LOCAL : at >= x.shared ? SHARED : GLOBAL;
    if (space != GENERIC && space != home) good = false;
    if (home == LOCAL && (at - x.local) / LOCAL_BYTES != t.slot) good = false;
    if (!good) report(OUT_OF_BOUNDS, site, NO_SITE, t, t.tid);
    else if (at % std::min(size, 16u)) report(MISALIGNED, site, NO_SITE, t, t.tid);
    return good;
}

void check_written(const Thread& t, const Cell& c, u8 mask, u64 at, u32 site) {
    if (mask & ~c.written) report(at >= x.local ? UNWRITTEN_LOCAL : UNWRITTEN, site, NO_SITE, t, t.tid);
}

// Records that thread t writes a word. Accesses by other threads since the last barrier, or in other blocks, are races.
void write_cell(const Thread& t, Cell& c, bool atomic, u32 site) {
    if (x.together) return;
    const bool both = atomic && c.atomic;
    if (c.write_epoch >= x.launch_begin && !both) {
        if (c.write_epoch < x.block_begin) report(BLOCK_RACE, site, c.write_site, t, c.writer);
        else if (c.write_epoch == x.epoch && c.writer != t.tid) report(RACE, site, c.write_site, t, c.writer);
    }
    // Does not record the read of an atomic operation.
    if (c.block_read_launch == x.launch_begin || (c.read_epoch >= x.launch_begin && c.read_epoch < x.block_begin))
        report(BLOCK_RACE, site, c.read_site, t, c.reader);
    else if (c.read_epoch == x.epoch && c.reader != t.tid)
        report(RACE, site, c.read_site, t, c.reader);
    const bool again = c.write_epoch == x.epoch;
    // In one epoch a plain write takes precedence over an atomic write.
    c.atomic = atomic && !(again && !c.atomic);
    c.writer = again && c.writer != t.tid ? MANY : (u16)t.tid;
    c.write_epoch = x.epoch;
    c.write_site = site;
}

// Reports a race between a read and writes of other threads.
void check_writer(const Thread& t, const Cell& c, u32 site) {
    if (c.write_epoch < x.launch_begin) return;
    if (c.write_epoch < x.block_begin) report(BLOCK_RACE, site, c.write_site, t, c.writer);
    else if (c.write_epoch == x.epoch && c.writer != t.tid) report(RACE, site, c.write_site, t, c.writer);
}

void read_cell(const Thread& t, Cell& c, u32 site) {
    if (x.together) return;
    check_writer(t, c, site);
    if (c.read_epoch >= x.launch_begin && c.read_epoch < x.block_begin) c.block_read_launch = x.launch_begin;
    if (c.read_epoch == x.epoch) return;  // the first reader is enough: until a barrier, threads run one after another
    c.reader = (u16)t.tid;
    c.read_epoch = x.epoch;
    c.read_site = site;
}

bool check_store(const Thread& t, u64 at, u32 size, u32 space, bool atomic, u32 site) {
    if (!check_access(t, at, size, space, site)) return false;
    for (u64 word = at & ~3ull; word < at + size; word += 4) {
        Cell& c = cell_of(word);
        c.written |= byte_mask(word, at, size);
        if (at < x.local) write_cell(t, c, atomic, site);
    }
    return true;
}

void count_access(const Thread& t, u64 at, u32 size, u32 site, bool store) {
    if (!x.counts) return;
    const Memory where = at >= x.local ? OF_THREAD : at >= x.shared ? OF_BLOCK : OF_DEVICE;
    x.counts->access(t.slot, at, size, site, store, where);
}

// Threads of a block.

void fiber_main() {
    Thread* t = x.running;
    x.kernel->function(t, x.params);
    t->state = ENDED;
    ptx_switch(&t->stack_pointer, x.scheduler);
    __builtin_unreachable();
}

// Pieces of memory start at different page offsets, so that they do not evict each other from the cache.
u64 staggered(u32 number) { return number * 1088 % 32768; }

void make_fiber(Thread& t) {
    u64* top = (u64*)(x.stacks + (t.slot + 1) * STACK_BYTES - staggered(t.slot));
    *--top = 0;  // alignment of the stack as after a call
    *--top = (u64)&fiber_main;
    for (int k = 0; k < SAVED_REGISTERS; ++k) *--top = 0;
    t.stack_pointer = top;
}

void make_threads(const Block& b, u32 grid, u64 shared) {
    for (u32 k = 0; k < b.count; ++k) {
        Thread& t = x.threads[b.first + k] = Thread();
        t.tid = k;
        t.slot = b.first + k;
        t.ntid = b.count;
        t.ctaid = b.number;
        t.nctaid = grid;
        t.shared = shared;
        t.local_top = x.local + t.slot * LOCAL_BYTES + staggered(t.slot);
        t.local_end = x.local + (t.slot + 1) * LOCAL_BYTES;
        if (x.counts) t.hits = x.counts->hits_of(t.slot);
        if (x.kernel->waits) make_fiber(t);
    }
}

// Returns whether threads that wait for each other are at the same barrier. No thread of the block runs.
bool check_barrier(const Block& b) {
    bool good = true;
    for (u32 number = 0; number < b.count; ++number) {
        const Thread& waiting = x.threads[b.first + number];
        if (waiting.state != WAITING) continue;
        for (u32 k = 0; k < b.count; ++k) {
            const bool whole = waiting.barrier_tile == 0;
            if (!whole && (k / WARP != number / WARP || !(waiting.barrier_tile >> k % WARP & 1))) continue;
            const Thread& t = x.threads[b.first + k];
            const u32 site = t.state == ENDED ? NO_SITE : t.barrier_site;
            if (site == waiting.barrier_site && t.barrier_tile == waiting.barrier_tile) continue;
            if (good) report(DIVERGENT_BARRIER, waiting.barrier_site, site, waiting, t.tid);
            good = false;
        }
    }
    return good;
}

void resume(Thread& t) {
    x.running = &t;
    ptx_switch(&x.scheduler, t.stack_pointer);
}
// Releases the threads that have all reached a barrier. Returns whether the block continues. Divergent threads may
// hang.
bool passes_barrier(const Block& b) {
    bool waiting = false;
    for (u32 k = 0; k < b.count; ++k) {
        const u32 state = x.threads[b.first + k].state;
        if (state == READY) return true;
        waiting |= state == WAITING;
    }
    if (!waiting || !check_barrier(b)) return false;
    for (u32 k = 0; k < b.count; ++k)
        if (x.threads[b.first + k].state == WAITING) x.threads[b.first + k].state = READY;
    ++x.epoch;
    if (x.counts) x.counts->end_phase();
    return true;
}
// Runs the fibers of blocks until all threads have ended.
void run_fibers(std::vector<Block> blocks) {
    for (u32 pass = 0; !blocks.empty(); ++pass) {
        std::vector<u32> order;
        for (const Block& b : blocks)
            for (u32 k = b.first; k < b.first + b.count; ++k)
                if (x.threads[k].state == READY) order.push_back(k);
        if (pass == MAX_PASSES) return report(HANG, NO_SITE, NO_SITE, x.threads[order[0]], 0);
        shuffle(order);
        for (const u32 k : order) resume(x.threads[k]);
        std::vector<Block> unfinished;
        for (const Block& b : blocks)
            if (passes_barrier(b)) unfinished.push_back(b);
        blocks.swap(unfinished);
    }
}

void fill_shared(u64 at, u32 bytes, bool allocated) {
    if (allocated) std::memset((void*)at, x.poison, bytes);
    mark(at, bytes, allocated, false);
}
void run_block(u32 number, u32 grid, u32 count, u32 shared_bytes) {
    x.block_begin = ++x.epoch;
    fill_shared(x.shared, shared_bytes, true);
    const Block b = {number, 0, count};
    make_threads(b, grid, x.shared);
    if (x.kernel->waits) {
        run_fibers({b});
    } else {
        std::vector<u32> order = numbers(count);
        shuffle(order);
        for (u32 k : order) x.kernel->function(&x.threads[k], x.params);
    }
    if (x.counts) x.counts->end_block(count);
    fill_shared(x.shared, shared_bytes, false);
}
// Runs as many blocks concurrently as the number of available fibers allows.
void run_together(const std::vector<u32>& order, u32 grid, u32 count, u32 shared_bytes) {
    const u32 stride = (shared_bytes + 255) / 256 * 256, max_blocks = MAX_THREADS / count;
    x.together = true;
    for (size_t next = 0; next < order.size();) {
        std::vector<Block> blocks;
        for (; blocks.size() < max_blocks && next < order.size(); ++next) {
            const Block b = {order[next], (u32)blocks.size() * count, count};
            const u64 shared = x.shared + blocks.size() * stride;
            fill_shared(shared, shared_bytes, true);
            make_threads(b, grid, shared);
            blocks.push_back(b);
        }
        const size_t started = blocks.size();
        run_fibers(std::move(blocks));
        for (size_t k = 0; k < started; ++k) fill_shared(x.shared + k * stride, shared_bytes, false);
    }
    x.together = false;
    x.block_begin = ++x.epoch;
}

void* take_pages(u64 bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? nullptr : at;
}

}  // namespace

extern "C" {

// The threads of a tile wait only for each other. The executor releases all tiles of a block together.
void ptx_tile_barrier(Thread* t, u32 tile, u32 site) {
    if (!(tile >> t->tid % WARP & 1)) report(DIVERGENT_BARRIER, site, NO_SITE, *t, t->tid);
    t->barrier_tile = tile;
    t->barrier_site = site;
    t->state = WAITING;
    ptx_switch(&t->stack_pointer, x.scheduler);
}
void ptx_barrier(Thread* t, u32 site) {
    t->barrier_tile = 0;
    t->barrier_site = site;
    t->state = WAITING;
    ptx_switch(&t->stack_pointer, x.scheduler);
}

bool ptx_check_load(Thread* t, u64 at, u32 size, u32 space, u32 site) {
    count_access(*t, at, size, site, false);
    if (!check_access(*t, at, size, space, site)) return false;
    for (u64 word = at & ~3ull; word < at + size; word += 4) {
        Cell& c = cell_of(word);
        check_written(*t, c, byte_mask(word, at, size), at, site);
        if (at < x.local) read_cell(*t, c, site);
    }
    return true;
}

bool ptx_check_store(Thread* t, u64 at, u32 size, u32 space, u32 site) {
    count_access(*t, at, size, site, true);
    return check_store(*t, at, size, space, false, site);
}
bool ptx_check_polled_store(Thread* t, u64 at, u32 size, u32 site) {
    count_access(*t, at, size, site, true);
    return check_store(*t, at, size, GENERIC, true, site);
}

bool ptx_check_polled_load(Thread* t, u64 at, u32 size, u32 site) {
    if (x.kernel->waits) ptx_switch(&t->stack_pointer, x.scheduler);
    count_access(*t, at, size, site, false);
    if (!check_access(*t, at, size, GENERIC, site)) return false;
    for (u64 word = at & ~3ull; word < at + size; word += 4) {
        Cell& c = cell_of(word);
        check_written(*t, c, byte_mask(word, at, size), at, site);
        if (at < x.local && !c.atomic && !x.together) check_writer(*t, c, site);
    }
    return true;
}

bool ptx_check_atomic(Thread* t, u64 at, u32 size, u32 site) {
    count_access(*t, at, size, site, true);
    if (!check_access(*t, at, size, GENERIC, site)) return false;
    for (u64 word = at & ~3ull; word < at + size; word += 4) {
        Cell& c = cell_of(word);
        check_written(*t, c, byte_mask(word, at, size), at, site);
        if (at < x.local) write_cell(*t, c, true, site);
    }
    return true;
}

void ptx_note(Thread* t, u32 kind, u32 site) { report(kind, site, NO_SITE, *t, t->tid); }

u64 ptx_take_local(Thread* t, u32 size, u32 align) {
    const u64 at = (t->local_top + RED_ZONE + align - 1) / align * align;
    if (at + size > t->local_end) {
        std::fprintf(stderr, "local arrays of a thread need more than %d bytes: raise LOCAL_BYTES\n", (int)LOCAL_BYTES);
        std::abort();
    }
    t->local_top = at + size;
    std::memset((void*)at, x.poison, size);
    mark(at, size, true, false);
    return at;
}
void ptx_give_local(Thread* t, u64 top, u64 from, u32 size) {
    t->local_top = top;
    mark(from, size, false, false);
}

// Host interface.

// Returns the address of the memory that the host allocates from, or null on failure.
u8* ptx_open() {
    x.bytes = MEMORY_BYTES + SHARED_BYTES + MAX_THREADS * LOCAL_BYTES;
    x.memory = (u8*)take_pages(x.bytes);
    x.cells = (Cell*)take_pages(x.bytes / 4 * sizeof(Cell));
    x.stacks = (u8*)take_pages(MAX_THREADS * STACK_BYTES);
    if (!x.memory || !x.cells || !x.stacks) return nullptr;
    for (u32 k = 0; k < MAX_THREADS; ++k) mprotect(x.stacks + k * STACK_BYTES, 4096, PROT_NONE);
    x.shared = (u64)x.memory + MEMORY_BYTES;
    x.local = x.shared + SHARED_BYTES;
    x.threads.resize(MAX_THREADS);
    return x.memory;
}
u64 ptx_memory_bytes() { return MEMORY_BYTES; }

// ``seed``: random seed for the order of threads and blocks, 0 for ascending numbers. ``poison``: byte in new memory.
void ptx_configure(u64 seed, u32 poison) {
    x.random = seed * 2654435761u;
    x.poison = (u8)poison;
}
void ptx_mark(u64 at, u64 size, int allocated, int written) { mark(at, size, allocated, written); }

// Runs a kernel of a module. Findings contain the module's number. Returns false if threads or memory do not suffice.
bool ptx_launch(u32 module, const Kernel* kernel, u32 grid, u32 block, u32 shared_bytes, const u8* params) {
    if (block > MAX_THREADS || shared_bytes > SHARED_BYTES) return false;
    x.launch_begin = ++x.epoch;
    x.module = module;
    x.counts = x.counted.count(module) ? x.counted[module].get() : nullptr;
    x.kernel = kernel;
    x.params = params;
    std::vector<u32> order = numbers(grid);
    shuffle(order);
    const bool spins = kernel->waits && kernel->spins && !x.counts;
    if (spins && (x.random ? next_random() >> 8 : ++x.launches) % 2) run_together(order, grid, block, shared_bytes);
    else
        for (u32 k : order) run_block(k, grid, block, shared_bytes);
    return true;
}

// Writes findings as rows of (module, kind, site, other site, count, thread, other thread, block). Returns the
// number of all findings.
u32 ptx_findings(u64* out, u32 max_rows) {
    u32 k = 0;
    for (const auto& [key, f] : x.findings) {
        if (k == max_rows) break;
        const auto& [module, kind, site, other_site] = key;
        const u64 row[] = {module, kind, site, other_site, f.count, f.thread, f.other, f.block};
        std::copy(row, row + 8, out + 8 * k++);
    }
    return (u32)x.findings.size();
}
void ptx_forget() { x.findings.clear(); }

// Starts counting in the launches of a module. Arguments: numbers of basic blocks and sites, maximum threads of a
// block, cache sizes in bytes. The blocks of the module run one after another.
void ptx_count(u32 module, u32 blocks, u32 sites, u32 threads, const u64* caches, u32 n_caches) {
    x.counted[module].reset(new Counts(blocks, sites, threads, {caches, caches + n_caches}));
}
// Copies the counts of a module since the last call: executions of each basic block by all threads, and by the busiest
// thread of each warp; lines of global memory by site; memory counts in the order of struct Traffic; bytes that each
// cache fetched.
void ptx_take_counts(u32 module, u64* threads, u64* warps, u64* lines, u64* memory) {
    x.counted[module]->take(threads, warps, lines, memory);
}
}
