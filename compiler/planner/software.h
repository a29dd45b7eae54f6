// What the software that runs a step does, beyond what the division says: the
// published rows were run by others than ours.
#ifndef PARTITA_COMPILER_PLANNER_SOFTWARE_H_
#define PARTITA_COMPILER_PLANNER_SOFTWARE_H_

#include <string>
#include <vector>

namespace partita::planner {

struct Software {
  std::string name;
  // Partita's own programs: estimates of them choose what is compiled, and are
  // shown to nobody.
  bool own = false;
  bool fused_attention = true;  // the L x L matrix never reaches memory
  double products =
      1;  // of the device's rate, by choice of kernels and layouts
  double attention = 1;         // of the device's rate, fused attention
  double dispatch = 0;          // s that the host takes for a layer's forward
  double step = 0;              // s of a step that belong to no layer
  double tensor_overlap = 0;    // part of tp's collectives that products hide
  double gradient_overlap = 0;  // part of dp's that the last backward hides
  double gather = 1;  // of the bandwidth, ZeRO-3's gathers and reductions
  double gather_overlap = 0;  // part of those that layers hide
  double gathered = 2;        // layers that ZeRO-3 holds whole at once
  int gradient_bytes = 2;     // of a gradient as it is reduced
  int state_bytes = 16;       // parameter, gradient and optimizer state of Adam
  int optimizer_bytes = 12;   // of these, what ZeRO-1 divides
  bool dropout = true;        // of a GPT or BERT: masks are kept
  double libraries = 0;       // bytes of scratch memory that libraries hold
  bool zero_over_batch = false;  // ZeRO divides over dp, not over dp x cp
  bool blocking = false;         // a rank computes nothing while it sends
  bool scatters = false;  // between stages each of tp's ranks sends its part
};

// By the words of a `framework` column ("Megatron-LM v1.x", "Composer+PyTorch
// FSDP" ...), in any case; our own where there are none; null where none is
// known.
const Software* FindSoftware(const std::string& framework);
// The words of those there are, for refusals.
std::vector<std::string> FrameworkWords();
// Of words that are known.
const Software& SoftwareOf(const std::string& framework);
// For those who fit: the table itself.
std::vector<Software>& SoftwareTable();

}  // namespace partita::planner

#endif  // PARTITA_COMPILER_PLANNER_SOFTWARE_H_
