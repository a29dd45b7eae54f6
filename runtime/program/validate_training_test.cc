// Breaks every rule about roles and updates once.
#include <functional>
#include <string>

#include "gtest/gtest.h"
#include "runtime/program/test_program.h"
#include "runtime/program/test_training_program.h"
#include "runtime/program/validate.h"

namespace partita::program {
namespace {

// The message after `change` to the training program.
std::string AfterTraining(const std::function<void(ProgramT&)>& change) {
  TrainingProgram sample(4, 2, 1);
  change(sample.program);
  const std::string bytes = SerializeProgram(sample.program);
  const absl::Status status = ValidateProgram(
      *GetProgram(bytes.data()), sample.data.size(), /*has_code=*/false);
  return std::string(status.message());
}

TEST(ValidateTrainingTest, Roles) {  // V11
  EXPECT_EQ(AfterTraining([](ProgramT&) {}), "");
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.inputs[2]->role = PortRole::step; }),
      "input 'lr': the role step is for one whole i64, found f32[]");
  EXPECT_EQ(AfterTraining([](ProgramT& p) {
              p.inputs[3]->role = PortRole::learning_rate;
            }),
            "input 'step': it is the second one with the role learning_rate");
  EXPECT_EQ(AfterTraining([](ProgramT& p) { p.inputs[2]->type->shape = {2}; }),
            "input 'lr': the role learning_rate is for one whole f32, found "
            "f32[2]");
  EXPECT_EQ(AfterTraining([](ProgramT& p) {
              p.inputs[2]->type->shape = {1};
              p.inputs[2]->shard = MakeShard({2}, {{WholeAxis(0, 2)}});
            }),
            "input 'lr': the role learning_rate is for one whole f32, found "
            "f32[1]");
  EXPECT_EQ(AfterTraining([](ProgramT& p) {
              p.inputs[0]->role = static_cast<PortRole>(77);
            }),
            "input 'x': unknown role 77");
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.outputs[1]->role = PortRole::step; }),
      "output 'at': outputs have no role");
}

TEST(ValidateTrainingTest, Updates) {  // V12, V8
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.entries[0]->main_updates = {0, 3}; }),
      "update 1: parameter 3 of 3");
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.entries[0]->main_updates = {-1, 0}; }),
      "update 0: parameter -1 of 3");
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.entries[0]->main_updates = {0, 0}; }),
      "update of 'w': it comes twice");
  EXPECT_EQ(AfterTraining([](ProgramT& p) {
              p.parameters[1]->kind = ParameterKind::constant;
            }),
            "update of 'count': it is a constant");
  EXPECT_EQ(AfterTraining([](ProgramT& p) {
              p.parameters[1]->type = MakeType(DType::i64, {1});
              p.parameters[1]->source.Set(CoordinateSourceT());
            }),
            "update of 'count': it is a coordinate");
  EXPECT_EQ(AfterTraining([](ProgramT& p) {
              p.functions.push_back(MakeFunction("init", 1, 0, 0));
              p.entries[0]->init = 1;
              p.entries[0]->init_parameters = {0};
            }),
            "update of 'w': derived values are made from it once");
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.entries[0]->main_updates = {0}; }),
      "main: expected 10 arguments, 3 of them results, found 11, 4 of "
      "them results");
  EXPECT_EQ(
      AfterTraining([](ProgramT& p) { p.entries[0]->main_updates = {1, 0}; }),
      "main: argument 9 has 4 bytes, but 168 are used");
}

}  // namespace
}  // namespace partita::program
