// Uses the same names in reports of runs and of training.
#include "runtime/tools/memory_json.h"

namespace partita::tools {

using nlohmann::json;

json MemoryJson(const executor::MemoryUse& memory) {
  return {{"total", memory.Total()},   {"arena", memory.arena},
          {"globals", memory.globals}, {"packed", memory.packed},
          {"scratch", memory.scratch}, {"staging", memory.staging},
          {"mapped", memory.mapped},   {"host", memory.host},
          {"files", memory.files}};
}

json RanksJson(const std::vector<executor::RankUse>& ranks) {
  json list = json::array();
  for (size_t i = 0; i < ranks.size(); ++i)
    list.push_back({{"rank", i},
                    {"pipeline_rank", ranks[i].entry},
                    {"steps", ranks[i].steps},
                    {"flops", ranks[i].flops},
                    {"memory", MemoryJson(ranks[i].memory)}});
  return list;
}

}  // namespace partita::tools
