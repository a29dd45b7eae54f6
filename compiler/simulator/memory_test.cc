#include "compiler/simulator/memory.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/program/test_pipeline_program.h"
#include "runtime/program/test_program.h"

namespace partita::simulator {
namespace {

using program::Frame;
using testing::ElementsAre;

TEST(MemoryTest, IsWhatAnEntryNames) {
  const program::PipelineProgram sample(/*batch=*/4, /*data_axis=*/1);
  const std::string bytes = sample.Parts().program;
  const program::Program& program = *program::GetProgram(bytes.data());
  const DeviceMemory first = MemoryOf(program, 0),
                     second = MemoryOf(program, 1);
  // u f32[6,5] and f f32[6,6]; w f32[5,7].
  EXPECT_EQ(first.parameters, (6 * 5 + 6 * 6) * 4);
  EXPECT_EQ(second.parameters, 5 * 7 * 4);
  EXPECT_EQ(first.states, 0);
  // The derived value f f counts once.
  EXPECT_EQ(first.derived, 6 * 6 * 4);
  EXPECT_EQ(second.derived, 0);
  EXPECT_GT(second.arena, 0);
  EXPECT_EQ(second.total(), second.fixed() + second.arena);
}

TEST(MemoryTest, StatesOnTheHostAreNoPartOfTheDevices) {
  program::ProgramT sample;
  for (const char* name : {"p", "p/m", "p/v"}) {
    sample.parameters.push_back(
        program::MakeSeeded(name, program::DType::f32, {4, 4}, "zeros", 0));
    if (sample.parameters.size() == 1) continue;
    sample.parameters.back()->kind = program::ParameterKind::state;
    sample.parameters.back()->host = name[2] == 'v';
  }
  sample.functions.push_back(program::MakeFunction("main", 3, 0, 0));
  program::AddEntry(sample, /*main=*/0, {0, 1, 2});
  const std::string bytes = program::SerializeProgram(sample);
  const DeviceMemory memory = MemoryOf(*program::GetProgram(bytes.data()), 0);
  EXPECT_EQ(memory.parameters, 64);
  EXPECT_EQ(memory.states, 64);
  EXPECT_EQ(memory.host, 64);
  EXPECT_EQ(memory.total(), 128);
}

TEST(MemoryTest, OfStatesInFilesTheHostHoldsTheBuffers) {
  program::ProgramT sample;
  for (const char* name : {"p", "p/m"})
    sample.parameters.push_back(
        program::MakeSeeded(name, program::DType::f32, {4, 4}, "zeros", 0));
  sample.parameters.back()->kind = program::ParameterKind::state;
  sample.parameters.back()->host = true;
  sample.functions.push_back(program::MakeFunction("main", 2, 0, 0));
  program::AddEntry(sample, /*main=*/0, {0, 1});
  sample.state_files = std::make_unique<program::StateFilesT>();
  sample.state_files->folder = "states";
  const auto memoryOf = [&] {
    const std::string bytes = program::SerializeProgram(sample);
    return MemoryOf(*program::GetProgram(bytes.data()), 0);
  };
  EXPECT_EQ(memoryOf().host, 64);  // without a table, all states
  sample.entries[0]->memory = std::make_unique<program::MemoryTableT>();
  sample.entries[0]->memory->host = 12288;
  sample.entries[0]->memory->files = 4096;
  EXPECT_EQ(memoryOf().host, 12288);
  EXPECT_EQ(memoryOf().files, 4096);
  EXPECT_EQ(memoryOf().total(), 64);
}

TEST(MemoryTest, GpusHoldWhatTheCompilerCountedBesides) {
  program::ProgramT sample;
  sample.functions.push_back(program::MakeFunction("main", 0, 0, 4096));
  program::AddEntry(sample, /*main=*/0, {});
  const auto reserved = [&](const char* target, int64_t activations,
                            int64_t scratch) {
    sample.target = target;
    sample.entries[0]->memory = std::make_unique<program::MemoryTableT>();
    sample.entries[0]->memory->activations = activations;
    sample.entries[0]->memory->scratch = scratch;
    // Host memory is not part of the total.
    sample.entries[0]->memory->host =
        sample.entries[0]->memory->most_gradients = 1 << 20;
    const std::string bytes = program::SerializeProgram(sample);
    const DeviceMemory memory = MemoryOf(*program::GetProgram(bytes.data()), 0);
    EXPECT_EQ(memory.total(), 4096 + memory.reserved);
    return memory.reserved;
  };
  EXPECT_EQ(reserved("cuda:sm_90", 4096, 904), 904);
  EXPECT_EQ(reserved("cpu", 4096, 904), 0);
  // The compiler's count is less than what the device holds.
  EXPECT_EQ(reserved("cuda:sm_90", 5, 0), 0);
  sample.entries[0]->memory = nullptr;
  const std::string bytes = program::SerializeProgram(sample);
  EXPECT_EQ(MemoryOf(*program::GetProgram(bytes.data()), 0).reserved, 0);
}

// A program whose main copies between ranges of the frame and calls a function.
std::string ProgramOf(
    std::vector<std::unique_ptr<program::InstructionT>> body) {
  program::ProgramT program;
  program.functions.push_back(program::MakeFunction("callee", 0, 0, 1000));
  program.functions.push_back(program::MakeFunction("main", 0, 0, 4096));
  program.functions.back()->body = std::move(body);
  program::AddEntry(program, /*main=*/1, {});
  return program::SerializeProgram(program);
}

TEST(MemoryTest, ValuesLiveFromTheirWriteToTheirLastRead) {
  std::vector<std::unique_ptr<program::InstructionT>> body;
  auto copy = [&](program::Buffer from, program::Buffer to) {
    body.push_back(program::MakeCopy(from, to));
  };
  const program::Buffer out = program::Argument(0, 64);
  copy(out, Frame(0, 64));             // a
  copy(Frame(0, 64), Frame(64, 128));  // b, from a
  copy(out, Frame(192, 256));          // c, which nobody reads
  copy(Frame(64, 64), out);            // half of b
  body.push_back(program::MakeCall(0, 1024, {Frame(0, 64)}, 0));
  copy(out, Frame(0, 64));           // overwrites a
  copy(Frame(0, 64), Frame(0, 64));  // in place
  const std::string bytes = ProgramOf(std::move(body));
  EXPECT_THAT(
      AliveBytes(*program::GetProgram(bytes.data()), 0),
      ElementsAre(64, 64 + 128, 64 + 128 + 256, 64 + 128, 64 + 1000, 64, 64));
}

TEST(MemoryTest, WhatIsUnderWayStaysUntilItIsAwaited) {
  std::vector<std::unique_ptr<program::InstructionT>> body;
  const program::Buffer out = program::Argument(0, 64);
  body.push_back(program::MakeCopy(out, Frame(0, 64)));
  program::CollectiveT sum;
  sum.token = 1;
  body.push_back(
      program::MakeCollective(sum, Frame(0, 64), Frame(64, 64), "sum"));
  body.push_back(program::MakeCopy(out, Frame(128, 64)));
  body.push_back(program::MakeAwait(1));
  body.push_back(program::MakeCopy(Frame(64, 64), out));
  const std::string bytes = ProgramOf(std::move(body));
  EXPECT_THAT(AliveBytes(*program::GetProgram(bytes.data()), 0),
              ElementsAre(64, 128, 192, 128, 64));
}

}  // namespace
}  // namespace partita::simulator
