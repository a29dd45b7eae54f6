// Attention and its gradient with divided queries: every mask, over numbers of
// devices that do and do not divide the queries, computed in every way.
#include <gtest/gtest.h>

#include "compiler/core/propagate.h"
#include "tests/compiler/partition/divided_fixture.h"

namespace partita::partition {
namespace {

struct Masks {
  std::string attributes;
  bool shift = false, segments = false, lse = false, bias = false;
  bool bias_of_heads = false;  // instead of one of keys
};

// An operation with its operands, in the order of the dialect.
struct Text {
  std::string arguments, operands, types;

  void add(const std::string& name, const std::string& type,
           const std::string& dims, const std::string& before,
           const std::string& after = "") {
    arguments += (arguments.empty() ? "" : ", ") + argument(name, type, dims);
    operands += before + "%" + name + after;
    types += (types.empty() ? "" : ", ") + ("tensor<" + type + ">");
  }
};

using core::LongAttention;

class AttentionTest : public DividedTest {
 protected:
  void divideOver(const Masks& masks, bool backward,
                  LongAttention way = LongAttention::kGather) {
    const std::string function = functionOf(masks, backward, way);
    for (const char* devices : {"2", "3", "4"}) {
      SCOPED_TRACE(function + " over " + devices);
      divide("\"x\"=" + std::string(devices), function);
      // Rings hide rows beyond the end by a bias.
      if (way != LongAttention::kRing)
        EXPECT_EQ(text_.find("0xFF800000"), std::string::npos)
            << "expected no bias of hidden keys:\n"
            << text_;
    }
  }

  // `length` is the number of queries.
  static std::string functionOf(const Masks& masks, bool backward,
                                LongAttention way = LongAttention::kGather,
                                int64_t length = 10) {
    const bool ring = way == LongAttention::kRing;
    const std::string rows = R"({}, {}, {"x"}, {})",
                      keys = ring ? rows : "{}, {}, {}, {}",
                      of_lse = R"({}, {}, {"x"})",
                      of_bias = masks.bias_of_heads ? "{}, {}, {}, {}"
                                : ring              ? R"({}, {}, {}, {"x"})"
                                                    : rows;
    const std::string l = std::to_string(length), size = ring ? l : "12";
    const std::string q = "2x4x" + l + "x3xf32", k = "2x2x" + size + "x3xf32",
                      v = "2x2x" + size + "x5xf32", y = "2x4x" + l + "x5xf32",
                      b = masks.bias_of_heads ? "1x4x1x1xf32"
                          : ring              ? "2x1x1x" + l + "xf32"
                                              : "1x4x10x12xf32",
                      lse = "2x4x" + l + "xf32";
    Text text;
    text.add("q", q, rows, "");
    text.add("k", k, keys, ", ");
    text.add("v", v, keys, ", ");
    if (backward) text.add("y", y, rows, ", ");
    if (backward) text.add("g", y, rows, ", ");
    if (masks.bias) text.add("b", b, of_bias, ", ");
    if (masks.shift) text.add("t", "i64", "", " shift(", ")");
    if (masks.segments) {
      text.add("i", "2x" + l + "xi32", R"({}, {"x"})", " segments(");
      text.add("j", "2x" + size + "xi32", ring ? R"({}, {"x"})" : "{}, {}",
               ", ", ")");
    }
    if (backward && (masks.lse || ring))
      text.add("e", lse, of_lse, " lse(", ")");
    std::string types, values, places;
    int count = 0;
    const auto result = [&](const std::string& type, const std::string& dims) {
      const char* comma = count == 0 ? "" : ", ";
      types += comma + ("tensor<" + type + ">");
      values += comma + ("%r#" + std::to_string(count++));
      places += comma + ("#dist.sharding<[" + dims + "]>");
    };
    result(backward ? q : y, rows);
    if (backward) result(k, keys);
    if (backward) result(v, keys);
    if (backward && masks.bias) result(b, of_bias);
    if (!backward && masks.lse) result(lse, of_lse);
    return "func.func @main(" + text.arguments + ") -> (" + types +
           ") {\n%r:" + std::to_string(count) + " = nn.attention" +
           (backward ? "_grad " : " ") + text.operands + " scale = 0.5 " +
           masks.attributes +
           (way == LongAttention::kGather
                ? ""
                : " {dist.long_attention = " +
                      std::to_string(static_cast<int>(way)) + " : i64, ") +
           (way == LongAttention::kGather ? " {" : "") + "dist.shardings = [" +
           places + "]} : (" + text.types + ") -> (" + types + ")\nreturn " +
           values + " : " + types + "\n}";
  }
};

const Masks kMasks[] = {
    {""},
    {"causal_offset = 2"},
    {"causal_offset = 2 window = 4"},
    {"causal_offset = -1"},
    {"causal_offset = 0", /*shift=*/true},
    {"", false, /*segments=*/true, /*lse=*/true},
    {"causal_offset = 1 window = 5", true, true, true},
    {"causal_offset = 1 window = 5", true, true, true, /*bias=*/true},
    {"causal_offset = 0 softcap = 3.0", false, false, false, true},
};

// Masks that depend on positions in the whole sequence, or on heads. Rings do
// not have them.
const Masks kSparseMasks[] = {
    {"causal_offset = 2 window = 3 sinks = 2"},
    {"causal_offset = 0 window = 3 sinks = 2", true, false, true},
    {"blocks = dense<[[[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, "
     "1]]]> : tensor<1x4x4xi1> block_size = 3"},
    {"causal_offset = 2 blocks = dense<[[[1, 0, 0], [0, 1, 1]], [[0, 1, 0], "
     "[1, 0, 1]], [[1, 1, 0], [0, 0, 0]], [[0, 0, 1], [1, 1, 1]]]> : "
     "tensor<4x2x3xi1> block_size = 5",
     false, true, true, true},
};

TEST_F(AttentionTest, DividedEqualsUndivided) {
  for (const Masks& masks : kMasks) divideOver(masks, /*backward=*/false);
}

TEST_F(AttentionTest, DividedSparseEqualsUndivided) {
  for (const Masks& masks : kSparseMasks)
    for (bool backward : {false, true})
      for (const LongAttention way :
           {LongAttention::kGather, LongAttention::kUlysses})
        divideOver(masks, backward, way);
}

TEST_F(AttentionTest, DividedGradientEqualsUndivided) {
  for (const Masks& masks : kMasks) divideOver(masks, /*backward=*/true);
}

TEST_F(AttentionTest, HeadsInsteadOfRowsEqualUndivided) {
  for (const Masks& masks : kMasks)
    for (bool backward : {false, true})
      divideOver(masks, backward, LongAttention::kUlysses);
}

TEST_F(AttentionTest, RingsEqualUndivided) {
  for (const Masks& masks : kMasks)
    for (bool backward : {false, true})
      divideOver(masks, backward, LongAttention::kRing);
}

// Causal attention that divides into two halves of a block for each device.
const Masks kZigzagMasks[] = {
    {"causal_offset = 0"},
    {"causal_offset = 0 window = 13"},
    {"causal_offset = 0 softcap = 3.0", false, /*segments=*/true},
    {"causal_offset = 0 window = 20", false, true, /*lse=*/true},
    {"causal_offset = 0", false, false, true, /*bias=*/true},
    {"causal_offset = 0", false, false, false, true, /*bias_of_heads=*/true},
};

TEST_F(AttentionTest, ZigzagsEqualUndivided) {
  for (const Masks& masks : kZigzagMasks)
    for (bool backward : {false, true})
      for (const char* devices : {"2", "3", "4", "6"}) {
        const std::string function =
            functionOf(masks, backward, LongAttention::kRing, 24);
        SCOPED_TRACE(function + " over " + devices);
        divide("\"x\"=" + std::string(devices), function);
        EXPECT_NE(text_.find("zig-zag"), std::string::npos) << text_;
      }
}

// Rings over whole blocks are kept where halves are not even, where positions
// are shifted, and where each query sees few keys.
TEST_F(AttentionTest, OtherRingsKeepTheirBlocks) {
  const auto expectBlocks = [&](const Masks& masks, int64_t length) {
    for (bool backward : {false, true}) {
      divide(R"("x"=4)",
             functionOf(masks, backward, LongAttention::kRing, length));
      EXPECT_EQ(text_.find("zig-zag"), std::string::npos) << text_;
      EXPECT_EQ(text_.find("dist.exchange"), std::string::npos) << text_;
    }
  };
  expectBlocks({"causal_offset = 0"}, 20);
  expectBlocks({"causal_offset = 0"}, 22);
  expectBlocks({"causal_offset = 1"}, 24);
  expectBlocks({"causal_offset = 0", /*shift=*/true}, 24);
  expectBlocks({"causal_offset = 0 window = 6"}, 24);
  expectBlocks({""}, 24);
}

// Two of the four products of halves in a step are visible and computed. In the
// first step, one is, and two are causal triangles. Only triangles have masks.
TEST_F(AttentionTest, ZigzagsComputeVisibleProducts) {
  divide(R"("x"=4)",
         functionOf({"causal_offset = 0"}, false, LongAttention::kRing, 24));
  const auto count = [&](const std::string& word) {
    int found = 0;
    for (size_t at = 0; (at = text_.find(word, at)) != std::string::npos; ++at)
      ++found;
    return found;
  };
  EXPECT_EQ(count("= nn.attention "), 3 + 3 * 2) << text_;
  EXPECT_EQ(count("causal_offset = 0"), 2) << text_;
  EXPECT_EQ(count("shift("), 0) << text_;
  // Half of each block of q, k, v and the result is exchanged once.
  int64_t bytes = 0;
  for (const std::string& each : sent_)
    if (each.find("exchange") == 0)
      bytes += std::stoll(each.substr(each.find(": ") + 2));
  EXPECT_EQ(bytes, 4 * 2 * 3 * (4 * 3 + 2 * 3 + 2 * 5 + 4 * 5)) << text_;
  EXPECT_EQ(count("dist.permute"), 3 * 2 * 2) << text_;
}

// Three devices pass keys and values twice, and the gradients once more.
TEST_F(AttentionTest, RingsPassBlocks) {
  divide(R"("x"=3)", functionOf({""}, false, LongAttention::kRing));
  EXPECT_EQ(sent_.size(), 4) << text_;
  divide(R"("x"=3)", functionOf({""}, true, LongAttention::kRing));
  EXPECT_EQ(sent_.size(), 4 + 6) << text_;
}

// The device's first query is a shift of the causal mask, and no bias.
TEST_F(AttentionTest, PositionsAreAShift) {
  divide(R"("x"=2)", functionOf({"causal_offset = 2 window = 4"}, false));
  EXPECT_NE(text_.find("shift("), std::string::npos) << text_;
  EXPECT_EQ(text_.find("nn.iota"), std::string::npos) << text_;
  divide(R"("x"=2)", functionOf({""}, false));
  EXPECT_EQ(text_.find("shift("), std::string::npos) << text_;
}

}  // namespace
}  // namespace partita::partition
