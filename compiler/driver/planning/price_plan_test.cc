#include "compiler/driver/planning/price_plan.h"

#include <limits>
#include <string>

#include "compiler/driver/planning/model_of_row.h"
#include "compiler/driver/session.h"
#include "compiler/plan/plan.h"
#include "compiler/planner/cluster/cluster.h"
#include "gtest/gtest.h"

namespace partita::driver {
namespace {

// A GPT with eight small layers and 64 sequences per step, on eight GPUs.
class PricePlanTest : public ::testing::Test {
 protected:
  static constexpr int64_t kBatch = 64;

  PricePlanTest() {
    sizes_.layers = 8;
    sizes_.hidden = 128;
    sizes_.heads = sizes_.kv_heads = 4;
    sizes_.ffn = 512;
    sizes_.seq = 64;
    sizes_.vocab = 512;
    module_ = make(sizes_.layers, kBatch);
    CompileOptions options;
    options.train.optimizer = "adamw";
    options.target = "cuda:sm_80";
    const planner::Cluster cluster = *planner::BuiltInCluster("8x a100-80-sxm");
    pricer_.emplace(*module_, options, cluster,
                    static_cast<int64_t>(cluster.device.room()));
    RepeatedModel model;
    model.make = [this](int64_t layers, int64_t batch) {
      return make(layers, batch);
    };
    model.layers = sizes_.layers;
    model.batch = kBatch;
    model.passed_bytes = 4.0 * static_cast<double>(sizes_.seq * sizes_.hidden);
    pricer_->setLayers(std::move(model));
  }

  mlir::OwningOpRef<mlir::ModuleOp> make(int64_t layers, int64_t batch) {
    planner::Architecture sizes = sizes_;
    sizes.layers = layers;
    return modelOfRow(sizes, batch, session_.context());
  }

  static plan::Plan parse(const std::string& text) {
    auto plan = plan::ParsePlan(text, "plan");
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan.ok() ? *plan : plan::Plan();
  }

  Session session_;
  planner::Architecture sizes_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::optional<PlanPricer> pricer_;
};

constexpr char kPipeline[] =
    "mesh: {pipe: 4, data: 2}\n"
    "shard:\n"
    "  - {B: data, D: pipe}\n"
    "microbatches: 8\n"
    "schedule: 1f1b\n";

TEST_F(PricePlanTest, RemembersWhyAPlanHasNoPrice) {
  // ZeRO needs a divided batch. Both pipelines have the same stage.
  const plan::Plan eight = parse(
      "mesh: {pipe: 8}\nshard:\n  - {D: pipe}\nzero: 1\nmicrobatches: 8\n"
      "schedule: 1f1b\n");
  plan::Plan gpipe = eight;
  gpipe.schedule->kind = plan::ScheduleKind::kGpipe;
  EXPECT_EQ(pricer_->rank(eight), nullptr);
  const std::string why = pricer_->problem();
  EXPECT_NE(why.find("no entry divides B"), std::string::npos) << why;
  // Another problem in between.
  plan::Plan uneven = parse(kPipeline);
  uneven.microbatches = 64;
  EXPECT_EQ(pricer_->rank(uneven), nullptr);
  EXPECT_NE(pricer_->problem(), why);
  EXPECT_EQ(pricer_->rank(eight), nullptr);
  EXPECT_EQ(pricer_->problem(), why);
  EXPECT_EQ(pricer_->rank(uneven), nullptr);
  EXPECT_EQ(pricer_->rank(gpipe), nullptr);
  EXPECT_EQ(pricer_->problem(), why);
}

TEST_F(PricePlanTest, LeavesOutWhatIsSlowerThanTheBar) {
  const plan::Plan plan = parse(kPipeline);
  // Far below the time of its layers.
  EXPECT_EQ(pricer_->rank(plan, 1e-9), nullptr);
  EXPECT_EQ(pricer_->tooSlow(), 1);
  EXPECT_EQ(pricer_->composed(), 0);
  EXPECT_EQ(pricer_->failed(), 0);
  const PricedPlan* exact = pricer_->rank(plan);
  ASSERT_NE(exact, nullptr);
  EXPECT_TRUE(exact->composed);
  EXPECT_FALSE(exact->is_bound);
  // A known price needs no bound, and a bar above it does not exclude it.
  EXPECT_EQ(pricer_->rank(plan, 1e-9), exact);
  plan::Plan other = plan;
  other.zero = 1;
  EXPECT_NE(pricer_->rank(other, 100 * exact->seconds()), nullptr);
}

// Input and weight gradients are measured in a pipeline of two stages.
TEST_F(PricePlanTest, ComposesZeroBubblePipelinesOfMoreThanTwoStages) {
  plan::Plan plan = parse(kPipeline);
  const PricedPlan* plain = pricer_->rank(plan);
  ASSERT_NE(plain, nullptr);
  plan.schedule->kind = plan::ScheduleKind::kZbH1;
  const PricedPlan* filled = pricer_->rank(plan);
  ASSERT_NE(filled, nullptr) << pricer_->problem();
  EXPECT_TRUE(filled->composed);
  EXPECT_LT(filled->seconds(), plain->seconds());
}

// An estimate where there is room: both ends on each rank, and no buffers.
TEST_F(PricePlanTest, CountsEndsAndBuffersOfAPipelineIfMemoryIsShort) {
  sizes_.vocab = 8192;
  module_ = make(sizes_.layers, kBatch);
  const plan::Plan plan = parse(kPipeline);
  const auto pricerWithin = [&](int64_t room) {
    CompileOptions options;
    options.train.optimizer = "adamw";
    options.target = "cuda:sm_80";
    PlanPricer pricer(*module_, options,
                      *planner::BuiltInCluster("8x a100-80-sxm"), room);
    RepeatedModel model;
    model.make = [this](int64_t layers, int64_t batch) {
      return make(layers, batch);
    };
    model.layers = sizes_.layers;
    model.batch = kBatch;
    pricer.setLayers(std::move(model));
    return pricer;
  };
  PlanPricer roomy = pricerWithin(int64_t{1} << 40), tight = pricerWithin(1);
  const PricedPlan* both = roomy.compose(plan);
  const PricedPlan* one = tight.compose(plan);
  const PricedPlan* exact = roomy.price(plan);
  ASSERT_NE(both, nullptr) << roomy.problem();
  ASSERT_NE(one, nullptr) << tight.problem();
  ASSERT_NE(exact, nullptr) << roomy.problem();
  ASSERT_FALSE(exact->composed);
  const double memory = static_cast<double>(exact->price.memory_bytes);
  EXPECT_NEAR(one->price.memory_bytes / memory, 1, 0.03);
  EXPECT_LT(both->price.memory_bytes / memory, 0.9);
  EXPECT_EQ(both->seconds(), one->seconds());
}

}  // namespace
}  // namespace partita::driver
