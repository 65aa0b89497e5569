// SPDX-License-Identifier: MIT OR Apache-2.0
// DRAMsim3 behind memory.h, for ddr3-1333h.ini.
#include <map>

#include "dramsim3.h"
#include "memory.h"

namespace {

class DramSim3 : public Memory {
public:
  DramSim3(const std::string &config, Ready ready)
      : ready(std::move(ready)), system(
                                     config, ".", [this](uint64_t address) { answer(address); },
                                     [](uint64_t) {}) {}

  bool send(const Place &place, bool write, uint32_t id) override {
    uint64_t address = address_of(place);
    if (!system.WillAcceptTransaction(address, write))
      return false;
    if (!write)
      reads.emplace(address, id);
    system.AddTransaction(address, write);
    return true;
  }

  void tick() override { system.ClockTick(); }

private:
  Ready ready;
  std::multimap<uint64_t, uint32_t> reads;
  dramsim3::MemorySystem system;

  // rorabgbacoch, as the file says.
  static uint64_t address_of(const Place &p) {
    return (p.channel | p.column << 1 | p.bank << 9 | p.rank << 12 | p.row << 13) << 6;
  }

  void answer(uint64_t address) {
    auto found = reads.find(address);
    if (found == reads.end())
      return;
    ready(found->second);
    reads.erase(found);
  }
};

} // namespace

std::unique_ptr<Memory> open_memory(const std::string &config, Memory::Ready ready) {
  return std::make_unique<DramSim3>(config, std::move(ready));
}
