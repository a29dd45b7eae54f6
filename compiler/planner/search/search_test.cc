#include "compiler/planner/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "compiler/planner/published/frameworks.h"
#include "compiler/planner/search/candidates.h"
#include "compiler/planner/transformer/test_models.h"

namespace partita::planner {
namespace {

using ::testing::HasSubstr;

// With the sizes of GPT-2.
Architecture Gpt2(int64_t layers, int64_t hidden, int64_t heads) {
  Architecture a = Gpt(layers, hidden, heads);
  a.seq = 1024;
  a.vocab = 50257;
  return a;
}

Request Ask(const Architecture& architecture, const std::string& cluster,
            int64_t batch) {
  Request request;
  request.architecture = architecture;
  request.cluster = *BuiltInCluster(cluster);
  request.batch = batch;
  return request;
}

// The shortest step of all divisions, found by trying all sizes up to the
// number of devices. Infinite if nothing fits.
double BruteForce(const Request& request) {
  const Architecture& a = request.architecture;
  const int devices = request.cluster.devices;
  Cluster cluster = request.cluster;
  cluster.device.memory = request.memory;
  cluster.device.context = 0;
  double best = std::numeric_limits<double>::infinity();
  Division d;
  d.devices = devices;
  d.batch = request.batch;
  d.precision = request.precision;
  const auto judge = [&] {
    for (int states = 0; states < 8; ++states) {
      d.zero = states / 2;
      d.offload = states % 2;
      if (request.fixed.zero && *request.fixed.zero != d.zero) continue;
      if (d.zero > 0 && d.dp == 1) continue;
      const auto p = Evaluate(a, d, cluster, *request.software);
      if (p.ok() && p->fits) best = std::min(best, p->step);
    }
  };
  for (d.tp = 1; d.tp <= devices; ++d.tp)
    for (d.pp = 1; d.pp <= devices; ++d.pp)
      for (d.dp = 1; d.dp <= devices; ++d.dp)
        for (d.cp = 1; d.cp <= devices; ++d.cp) {
          if (d.tp * d.pp * d.dp * d.cp != devices) continue;
          for (PipelineSchedule schedule : request.fixed.schedules)
            for (d.vpp = 1; d.vpp <= 6; ++d.vpp)
              for (d.microbatch = 1; d.microbatch <= d.batch; ++d.microbatch)
                for (bool sp : {false, true}) {
                  if (d.pp == 1 && d.vpp > 1) continue;
                  if (d.tp == 1 && sp) continue;
                  if (d.tp > 1 && sp != *request.fixed.sequence_parallel)
                    continue;
                  d.schedule = d.pp == 1 ? PipelineSchedule::k1F1B : schedule;
                  d.sequence_parallel = sp;
                  d.recompute = *request.fixed.recompute;
                  judge();
                }
        }
  return best;
}

// A small problem. Some have tight memory.
Request RandomRequest(std::mt19937& random) {
  const auto one_of = [&](std::vector<int64_t> values) {
    return values[random() % values.size()];
  };
  Request request = Ask(Gpt2(one_of({1, 2, 3, 4, 5, 6}),
                             one_of({256, 1024, 4096}), one_of({1, 2, 4})),
                        std::to_string(one_of({1, 2, 3, 4, 6, 8})) + "x " +
                            (random() % 2 ? "a100-80-sxm" : "v100-32-sxm2"),
                        one_of({1, 2, 4, 6, 8, 12}));
  request.precision = core::Precision::kF16;
  request.architecture.seq = one_of({63, 256, 1000});
  request.architecture.vocab = one_of({100, 5000, 50000});
  request.fixed.sequence_parallel = random() % 2;
  request.fixed.recompute =
      random() % 2 ? Recomputation::kNone : Recomputation::kFull;
  if (random() % 3 > 0) request.fixed.zero = one_of({0, 1});
  if (random() % 2) request.software = &SoftwareOf("Megatron-LM");
  request.fixed.schedules = {random() % 2   ? PipelineSchedule::k1F1B
                             : random() % 2 ? PipelineSchedule::kZbH1
                                            : PipelineSchedule::kZbV};
  // A fraction of the memory that one device would need.
  Division one;
  one.batch = request.batch;
  request.memory =
      EvaluateMemory(request.architecture, one, *request.software).total() *
      double(one_of({15, 30, 50, 80, 1000})) / 100;
  return request;
}

TEST(Search, IsExactOfSmallProblems) {
  std::mt19937 random(7);
  int found = 0, tight = 0;
  for (int i = 0; i < 200; ++i) {
    const Request request = RandomRequest(random);
    const double best = BruteForce(request);
    const absl::StatusOr<SearchResult> result = Search(request);
    if (best == std::numeric_limits<double>::infinity()) {
      EXPECT_FALSE(result.ok()) << i;
      ++tight;
      continue;
    }
    ASSERT_TRUE(result.ok()) << i << ": " << result.status();
    const Choice& choice = result->choices.front();
    double least = choice.prediction.step;
    for (const Choice& other : result->choices)
      least = std::min(least, other.prediction.step);
    EXPECT_NEAR(least, best, 1e-9 * best)
        << i << ": " << Describe(choice.division);
    // A smaller cp may win although it is up to 0.1 % slower.
    EXPECT_LE(choice.prediction.step, 1.001 * best);
    EXPECT_LE(result->gap, 0.001) << i;
    ++found;
  }
  EXPECT_GE(found, 100);
  EXPECT_GE(tight, 10);
}

// The required speed, on one core of a machine that is also busy otherwise.
TEST(Search, IsQuickOnManyDevices) {
  Architecture gpt3 = Gpt2(96, 12288, 96), trillion = Gpt2(128, 25600, 160);
  gpt3.seq = trillion.seq = 2048;
  for (const Request& request :
       {Ask(Gpt2(48, 1600, 25), "64x a100-80-sxm", 512),
        Ask(gpt3, "1536x a100-80-sxm", 1536),
        Ask(trillion, "3072x a100-80-sxm", 3072)}) {
    const absl::StatusOr<SearchResult> result = Search(request);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_LT(result->gap, 0.06);
    EXPECT_LT(result->evaluated, 4000);
    ASSERT_EQ(result->choices.size(), 6u);
    for (size_t i = 0; i < result->choices.size(); ++i) {
      const Choice& choice = result->choices[i];
      EXPECT_TRUE(choice.prediction.fits);
      EXPECT_EQ(Evaluate(request.architecture, choice.division, request.cluster,
                         *request.software)
                    ->step,
                choice.prediction.step);
      if (i > 0)
        EXPECT_GE(choice.prediction.step * 1.001,
                  result->choices[i - 1].prediction.step);
    }
  }
}

TEST(Search, KeepsToWhatIsFixed) {
  Request request = Ask(Gpt2(48, 1600, 25), "16x a100-80-sxm", 64);
  request.fixed.pp = 4;
  request.fixed.zero = 0;
  request.fixed.microbatch = 2;
  request.fixed.recompute = Recomputation::kFull;
  request.fixed.schedules = {PipelineSchedule::kGpipe};
  const absl::StatusOr<SearchResult> result = Search(request);
  ASSERT_TRUE(result.ok()) << result.status();
  for (const Choice& choice : result->choices) {
    EXPECT_EQ(choice.division.pp, 4);
    EXPECT_EQ(choice.division.zero, 0);
    EXPECT_EQ(choice.division.microbatch, 2);
    EXPECT_EQ(choice.division.recompute, Recomputation::kFull);
    EXPECT_EQ(choice.division.schedule, PipelineSchedule::kGpipe);
  }
}

TEST(Search, DividesMoreUnderALimit) {
  Request request = Ask(Gpt2(48, 1600, 25), "8x a100-80-sxm", 64);
  const absl::StatusOr<SearchResult> wide = Search(request);
  ASSERT_TRUE(wide.ok());
  request.memory = 0.4 * wide->choices[0].prediction.memory.total();
  const absl::StatusOr<SearchResult> narrow = Search(request);
  ASSERT_TRUE(narrow.ok()) << narrow.status();
  EXPECT_LE(narrow->choices[0].prediction.memory.total(), request.memory);
  EXPECT_GT(narrow->choices[0].prediction.step,
            wide->choices[0].prediction.step);
}

// No division on four devices holds the model's states, so they go to the host.
// The step grows by at least their transfer there and back.
TEST(Search, TakesTheHostWhereTheDevicesAreTooSmall) {
  Request request = Ask(Gpt2(40, 5120, 40), "4x a100-40-sxm", 64);
  request.fixed.offload = false;
  EXPECT_FALSE(Search(request).ok());
  request.fixed.offload.reset();
  const absl::StatusOr<SearchResult> found = Search(request);
  ASSERT_TRUE(found.ok()) << found.status();
  const Choice& choice = found->choices.front();
  EXPECT_TRUE(choice.division.offload);
  EXPECT_GT(choice.prediction.memory.host, 0);
  EXPECT_THAT(Describe(choice.division), HasSubstr("states on the host"));
  // Without a host no division fits.
  request.cluster.device.host_bandwidth = 0;
  EXPECT_FALSE(Search(request).ok());
}

TEST(Search, DividesParametersOfStages) {
  Request request = Ask(Gpt2(48, 6144, 48), "8x a100-80-sxm", 32);
  request.memory = 55e9;
  request.fixed.offload = false;
  request.fixed.pp = 2;
  request.fixed.tp = 1;
  request.fixed.zero = 2;
  EXPECT_FALSE(Search(request).ok());
  request.fixed.zero.reset();
  const absl::StatusOr<SearchResult> found = Search(request);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->choices.front().division.zero, 3);
}

TEST(Search, SaysWhatWouldFit) {
  Request request = Ask(Gpt2(48, 12288, 96), "8x a100-80-sxm", 64);
  request.memory = 20e9;
  const std::string text(Search(request).status().message());
  EXPECT_THAT(text, HasSubstr("expected a division within 20.0 GB a device, "
                              "found none: the least is "));
  EXPECT_THAT(text, HasSubstr(" more, of tp "));
  const std::string enough = "it fits with a limit of ";
  const size_t limit = text.find(enough);
  ASSERT_NE(limit, std::string::npos) << text;
  // The limit in the message is indeed enough.
  request.memory = 1e9 * std::stod(text.substr(limit + enough.size()));
  EXPECT_TRUE(Search(request).ok()) << Search(request).status();
  request.memory = 20e9;
  const size_t on = text.find("or on ");
  ASSERT_NE(on, std::string::npos) << text;
  // The number of devices in the message is indeed enough.
  request.cluster = *Resize(*BuiltInCluster("2 nodes x a100-80-sxm"),
                            std::stoi(text.substr(on + 6)));
  EXPECT_TRUE(Search(request).ok());
}

TEST(Search, SaysWhatCanBeDivided) {
  Request request = Ask(Gpt2(4, 256, 4), "7x a100-80-sxm", 16);
  EXPECT_THAT(std::string(Search(request).status().message()),
              HasSubstr("7 devices can divide, found 4 layers, 4 heads and 16 "
                        "sequences, whose divisors give no such product: 6 "
                        "devices would do"));
  request = Ask(Gpt2(4, 256, 4), "8x a100-80-sxm", 16);
  request.fixed.tp = 3;
  EXPECT_EQ(Search(request).status().message(),
            "--fix tp: expected a divisor of the 4 heads, found 3");
  request.fixed.tp = 2;
  request.fixed.dp = 4;
  request.fixed.pp = 2;
  EXPECT_THAT(std::string(Search(request).status().message()),
              HasSubstr("found none that 8 devices or fewer can have with "
                        "tp=2, pp=2, dp=4: fix fewer of them"));
  const auto refusal = [](const FixedChoices& fixed) {
    Request request = Ask(Gpt2(4, 256, 4), "8x a100-80-sxm", 16);
    request.fixed = fixed;
    return std::string(Search(request).status().message());
  };
  FixedChoices fixed;
  fixed.dp = 16;
  EXPECT_EQ(refusal(fixed), "--fix dp: expected 1 to the 8 devices, found 16");
  fixed.dp = 0;
  EXPECT_EQ(refusal(fixed), "--fix dp: expected 1 to the 8 devices, found 0");
  fixed = {};
  fixed.pp = 8;
  EXPECT_EQ(refusal(fixed), "--fix pp: expected at most the 4 layers, found 8");
  fixed = {};
  fixed.microbatch = 3;
  EXPECT_EQ(refusal(fixed),
            "--fix mbs: expected a divisor of the batch's 16 sequences, 64 at "
            "most, found 3");
  fixed = {};
  fixed.zero = 4;
  EXPECT_EQ(refusal(fixed), "--fix zero: expected 0 to 3, found 4");
  const std::string undivided =
      "--fix zero: expected 0 with dp=1, as ZeRO divides states over the "
      "devices that divide the batch, found 3";
  fixed = {};
  fixed.zero = 3;
  fixed.dp = 1;
  EXPECT_EQ(refusal(fixed), undivided);
  fixed.dp.reset();
  fixed.tp = 4;
  fixed.pp = 2;
  EXPECT_EQ(refusal(fixed), undivided);
  fixed = {};
  fixed.vpp = 13;
  EXPECT_EQ(refusal(fixed), "--fix vpp: expected 1 to 12, found 13");
  request.fixed = {};
  request.fixed.tp = request.fixed.pp = 2;
  request.fixed.zero = 0;
  request.cluster.devices = 7;
  EXPECT_THAT(std::string(Search(request).status().message()),
              HasSubstr(" 4 devices would do"));
  request.batch = 0;
  EXPECT_THAT(std::string(Search(request).status().message()),
              HasSubstr("batch: expected 1 to 16777216, found 0"));
}

TEST(Candidates, FixedZeroDividesTheBatch) {
  Request request = Ask(Gpt2(4, 256, 4), "8x a100-80-sxm", 16);
  request.fixed.zero = 2;
  int seen = 0;
  ForEachDivision(request, [&](const Division& division) {
    EXPECT_EQ(division.zero, 2);
    EXPECT_GT(division.dp, 1);
    return ++seen > 0;
  });
  EXPECT_GT(seen, 10);
}

TEST(Candidates, StopWhereOneIsEnough) {
  const Request request = Ask(Gpt2(48, 1600, 25), "64x a100-80-sxm", 512);
  int all = 0, seen = 0;
  ForEachDivision(request, [&](const Division&) { return ++all > 0; });
  ForEachDivision(request, [&](const Division&) { return ++seen < 3; });
  EXPECT_GT(all, 1000);
  EXPECT_EQ(seen, 3);
}

TEST(Candidates, FixedSizesSayOfWhatDevicesAreMultiples) {
  Request request = Ask(Gpt2(4, 256, 4), "8x a100-80-sxm", 16);
  EXPECT_EQ(DevicesOfFixed(request), 1);
  request.fixed.tp = 2;
  request.fixed.dp = 4;
  EXPECT_EQ(DevicesOfFixed(request), 8);
  request.fixed.microbatch = 8;  // of 4
  EXPECT_EQ(DevicesOfFixed(request), 0);
  request.fixed.microbatch = 4;
  request.fixed.tp = 3;
  EXPECT_EQ(DevicesOfFixed(request), 0);
  request.fixed.tp = 0;
  EXPECT_EQ(DevicesOfFixed(request), 0);
}

}  // namespace
}  // namespace partita::planner
