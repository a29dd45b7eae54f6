#include "runtime/program/labels.h"

#include <gtest/gtest.h>

#include "runtime/program/test_program.h"

namespace partita::program {
namespace {

const Instruction& Packed(flatbuffers::FlatBufferBuilder& builder,
                          const std::string& layer) {
  const auto instruction = MakeLaunch({}, {}, 0);
  instruction->layer = layer;
  builder.Finish(Instruction::Pack(builder, instruction.get()));
  return *flatbuffers::GetRoot<Instruction>(builder.GetBufferPointer());
}

std::string PathOf(const std::string& call, const std::string& layer) {
  flatbuffers::FlatBufferBuilder builder;
  return LayerPath(call, Packed(builder, layer));
}

TEST(LabelsTest, PathsContinueThoseOfCalls) {
  EXPECT_EQ(PathOf("h.3", ".mlp.up"), "h.3.mlp.up");
  EXPECT_EQ(PathOf("h.3", "."), "h.3");
  EXPECT_EQ(PathOf("h.3", "ln_f"), "ln_f");
  EXPECT_EQ(PathOf("", ".mlp"), "mlp");
  EXPECT_EQ(PathOf("", "."), "");
  EXPECT_EQ(PathOf("h.3", ""), "");
}

TEST(LabelsTest, KernelsWithoutLabelHaveTheirSymbol) {
  ProgramT program;
  program.kernels.push_back(MakeKernel("kernel_0"));
  program.kernels.push_back(MakeKernel("kernel_1"));
  program.kernels[1]->label = "add[h.*]";
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Program::Pack(builder, &program));
  const Program& packed =
      *flatbuffers::GetRoot<Program>(builder.GetBufferPointer());
  for (const auto& [kernel, label] :
       {std::pair(0, "kernel_0"), std::pair(1, "add[h.*]")}) {
    LaunchT launch;
    launch.kernel = kernel;
    flatbuffers::FlatBufferBuilder own;
    own.Finish(Launch::Pack(own, &launch));
    EXPECT_EQ(KernelLabel(packed,
                          *flatbuffers::GetRoot<Launch>(own.GetBufferPointer()))
                  .str(),
              label);
  }
}

}  // namespace
}  // namespace partita::program
