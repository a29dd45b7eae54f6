// The behaviour of training software beyond the division.
#ifndef PARTITA_COMPILER_PLANNER_TRANSFORMER_SOFTWARE_H_
#define PARTITA_COMPILER_PLANNER_TRANSFORMER_SOFTWARE_H_

#include <string>

namespace partita::planner {

struct Software {
  std::string name;
  // True for Partita's own programs. Estimates of them only choose what to
  // compile, and are not shown to the user.
  bool own = false;
  bool fused_attention = true;  // the L x L scores are never written to memory
  double attention = 1;  // fused attention's rate relative to the device's
  double dispatch = 0;   // host seconds per layer and forward pass
  double step = 0;       // seconds per step outside the layers
  // Share of a collective's time that concurrent computation hides. 0: the
  // collective is fully exposed.
  double gradient_overlap = 0;   // gradient reductions, in the last backward
  double parameter_overlap = 0;  // ZeRO-1's gathers, in the first forward
  double gather_overlap = 0;  // ZeRO-3's gathers and reductions, in each layer
  // Collectives of tensor parallelism run in tp parts, concurrently with the
  // products that use them. One part is exposed.
  bool pipelines_tensor = false;
  // ZeRO-2 and 3 reduce gradients and gather parameters once per step, always
  // or only in pipelines. Otherwise they do so once per microbatch.
  bool defers_always = false, defers_in_pipelines = false;
  double gathered = 2;     // layers that ZeRO-3 holds gathered at once
  int gradient_bytes = 2;  // per gradient when it is reduced
  // How gradients of microbatches are summed: by a kernel, by the product that
  // computes them, or after each microbatch's reduction.
  enum class Accumulation { kKernel, kProduct, kAfterReduction };
  Accumulation accumulation = Accumulation::kAfterReduction;
  // Full recomputation skips a layer's last product, whose result no gradient
  // needs.
  bool stops_early = false;
  // ZeRO-3 gathers and reduces each weight separately, and copies the parts of
  // all ranks one by one.
  bool by_weight = false;
  // Share of the products that selective recomputation repeats, besides all
  // elementwise kernels. 0: it repeats only attention's scores.
  double selective = 0;
  // Kernels are launched one at a time, so host and device never work at once.
  bool blocking_launches = false;
  // A compiler fuses elementwise operations into kernels. Otherwise each
  // operation of a norm, of rotary positions and of the gate is a kernel.
  bool fused_elementwise = true;
  // Bytes that fp8 reads and writes per operand element, besides the product.
  double cast_bytes = 4;
  // Context parallelism copies keys and values to all heads and gathers them,
  // instead of passing them around a ring during attention.
  bool gathers_keys = false;
  bool norms_cast = false;  // norms write their result in fp8
  // Number of microbatches if a row does not give their size: the stages, or
  // else the fastest.
  bool microbatch_per_stage = false;
  // Stages are filled from the first, up to the largest number of layers.
  bool fills_stages = false;
  // Tokens of a sample in fine-tuning, which packs many into a sequence. 0: it
  // has one sample per sequence.
  int packed_sample = 0;
  int state_bytes = 16;      // parameter, gradient and Adam's states
  int optimizer_bytes = 12;  // of these, the part that ZeRO-1 divides
  int divided_bytes = 0;     // copies of a rank's part of ZeRO-1's gradients
  int gathered_bytes = 0;    // copies of parameters that ZeRO-1 gathers
  int loss_bytes = 6;        // per logit: 16-bit logits and their f32 softmax
  bool dropout = true;       // a GPT or BERT keeps dropout masks
  double libraries = 0;      // bytes of scratch memory of libraries
  bool zero_over_batch = false;  // ZeRO divides over dp, not over dp x cp
  bool scatters = false;         // each tp rank sends its part between stages
};

// True if ZeRO-2 and 3 communicate once per step in a pipeline of `pp` stages.
// A rank then holds undivided gradients. In pipelines it also holds ZeRO-3's
// parameters undivided.
inline bool DefersZero(const Software& software, int pp) {
  return software.defers_always || (software.defers_in_pipelines && pp > 1);
}

// Partita's own programs.
const Software& OwnSoftware();

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_TRANSFORMER_SOFTWARE_H_
