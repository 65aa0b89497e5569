// SPDX-License-Identifier: MIT OR Apache-2.0
// Plays what `soloist sim replay --export` wrote, with another simulator in place of our
// controllers (memory.h): cores with a window and eight lines on their way, a shared last level,
// paths and links as in machines/opteron-6128.toml. evidence/memory-model.md says how to build and
// run it.
//
// driver CONFIG SHARED FILE...: SHARED is 1 where reads and writes share a node's data path. The
// first file is the foreground on core 0; the others go round until it is done.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "memory.h"

namespace {

using Time = uint64_t; // ps

const Time INSTRUCTION = 250, PRIVATE = 6000, SHARED_HIT = 20000, WALK = 17500;
const Time REQUEST = 14200, RESPONSE = 14200, TCK = 1500, AHEAD = 50000;
const unsigned OUTSTANDING = 8, WINDOW = 72, STORES = 6, VICTIMS = 32, NODES = 4;
const uint64_t PATH = 14400, LINE = 64, HEADER = 8; // bytes per us; bytes

[[noreturn]] void fail(const std::string &why) {
  fprintf(stderr, "%s\n", why.c_str());
  exit(1);
}

// A cache that forgets what was used longest ago.
class Cache {
public:
  Cache(size_t sets, size_t ways) : ways(ways), lists(sets) {}
  bool touch(uint64_t key) {
    auto &set = lists[key % lists.size()];
    for (auto i = set.begin(); i != set.end(); ++i)
      if (i->first == key) {
        set.splice(set.begin(), set, i);
        return true;
      }
    return false;
  }
  // Puts it in; true and a line where a dirty one had to go.
  bool insert(uint64_t key, bool dirty, uint64_t &out) {
    auto &set = lists[key % lists.size()];
    if (touch(key)) {
      set.front().second |= dirty;
      return false;
    }
    set.emplace_front(key, dirty);
    if (set.size() <= ways)
      return false;
    auto last = set.back();
    set.pop_back();
    out = last.first;
    return last.second;
  }

private:
  size_t ways;
  std::vector<std::list<std::pair<uint64_t, bool>>> lists;
};

struct Wire {
  uint64_t rate;
  Time free = 0;
  Time send(Time now, uint64_t bytes) {
    free = std::max(free, now) + bytes * 1000000 / rate;
    return free;
  }
};

// The memory of a node.
struct Node {
  std::unique_ptr<Memory> memory;
  std::deque<uint32_t> queue;
  Wire from{PATH}, to{PATH};
};

// The way from node 0 to another.
struct Hop {
  Time latency;
  Wire out, back;
  unsigned credits;
  std::deque<uint32_t> waiting;
};

struct Op {
  char kind;
  bool dependent;
  uint32_t work;
  uint64_t address;
};

struct Miss {
  uint64_t line;
  uint32_t fill;
  bool store, leaves;
};

enum Wait { NOTHING, FILL, ROOM, SLOT, STORE, END };

struct Core {
  std::vector<Op> ops;
  size_t at = 0;
  bool endless = false, done = false, fetched = false, pending = false, late = false;
  Op op{};
  uint64_t left = 0, instructions = 0;
  Time now = 0, last = 0; // `last`: when the last load's data are there, unless `late`
  uint32_t last_fill = 0, wanted = 0, next_fill = 0;
  unsigned slots = 0, stores = 0;
  Wait wait = NOTHING;
  std::vector<Miss> misses;
  std::deque<std::pair<uint32_t, uint64_t>> loads;
  Cache tlb{128, 4};
};

struct Transfer {
  uint64_t line;
  unsigned core, home;
  uint32_t fill;
  bool write, from_llc;
};

enum Kind { CORE, LAST_LEVEL, DISCARD, LEAVE, ARRIVE, ENQUEUE, ANSWER, DEPART, BACK };

struct Event {
  Time at;
  uint64_t order;
  Kind kind;
  uint32_t what;
  bool operator<(const Event &o) const { return at != o.at ? at > o.at : order > o.order; }
};

// Node and bytes from its start of a physical address.
std::pair<unsigned, uint64_t> home_of(uint64_t a) {
  if (a < 0xd8000000)
    return {0, a};
  if (a < 0x228000000)
    return {0, a - 0x100000000 + 0xd8000000};
  unsigned node = 1 + (a - 0x228000000) / 0x200000000;
  return {node, (a - 0x228000000) % 0x200000000};
}

// Where a node's byte lies, by the functions of machines/opteron-6128.toml.
Place place_of(uint64_t a) {
  auto bit = [a](unsigned n) { return a >> n & 1; };
  Place place;
  place.channel = bit(6) ^ bit(16) ^ bit(17) ^ bit(18) ^ bit(19) ^ bit(20);
  place.rank = bit(17);
  place.bank = bit(15) | bit(16) << 1 | bit(18) << 2;
  place.row = (a >> 20 & 0x1fff) | bit(19) << 13;
  place.column = (a >> 7 & 127) | bit(14) << 7;
  return place;
}

class Machine {
public:
  Machine(const std::string &config, bool shared) : shared(shared) {
    for (unsigned n = 0; n < NODES; n++) {
      nodes.emplace_back(new Node);
      nodes[n]->memory = open_memory(config, [this](uint32_t id) { push(now, ANSWER, id); });
    }
    hops.push_back({0, {1}, {1}, 0, {}});
    hops.push_back({25600, {12800}, {12800}, 16, {}});
    for (unsigned n = 2; n < NODES; n++)
      hops.push_back({47700, {6400}, {6400}, 8, {}});
  }

  void add(const std::string &file, bool endless) {
    Core core;
    core.endless = endless;
    FILE *f = fopen(file.c_str(), "r");
    if (!f)
      fail(file + ": can't be read");
    char line[256], kind, depends;
    unsigned work;
    unsigned long long address;
    while (fgets(line, sizeof line, f))
      if (line[0] != '#' && sscanf(line, "%c %c %u %llx", &kind, &depends, &work, &address) == 4)
        core.ops.push_back({kind, depends == 'd', work, address});
    fclose(f);
    if (core.ops.empty())
      fail(file + ": holds no accesses");
    cores.push_back(core);
    push(0, CORE, cores.size() - 1);
  }

  // Time of the foreground, ps.
  Time run() {
    while (!cores[0].done) {
      while (!events.empty() && events.top().at < tick + TCK) {
        Event e = events.top();
        events.pop();
        now = std::max(now, e.at);
        handle(e);
      }
      tick += TCK;
      now = tick;
      for (auto &node : nodes) {
        dispatch(*node);
        node->memory->tick();
      }
    }
    return cores[0].now;
  }

  uint64_t reads = 0, writes = 0, hits = 0;

private:
  bool shared;
  Time now = 0, tick = 0;
  uint64_t made = 0;
  std::priority_queue<Event> events;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Hop> hops;
  std::vector<Core> cores;
  std::vector<Transfer> transfers;
  std::vector<uint32_t> unused;
  Cache llc{2048, 48};
  unsigned free_victims = VICTIMS;
  std::deque<uint32_t> victims;

  void push(Time at, Kind kind, uint32_t what) { events.push({at, made++, kind, what}); }

  uint32_t begin(uint64_t line, unsigned core, uint32_t fill, bool write) {
    Transfer t{line, core, home_of(line * LINE).first, fill, write, false};
    if (unused.empty()) {
      transfers.push_back(t);
      return transfers.size() - 1;
    }
    uint32_t n = unused.back();
    unused.pop_back();
    transfers[n] = t;
    return n;
  }

  void handle(const Event &e) {
    switch (e.kind) {
    case CORE:
      return run_core(e.what);
    case LAST_LEVEL:
      return last_level(e.what);
    case DISCARD:
      return discard(e.what);
    case LEAVE:
      return leave(e.what);
    case ARRIVE: {
      Node &node = *nodes[transfers[e.what].home];
      return push((shared ? node.from : node.to).send(now, LINE), ENQUEUE, e.what);
    }
    case ENQUEUE:
      nodes[transfers[e.what].home]->queue.push_back(e.what);
      return;
    case ANSWER:
      return answer(e.what);
    case DEPART: {
      const Transfer &t = transfers[e.what];
      Hop &hop = hops[t.home];
      return push(hop.back.send(now, HEADER + (t.write ? 0 : LINE)) + hop.latency, BACK, e.what);
    }
    case BACK:
      return back(e.what);
    }
  }

  // ---- cores ----

  uint64_t room(const Core &c) const {
    if (c.loads.empty())
      return UINT64_MAX;
    uint64_t end = c.loads.front().second + WINDOW;
    return end > c.instructions ? end - c.instructions : 0;
  }

  void block(Core &c, Wait wait) {
    c.wait = wait;
    c.pending = true;
  }

  void run_core(unsigned number) {
    Core &c = cores[number];
    while (c.wait == NOTHING && !c.done) {
      if (c.now > now + AHEAD)
        return push(c.now, CORE, number);
      if (!c.pending) {
        if (c.at == c.ops.size() && c.endless)
          c.at = 0;
        if (c.at == c.ops.size()) {
          c.done = c.misses.empty();
          c.wait = c.done ? NOTHING : END;
          return;
        }
        c.op = c.ops[c.at++];
        if (c.op.kind == 'W') {
          give_up(c, number, c.op.address / LINE);
          continue;
        }
        c.op.dependent |= c.fetched;
        c.fetched = c.op.kind == 'F';
        c.left = std::max(c.op.work, 1u);
      }
      c.pending = false;
      uint64_t some = std::min(c.left, room(c));
      c.instructions += some;
      c.now += some * INSTRUCTION;
      c.left -= some;
      if (c.left > 0)
        block(c, ROOM);
      else
        access(c, number);
    }
  }

  void give_up(Core &c, unsigned number, uint64_t line) {
    for (auto &m : c.misses)
      if (m.line == line) {
        m.leaves = true;
        return;
      }
    push(c.now, DISCARD, begin(line, number, 0, true));
  }

  void note_load(Core &c, uint32_t fill) {
    c.late = true;
    c.last_fill = fill;
    c.loads.emplace_back(fill, c.instructions);
  }

  void access(Core &c, unsigned number) {
    uint64_t line = c.op.address / LINE;
    bool store = c.op.kind == 'S';
    if (c.op.dependent) {
      if (c.late) {
        c.wanted = c.last_fill;
        return block(c, FILL);
      }
      c.now = std::max(c.now, c.last);
    }
    for (auto &m : c.misses)
      if (m.line == line) {
        if (!store)
          note_load(c, m.fill);
        return;
      }
    if (c.slots >= OUTSTANDING)
      return block(c, SLOT);
    if (store && c.stores >= STORES)
      return block(c, STORE);
    c.slots++;
    c.stores += store;
    uint32_t fill = c.next_fill++;
    c.misses.push_back({line, fill, store, false});
    if (!store)
      note_load(c, fill);
    uint64_t page = c.op.address >> 12, gone;
    Time walk = c.tlb.touch(page) ? 0 : WALK;
    if (walk)
      c.tlb.insert(page, false, gone);
    push(c.now + walk + PRIVATE, LAST_LEVEL, begin(line, number, fill, false));
  }

  // ---- last level ----

  void last_level(uint32_t n) {
    if (llc.touch(transfers[n].line)) {
      hits++;
      transfers[n].from_llc = true;
      return push(now + SHARED_HIT, BACK, n);
    }
    set_out(n);
  }

  void set_out(uint32_t n) {
    const Transfer &t = transfers[n];
    push(now + REQUEST, t.home ? LEAVE : t.write ? ARRIVE : ENQUEUE, n);
  }

  void discard(uint32_t n) {
    Transfer t = transfers[n];
    unused.push_back(n);
    insert(t.core, t.line, true);
  }

  void insert(unsigned core, uint64_t line, bool dirty) {
    uint64_t out;
    if (!llc.insert(line, dirty, out))
      return;
    uint32_t n = begin(out, core, 0, true);
    if (free_victims == 0) {
      victims.push_back(n);
      cores[core].slots++;
      return;
    }
    free_victims--;
    set_out(n);
  }

  void victim_gone() {
    if (victims.empty()) {
      free_victims++;
      return;
    }
    uint32_t n = victims.front();
    victims.pop_front();
    set_out(n);
    Core &c = cores[transfers[n].core];
    c.slots--;
    if (c.wait == SLOT && c.slots < OUTSTANDING)
      wake(transfers[n].core);
  }

  void wake(unsigned number) {
    Core &c = cores[number];
    c.wait = NOTHING;
    c.now = std::max(c.now, now);
    push(now, CORE, number);
  }

  // ---- the way to memory and back ----

  void leave(uint32_t n) {
    const Transfer &t = transfers[n];
    Hop &hop = hops[t.home];
    if (hop.credits == 0) {
      hop.waiting.push_back(n);
      return;
    }
    hop.credits--;
    send_out(n);
  }

  void send_out(uint32_t n) {
    const Transfer &t = transfers[n];
    Hop &hop = hops[t.home];
    Time at = hop.out.send(now, HEADER + (t.write ? LINE : 0)) + hop.latency;
    push(at, t.write ? ARRIVE : ENQUEUE, n);
  }

  void dispatch(Node &node) {
    while (!node.queue.empty()) {
      uint32_t n = node.queue.front();
      const Transfer &t = transfers[n];
      if (!node.memory->send(place_of(home_of(t.line * LINE).second), t.write, n))
        return;
      node.queue.pop_front();
      if (t.write) {
        writes++;
        push(now + RESPONSE, t.home ? DEPART : BACK, n);
      } else {
        reads++;
      }
    }
  }

  void answer(uint32_t n) {
    unsigned home = transfers[n].home;
    push(nodes[home]->from.send(now, LINE) + RESPONSE, home ? DEPART : BACK, n);
  }

  void back(uint32_t n) {
    Transfer t = transfers[n];
    if (t.home && !t.from_llc)
      give_credit_back(hops[t.home]);
    unused.push_back(n);
    if (t.write)
      return victim_gone();
    Core &c = cores[t.core];
    auto same = [&t](const Miss &m) { return m.fill == t.fill; };
    auto at = std::find_if(c.misses.begin(), c.misses.end(), same);
    Miss miss = *at;
    c.misses.erase(at);
    c.slots--;
    c.stores -= miss.store;
    if (c.late && c.last_fill == t.fill) {
      c.late = false;
      c.last = now;
    }
    auto &loads = c.loads;
    auto own = [&t](const std::pair<uint32_t, uint64_t> &l) { return l.first == t.fill; };
    loads.erase(std::remove_if(loads.begin(), loads.end(), own), loads.end());
    if (!t.from_llc)
      insert(t.core, t.line, false);
    if (miss.leaves)
      insert(t.core, t.line, true);
    bool wakes = (c.wait == FILL && c.wanted == t.fill) || (c.wait == ROOM && room(c) > 0) ||
                 (c.wait == SLOT && c.slots < OUTSTANDING) ||
                 (c.wait == STORE && c.stores < STORES) || (c.wait == END && c.misses.empty());
    if (wakes)
      wake(t.core);
  }

  void give_credit_back(Hop &hop) {
    if (hop.waiting.empty()) {
      hop.credits++;
      return;
    }
    uint32_t n = hop.waiting.front();
    hop.waiting.pop_front();
    send_out(n);
  }
};

void play(int argc, char **argv) {
  Machine machine(argv[1], atoi(argv[2]) != 0);
  for (int i = 3; i < argc; i++)
    machine.add(argv[i], i > 3);
  double ms = machine.run() / 1e9;
  printf("%.3f ms, %llu reads, %llu writes, %llu hits\n", ms, (unsigned long long)machine.reads,
         (unsigned long long)machine.writes, (unsigned long long)machine.hits);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4)
    fail("usage: driver CONFIG SHARED FILE...");
  try {
    play(argc, argv);
  } catch (const std::exception &e) {
    fail(std::string(argv[1]) + ": " + e.what());
  }
  return 0;
}
