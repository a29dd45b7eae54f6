// Tests which parameters the exporter's metadata names.
#include "frontends/onnx/weight_names.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontends/onnx/test_model.h"

namespace partita::onnx {
namespace {

class WeightNamesTest : public testing::Test {
 protected:
  // Adds a linear layer with a weight of its own.
  void addLinear(const std::string& weight, const std::string& parameter,
                 const std::string& scopes,
                 const std::string& target = "aten.linear.default") {
    nodes_.push_back(withMetadata(
        withMetadata(node("MatMul", {"x", weight}, {"y" + weight}),
                     "pkg.torch.onnx.fx_node",
                     "%l : [num_users=1] = call_function[target=torch.ops." +
                         target + "](args = (%x, " + parameter +
                         ", %p_b), kwargs = {})"),
        "pkg.torch.onnx.name_scopes", scopes));
    addWeight(weight);
  }

  void addWeight(const std::string& name,
                 const std::vector<int64_t>& dims = {1, 2}) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) return;
    known_.push_back(name);
    weights_.push_back(floats(name, dims, {1, 2}));
  }

  // The restored name of a weight, and "=" with the name of its other copy.
  std::string restored(const std::string& weight) {
    bytes_ = model(graph(nodes_, {}, {}, weights_)).encoded();
    WireError error;
    Model model;
    EXPECT_TRUE(parseModel(bytes_, model, error)) << error.str();
    auto found = findFoldedWeights(model.graph);
    for (const auto& [tensor, folded] : found) {
      if (tensor->name != weight) continue;
      if (!folded.other) return folded.name;
      return folded.name +
             (folded.other_is_transposed ? " = transposed " : " = ") +
             std::string(folded.other->name);
    }
    return "";
  }

  std::vector<Message> nodes_, weights_;
  std::vector<std::string> known_;
  std::string bytes_;
};

TEST_F(WeightNamesTest, AModulesPathTellsDotsFromUnderscores) {
  addLinear("val_1", "%p_a_b_c_weight", "['', 'a_b', 'a_b.c', 'linear_1']");
  addLinear("val_2", "%p_head_weight", "['', 'head', 'linear_2']");
  addLinear("val_3", "%p_proj", "['', 'linear_3']");
  addLinear("val_4", "%p_m_in_proj_weight", "['', 'm', 'linear_4']");
  EXPECT_EQ(restored("val_1"), "a_b.c.weight.T");
  EXPECT_EQ(restored("val_2"), "head.weight.T");
  EXPECT_EQ(restored("val_3"), "proj.T");
  EXPECT_EQ(restored("val_4"), "m.in_proj_weight.T");
}

TEST_F(WeightNamesTest, NothingIsGuessed) {
  addLinear("val_1", "%p_fc_weight", "['', 'linear_1']");  // or fc_weight
  addLinear("val_2", "%p_c_weight", "['', 'd', 'linear_2']");
  addLinear("val_3", "%p_e_weight", "['', 'e', 'mm']", "aten.mm.default");
  addLinear("val_4", "%add", "['', 'f', 'linear_4']");
  addLinear("named.weight", "%p_named_weight", "['', 'named', 'linear_5']");
  addLinear("val_6", "", "");
  for (const char* name :
       {"val_1", "val_2", "val_3", "val_4", "named.weight", "val_6"})
    EXPECT_EQ(restored(name), "") << name;
}

TEST_F(WeightNamesTest, TiedWeights) {
  addWeight("table.weight");
  addLinear("val_1", "%p_table_weight", "['', 'head', 'linear_1']");
  // The second module has the name.
  addLinear("val_2", "%p_b_weight", "['', 'a', 'linear_2']");
  addLinear("val_3", "%p_b_weight", "['', 'b', 'linear_3']");
  EXPECT_EQ(restored("val_1"), "table.weight.T = transposed table.weight");
  EXPECT_EQ(restored("val_2"), "b.weight.T");
  EXPECT_EQ(restored("val_3"), "b.weight.T = val_2");
}

TEST_F(WeightNamesTest, TwoParametersWithOneMangledName) {
  addWeight("a.b");
  addWeight("a_b");
  addLinear("val_1", "%p_a_b", "['', 'head', 'linear_1']");
  EXPECT_EQ(restored("val_1"), "");
}

TEST(WeightNamesOfFillsTest, AreThoseOfOperations) {
  for (const char* name : {"zeros_like", "zeros_like_1", "full_12", "ones"})
    EXPECT_TRUE(isFill(name)) << name;
  for (const char* name : {"m.zeros", "zeros_of", "full_bias", "zeros_like_"})
    EXPECT_FALSE(isFill(name)) << name;
}

}  // namespace
}  // namespace partita::onnx
