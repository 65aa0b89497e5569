// SPDX-License-Identifier: MIT OR Apache-2.0
// Ramulator 2 behind memory.h, for ddr3-1333h.yaml.
#include <yaml-cpp/yaml.h>

#include "base/base.h"
#include "base/request.h"
#include "frontend/frontend.h"
#include "memory.h"
#include "memory_system/memory_system.h"

namespace {

class Ramulator2 : public Memory {
public:
  Ramulator2(const std::string &config, Ready ready) : ready(std::move(ready)) {
    YAML::Node file = YAML::LoadFile(config);
    front = Ramulator::Factory::create_frontend(file);
    system = Ramulator::Factory::create_memory_system(file);
    front->connect_memory_system(system);
    system->connect_frontend(front);
  }

  bool send(const Place &place, bool write, uint32_t id) override {
    auto answer = [this, id](Ramulator::Request &) { ready(id); };
    int type = write ? Ramulator::Request::Type::Write : Ramulator::Request::Type::Read;
    return front->receive_external_requests(type, address_of(place), 0, answer);
  }

  void tick() override { system->tick(); }

private:
  Ready ready;
  // The library's own; it frees neither.
  Ramulator::IFrontEnd *front;
  Ramulator::IMemorySystem *system;

  // RoBaRaCoCh, as the file says.
  static int64_t address_of(const Place &p) {
    return (p.channel | p.column << 1 | p.rank << 9 | p.bank << 10 | p.row << 13) << 6;
  }
};

} // namespace

std::unique_ptr<Memory> open_memory(const std::string &config, Memory::Ready ready) {
  return std::make_unique<Ramulator2>(config, std::move(ready));
}
