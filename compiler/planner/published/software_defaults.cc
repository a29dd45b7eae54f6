// Layers of stages and microbatches, as other projects' software chooses them.
#include "compiler/planner/published/software_defaults.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace partita::planner {
namespace {

// If one or two layers are missing to fill all stages, e.g. Llama 3's 126
// layers in 128 stages (Llama Team 2024, section 3.3.2), the last and the first
// stage have one layer less, because they have the head and the embedding.
// DeepSpeed counts these as layers in the same way ("type:transformer|
// embedding"), and otherwise fills stages from the first (bigscience,
// chronicles of the prequel). Partita's own stages have at least one layer.
void CutLayers(SweepRow& row) {
  const Architecture& a = row.architecture;
  Division& d = row.division;
  constexpr int64_t kMostStages = 1 << 12;
  const int64_t stages = int64_t{d.pp} * d.vpp;
  const bool fills = row.software->fills_stages && d.vpp == 1;
  if (stages > kMostStages || row.software->own || d.pp == 1 ||
      a.kind == ModelKind::kT5 || (d.vpp == 1 && !fills))
    return;
  const int64_t each = (a.layers + stages - 1) / stages;
  const int64_t missing = each * stages - a.layers;
  const bool ends = missing >= 1 && missing <= 2 && (fills || each == 1);
  if (!ends && !(fills && missing > 2 && missing < each)) return;
  d.cut.assign(stages, each);
  if (ends && missing == 2) {
    --d.cut.front();
    --d.cut.back();
  } else {
    d.cut.back() -= missing;
  }
}

// torchtitan has as many microbatches as stages unless told otherwise
// (job_config, pipeline_parallel_microbatches).
void SplitBatch(SweepRow& row) {
  Division& d = row.division;
  if (!row.software->microbatch_per_stage || d.pp == 1 ||
      !row.choose_microbatch)
    return;
  d.microbatch = std::max<int64_t>(d.batch / d.dp / d.pp, 1);
  row.choose_microbatch = false;
  row.defaults.push_back("mbs=" + std::to_string(d.microbatch));
}

}  // namespace

void ApplySoftwareDefaults(SweepRow& row) {
  CutLayers(row);
  SplitBatch(row);
}

}  // namespace partita::planner
