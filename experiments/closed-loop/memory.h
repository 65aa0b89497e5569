// SPDX-License-Identifier: MIT OR Apache-2.0
// The interface between driver.cc and a simulator of memory. dramsim3.cc and ramulator2.cc
// implement it; link one of them.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

// A line of a node.
struct Place {
  uint64_t channel, rank, bank, row, column;
};

// Both channels of a node.
class Memory {
public:
  // Called when the data of the read `id` are there.
  using Ready = std::function<void(uint32_t id)>;

  virtual ~Memory() = default;
  // Takes a read or a write; false: there is no room now.
  virtual bool send(const Place &place, bool write, uint32_t id) = 0;
  // A cycle of DRAM, 1.5 ns.
  virtual void tick() = 0;
};

// A node as the simulator's file `config` has it.
std::unique_ptr<Memory> open_memory(const std::string &config, Memory::Ready ready);
