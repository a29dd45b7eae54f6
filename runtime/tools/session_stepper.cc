// A step, and what people hear of it.
#include "runtime/tools/session_stepper.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace partita::tools {

program::PortRole SessionStepper::RoleOf(size_t input) const {
  return session_.program().inputs()->Get(static_cast<unsigned>(input))->role();
}

absl::Status SessionStepper::Run(
    const std::vector<base::ConstTensor>& inputs,
    const std::vector<base::MutableTensor>& outputs) {
  PARTITA_RETURN_IF_ERROR(session_.Run(inputs, outputs));
  SayOnceIfNotAhead();
  PARTITA_RETURN_IF_ERROR(session_.GatherNumbers(outputs));
  return traced_ ? session_.CheckFinite() : absl::OkStatus();
}

void SessionStepper::SayOnceIfNotAhead() {
  if (said_not_ahead_) return;
  const std::string found = session_.NotAhead();
  if (found.empty()) return;
  said_not_ahead_ = true;
  say_(absl::StrCat("batches are not uploaded while the step before runs, ",
                    "since there is too little memory for them: ", found));
}

}  // namespace partita::tools
