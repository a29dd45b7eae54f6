// Adapts a session to the training loop.
#ifndef PARTITA_RUNTIME_SESSION_SESSION_STEPPER_H_
#define PARTITA_RUNTIME_SESSION_SESSION_STEPPER_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/session/session.h"
#include "runtime/train/trainer.h"

namespace partita::session {

class SessionStepper : public train::Stepper {
 public:
  // The session must outlive this object. `traced`: non-finite numbers make the
  // step fail with an error that says which operation made them. `say` reports
  // to the user from any process.
  SessionStepper(Session& session, bool traced,
                 std::function<void(const std::string&)> say)
      : session_(session), traced_(traced), say_(std::move(say)) {}

  const std::vector<base::TensorSpec>& inputs() const override {
    return session_.inputs();
  }
  const std::vector<base::TensorSpec>& outputs() const override {
    return session_.outputs();
  }
  program::PortRole RoleOf(size_t input) const override;
  absl::Status Run(const std::vector<base::ConstTensor>& inputs,
                   const std::vector<base::MutableTensor>& outputs) override;
  bool LooksAhead() const override { return session_.LooksAhead(); }
  absl::Status Prefetch(const std::vector<base::ConstTensor>& inputs) override {
    return session_.Prefetch(inputs);
  }
  bool IsMain() const override { return session_.IsMain(); }
  absl::Status Agree(const absl::Status& status) override {
    return session_.Agree(status);
  }
  absl::Status Max(std::vector<double>& values) override {
    return session_.Max(values);
  }

 private:
  void SayOnceIfNotAhead();

  Session& session_;
  const bool traced_;
  const std::function<void(const std::string&)> say_;
  bool said_not_ahead_ = false;
};

// FailedPrecondition unless the program is a training step.
absl::Status CheckTrains(const Session& session);

// Number of steps between a step and its loss: 0, except in pipelines without a
// flush.
int64_t LateLosses(const program::Program& program);

}  // namespace partita::session

#endif  // PARTITA_RUNTIME_SESSION_SESSION_STEPPER_H_
