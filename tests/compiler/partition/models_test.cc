// Exported models, divided along every dimension they have. The program of one
// device, interpreted for all devices, must equal the undivided model. Rows
// beyond a dimension's end are NaN, so that any use of them shows.
#include <gtest/gtest.h>

#include <map>

#include "compiler/driver/compilation.h"
#include "compiler/driver/import_model.h"
#include "compiler/partition/local_form.h"
#include "dialects/dist/dialect.h"
#include "dialects/nn/dialect.h"
#include "mlir/IR/OwningOpRef.h"
#include "tests/compiler/partition/run_divided.h"
#include "tests/compiler/simplify/evaluate.h"
#include "tests/e2e/division_plan.h"
#include "tests/e2e/divisions.h"

namespace partita::partition {
namespace {

using e2e::Division;
using mlir::RankedTensorType;

// Token numbers stay below every vocabulary; masks are 0 or 1.
nn::Tensor input(const std::string& name, RankedTensorType type) {
  nn::Tensor tensor = simplify::madeUp(type, name.size());
  for (int64_t i = 0; !tensor.isFloat() && i < tensor.size(); ++i)
    tensor.setInt(i, name == "attention_mask"
                         ? i % 3 != 2  // every query sees the first key
                         : tensor.getInt(i) * 37 + i % 7);
  return tensor;
}

class ModelsTest
    : public testing::TestWithParam<std::tuple<const char*, Division>> {
 protected:
  ModelsTest() : context_(registry(), mlir::MLIRContext::Threading::DISABLED) {}

  static mlir::DialectRegistry registry() {
    mlir::DialectRegistry registry = simplify::testRegistry();
    registry.insert<dist::DistDialect>();
    registerLocalForms(registry);
    return registry;
  }

  mlir::OwningOpRef<mlir::ModuleOp> import(const std::string& model) {
    driver::ImportOptions options;
    options.dims["batch"] = 4;
    if (e2e::TakesText(model)) options.dims["seq"] = 8;
    if (model == "t5") options.dims["dec"] = 6;
    return driver::importModel(
        "tests/data/onnx-tiny/" + model + "/model_eval.onnx", options,
        &context_);
  }

  mlir::MLIRContext context_;
};

TEST_P(ModelsTest, DividedEqualsUndivided) {
  const auto& [model, division] = GetParam();
  auto whole = import(model);
  ASSERT_TRUE(whole);
  driver::CompileOptions options;
  options.progress = false;
  ASSERT_TRUE(succeeded(driver::Compilation(*whole, options)
                            .runTo(driver::Milestone::kSimplified)));
  auto divided = mlir::OwningOpRef<mlir::ModuleOp>(whole->clone());

  auto plan = e2e::PlanOf(division);
  ASSERT_TRUE(plan.ok()) << plan.status();
  options.plan = *plan;
  driver::Compilation compilation(*divided, options,
                                  driver::Milestone::kSimplified);
  ASSERT_TRUE(succeeded(compilation.runTo(driver::Milestone::kPartitioned)));
  expectEqual(runDivided(*divided, input), simplify::runMain(*whole, input));
}

std::string nameOf(
    const testing::TestParamInfo<std::tuple<const char*, Division>>& info) {
  return std::string(std::get<0>(info.param)) + "_" +
         std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Dimensions, ModelsTest,
                         testing::Combine(testing::ValuesIn(e2e::kModels),
                                          testing::ValuesIn(e2e::kDivisions)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(
    Images, ModelsTest,
    testing::Combine(testing::ValuesIn(e2e::kConvModels),
                     testing::ValuesIn(e2e::kImageDivisions)),
    nameOf);

}  // namespace
}  // namespace partita::partition
