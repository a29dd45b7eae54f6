// Training software: its behaviour beyond what the division says.
#ifndef PARTITA_COMPILER_PLANNER_TRANSFORMER_SOFTWARE_H_
#define PARTITA_COMPILER_PLANNER_TRANSFORMER_SOFTWARE_H_

#include <string>

namespace partita::planner {

struct Software {
  std::string name;
  // Partita's own programs: estimates of them choose what is compiled, and are
  // shown to nobody.
  bool own = false;
  bool fused_attention = true;  // the L x L matrix never reaches memory
  double attention = 1;  // fused attention's rate relative to the device's
  double dispatch = 0;   // host seconds per forward pass of a layer
  double step = 0;       // seconds per step outside the layers
  // Share of a collective's time that concurrent computation hides; 0 where the
  // software waits for the collective.
  double gradient_overlap = 0;   // gradient reductions, in the last backward
  double parameter_overlap = 0;  // ZeRO-1's gathers, in the first forward
  double gather_overlap = 0;  // ZeRO-3's gathers and reductions, in each layer
  // Tensor parallelism's collectives run in tp parts beside the products that
  // use them: one part is exposed.
  bool pipelines_tensor = false;
  // With ZeRO-2 and 3 gradients are reduced, and parameters gathered, once per
  // step: always, or in pipelines. Else once per microbatch.
  bool defers_always = false, defers_in_pipelines = false;
  double gathered = 2;     // layers that ZeRO-3 holds whole at once
  int gradient_bytes = 2;  // per gradient as it is reduced
  // Gradients of microbatches are added up by a kernel, by the product that
  // computes them, or after each microbatch's reduction.
  enum class Accumulation { kKernel, kProduct, kAfterReduction };
  Accumulation accumulation = Accumulation::kAfterReduction;
  // Full recomputation leaves out a layer's last product, whose result no
  // gradient needs.
  bool stops_early = false;
  // ZeRO-3 gathers and reduces each weight by itself and copies the parts of
  // all ranks one by one.
  bool by_weight = false;
  // Share of the products that selective recomputation repeats, with all
  // elementwise kernels; 0: it repeats attention's scores alone.
  double selective = 0;
  int state_bytes = 16;      // parameter, gradient and optimizer state of Adam
  int optimizer_bytes = 12;  // of these, what ZeRO-1 divides
  int divided_bytes = 0;     // copied of a rank's part of ZeRO-1's gradients
  int loss_bytes = 6;    // per logit: 16-bit logits, and their softmax in f32
  bool dropout = true;   // a GPT or BERT keeps dropout masks
  double libraries = 0;  // bytes of scratch memory that libraries hold
  bool zero_over_batch = false;  // ZeRO divides over dp, not over dp x cp
  bool scatters = false;  // between stages each of tp's ranks sends its part
};

// True if ZeRO-2 and 3 send once per step in a pipeline of `pp` stages. A rank
// then holds whole gradients and, in pipelines, ZeRO-3's whole parameters.
inline bool DefersZero(const Software& software, int pp) {
  return software.defers_always || (software.defers_in_pipelines && pp > 1);
}

// Partita's own programs.
const Software& OwnSoftware();

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_TRANSFORMER_SOFTWARE_H_
