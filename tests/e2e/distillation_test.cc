// A student that distils a teacher, on one device and divided: gradients and
// five steps of AdamW equal torch's, and a student that equals its teacher has
// nothing to learn from it.
#include "frontends/distillation/distillation.h"

#include <cmath>

#include "compiler/driver/import_model.h"
#include "gtest/gtest.h"
#include "runtime/base/teacher_name.h"
#include "runtime/executor/parameters.h"
#include "tests/e2e/compiled_model.h"
#include "tests/e2e/training_case.h"

namespace partita::e2e {
namespace {

constexpr char kData[] = "tests/data/distillation-tiny/";

// RUNS of tests/peers/make_distillation.py.
struct Recipe {
  const char* name;
  const char* run;  // the prefix of PyTorch's results
  const char* distill;
};
constexpr Recipe kRecipes[] = {
    {"kl", "kl.", "temperature=3; cross_entropy=0"},
    {"both", "both.", "kl=0.5; cross_entropy=0.5"},
    {"mse", "mse.",
     "hidden=transformer.h.0:transformer.h.2; hidden_loss=mse; "
     "hidden_weight=0.5"},
    {"distilbert", "distilbert.",
     "temperature=2; kl=5; cross_entropy=2; logits=y:y; "
     "hidden=transformer.h.0:transformer.h.2; hidden_loss=cosine"},
};

struct Case {
  Recipe recipe;
  Division division = kWhole;
  int zero = 0;
  Microbatches microbatches;
  const char* schedule = "";
};

TrainingCase CaseOf(const Case& given) {
  TrainingCase which;
  which.model = "student";
  which.data = "distillation-tiny";
  which.from_folder = true;
  which.teacher = "teacher";
  which.division = given.division;
  which.zero = given.zero;
  which.microbatches = given.microbatches;
  which.schedule = given.schedule;
  which.distill = given.recipe.distill;
  which.run = given.recipe.run;
  return which;
}

class DistillationTest : public testing::TestWithParam<Case> {};

TEST_P(DistillationTest, EqualsTorch) {
  TrainingRun run;
  const absl::Status started = run.Start(CaseOf(GetParam()));
  ASSERT_TRUE(started.ok()) << started;
  run.ExpectEqualsPyTorch();
  // Steps change nothing of the teacher, which has no states.
  int taught = 0, learned = 0;
  for (const executor::ParameterSpec& each : run.model().parameters()) {
    if (base::IsOfTeacher(each.whole.name)) {
      EXPECT_FALSE(each.updated) << each.whole.name;
      EXPECT_NE(each.kind, program::ParameterKind::state) << each.whole.name;
      ++taught;
    } else if (each.kind == program::ParameterKind::parameter) {
      EXPECT_TRUE(each.updated) << each.whole.name;
      ++learned;
    }
  }
  EXPECT_GT(taught, learned);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Recipe& recipe : kRecipes) cases.push_back({recipe});
  for (const Division& division : std::initializer_list<Division>{
           {"B2", "d=2", "B=d"},
           {"MNV2", "t=2", "M=t,N=t,V=t"},
           {"L2", "s=2", "L=s"},
           {"E2", "e=2", "E=e"},
           {"B2MNV3L", "d=2,t=3", "B=d;M=t,N=t,V=t;L=t"}})
    for (const Recipe& recipe : {kRecipes[0], kRecipes[3]})
      cases.push_back({recipe, division});
  const Division b2 = {"B2", "d=2", "B=d"};
  cases.push_back({kRecipes[1], b2, 1});
  cases.push_back({kRecipes[1], b2, 3});
  cases.push_back({kRecipes[0], kWhole, 0, {2}});
  cases.push_back({kRecipes[3], kWhole, 0, {2}});
  cases.push_back({kRecipes[3], {"D2", "p=2", "D=p"}, 0, {2}, "1f1b"});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Plans, DistillationTest, testing::ValuesIn(Cases()),
                         [](const auto& info) {
                           return info.param.recipe.name +
                                  ("_" + NameOf(CaseOf(info.param)));
                         });

// The gradient of the divergence is zero where the models are equal.
TEST(DistillationLimitTest, TheTeacherItselfLearnsNothing) {
  auto golden = ReadGoldenTraining(kData + std::string("student/"), "both.");
  ASSERT_TRUE(golden.ok()) << golden.status();
  driver::ImportOptions options;
  options.training = true;
  options.dims = {{"batch", 4}, {"seq", 8}};
  options.teacher = kData + std::string("teacher");
  options.distill = "cross_entropy=0; hidden=transformer.h.1:transformer.h.1";
  CompilerContext context;
  auto module = driver::importModel(options.teacher, options, context.get());
  ASSERT_TRUE(module) << context.errors;
  driver::TrainOptions train;
  train.optimizer = "sgd";
  train.keep_gradients = true;
  train.trained = "*;!teacher.*";
  auto model = CompiledModel::MakeTraining(*module, testing::TempDir(), "self",
                                           std::nullopt, train);
  ASSERT_TRUE(model.ok()) << model.status();
  // With no weight on the targets, the step has none.
  for (const executor::TensorSpec& input : (*model)->inputs())
    EXPECT_NE(input.name, "targets");
  auto outputs = (*model)->Run(golden->InputsOf((*model)->inputs(), 1));
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  int gradients = 0;
  for (size_t i = 0; i < outputs->size(); ++i) {
    const HostTensor& output = (*outputs)[i];
    if (output.dtype != base::DType::kF32) continue;
    for (int64_t k = 0; k < output.elements(); ++k)
      EXPECT_NEAR(output.floats()[k], 0, 2e-6)
          << (*model)->outputs()[i].name << ", element " << k;
    gradients += (*model)->outputs()[i].name.rfind("grad.", 0) == 0;
  }
  EXPECT_GT(gradients, 30);
}

// A teacher of 16 bits beside a student of 32, on one device and divided.
TEST(DistillationPrecisionTest, TheTeacherMayBeNarrower) {
  for (const Division& division :
       {kWhole, Division{"B2MN2", "d=2,t=2", "B=d;M=t,N=t"}}) {
    TrainingCase which = CaseOf({kRecipes[3], division});
    const std::string distill =
        std::string(which.distill) + "; teacher_precision=bf16";
    which.distill = distill.c_str();
    TrainingRun run;
    const absl::Status started = run.Start(which);
    ASSERT_TRUE(started.ok()) << started;
    for (const executor::ParameterSpec& each : run.model().parameters())
      EXPECT_EQ(each.whole.dtype, base::IsOfTeacher(each.whole.name)
                                      ? base::DType::kBF16
                                      : base::DType::kF32)
          << each.whole.name;
    auto golden =
        ReadGoldenTraining(kData + std::string("student/"), kRecipes[3].run);
    ASSERT_TRUE(golden.ok()) << golden.status();
    const double loss = run.FirstLoss(), expected = golden->losses.floats()[0];
    EXPECT_NE(loss, expected);
    EXPECT_NEAR(loss, expected, 0.02 * expected);
  }
}

// Refusals: each says what was expected and what was found.
std::string ErrorOf(const std::string& teacher, const std::string& distill) {
  driver::ImportOptions options;
  options.dims = {{"batch", 2}, {"seq", 4}};
  options.teacher = teacher;
  options.distill = distill;
  CompilerContext context;
  auto module = driver::importModel(kData + std::string("student"), options,
                                    context.get());
  EXPECT_FALSE(module) << distill;
  return context.errors;
}

TEST(DistillationRefusalTest, NamesWhatIsWrong) {
  const std::string teacher = kData + std::string("teacher");
  const std::pair<const char*, const char*> cases[] = {
      {"temperature=0", "temperature=X with a number X above 0, found '0'"},
      {"kl=-1", "kl=X with a number X of at least 0, found '-1'"},
      {"kl=1; kl=2", "each name once, found 'kl'"},
      {"kl", "NAME=VALUE"},
      {"alpha=1", "found 'alpha'"},
      {"kl=0", "kl or a hidden loss with a weight above 0"},
      {"hidden_loss=l1; hidden=a:b", "hidden_loss=mse or cosine, found 'l1'"},
      {"teacher_precision=f8", "teacher_precision=bf16 or f16, found 'f8'"},
      {"hidden_loss=mse", "expected hidden=STUDENT:TEACHER"},
      {"hidden=a", "hidden=STUDENT:TEACHER, names in the two models"},
      {"hidden=", "hidden=STUDENT:TEACHER, names in the two models, found ''"},
      {"hidden=,",
       "hidden=STUDENT:TEACHER, names in the two models, found ','"},
      {"kl=0; hidden=a:b; temperature=3",
       "expected kl above 0 with temperature"},
      {"kl=0; hidden=a:b; logits=y:y", "expected kl above 0 with logits"},
      {"hidden=transformer.h.1:transformer.h.1",
       "expected an output or a layer of the student, found "
       "'transformer.h.1'; outputs: y; layers: transformer.h.0 to "
       "transformer.h.0"},
      {"hidden=y:transformer.h.1",
       "expected values of the same shape, of floats, to compare as hidden "
       "values, found the student's 'y' of 'tensor<"},
      {"hidden=transformer.h.0:y", " and the teacher's 'y' of 'tensor<"},
  };
  for (const auto& [distill, expected] : cases)
    EXPECT_NE(ErrorOf(teacher, distill).find(expected), std::string::npos)
        << distill << ": " << ErrorOf(teacher, distill);
}

TEST(DistillationRefusalTest, TeachersOfAnotherKind) {
  const std::string error = ErrorOf("tests/data/onnx-tiny/gpt2", "");
  EXPECT_NE(
      error.find("expected values of the same shape, of floats, to "
                 "compare as logits, found the student's 'y' of 'tensor<"),
      std::string::npos)
      << error;
}

}  // namespace
}  // namespace partita::e2e
