#include "runtime/checkpoint/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_testing.h"
#include "runtime/checkpoint/folder.h"

namespace partita::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class WriterTest : public testing::Test {
 protected:
  WriterTest()
      : folder_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
  }

  WriterOptions Options() const {
    WriterOptions options;
    options.folder = folder_;
    options.shard_bytes = 1000;
    return options;
  }

  static std::unique_ptr<Writer> Open(const WriterOptions& options) {
    auto writer = Writer::Open(options);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return std::move(*writer);
  }

  // Saves a step and waits; returns the status of writing.
  static absl::Status Save(Writer& writer, int64_t step, int64_t scale = 1) {
    const absl::Status status =
        writer.Save(TestState(step), TestEntries(step, scale));
    if (!status.ok()) return status;
    writer.Finish();
    const std::vector<SaveResult> results = writer.TakeResults();
    EXPECT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].step, step);
    return results[0].status;
  }

  int64_t LatestStep(std::vector<std::string>* skipped = nullptr) const {
    const auto latest = OpenLatest(folder_, Verify::kChecksums, skipped);
    EXPECT_TRUE(latest.ok()) << latest.status();
    if (!latest.ok()) return -1;
    EXPECT_EQ(Difference(*latest), "");
    return latest->state().step;
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string folder_;
};

TEST_F(WriterTest, WhatIsSavedIsRead) {
  auto writer = Open(Options());
  ASSERT_TRUE(Save(*writer, 5).ok());
  EXPECT_EQ(LatestStep(), 5);
  const auto checkpoint =
      Checkpoint::Open(StepPath(folder_, 5), Verify::kSizes);
  ASSERT_TRUE(checkpoint.ok());
  std::vector<base::TensorSpec> specs;
  for (const Entry& entry : TestEntries(5)) specs.push_back(entry.spec);
  EXPECT_TRUE(checkpoint->Match(specs).ok());
  specs[0].shape = {33, 7};
  specs[1].name = "other";
  EXPECT_THAT(std::string(checkpoint->Match(specs).message()),
              HasSubstr("'embed.weight': expected f32[33,7], found f32[7,33]; "
                        "'other': expected i1[3], found none; 'flag': expected "
                        "none, found i1[3]"));
  // These tensors may differ.
  EXPECT_TRUE(checkpoint
                  ->Match(specs,
                          [](const std::string& name) {
                            return name == "embed.weight" || name == "other" ||
                                   name == "flag";
                          })
                  .ok());
  EXPECT_FALSE(checkpoint->Matches(specs[0]));
  EXPECT_TRUE(checkpoint->Matches(specs[2]));
}

TEST_F(WriterTest, AFolderForSnapshotsThatIsMissingIsNamed) {
  WriterOptions options = Options();
  options.snapshot_folder = folder_ + "/none";
  const auto writer = Open(options);
  const absl::Status status = Save(*writer, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            absl::StrCat("checkpoint: ", folder_,
                         "/none: cannot create a file for a snapshot, so "
                         "nothing was written: No such file or directory"));
}

TEST_F(WriterTest, TheOneBeforeStaysUntilTheNewestIsConfirmed) {
  WriterOptions options = Options();
  options.keep = 1;
  options.until_confirmed = true;
  auto writer = Open(options);
  ASSERT_TRUE(Save(*writer, 5).ok());
  ASSERT_TRUE(Save(*writer, 6).ok());
  EXPECT_TRUE(std::filesystem::exists(StepPath(folder_, 5)));
  writer->Confirm();
  EXPECT_FALSE(std::filesystem::exists(StepPath(folder_, 5)));
  // Confirm before it is written.
  ASSERT_TRUE(writer->Save(TestState(7), TestEntries(7)).ok());
  writer->Confirm();
  writer->Finish();
  EXPECT_FALSE(std::filesystem::exists(StepPath(folder_, 6)));
  EXPECT_EQ(LatestStep(), 7);
}

TEST_F(WriterTest, SaveTakesASnapshot) {
  auto writer = Open(Options());
  float value = 1;
  const std::vector<Entry> entries = {WholeEntry(
      {"x", base::DType::kF32, {}, 4}, Group::kModel, [&](char* whole) {
        std::memcpy(whole, &value, sizeof(value));
        return absl::OkStatus();
      })};
  for (int64_t step = 1; step <= 20; ++step) {
    value = static_cast<float>(step);
    ASSERT_TRUE(writer->Save(TestState(step), entries).ok());
    value = -1;
  }
  writer->Finish();
  EXPECT_EQ(writer->TakeResults().size(), 20u);
  const auto latest = OpenLatest(folder_, Verify::kChecksums, nullptr);
  ASSERT_TRUE(latest.ok()) << latest.status();
  float found = 0;
  std::memcpy(&found, latest->Find("x")->data, sizeof(found));
  EXPECT_EQ(found, 20);
}

TEST_F(WriterTest, PartsAreReadAsOneTensor) {
  std::vector<float> values(30);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Entry experts =
      WholeEntry({"experts.*.up", base::DType::kF32, {3, 2, 5}, 120},
                 Group::kModel, [&](char* whole) {
                   std::memcpy(whole, values.data(), 120);
                   return absl::OkStatus();
                 });
  experts.in_parts = true;
  auto writer = Open(Options());
  ASSERT_TRUE(writer->Save(TestState(1), {experts}).ok());
  writer->Finish();
  const auto latest = OpenLatest(folder_, Verify::kChecksums, nullptr);
  ASSERT_TRUE(latest.ok()) << latest.status();
  const auto whole = latest->FindParts(experts.spec);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(whole->shape, ElementsAre(3, 2, 5));
  EXPECT_EQ(std::memcmp(whole->data, values.data(), 120), 0);
  const auto part = latest->Find("experts.2.up");
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_THAT(part->shape, ElementsAre(2, 5));
  EXPECT_EQ(std::memcmp(part->data, &values[20], 40), 0);
  base::TensorSpec other = experts.spec;
  other.shape = {3, 5, 2};
  EXPECT_THAT(std::string(latest->FindParts(other).status().message()),
              HasSubstr("expected 'experts.0.up' as f32[5,2] right behind the "
                        "part before it, found it elsewhere"));
}

TEST_F(WriterTest, KeepsTheNewest) {
  WriterOptions options = Options();
  options.keep = 2;
  auto writer = Open(options);
  for (int64_t step : {10, 20, 30, 40}) ASSERT_TRUE(Save(*writer, step).ok());
  EXPECT_THAT(Names(), ElementsAre(".lock", "step-00000030", "step-00000040"));
}

TEST_F(WriterTest, ASecondSaveOfAStepReplacesTheFirst) {
  auto writer = Open(Options());
  ASSERT_TRUE(Save(*writer, 10, 1).ok());
  ASSERT_TRUE(Save(*writer, 10, 2).ok());
  EXPECT_THAT(Names(), ElementsAre(".lock", "step-00000010"));
  const auto latest = OpenLatest(folder_, Verify::kChecksums, nullptr);
  ASSERT_TRUE(latest.ok()) << latest.status();
  EXPECT_THAT(latest->Find("embed.weight")->shape, ElementsAre(14, 33));
}

TEST_F(WriterTest, CompanionsLieBesideTheWeights) {
  std::filesystem::create_directories(folder_);
  const std::string config = folder_ + "/config.json";
  std::ofstream(config) << "{\"model_type\": \"gpt2\"}";
  WriterOptions options = Options();
  options.companions = {config};
  auto writer = Open(options);
  ASSERT_TRUE(Save(*writer, 1).ok());
  std::string line;
  std::getline(std::ifstream(StepPath(folder_, 1) + "/config.json"), line);
  EXPECT_EQ(line, "{\"model_type\": \"gpt2\"}");
  options.companions = {folder_ + "/tokenizer.json"};
  writer.reset();
  options.start_step = 1;
  EXPECT_TRUE(absl::IsNotFound(Writer::Open(options).status()));
}

// Rows of an uneven division over three ranks. The last rank also holds a copy
// of the first one's rows.
TEST_F(WriterTest, RanksWriteTheirParts) {
  constexpr int kRanks = 3;
  const auto save = [&](int rank, int64_t step) {
    WriterOptions options = Options();
    options.rank = rank;
    options.ranks = kRanks;
    options.run = "run";
    auto writer = Open(options);
    std::vector<Entry> entries;
    for (const Entry& whole : TestEntries(step)) {
      Entry entry = whole;
      if (entry.spec.shape.size() == 2 && entry.spec.shape[0] > 0) {
        // Each rank holds a block of the columns.
        const int64_t rows = entry.spec.shape[0];
        const int64_t columns = entry.spec.shape[1];
        const int64_t block = (columns + kRanks - 1) / kRanks;
        const int64_t first = rank * block;
        const int64_t count = std::min(block, columns - first);
        const int64_t size = base::SizeOf(entry.spec.dtype);
        entry.runs.clear();
        for (int64_t row = 0; row < rows; ++row)
          entry.runs.push_back({row * columns + first, row * block, count});
        entry.block_bytes = rows * block * size;
        entry.read = [=, spec = entry.spec](char* target) {
          const std::string bytes = Content(spec, step);
          for (int64_t row = 0; row < rows; ++row)
            std::memcpy(target + row * block * size,
                        bytes.data() + (row * columns + first) * size,
                        static_cast<size_t>(count * size));
          return absl::OkStatus();
        };
      } else if (rank != 0) {
        entry.runs.clear();
        entry.read = nullptr;
      }
      entries.push_back(std::move(entry));
    }
    EXPECT_TRUE(writer->Save(TestState(step), entries).ok());
    writer->Finish();
    for (const SaveResult& result : writer->TakeResults())
      EXPECT_TRUE(result.status.ok()) << rank << " " << result.status;
  };
  std::vector<std::thread> threads;
  for (int rank = kRanks; rank-- > 0;)
    threads.emplace_back([&, rank] { save(rank, 12); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(LatestStep(), 12);
  EXPECT_THAT(Names(), ElementsAre(".lock", "step-00000012"));
}

TEST_F(WriterTest, ARankThatFailsFailsTheCheckpoint) {
  WriterOptions options = Options();
  options.ranks = 2;
  options.run = "run";
  auto first = Open(options);
  options.rank = 1;
  auto second = Open(options);
  std::vector<Entry> entries = TestEntries(1);
  ASSERT_TRUE(first->Save(TestState(1), entries).ok());
  entries[0].read = [](char*) { return absl::UnavailableError("device lost"); };
  EXPECT_EQ(second->Save(TestState(1), entries).message(), "device lost");
  first->Finish();
  EXPECT_THAT(std::string(first->TakeResults()[0].status.message()),
              HasSubstr("rank 1 could not write its part: device lost"));
  EXPECT_THAT(Names(), ElementsAre(".lock"));
}

TEST_F(WriterTest, ARankThatIsGoneIsNotWaitedForForever) {
  WriterOptions options = Options();
  options.ranks = 2;
  options.run = "run";
  options.rank_timeout = 0.05;
  auto writer = Open(options);
  const absl::Status status = Save(*writer, 3);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("expected rank 1 to write its part within 0.05 s"));
  EXPECT_THAT(Names(), ElementsAre(".lock"));
}

TEST_F(WriterTest, AFullDiskIsReportedAndLeavesThePreviousCheckpoint) {
  std::signal(SIGXFSZ, SIG_IGN);
  auto writer = Open(Options());
  ASSERT_TRUE(Save(*writer, 1).ok());
  struct rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  State large = TestState(2);
  large.extra["text"] = std::string(5000, 'x');
  // Each limit fails in a different file, the last in state.json.
  for (rlim_t limit : {100, 1500, 3000}) {
    const struct rlimit small = {limit, old_limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    ASSERT_TRUE(writer->Save(large, TestEntries(2)).ok());
    writer->Finish();
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
    const absl::Status status = writer->TakeResults()[0].status;
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << limit << " " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("File too large"));
    EXPECT_THAT(Names(), ElementsAre(".lock", "step-00000001"));
    EXPECT_EQ(LatestStep(), 1);
  }
  ASSERT_TRUE(Save(*writer, 2).ok());
  EXPECT_EQ(LatestStep(), 2);
}

TEST_F(WriterTest, ErrorsOfASnapshotWriteNothing) {
  auto writer = Open(Options());
  std::vector<Entry> entries = TestEntries(1);
  entries[1].read = [](char*) { return absl::UnavailableError("device lost"); };
  EXPECT_EQ(writer->Save(TestState(1), entries).message(), "device lost");
  EXPECT_THAT(writer->TakeResults(), IsEmpty());
  EXPECT_THAT(Names(), ElementsAre(".lock"));
}

TEST_F(WriterTest, OneProcessWritesAtATime) {
  auto writer = Open(Options());
  EXPECT_THAT(std::string(Writer::Open(Options()).status().message()),
              HasSubstr("another process writes checkpoints here; stop it or"));
  writer.reset();
  EXPECT_TRUE(Writer::Open(Options()).ok());
}

TEST_F(WriterTest, AnotherRunsCheckpointsAreNotMixedWithOurs) {
  {
    auto writer = Open(Options());
    ASSERT_TRUE(Save(*writer, 50).ok());
  }
  EXPECT_THAT(std::string(Writer::Open(Options()).status().message()),
              HasSubstr("expected no checkpoint beyond step 0, where this run "
                        "begins, found one of step 50; resume from it"));
  WriterOptions options = Options();
  options.start_step = 50;
  EXPECT_TRUE(Writer::Open(options).ok());
}

// A checkpoint is damaged in each way that a crash or a disk can cause.
class DamageTest : public WriterTest,
                   public testing::WithParamInterface<int> {};

TEST_P(DamageTest, ThePreviousCheckpointIsUsedAndItIsSaid) {
  std::filesystem::remove_all(folder_);
  {
    auto writer = Open(Options());
    ASSERT_TRUE(Save(*writer, 1).ok());
    ASSERT_TRUE(Save(*writer, 2).ok());
  }
  const std::string path = StepPath(folder_, 2);
  const std::string tensors = path + "/model-00001-of-00002.safetensors";
  std::string reason;
  switch (GetParam()) {
    case 0:
      std::filesystem::remove(path + "/state.json");
      reason = "state.json: cannot open the file: No such file";
      break;
    case 1:
      std::filesystem::resize_file(path + "/state.json", 100);
      reason = "state.json: the state of a checkpoint is damaged";
      break;
    case 2:
      std::filesystem::remove(tensors);
      reason = "model-00001-of-00002.safetensors: cannot open the file";
      break;
    case 3:
      std::filesystem::resize_file(tensors, 500);
      reason = "bytes, found 500";
      break;
    default: {
      std::fstream file(tensors,
                        std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(-7, std::ios::end);
      const int byte = file.get();
      file.seekp(-7, std::ios::end);
      file.put(static_cast<char>(byte ^ 4));
      reason = "expected the checksum";
    }
  }
  std::vector<std::string> skipped;
  EXPECT_EQ(LatestStep(&skipped), 1);
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_THAT(skipped[0],
              HasSubstr("the checkpoint of step 2 is not whole and is left "
                        "out: "));
  EXPECT_THAT(skipped[0], HasSubstr(reason));
  // A resumed run renames it, and it does not count as one of two.
  WriterOptions options = Options();
  options.start_step = 1;
  options.keep = 2;
  auto writer = Open(options);
  ASSERT_TRUE(Save(*writer, 2).ok());
  EXPECT_THAT(Names(), ElementsAre(".lock", "step-00000001", "step-00000002",
                                   "step-00000002.damaged"));
  EXPECT_EQ(LatestStep(), 2);
}

INSTANTIATE_TEST_SUITE_P(Ways, DamageTest, testing::Range(0, 5));

TEST_F(WriterTest, SaysWhenThereIsNoCheckpoint) {
  EXPECT_TRUE(absl::IsNotFound(
      OpenLatest(folder_, Verify::kChecksums, nullptr).status()));
  {
    auto writer = Open(Options());
    ASSERT_TRUE(Save(*writer, 1).ok());
  }
  std::filesystem::remove(StepPath(folder_, 1) + "/state.json");
  const auto latest = OpenLatest(folder_, Verify::kChecksums, nullptr);
  EXPECT_TRUE(absl::IsDataLoss(latest.status()));
  EXPECT_THAT(std::string(latest.status().message()),
              HasSubstr("expected a whole checkpoint, found none among 1"));
}

TEST_F(WriterTest, OtherNamesInTheFolderAreLeftAlone) {
  for (const char* name : {"step-1", "step-00000001x", "step-", "steps",
                           "step-99999999999999999999"})
    std::filesystem::create_directories(absl::StrCat(folder_, "/", name));
  std::filesystem::create_directories(PartialPath(folder_, 7, "a-killed-run"));
  const auto steps = ListSteps(folder_);
  ASSERT_TRUE(steps.ok());
  EXPECT_THAT(*steps, IsEmpty());
  auto writer = Open(Options());
  ASSERT_TRUE(Save(*writer, 3).ok());
  EXPECT_EQ(Names().size(), 7u);  // includes the lock and this test's file
}

}  // namespace
}  // namespace partita::checkpoint
