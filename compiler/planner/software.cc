// Fitted to published steps, software by software (tests/bench/planner); what
// a flag says is of the software's own documents. Nobody measured ours on a
// cluster: its numbers are what its design aims at.
#include "compiler/planner/software.h"

#include <cctype>

namespace partita::planner {
namespace {

Software Make(const char* name) {
  Software software;
  software.name = name;
  return software;
}

// What cuBLAS and TransformerEngine hold once used: allocated between steps
// beyond the parameters' states, 78 to 130 MB of Megatron-LM's continuous tests
// (tests/bench/planner).
constexpr double kLibraries = 100e6;

std::vector<Software> MakeTable() {
  std::vector<Software> table;
  Software partita = Make("partita");
  partita.own = true;
  partita.gradient_overlap = 0.8;
  partita.gather_overlap = 0.8;
  partita.zero_over_batch = true;
  partita.dispatch = 0.1e-3;
  partita.step = 1e-3;
  // runtime/program/library_limits.h: the workspace of products on a GPU.
  partita.libraries = 33554432;
  table.push_back(partita);

  Software megatron = Make("megatron-lm");
  megatron.fused_attention = false;
  megatron.dispatch = 0.5e-3;
  megatron.step = 10e-3;
  megatron.state_bytes = 18;
  megatron.gradient_bytes = 2;
  megatron.blocking = true;
  megatron.scatters = true;
  table.push_back(megatron);

  Software v1 = megatron;
  v1.name = "megatron-lm v1";
  table.push_back(v1);

  Software deepspeed = megatron;
  deepspeed.name = "megatron-deepspeed";
  deepspeed.dispatch = 0.98e-3;
  deepspeed.step = 6e-3;
  table.push_back(deepspeed);

  Software three_d = deepspeed;
  three_d.name = "deepspeed 3d";
  three_d.products = 0.75;
  table.push_back(three_d);

  Software zero = megatron;
  zero.name = "deepspeed zero-3";
  zero.gather = 0.105;
  zero.gather_overlap = 0.42;
  // DeepSpeed gathers modules: the one in use, and the next. The widest is a
  // product of h x 4h, a third of a layer.
  zero.gathered = 2.0 / 3;
  zero.state_bytes = 16;
  table.push_back(zero);

  Software fsdp = Make("fsdp");
  fsdp.dispatch = 0.5e-3;
  fsdp.step = 56e-3;
  fsdp.attention = 0.56;
  fsdp.gather_overlap = 0.49;
  fsdp.dropout = false;  // of the MPT models
  table.push_back(fsdp);

  Software nemo = Make("nemo megatron");
  nemo.fused_attention = false;
  nemo.products = 0.89;
  nemo.dispatch = 1.7e-3;
  nemo.step = 20e-3;
  nemo.gradient_bytes = 2;
  nemo.state_bytes = 16;  // distributed fused Adam: gradients in 16 bits
  nemo.blocking = true;
  nemo.scatters = true;
  table.push_back(nemo);

  Software core = Make("megatron-core");
  core.dispatch = 0.4e-3;
  core.step = 20e-3;
  core.tensor_overlap = 0.64;
  core.gradient_overlap = 0.42;
  core.gradient_bytes = 4;
  core.state_bytes = 18;
  core.libraries = kLibraries;
  table.push_back(core);

  // NeMo 24.07: distributed fused Adam, whose f32 copies are a 16-bit
  // parameter and the other 16 bits; gradients are reduced in 16.
  Software nemo_core = core;
  nemo_core.name = "nemo megatron-core";
  nemo_core.optimizer_bytes = 10;
  nemo_core.state_bytes = 14;
  table.push_back(nemo_core);

  // Written scores: --attention-backend unfused, or before there was a choice.
  Software unfused = core;
  unfused.name = "megatron-core unfused";
  unfused.fused_attention = false;
  table.push_back(unfused);
  return table;
}

}  // namespace

std::vector<Software>& SoftwareTable() {
  static std::vector<Software>* table = new std::vector<Software>(MakeTable());
  return *table;
}

std::vector<std::string> FrameworkWords() {
  return {"partita",
          "Megatron-LM",
          "Megatron-Core",
          "DeepSpeed",
          "DeepSpeed 3D",
          "DeepSpeed ZeRO-3 in Megatron",
          "FSDP",
          "NeMo Megatron",
          "NeMo/Megatron-Core",
          "Megatron-LM v1",
          "Megatron-Core, unfused attention"};
}

const Software* FindSoftware(const std::string& framework) {
  std::string words;
  for (const char c : framework)
    words += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto has = [&](const char* word) {
    return words.find(word) != std::string::npos;
  };
  const char* name = nullptr;
  if (words.empty() || has("partita"))
    name = "partita";
  else if (has("unfused attention"))
    name = "megatron-core unfused";
  else if (has("zero-3 in megatron"))
    name = "deepspeed zero-3";
  else if (has("deepspeed 3d"))
    name = "deepspeed 3d";
  else if (has("deepspeed"))
    name = "megatron-deepspeed";
  else if (has("fsdp") || has("composer"))
    name = "fsdp";
  else if (has("nemo/megatron-core"))
    name = "nemo megatron-core";
  else if (has("megatron-core") || has("megatron core"))
    name = "megatron-core";
  else if (has("nemo megatron") || has("nemo-megatron"))
    name = "nemo megatron";
  else if (has("nemo"))
    name = "megatron-core";
  else if (has("megatron-lm v1"))
    name = "megatron-lm v1";
  else if (has("megatron"))
    name = "megatron-lm";
  if (name == nullptr) return nullptr;
  for (const Software& software : SoftwareTable())
    if (software.name == name) return &software;
  return nullptr;
}

const Software& SoftwareOf(const std::string& framework) {
  const Software* found = FindSoftware(framework);
  return found != nullptr ? *found : SoftwareTable().front();
}

}  // namespace partita::planner
