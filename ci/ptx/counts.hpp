// Counts the work of a GPU in a launch: instructions of threads and warps, and requests, lines and sectors of memory.
// A site is a memory access in the code. Between two barriers, the n-th accesses of a site by all threads of a warp
// form one request. A real warp may need more requests.
#pragma once
#include "executor.hpp"
#include <algorithm>
#include <list>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

enum Memory { OF_DEVICE, OF_BLOCK, OF_THREAD, MEMORIES };  // global, shared, local
const u64 LINE = 128, SECTOR = 32, BANKS = 32, WORD = 4;

// A cache of lines with sectors, which replaces the least recently used line.
class Cache {
  public:
    explicit Cache(u64 bytes) : capacity(bytes / LINE) {}
    u64 fetched = 0;  // bytes

    void use(u64 line, u32 sectors, bool store) {
        auto found = entries.find(line);
        if (found == entries.end()) {
            if (!capacity) {
                fetched += store ? 0 : SECTOR * __builtin_popcount(sectors);
                return;
            }
            if (lines.size() == capacity) {
                entries.erase(lines.back().first);
                lines.pop_back();
            }
            lines.emplace_front(line, 0);
            found = entries.emplace(line, lines.begin()).first;
        } else {
            lines.splice(lines.begin(), lines, found->second);
        }
        u32& known = found->second->second;
        if (!store) fetched += SECTOR * __builtin_popcount(sectors & ~known);
        known |= sectors;
    }

  private:
    u64 capacity;
    std::list<std::pair<u64, u32>> lines;
    std::unordered_map<u64, std::list<std::pair<u64, u32>>::iterator> entries;
};

// Requests of warps, by kind of memory. ``lines``: 128-byte lines of global memory, or passes over the banks of shared
// memory.
struct Traffic {
    u64 requests = 0, lines = 0, sectors = 0, stored_sectors = 0, accesses = 0;
};

class Counts {
  public:
    Counts(u32 blocks, u32 sites, u32 threads, const std::vector<u64>& bytes)
        : blocks(blocks), hits((u64)blocks * threads), by_thread(blocks), by_warp(blocks), by_site(sites), uses((u64)sites * threads),
          sites(sites), begun(threads) {
        for (u64 size : bytes) caches.emplace_back(size);
    }

    u32* hits_of(u32 thread) { return &hits[(u64)thread * blocks]; }

    void access(u32 thread, u64 at, u32 size, u32 site, bool store, Memory where) {
        ++traffic[where].accesses;
        Use& use = uses[(u64)thread * sites + site];
        if (use.phase != phase) use = {phase, 0};
        log.push_back({at, site, use.number++, begun[thread]++, (u16)(thread / 32), (u8)size, store, (u8)where});
    }

    // All threads have reached the barrier.
    void end_phase() {
        ++phase;
        std::fill(begun.begin(), begun.end(), 0);
        std::sort(log.begin(), log.end(), [](const Access& a, const Access& b) {
            return std::tie(a.warp, a.site, a.number, a.order) < std::tie(b.warp, b.site, b.number, b.order);
        });
        std::vector<std::pair<u64, u64>> requests;  // time of the first access of a request, and the access
        for (u64 k = 0; k < log.size(); ++k)
            if (!k || !together(log[k - 1], log[k])) requests.push_back({(u64)log[k].order << 16 | log[k].warp, k});
        std::sort(requests.begin(), requests.end());
        for (const auto& request : requests) count_request(request.second);
        log.clear();
    }

    void end_block(u32 threads) {
        end_phase();
        for (u32 block = 0; block < blocks; ++block)
            for (u32 warp = 0; warp < threads; warp += 32) {
                u32 busiest = 0;
                for (u32 k = warp; k < std::min(warp + 32, threads); ++k) {
                    u32& thread_hits = hits_of(k)[block];
                    by_thread[block] += thread_hits;
                    busiest = std::max(busiest, thread_hits);
                    thread_hits = 0;
                }
                by_warp[block] += busiest;
            }
    }

    void take(u64* threads, u64* warps, u64* lines, u64* memory) {
        std::copy(by_site.begin(), by_site.end(), lines);
        std::fill(by_site.begin(), by_site.end(), 0);
        std::copy(by_thread.begin(), by_thread.end(), threads);
        std::copy(by_warp.begin(), by_warp.end(), warps);
        std::fill(by_thread.begin(), by_thread.end(), 0);
        std::fill(by_warp.begin(), by_warp.end(), 0);
        for (Traffic& t : traffic) {
            for (u64 figure : {t.requests, t.lines, t.sectors, t.stored_sectors, t.accesses}) *memory++ = figure;
            t = Traffic();
        }
        for (Cache& cache : caches) {
            *memory++ = cache.fetched;
            cache.fetched = 0;
        }
    }

  private:
    struct Access {
        u64 at;
        u32 site, number, order;
        u16 warp;
        u8 size;
        bool store;
        u8 where;
    };
    struct Use {
        u32 phase, number;
    };
    static bool together(const Access& a, const Access& b) {
        return a.warp == b.warp && a.site == b.site && a.number == b.number;
    }

    void count_request(u64 first) {
        std::vector<u64> units;  // words of shared memory, or sectors of other memory
        u64 end = first;
        const Access& head = log[first];
        const u64 unit = head.where == OF_BLOCK ? WORD : SECTOR;
        for (; end < log.size() && together(head, log[end]); ++end)
            for (u64 k = log[end].at / unit; k <= (log[end].at + log[end].size - 1) / unit; ++k) units.push_back(k);
        std::sort(units.begin(), units.end());
        units.erase(std::unique(units.begin(), units.end()), units.end());
        Traffic& sums = traffic[head.where];
        ++sums.requests;
        if (head.where == OF_BLOCK) {
            u64 in_bank[BANKS] = {}, conflicts = 0;
            for (u64 word : units) conflicts = std::max(conflicts, ++in_bank[word % BANKS]);
            sums.lines += conflicts;
        } else if (head.where == OF_DEVICE) {
            (head.store ? sums.stored_sectors : sums.sectors) += units.size();
            const u64 per_line = LINE / SECTOR;
            for (u64 k = 0; k < units.size();) {
                u32 sectors = 0;
                const u64 line = units[k] / per_line;
                for (; k < units.size() && units[k] / per_line == line; ++k) sectors |= 1u << units[k] % per_line;
                ++sums.lines;
                ++by_site[head.site];
                for (Cache& cache : caches) cache.use(line, sectors, head.store);
            }
        }
    }

    u32 blocks;
    std::vector<u32> hits;
    std::vector<u64> by_thread, by_warp, by_site;  // by_site: lines of global memory
    std::vector<Use> uses;
    u32 sites, phase = 1;
    std::vector<u32> begun;  // accesses of each thread since the last barrier
    std::vector<Access> log;
    std::vector<Cache> caches;
    Traffic traffic[MEMORIES];
};
