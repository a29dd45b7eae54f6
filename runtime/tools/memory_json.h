// Reports device memory as JSON.
#ifndef PARTITA_RUNTIME_TOOLS_MEMORY_JSON_H_
#define PARTITA_RUNTIME_TOOLS_MEMORY_JSON_H_

#include <vector>

#include "nlohmann/json.hpp"
#include "runtime/executor/executor.h"

namespace partita::tools {

// Values in bytes.
nlohmann::json MemoryJson(const executor::MemoryUse& memory);

// One object per device, in order: its place in the pipeline, its steps, its
// memory.
nlohmann::json RanksJson(const std::vector<executor::RankUse>& ranks);

}  // namespace partita::tools

#endif  // PARTITA_RUNTIME_TOOLS_MEMORY_JSON_H_
