// Runs a step, and reports to the user.
#include "runtime/session/rank_stepper.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::session {

program::PortRole RankStepper::RoleOf(size_t input) const {
  return ranks_.program().inputs()->Get(static_cast<unsigned>(input))->role();
}

absl::Status RankStepper::Run(const std::vector<base::ConstTensor>& inputs,
                              const std::vector<base::MutableTensor>& outputs) {
  PARTITA_RETURN_IF_ERROR(ranks_.Run(inputs, outputs));
  SayOnceIfNotAhead();
  PARTITA_RETURN_IF_ERROR(ranks_.GatherNumbers(outputs));
  return traced_ ? ranks_.CheckFinite() : absl::OkStatus();
}

void RankStepper::SayOnceIfNotAhead() {
  if (said_not_ahead_) return;
  const std::string found = ranks_.NotAhead();
  if (found.empty()) return;
  said_not_ahead_ = true;
  say_(absl::StrCat("batches are not uploaded ahead of their step, because ",
                    "there is too little memory for them: ", found));
}

// Without a flush, the last microbatch's forward pass is late by as many
// microbatches as there are stages before the last. In each row of the
// schedule, the field `|` precedes the cells that every step repeats.
int64_t LateLosses(const program::Program& program) {
  if (program.schedule() == nullptr) return 0;
  int64_t last_stage = 0, forwards = 0;
  bool repeats = false;
  for (const char* at = program.schedule()->c_str(); *at != 0; ++at) {
    if (*at == '\n') repeats = false;
    if (*at == '|') repeats = true;
    if (*at != 'F') continue;
    // The table has not been validated.
    const int64_t stage = std::strtoll(at + 1, nullptr, 10);
    last_stage = std::clamp<int64_t>(stage, last_stage, 1 << 20);
    if (repeats) ++forwards;
  }
  if (forwards == 0) return 0;
  const int64_t microbatches =
      std::max<int64_t>(forwards / (last_stage + 1), 1);
  return (microbatches - 1 + last_stage) / microbatches;
}

absl::Status CheckTrains(const executor::RankGroup& ranks) {
  for (const executor::ParameterSpec& parameter : ranks.parameters())
    if (absl::StartsWith(parameter.whole.name, "zero_one_adam/"))
      return absl::FailedPreconditionError(
          "expected a whole training step, found one of three kinds of steps "
          "of 0/1 Adam; train with partita train and the folder that holds "
          "them");
  for (const executor::ParameterSpec& parameter : ranks.parameters())
    if (parameter.updated) return train::FindLoss(ranks.outputs()).status();
  return absl::FailedPreconditionError(
      "expected a training step, found a program that updates no parameter; "
      "compile the model with --train");
}

}  // namespace partita::session
