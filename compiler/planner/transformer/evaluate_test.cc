#include "compiler/planner/transformer/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/core/schedule.h"
#include "compiler/core/schedule_generators.h"
#include "compiler/planner/cost/cost.h"
#include "compiler/planner/published/frameworks.h"
#include "compiler/planner/transformer/test_models.h"

namespace partita::planner {
namespace {

using core::Precision;

constexpr double kGib = 1073741824;

const Software& Megatron() { return SoftwareOf("Megatron-LM"); }

Prediction Of(const Architecture& a, const Division& d,
              const std::string& framework = "Megatron-LM") {
  absl::StatusOr<Cluster> cluster =
      Resize(*BuiltInCluster("selene"), d.devices);
  absl::StatusOr<Prediction> prediction =
      Evaluate(a, d, *cluster, SoftwareOf(framework));
  EXPECT_TRUE(prediction.ok()) << prediction.status();
  return *prediction;
}

// arXiv 2205.05198, Fig. 1: parameters and optimizer, activations, in GiB.
TEST(Memory, IsKorthikantis) {
  struct Row {
    Architecture model;
    int pp, vpp;
    int64_t microbatch;
    double states, whole, reduced;  // no recomputation; sp and selective
  };
  for (const Row& row :
       {Row{Gpt(48, 6144, 64), 1, 1, 4, 45.5625, 59.25, 9.5625},
        Row{Gpt(96, 12288, 96), 8, 3, 1, 45.5625, 66.84375, 12.3515625},
        Row{Gpt(105, 20480, 128), 35, 3, 1, 31.640625, 114.0234375,
            23.076171875},
        Row{Gpt(128, 25600, 160), 64, 1, 1, 32.958984375, 131.25, 26.5625}}) {
    Division d = Divide(8, row.pp, 1, row.microbatch, 256 * row.microbatch);
    d.vpp = row.vpp;
    const double layers = double(row.model.layers) / row.pp;
    const double weights = 12.0 * row.model.hidden * row.model.hidden;
    EXPECT_NEAR(layers * weights / 8 * Megatron().state_bytes / kGib,
                row.states, 1e-6);
    // The figure leaves out biases and norms.
    EXPECT_NEAR(LayerParameters(row.model) / weights, 1, 3e-4);
    const auto activations = [&] {
      return layers * InFlight(d) *
             LayerActivationBytes(row.model, d, Megatron()) / kGib;
    };
    EXPECT_NEAR(activations(), row.whole, 1e-6);
    d.sequence_parallel = true;
    d.recompute = Recomputation::kSelective;
    EXPECT_NEAR(activations(), row.reduced, 1e-6);
  }
}

// arXiv 2205.05198, Fig. 7: percent of the activations with tensor parallelism
// only. The figure counts slightly more than layers.
TEST(Memory, OfRecomputationIsKorthikantis) {
  const Architecture model = Gpt(48, 6144, 64);
  const auto part = [&](bool sp, Recomputation recompute) {
    Division d = Divide(8, 1, 1, 4, 4);
    const double all = LayerActivationBytes(model, d, Megatron());
    d.sequence_parallel = sp;
    d.recompute = recompute;
    return 100 * LayerActivationBytes(model, d, Megatron()) / all;
  };
  EXPECT_NEAR(part(true, Recomputation::kNone), 65.8, 1.1);
  EXPECT_NEAR(part(false, Recomputation::kSelective), 49.42, 1.1);
  EXPECT_NEAR(part(true, Recomputation::kSelective), 16.18, 0.1);
  EXPECT_NEAR(part(false, Recomputation::kFull), 7.64, 0.1);
}

// arXiv 1910.02054, Table 1: 7.5B parameters, 16 bytes each, in GB.
TEST(Memory, OfZeroIsRajbhandaris) {
  Architecture model = Gpt(1, 4096, 32);
  // One layer with that many parameters, and nothing else.
  model.vocab = 1;
  const double billions = 7.5;
  struct Row {
    int dp;
    double stage[3];
  };
  for (const Row& row :
       {Row{1, {120, 120, 120}}, Row{4, {52.5, 41.25, 30}},
        Row{16, {35.625, 21.5625, 7.5}}, Row{64, {31.40625, 16.640625, 1.875}},
        Row{1024, {30.087890625, 15.1025390625, 0.1171875}}})
    for (int zero = 1; zero <= 3; ++zero) {
      Division d = Divide(1, 1, row.dp, 1, row.dp);
      d.zero = zero;
      const MemoryUse use =
          EvaluateMemory(model, d, SoftwareOf("Composer+PyTorch FSDP"));
      const double parameters =
          LayerParameters(model) + EmbeddingParameters(model);
      EXPECT_NEAR((use.parameters + use.gradients + use.optimizer) /
                      parameters * billions,
                  row.stage[zero - 1], 1e-9);
    }
}

// Peak memory of Megatron-LM's continuous tests on the last rank, which logs
// it: 12 layers of width 512 on four sequences of 1024, on A100 (gpt3_mcore_*,
// Megatron-LM d98e8a64).
TEST(Memory, OfTheLastRankIsMegatronsTests) {
  Architecture model = Gpt(12, 512, 8);
  model.seq = 1024;
  model.vocab = 50304;
  const auto last = [&](int tp, int pp, int vpp, const char* attention,
                        Recomputation recompute = Recomputation::kNone) {
    Division d = Divide(tp, pp, 8 / tp / pp, 4, 32 * 8 / tp / pp);
    d.vpp = vpp;
    d.recompute = recompute;
    const Software& software =
        SoftwareOf(std::string("Megatron-Core, ") + attention);
    return EvaluateRankMemory(model, d, software, pp - 1).total() / 1e9;
  };
  const char *unfused = "unfused attention", *fused = "";
  EXPECT_NEAR(last(1, 4, 1, unfused), 2.69, 0.02 * 2.69);
  EXPECT_NEAR(last(1, 4, 1, fused), 2.20, 0.02 * 2.20);
  EXPECT_NEAR(last(1, 4, 3, unfused), 4.12, 0.02 * 4.12);
  EXPECT_NEAR(last(1, 4, 3, fused), 2.65, 0.02 * 2.65);
  EXPECT_NEAR(last(1, 2, 1, fused), 2.60, 0.02 * 2.60);
  EXPECT_NEAR(last(2, 2, 1, unfused), 1.90, 0.02 * 1.90);
  // Logits and recomputed activations are not held at the same time.
  EXPECT_NEAR(last(1, 1, 1, fused, Recomputation::kFull), 2.536, 0.02 * 2.536);
}

// Ranks of an interleaved pipeline run 2 (pp - rank - 1) + (v - 1) pp stages
// forward before their first backward (Megatron-LM's schedules.py).
TEST(Memory, OfInterleavedRanksIsTheSchedules) {
  const Architecture model = Gpt(48, 1024, 16);
  Division d = Divide(1, 4, 1, 1, 64);
  d.vpp = 3;
  for (int rank = 0; rank < 4; ++rank) {
    const double stages = 2 * (4 - rank - 1) + 2 * 4 + 1;
    EXPECT_NEAR(EvaluateRankMemory(model, d, Megatron(), rank).activations,
                stages * 4 * LayerActivationBytes(model, d, Megatron()), 1);
  }
}

TEST(Architecture, HasThePublishedParametersAndOperations) {
  EXPECT_NEAR(Parameters(Gpt(96, 12288, 96)), 175e9, 0.006 * 175e9);
  const Architecture gpt = Gpt(24, 2304, 24);
  const double s = 2048, h = 2304, layers = 24, v = 51200, batch = 512;
  EXPECT_NEAR(
      ModelFlops(gpt, 512) / (72 * batch * layers * s * h * h *
                              (1 + s / (6 * h) + v / (12 * layers * h))),
      1, 1e-12);
  Architecture llama = Gpt(80, 8192, 64);
  llama.kind = ModelKind::kLlama;
  llama.kv_heads = 8;
  llama.ffn = 28672;
  llama.vocab = 32000;
  llama.tied = false;
  EXPECT_NEAR(Parameters(llama), 68.98e9, 0.01e9);
}

TEST(Evaluate, PartsAddUpToTheStep) {
  for (int pp : {1, 4})
    for (int zero : {0, 1}) {
      Division d = Divide(4, pp, 4, 2, 256);
      d.zero = zero;
      const Prediction p = Of(Gpt(48, 6144, 64), d);
      const double sum = p.products + p.attention + p.elementwise + p.host +
                         p.tensor + p.data + p.bubble + p.optimizer + p.other;
      EXPECT_NEAR(sum, p.step, 1e-9 * p.step);
      EXPECT_GE(p.bubble, 0);
      EXPECT_GT(p.exposed(), 0);
    }
}

TEST(Evaluate, PipelinesAreTheCoresTables) {
  const Architecture model = Gpt(32, 4096, 32);
  const Prediction few = Of(model, Divide(1, 8, 1, 1, 8));
  const Prediction many = Of(model, Divide(1, 8, 1, 1, 512));
  EXPECT_NEAR(few.bubble / (few.step - few.optimizer - few.other - few.data),
              7.0 / 15, 0.05);
  EXPECT_LT(many.bubble / many.step, 0.05);
  // Long steps are extrapolated: each round of 8 microbatches adds the same
  // time.
  const Prediction next = Of(model, Divide(1, 8, 1, 1, 520));
  const Prediction before = Of(model, Divide(1, 8, 1, 1, 504));
  EXPECT_NEAR(next.step - many.step, many.step - before.step, 1e-9 * many.step);
}

TEST(Evaluate, SchedulesDifferByTheirBubbles) {
  const Architecture model = Gpt(32, 4096, 32);
  Division d = Divide(1, 8, 1, 1, 16);
  const Prediction base = Of(model, d, "");
  d.schedule = PipelineSchedule::kGpipe;
  EXPECT_NEAR(Of(model, d, "").step, base.step, 1e-3 * base.step);
  EXPECT_GT(Of(model, d, "").memory.activations, 1.9 * base.memory.activations);
  d.schedule = PipelineSchedule::kZbH1;
  EXPECT_LT(Of(model, d, "").bubble, 0.6 * base.bubble);
  d.schedule = PipelineSchedule::kZbV;
  d.vpp = 2;
  EXPECT_LT(Of(model, d, "").bubble, 0.5 * base.bubble);
}

// InFlight agrees with the schedules' tables.
TEST(Memory, InFlightIsTheTables) {
  const int pp = 6, m = 24;
  Division d = Divide(1, pp, 1, 1, m);
  d.schedule = PipelineSchedule::kGpipe;
  EXPECT_EQ(InFlight(d), core::PeakInFlight(core::GPipe(pp, m))[0]);
  d.schedule = PipelineSchedule::kZbH1;
  const std::vector<int> h1 = core::PeakInFlight(core::ZeroBubbleH1(pp, m));
  for (int r = 0; r < pp; ++r) EXPECT_LE(h1[r], InFlight(d));
  EXPECT_EQ(h1[0], InFlight(d));
  d.schedule = PipelineSchedule::kZbV;
  d.vpp = 2;
  const std::vector<int> v = core::PeakInFlight(core::ZeroBubbleV(pp, m));
  for (int r = 0; r < pp; ++r)
    EXPECT_LE(v[r] + v[2 * pp - 1 - r], 2 * InFlight(d) + 1);
}

TEST(Evaluate, ZeroTwoReducesInPipelinesToo) {
  const Architecture model = Gpt(24, 4096, 32);
  for (int pp : {1, 2, 4}) {
    Division d = Divide(1, pp, 8, 1, 128);
    d.zero = 1;
    const Prediction one = Of(model, d);
    d.zero = 2;
    const Prediction two = Of(model, d);
    EXPECT_GT(two.step, one.step) << pp;
    EXPECT_LT(two.memory.total(), one.memory.total()) << pp;
  }
}

TEST(Evaluate, CutsMoveWorkAndMemory) {
  const Architecture model = Gpt(12, 4096, 32);
  Division d = Divide(1, 4, 1, 1, 64);
  const Prediction even = Of(model, d);
  d.cut = {3, 3, 3, 3};
  EXPECT_EQ(Of(model, d).step, even.step);
  EXPECT_EQ(Of(model, d).memory.total(), even.memory.total());
  d.cut = {9, 1, 1, 1};
  EXPECT_GT(Of(model, d).step, 1.2 * even.step);
  d.cut = {1, 3, 4, 4};
  EXPECT_LT(Of(model, d).memory.activations, even.memory.activations);
}

TEST(Evaluate, LeastStepIsNoMore) {
  const Architecture model = Gpt(12, 1024, 16);
  for (const char* framework : {"", "Megatron-LM"})
    for (int pp : {1, 2, 4})
      for (int vpp : {1, 2, 3})
        for (int64_t m : {1, 2, 6, 40})
          for (PipelineSchedule schedule :
               {PipelineSchedule::k1F1B, PipelineSchedule::kGpipe,
                PipelineSchedule::kZbH1, PipelineSchedule::kZbV}) {
            Division d = Divide(2, pp, 2, 1, 2 * m);
            d.vpp = pp == 1 ? 1 : vpp;
            d.schedule = schedule;
            const Cluster cluster = *Resize(*BuiltInCluster("selene"), 16);
            const Software& software = SoftwareOf(framework);
            absl::StatusOr<StepBound> bound =
                LeastStep(model, d, cluster, software);
            if (!bound.ok()) continue;
            const double least = bound->step();
            d.cut.assign(d.stages(), 1);
            for (int extra : {0, d.stages() - 1, d.stages() / 2}) {
              Division cut = d;
              cut.cut[extra] += 12 - d.stages();
              EXPECT_LE(least, Evaluate(model, cut, cluster, software)->step *
                                   (1 + 1e-9));
            }
            d.cut.clear();
            const double even = Evaluate(model, d, cluster, software)->step;
            EXPECT_LE(least, even * (1 + 1e-9));
            // The bound is not far below the step.
            if (!software.own) EXPECT_GE(least, (m >= 6 ? 0.6 : 0.4) * even);
          }
}

TEST(Evaluate, MoreIsMore) {
  const Architecture model = Gpt(48, 6144, 64);
  const Division base = Divide(8, 1, 1, 4, 64);
  const double step = Of(model, base).step;
  Division other = base;
  other.recompute = Recomputation::kFull;
  EXPECT_GT(Of(model, other).step, 1.25 * step);
  EXPECT_LT(Of(model, other).memory.total(), Of(model, base).memory.total());
  other = base;
  other.batch *= 2;
  EXPECT_GT(Of(model, other).step, 1.9 * step);
  EXPECT_GT(Of(Gpt(96, 6144, 64), base).step, 1.8 * step);
  // Tensor parallelism across two nodes is slower.
  EXPECT_GT(Of(model, Divide(16, 1, 1, 4, 64)).tensor,
            1.25 * Of(model, base).tensor);
  // ZeRO-3 fits where undivided parameters do not.
  Division whole = Divide(1, 1, 64, 1, 64);
  EXPECT_FALSE(Of(model, whole).fits);
  EXPECT_EQ(Of(model, whole).bound, "memory");
  whole.zero = 3;
  whole.recompute = Recomputation::kFull;
  EXPECT_TRUE(Of(model, whole, "").fits);
}

// In a pipeline, ZeRO-3 gathers a stage's layers in both passes of every
// microbatch, and holds a share of the parameters.
TEST(Evaluate, ZeroThreeInAPipelineGathersForEveryMicrobatch) {
  Software software = SoftwareOf("");
  software.gather_overlap = 0;
  const Cluster cluster = *BuiltInCluster("8x a100-80-sxm");
  const Architecture model = Gpt(24, 4096, 32);
  const auto data = [&](int zero, int64_t batch) {
    Division d = Divide(1, 2, 4, 1, batch);
    d.zero = zero;
    return *Evaluate(model, d, cluster, software);
  };
  // Per microbatch, ZeRO-3 gathers twice as many bytes as it reduces.
  const auto more = [&](int zero) {
    return data(zero, 32).data - data(zero, 16).data;
  };
  EXPECT_GT(more(2), 0);
  EXPECT_NEAR(more(3), 3 * more(2), 1e-9 * more(3));
  EXPECT_DOUBLE_EQ(4 * data(3, 32).memory.parameters,
                   data(2, 32).memory.parameters);
  // Full overlap hides all of them.
  software.gather_overlap = 1;
  EXPECT_NEAR(more(3), 0, 1e-12);
}

// States on the host free device memory, and cross the host link in both
// directions at once.
TEST(Evaluate, StatesOnTheHost) {
  const Architecture model = Gpt(24, 4096, 32);
  Division d = Divide(2, 1, 4, 1, 32);
  const Prediction device = Of(model, d, "");
  d.offload = true;
  const Prediction host = Of(model, d, "");
  EXPECT_EQ(host.memory.host, device.memory.optimizer);
  EXPECT_DOUBLE_EQ(host.memory.total() + host.memory.host,
                   device.memory.total());
  // The time assumes that tp divides all parameters, but norms are not divided.
  EXPECT_NEAR(
      host.optimizer * BuiltInCluster("a100-80-sxm")->device.host_bandwidth,
      host.memory.host, 0.003 * host.memory.host);
  EXPECT_DOUBLE_EQ(host.step - host.optimizer, device.step - device.optimizer);
  d.zero = 1;
  EXPECT_DOUBLE_EQ(4 * Of(model, d, "").memory.host, host.memory.host);
  // The host is too small for this model.
  d = Divide(1, 1, 1, 1, 32);
  d.offload = true;
  EXPECT_FALSE(Of(Gpt(96, 12288, 96), d, "").fits);
}

// All parts of a reduction but one are concurrent with the backward pass.
TEST(Evaluate, OverlapLeavesOnePart) {
  Software software = SoftwareOf("Megatron-Core");
  const Cluster cluster = *BuiltInCluster("64x h100-sxm");
  const Architecture model = Gpt(24, 4096, 32);
  Division d = Divide(1, 1, 64, 4, 1024);
  d.zero = 1;
  const auto exposed = [&](double part) {
    software.gradient_overlap = software.parameter_overlap = part;
    return Evaluate(model, d, cluster, software)->data;
  };
  EXPECT_GT(exposed(0), 0);
  EXPECT_NEAR(exposed(1), exposed(0) / 24, 1e-9);
}

TEST(Evaluate, RecomputationThatStopsEarlyLeavesOutTheLastProduct) {
  Software software = SoftwareOf("FSDP");
  const Cluster cluster = *BuiltInCluster("8x a100-80-sxm");
  Division d = Divide(1, 1, 8, 8, 64);
  d.recompute = Recomputation::kFull;
  const auto products = [&] {
    return Evaluate(Gpt(24, 4096, 32), d, cluster, software)->products;
  };
  const double early = products();
  software.stops_early = false;
  // Early stopping saves a third of the forward's products, one of four passes.
  EXPECT_NEAR(early / products(), 11.0 / 12, 0.01);
}

// Heads of 150 elements are 300 bytes wide, not a multiple of 16.
TEST(Evaluate, ScoresOfUnalignedHeadsAreSlow) {
  const Division d = Divide(8, 1, 1, 1, 8);
  const double aligned = Of(Gpt(8, 14336, 64), d).attention;
  EXPECT_GT(Of(Gpt(8, 14400, 96), d).attention, 3 * aligned);
}

// Host and device never work at once, so the host's work is all exposed.
TEST(Evaluate, BlockingLaunchesExposeTheHost) {
  const Architecture a = Gpt(24, 12288, 96);
  const Division d = Divide(8, 1, 1, 4, 16);
  const Software& usual = SoftwareOf("DeepSpeed");
  const Prediction hidden = Of(a, d, "DeepSpeed");
  const Prediction exposed = Of(a, d, "DeepSpeed, blocking launches");
  EXPECT_EQ(hidden.host, 0);
  EXPECT_GT(exposed.host, 2.5 * usual.dispatch * 24 * 4);
  EXPECT_NEAR(exposed.step - hidden.step, exposed.host, 1e-9);
}

TEST(Evaluate, UnfusedElementwiseKernelsTakeLonger) {
  Architecture a = Gpt(32, 4096, 32);
  a.kind = ModelKind::kLlama;
  const Division d = Divide(1, 1, 8, 2, 16);
  const Prediction fused = Of(a, d, "torchtitan");
  const Prediction eager = Of(a, d, "torchtitan, eager");
  EXPECT_GT(eager.elementwise, 2 * fused.elementwise);
  EXPECT_DOUBLE_EQ(eager.products, fused.products);
}

// torchtitan gathers the keys and values of all heads, and nothing hides it.
TEST(Evaluate, GatheredKeysOfContextParallelismAreExposed) {
  Architecture a = Gpt(32, 4096, 32);
  a.kind = ModelKind::kLlama;
  a.kv_heads = 8;
  a.seq = 65536;
  Division d = Divide(1, 1, 1, 1, 1);
  d.cp = d.devices = 8;
  EXPECT_EQ(Of(a, d, "Megatron-Core").tensor, 0);
  EXPECT_GT(Of(a, d, "torchtitan").tensor, 0);
}

// Forward, recomputation and backward gather the parameters.
TEST(Evaluate, DeepSpeedGathersOnceMoreToRecompute) {
  const Architecture a = Gpt(24, 4096, 32);
  const char kZero[] = "DeepSpeed ZeRO-3 in Megatron";
  Division d = Divide(1, 1, 64, 1, 64);
  d.zero = 3;
  const double two = Of(a, d, kZero).data;
  d.recompute = Recomputation::kFull;
  const double three = Of(a, d, kZero).data;
  EXPECT_GT(three, 1.25 * two);
  EXPECT_LT(three, 1.45 * two);
}

TEST(Memory, OfGatheredCopiesIsTwoBytes) {
  const Architecture a = Gpt(24, 4096, 32);
  Division d = Divide(1, 1, 8, 1, 64);
  d.zero = 1;
  Software software = SoftwareOf("DeepSpeed, f32 gradients");
  const double with = EvaluateMemory(a, d, software).parameters;
  software.gathered_bytes = 0;
  const double without = EvaluateMemory(a, d, software).parameters;
  EXPECT_NEAR((with - without) / Parameters(a), 2, 1e-4);
}

TEST(Memory, DeferredReductionsHoldWholeGradients) {
  const Software& titan = SoftwareOf("torchtitan");
  Division d = Divide(1, 1, 8, 1, 64);
  d.zero = 3;
  const Architecture model = Gpt(24, 4096, 32);
  const auto use = [&](int pp) {
    d.pp = pp;
    d.devices = 8 * pp;
    return EvaluateMemory(model, d, titan);
  };
  const MemoryUse one = use(1), two = use(2);
  EXPECT_GT(two.gradients, 3.5 * one.gradients);
  EXPECT_GT(two.parameters, 3.5 * one.parameters);
  EXPECT_LT(two.optimizer, one.optimizer);
}

// On a CPU, collectives share the processors with computing. f32 gradients are
// reduced and updated in f32.
TEST(Step, WhatDoesNotOverlapIsNotHidden) {
  const Architecture a = Gpt(24, 1024, 16);
  Division d = Divide(1, 1, 4, 1, 4);
  Cluster cluster = *Resize(*BuiltInCluster("selene"), d.devices);
  const auto step = [&](Precision precision) {
    d.precision = precision;
    absl::StatusOr<Prediction> prediction =
        Evaluate(a, d, cluster, SoftwareOf(""));
    EXPECT_TRUE(prediction.ok()) << prediction.status();
    return *prediction;
  };
  const double hidden = step(Precision::kF32).data;
  cluster.device.overlaps = false;
  const Prediction exposed = step(Precision::kF32);
  EXPECT_GT(exposed.data, 2 * hidden);
  const double parameters = 24 * LayerParameters(a) + EmbeddingParameters(a);
  EXPECT_NEAR(exposed.data,
              CollectiveTime(cluster, core::CollectiveKind::kAllReduce,
                             4 * parameters, ShapeOfStride(cluster, 1, 4)),
              1e-9);
  EXPECT_NEAR(exposed.optimizer, UpdateTime(cluster.device, 28 * parameters),
              1e-9);
  EXPECT_NEAR(step(Precision::kBF16).optimizer,
              UpdateTime(cluster.device, 42 * parameters), 1e-9);
  cluster.device.tables[kUpdateName] = {{{1e3}}, {1e9}};
  EXPECT_NEAR(step(Precision::kF32).optimizer, 28 * parameters / 1e9, 1e-9);
}

}  // namespace
}  // namespace partita::planner
