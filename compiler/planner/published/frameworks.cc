// Training software of other projects. Its behaviour is from its documentation.
// Two time constants, common to all, are fitted to published steps
// (tests/bench/planner).
#include "compiler/planner/published/frameworks.h"

#include <cctype>
#include <utility>

namespace partita::planner {
namespace {

Software Make(const char* name) {
  Software software;
  software.name = name;
  return software;
}

// Memory that cuBLAS and TransformerEngine keep after first use: between steps,
// Megatron-LM's continuous tests have 78 to 130 MB allocated beyond the
// parameters' states (tests/bench/planner).
constexpr double kLibraries = 100e6;

// DeepSpeed's reduce_bucket_size and allgather_bucket_size: 5e8 elements each
// by default, in 16 bits (deepspeed.ai, "DeepSpeed Configuration JSON").
constexpr double kDeepSpeedBuckets = 2 * 5e8 * 2;
// Communicators of a DeepSpeed pipeline, estimated as eight. Each has rings and
// trees of 16 channels, with 4 MiB to send and 4 MiB to receive (NCCL user
// guide, NCCL_BUFFSIZE).
constexpr double kDeepSpeedGroups = 8.0 * 2 * 16 * 2 * 4 * 1048576;

// PyTorch's and apex's kernels, once loaded on an A100, as nvidia-smi shows
// them (bigscience's chronicles of the prequel).
constexpr double kLoadedKernels = 1573.0 * 1048576;

// Collectives take multiprocessors from concurrent kernels. NCCL's logs of
// nodes with NVLink show 16 to 24 channels, one thread block each. An A100 has
// 108 multiprocessors.
constexpr double kHidden = 1 - 16.0 / 108;

// NeMo's benchmarks of fine-tuning pack SQuAD 1.1 (its performance summary).
// Its paragraphs and questions have 120 and 10 words on average (arXiv
// 1606.05250), at 1.4 tokens each.
constexpr int kSquadTokens = 180;

constexpr char kBlocking[] = ", blocking launches";
constexpr char kEager[] = ", eager";

std::vector<Software> MakeTable(const Calibration& c) {
  std::vector<Software> table;
  // Megatron-LM up to 2022 (arXiv 2104.04473): scores are written to memory,
  // collectives are exposed, gradients have 16 bits. Products accumulate
  // gradients unless --no-gradient-accumulation-fusion is set.
  Software megatron = Make("megatron-lm");
  megatron.fused_attention = false;
  megatron.dispatch = c.dispatch;
  megatron.step = c.step;
  megatron.state_bytes = 18;
  megatron.gradient_bytes = 2;
  megatron.accumulation = Software::Accumulation::kProduct;
  // 16-bit logits, an f32 copy, and the copy minus its maximum
  // (megatron/core/tensor_parallel/cross_entropy.py).
  megatron.loss_bytes = 10;
  megatron.scatters = true;
  table.push_back(megatron);

  Software v1 = megatron;
  v1.name = "megatron-lm v1";
  v1.accumulation = Software::Accumulation::kKernel;
  table.push_back(v1);

  Software deepspeed = megatron;
  deepspeed.name = "megatron-deepspeed";
  deepspeed.accumulation = Software::Accumulation::kKernel;
  deepspeed.state_bytes = 16;
  deepspeed.divided_bytes = 4;  // copied to f32 (runtime/zero/stage_1_and_2.py)
  deepspeed.libraries =
      kDeepSpeedBuckets + kDeepSpeedGroups + kLoadedKernels + kLibraries;
  deepspeed.fills_stages = true;
  table.push_back(deepspeed);

  // Its BF16_Optimizer accumulates gradients in f32, undivided.
  Software wide = deepspeed;
  wide.name = "megatron-deepspeed, f32 gradients";
  wide.state_bytes = 20;
  wide.divided_bytes = 0;
  // It gathers all parameters at once, and torch.distributed.all_gather copies
  // the result out of a contiguous tensor.
  wide.gathered_bytes = 2;
  table.push_back(wide);

  // The large models of BigScience hang on Jean Zay unless
  // CUDA_LAUNCH_BLOCKING=1 is set (bigscience, train/tr11-176B-ml, chronicles
  // of the prequel).
  for (Software blocking : {deepspeed, wide}) {
    blocking.name += kBlocking;
    blocking.blocking_launches = true;
    table.push_back(blocking);
  }

  // In 2021 DeepSpeed's overlap_comm was false by default (deepspeed.ai,
  // "DeepSpeed Configuration JSON"). It gathers modules: the one in use and the
  // next. The widest is a product of h x 4h, a third of a layer.
  Software zero = megatron;
  zero.name = "deepspeed zero-3";
  zero.gathered = 2.0 / 3;
  zero.state_bytes = 16;
  zero.accumulation = Software::Accumulation::kAfterReduction;
  zero.by_weight = true;
  table.push_back(zero);

  // FSDP prefetches the next layer's parameters and reduces gradients
  // concurrently with the backward pass (arXiv 2304.11277). Non-reentrant
  // checkpoints stop early (torch.utils.checkpoint.set_checkpoint_early_stop).
  // MPT models run FlashAttention 1 without dropout, at 25 to 40 % of an A100's
  // peak; FlashAttention 2 reaches 50 to 73 % (arXiv 2307.08691).
  Software fsdp = Make("fsdp");
  fsdp.attention = 0.53;
  fsdp.stops_early = true;
  fsdp.dispatch = c.dispatch;
  fsdp.step = c.step;
  fsdp.gather_overlap = kHidden;
  fsdp.dropout = false;
  table.push_back(fsdp);

  // In pipelines, parameters stay gathered between microbatches and gradients
  // are reduced after the last one (torchtitan's parallelize_llama.py:
  // reshard_after_forward).
  Software titan = fsdp;
  titan.name = "torchtitan";
  titan.attention = 1;
  // "selective (op)" recomputes every second product (torchtitan's
  // parallelize_llama.py). The loss has an f32 copy of the logits and their
  // softmax.
  titan.selective = 0.5;
  titan.loss_bytes = 10;
  titan.defers_in_pipelines = true;
  titan.microbatch_per_stage = true;
  // torchao's dynamic scaling reads each operand once more for its maximum, and
  // transposes it in a kernel of its own.
  titan.cast_bytes = 7;
  titan.gathers_keys = true;
  table.push_back(titan);

  // Without torch.compile, which is the default.
  Software eager = titan;
  eager.name += kEager;
  eager.fused_elementwise = false;
  table.push_back(eager);

  // NeMo of 2022 and 2023 uses Apex's distributed Adam with 16-bit gradients.
  // The launcher's recipes set overlap_grad_sync: False.
  Software nemo = Make("nemo megatron");
  nemo.fused_attention = false;
  nemo.dispatch = c.dispatch;
  nemo.step = c.step;
  nemo.gradient_bytes = 2;
  nemo.accumulation = Software::Accumulation::kKernel;
  nemo.state_bytes = 16;
  nemo.scatters = true;
  table.push_back(nemo);

  // With the overlaps that its guide recommends: gradients, parameters, tensor
  // parallelism (NeMo Framework user guide, "Communication Overlap"). Products
  // add gradients to f32 sums instead of writing 16 bits.
  Software core = Make("megatron-core");
  core.dispatch = c.dispatch;
  core.step = c.step;
  core.pipelines_tensor = true;
  core.norms_cast = true;  // TransformerEngine's LayerNormLinear
  core.gradient_overlap = kHidden;
  core.parameter_overlap = kHidden;
  core.gradient_bytes = 4;
  core.accumulation = Software::Accumulation::kProduct;
  core.state_bytes = 18;
  core.libraries = kLibraries;
  table.push_back(core);

  // NeMo 24.07 with distributed fused Adam. An f32 copy is stored as the 16-bit
  // parameter plus the other 16 bits. Gradients are reduced in 16 bits
  // (grad_reduce_in_fp32=False).
  Software nemo_core = core;
  nemo_core.name = "nemo megatron-core";
  nemo_core.optimizer_bytes = 10;
  nemo_core.gradient_bytes = 2;
  nemo_core.state_bytes = 14;
  nemo_core.packed_sample = kSquadTokens;
  table.push_back(nemo_core);

  // Scores written to memory: --attention-backend unfused, or versions without
  // that option.
  Software unfused = core;
  unfused.name = "megatron-core unfused";
  unfused.fused_attention = false;
  table.push_back(unfused);

  // XLA programs need no host work per layer. Gradients are reduced once per
  // step (Alpa's pass GradAccRewrite and XLA_SKIP_NCCL_COLLECTIVE_IDS).
  Software alpa = Make("alpa");
  alpa.fused_attention = false;
  alpa.step = c.step;
  alpa.defers_always = true;
  alpa.accumulation = Software::Accumulation::kKernel;
  table.push_back(alpa);
  return table;
}

std::vector<Software>& MutableTable() {
  static std::vector<Software>* table =
      new std::vector<Software>(MakeTable(PublishedCalibration()));
  return *table;
}

}  // namespace

const Calibration& PublishedCalibration() {
  static const Calibration kCalibration = {0.98e-3, 4.0e-3};
  return kCalibration;
}

void Calibrate(const Calibration& calibration) {
  std::vector<Software>& table = MutableTable();
  std::vector<Software> made = MakeTable(calibration);
  for (size_t i = 0; i < table.size(); ++i) table[i] = std::move(made[i]);
}

std::vector<std::string> FrameworkNames() {
  return {"partita",
          "Megatron-LM",
          "Megatron-Core",
          "DeepSpeed",
          "DeepSpeed 3D",
          "torchtitan",
          "Alpa",
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
  if (words.empty() || has("partita")) return &OwnSoftware();
  std::string name;
  if (has("unfused attention"))
    name = "megatron-core unfused";
  else if (has("zero-3 in megatron"))
    name = "deepspeed zero-3";
  else if (has("alpa"))
    name = "alpa";
  else if (has("f32 gradients"))
    name = "megatron-deepspeed, f32 gradients";
  else if (has("deepspeed") || has("neox"))
    name = "megatron-deepspeed";
  else if (has("torchtitan") || has("fsdp2"))
    name = "torchtitan";
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
  if (has("deepspeed") && has(kBlocking)) name += kBlocking;
  if (name == "torchtitan" && has(kEager)) name += kEager;
  for (const Software& software : MutableTable())
    if (software.name == name) return &software;
  return nullptr;
}

const Software& SoftwareOf(const std::string& framework) {
  const Software* found = FindSoftware(framework);
  return found != nullptr ? *found : OwnSoftware();
}

}  // namespace partita::planner
