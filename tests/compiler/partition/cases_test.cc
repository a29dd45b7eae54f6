// Known answers for uneven dimensions, windows that reach into neighbours'
// rows, and delayed reductions, restated from other systems' tests. Every case
// is also executed: divided equals undivided.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compiler/partition/divided_fixture.h"

namespace partita::partition {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using CasesTest = DividedTest;

// A convolution of NHWC images over x on W and y on C.
std::string channelsLastConvolution(int width, int channels) {
  const std::string w = std::to_string(width), c = std::to_string(channels);
  const std::string x = "1x4x" + w + "x" + c + "xf32";
  const std::string k = "2x" + c + "x3x3xf32";
  const std::string y = "1x2x" + std::to_string(width - 2) + "x2xf32";
  return "func.func @main(" + argument("x", x, R"({}, {}, {"x"}, {"y"})") +
         ", " + argument("w", k, R"({}, {"y"}, {}, {})") + ") -> tensor<" + y +
         "> {\n%0 = nn.conv %x, %w strides = [1, 1] dilations = [1, 1] "
         "low = [0, 0] high = [0, 0] groups = 1 channels_last " +
         placed(R"({}, {}, {"x"}, {})") + " : tensor<" + x + ">, tensor<" + k +
         "> -> tensor<" + y + ">\nreturn %0 : tensor<" + y + ">\n}";
}

// C2: 7 columns over 4 devices and 3 channels over 2 give blocks of 2. The
// devices fetch 2 columns, and the missing channel is masked. Nothing is padded
// if all sizes divide. (Shardy pads and trims the tensors.)
TEST_F(CasesTest, C2UnevenConvolution) {
  divide(R"("x"=4, "y"=2)", channelsLastConvolution(7, 3));
  EXPECT_THAT(sent_,
              ElementsAre("exchange over x: 64", "all_reduce over y: 32"));
  EXPECT_THAT(text_, HasSubstr("tensor<1x4x4x2xf32>, tensor<2x2x3x3xf32> -> "
                               "tensor<1x2x2x2xf32>"));
  EXPECT_THAT(text_, HasSubstr("arith.select"));
  divide(R"("x"=4, "y"=2)", channelsLastConvolution(8, 4));
  EXPECT_THAT(sent_,
              ElementsAre("exchange over x: 64", "all_reduce over y: 32"));
  EXPECT_THAT(text_, Not(HasSubstr("arith.select")));
}

// A maximum over windows that reach `low` rows back and `high` rows ahead.
std::string windows(const std::string& type, const std::string& dims, int low0,
                    int high0, int low1, int high1) {
  const auto pair = [](int a, int b) {
    return "[" + std::to_string(a) + ", " + std::to_string(b) + "]";
  };
  return "func.func @main(" + argument("x", type, dims) + ") -> tensor<" +
         type + "> {\n%0 = nn.reduce_window max %x window = " +
         pair(low0 + high0 + 1, low1 + high1 + 1) +
         " strides = [1, 1] dilations = [1, 1] low = " + pair(low0, low1) +
         " high = " + pair(high0, high1) + " " + placed(dims) + " : tensor<" +
         type + "> -> tensor<" + type + ">\nreturn %0 : tensor<" + type +
         ">\n}";
}

// C4: the core begins at row `low`. There is one exchange per divided
// dimension. The second exchange also sends the rows of the first, so corners
// need no message.
TEST_F(CasesTest, C4Halo) {
  divide(R"("x"=4)", windows("48x40xf32", R"({"x"}, {})", 2, 2, 0, 0));
  EXPECT_THAT(sent_, ElementsAre("exchange over x: 640"));
  EXPECT_THAT(text_, HasSubstr("step = 12 offset = -2 "));
  EXPECT_THAT(text_, HasSubstr("tensor<12x40xf32> -> tensor<16x40xf32>"));
}

TEST_F(CasesTest, C4HaloOfAGrid) {
  divide(R"("h"=4, "w"=4)",
         windows("48x40xf32", R"({"h"}, {"w"})", 1, 2, 3, 4));
  EXPECT_THAT(sent_,
              ElementsAre("exchange over h: 120", "exchange over w: 420"));
  EXPECT_THAT(text_, HasSubstr("step = 12 offset = -1 "));
  EXPECT_THAT(text_, HasSubstr("tensor<12x10xf32> -> tensor<15x10xf32>"));
  EXPECT_THAT(text_, HasSubstr("step = 10 offset = -3 "));
  EXPECT_THAT(text_, HasSubstr("tensor<15x10xf32> -> tensor<15x17xf32>"));
}

// C5: operations before a window are computed once per row, so elementwise
// operations move nothing. Two windows with the same halo share its rows.
TEST_F(CasesTest, C5ElementwiseChainWithHalo) {
  const std::string window =
      " window = [4, 1] strides = [1, 1] dilations = [1, 1] low = [2, 0] "
      "high = [1, 0] " +
      placed(R"({"x"}, {})") + " : tensor<8x16xf32> -> tensor<8x16xf32>\n";
  divide(R"("x"=4)", "func.func @main(" +
                         argument("x", "8x16xf32", R"({"x"}, {})") +
                         ") -> tensor<8x16xf32> {\n%0 = math.exp %x " +
                         placed(R"({"x"}, {})") +
                         " : tensor<8x16xf32>\n%1 = arith.addf %0, %x " +
                         placed(R"({"x"}, {})") +
                         " : tensor<8x16xf32>\n%2 = nn.reduce_window sum %1" +
                         window + "%3 = math.exp %2 " + placed(R"({"x"}, {})") +
                         " : tensor<8x16xf32>\nreturn %3 : "
                         "tensor<8x16xf32>\n}");
  EXPECT_THAT(sent_, ElementsAre("exchange over x: 192"));
  EXPECT_THAT(text_, HasSubstr("math.exp %arg0 : tensor<2x16xf32>"));
  EXPECT_THAT(text_, HasSubstr("tensor<2x16xf32> -> tensor<5x16xf32>"));
}

// The gradient of a filter as a convolution: [N, C, H, W] becomes an image with
// N channels. The gradient of the result, [N, O, H', W'], becomes its kernel,
// dilated by the forward strides. Batch 4, 3 channels, 2 filters.
struct FilterGradient {
  int size, grad, dilation, low, high;
  std::string image, kernel;  // shardings; the result is not divided
};

std::string gradientText(const FilterGradient& g) {
  const auto square = [](int size) {
    return std::to_string(size) + "x" + std::to_string(size) + "xf32";
  };
  const auto pair = [](int a) {
    return "[" + std::to_string(a) + ", " + std::to_string(a) + "]";
  };
  const int made = g.low + g.size + g.high - g.dilation * (g.grad - 1);
  const std::string x = "3x4x" + square(g.size), w = "2x4x" + square(g.grad),
                    y = "3x2x" + square(made);
  return "func.func @main(" + argument("x", x, g.image) + ", " +
         argument("w", w, g.kernel) + ") -> tensor<" + y +
         "> {\n%0 = nn.conv %x, %w strides = [1, 1] dilations = " +
         pair(g.dilation) + " low = " + pair(g.low) +
         " high = " + pair(g.high) + " groups = 1 " + placed("{}, {}, {}, {}") +
         " : tensor<" + x + ">, tensor<" + w + "> -> tensor<" + y +
         ">\nreturn %0 : tensor<" + y + ">\n}";
}

// The same gradient as one operation, for a filter of `window` rows and columns
// with this stride.
std::string weightGradText(int size, int grad, int window, int stride, int low,
                           int high) {
  const auto square = [](int n) {
    return std::to_string(n) + "x" + std::to_string(n) + "xf32";
  };
  const auto pair = [](int a) {
    return " = [" + std::to_string(a) + ", " + std::to_string(a) + "]";
  };
  const std::string by_rows = R"({}, {}, {"h"}, {})";
  const std::string x = "4x3x" + square(size), g = "4x2x" + square(grad),
                    w = "2x3x" + square(window);
  return "func.func @main(" + argument("x", x, by_rows) + ", " +
         argument("g", g, by_rows) + ") -> tensor<" + w +
         "> {\n%0 = nn.conv_weight_grad %x, %g strides" + pair(stride) +
         " dilations = [1, 1] low" + pair(low) + " high" + pair(high) +
         " groups = 1 " + placed("{}, {}, {}, {}") + " : tensor<" + x +
         ">, tensor<" + g + "> -> tensor<" + w + ">\nreturn %0 : tensor<" + w +
         ">\n}";
}

// C6 to C8 with smaller image sizes. One axis divides H of the image and of the
// gradient. Only the image's halo rows and the sum are sent.
TEST_F(CasesTest, C6FilterGradient) {
  divide(R"("h"=2)", weightGradText(8, 8, 3, 1, 1, 1));
  EXPECT_THAT(sent_,
              ElementsAre("exchange over h: 384", "all_reduce over h: 216"));
}

// Four rows of the gradient need 13 rows of the image: 3 before the device's
// own 8, and 2 after.
TEST_F(CasesTest, C7FilterGradientOfAStride) {
  divide(R"("h"=2)", weightGradText(16, 8, 7, 2, 3, 2));
  EXPECT_THAT(sent_,
              ElementsAre("exchange over h: 2304", "all_reduce over h: 1176"));
}

// 4 and 3 rows of the gradient, 7 and 7 of the image. The first device lacks
// one row, and the second masks its rows beyond the end. (XLA also moves rows
// of the gradient.)
TEST_F(CasesTest, C8FilterGradientOfUnevenRows) {
  divide(R"("h"=2)", weightGradText(14, 7, 3, 2, 1, 0));
  EXPECT_THAT(sent_,
              ElementsAre("exchange over h: 672", "all_reduce over h: 216"));
}

// In a convolution with the gradient as its kernel, the gradient is gathered,
// because nn.conv has no rule for a divided kernel.
TEST_F(CasesTest, C6C7C8AsConvolutions) {
  const std::string by_rows = R"({}, {}, {"h"}, {})";
  for (const FilterGradient& g :
       {FilterGradient{8, 8, 1, 1, 1, by_rows, by_rows},
        FilterGradient{16, 8, 2, 3, 2, by_rows, by_rows},
        FilterGradient{14, 7, 2, 1, 0, by_rows, by_rows}})
    divide(R"("h"=2)", gradientText(g));
}

// C9: the kernel's batch is divided, and the image's rows. The batch entry
// comes first, so the image changes from rows to batch and the result is
// summed. Nothing is gathered.
TEST_F(CasesTest, C9RowsAgainstBatch) {
  divide(R"("h"=2)", gradientText({8, 8, 1, 1, 1, R"({}, {}, {"h"}p2, {})",
                                   R"({}, {"h"}p1, {}, {})"}));
  EXPECT_THAT(sent_,
              ElementsAre("all_to_all over h: 768", "all_reduce over h: 216"));
}

// C11: a 7 x 7 convolution with stride 2 and padding 3, divided over the batch
// only.
TEST_F(CasesTest, C11BatchAlone) {
  const std::string x = "4x3x14x14xf32", w = "2x3x7x7xf32", y = "4x2x7x7xf32";
  divide(R"("d"=2)",
         "func.func @main(" + argument("x", x, R"({"d"}, {}, {}, {})") + ", " +
             argument("w", w, "{}, {}, {}, {}") + ") -> tensor<" + y +
             "> {\n%0 = nn.conv %x, %w strides = [2, 2] dilations = [1, 1] "
             "low = [3, 3] high = [3, 3] groups = 1 " +
             placed(R"({"d"}, {}, {}, {})") + " : tensor<" + x + ">, tensor<" +
             w + "> -> tensor<" + y + ">\nreturn %0 : tensor<" + y + ">\n}");
  EXPECT_THAT(sent_, IsEmpty());
}

}  // namespace
}  // namespace partita::partition
