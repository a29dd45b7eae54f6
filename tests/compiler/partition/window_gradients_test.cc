// Gradients of windows, divided: every stride, dilation and padding, with sizes
// that are and are not multiples of the blocks.
#include <gtest/gtest.h>

#include "tests/compiler/partition/divided_fixture.h"

namespace partita::partition {
namespace {

struct Geometry {
  int size, window, stride, dilation, low, high;

  int rows() const {
    return (size + low + high - (window - 1) * dilation - 1) / stride + 1;
  }
  bool isPossible() const {
    return size + low + high > (window - 1) * dilation;
  }
  std::string attributes() const {
    const auto list = [](int value) {
      return " = [" + std::to_string(value) + "]";
    };
    return "strides" + list(stride) + " dilations" + list(dilation) + " low" +
           list(low) + " high" + list(high) + " groups = 1 ";
  }
  std::string window_attributes() const {
    const auto list = [](const std::string& first, int value) {
      return " = [" + first + ", " + std::to_string(value) + "]";
    };
    return "window" + list("1", window) + " strides" + list("1", stride) +
           " dilations" + list("1", dilation) + " low" + list("0", low) +
           " high" + list("0", high) + " ";
  }
};

std::string line(const std::string& op, const std::string& dims,
                 const std::string& operands, const std::string& result) {
  return "%0 = " + op + placed(dims) + " : " + operands + " -> tensor<" +
         result + ">\nreturn %0 : tensor<" + result + ">\n}";
}

class WindowGradientsTest : public DividedTest {
 protected:
  template <typename Test>
  void forEachGeometry(Test test) {
    for (int size : {7, 8, 12})
      for (int window : {1, 2, 3})
        for (int stride : {1, 2, 3})
          for (int dilation : {1, 2})
            for (auto [low, high] : {std::pair(0, 0), {1, 1}, {0, 1}, {2, 0}}) {
              const Geometry geometry = {size,     window, stride,
                                         dilation, low,    high};
              if (!geometry.isPossible() || (window == 1 && dilation == 2))
                continue;
              SCOPED_TRACE(geometry.window_attributes() + "size " +
                           std::to_string(size));
              test(geometry);
            }
  }
  // No size is a multiple of 3 devices.
  void divideOver(const std::string& function) {
    divide(R"("x"=2)", function);
    divide(R"("x"=3)", function);
  }

  void inputGradient(const Geometry& g) {
    const std::string image = "2x2x" + std::to_string(g.size) + "xf32",
                      result = "2x3x" + std::to_string(g.rows()) + "xf32",
                      weight = "3x2x" + std::to_string(g.window) + "xf32",
                      rows = R"({}, {}, {"x"})";
    divideOver("func.func @main(" + argument("g", result, rows) + ", " +
               argument("w", weight, "{}, {}, {}") + ") -> tensor<" + image +
               "> {\n" +
               line("nn.conv_input_grad %g, %w " + g.attributes(), rows,
                    "tensor<" + result + ">, tensor<" + weight + ">", image));
  }
  void weightGradient(const Geometry& g) {
    const std::string image = "2x2x" + std::to_string(g.size) + "xf32",
                      result = "2x3x" + std::to_string(g.rows()) + "xf32",
                      weight = "3x2x" + std::to_string(g.window) + "xf32",
                      rows = R"({}, {}, {"x"})";
    divideOver("func.func @main(" + argument("x", image, rows) + ", " +
               argument("g", result, rows) + ") -> tensor<" + weight + "> {\n" +
               line("nn.conv_weight_grad %x, %g " + g.attributes(),
                    "{}, {}, {}",
                    "tensor<" + image + ">, tensor<" + result + ">", weight));
  }
  void sumGradient(const Geometry& g) {
    const std::string image = "2x" + std::to_string(g.size) + "xf32",
                      result = "2x" + std::to_string(g.rows()) + "xf32",
                      rows = R"({}, {"x"})";
    divideOver("func.func @main(" + argument("g", result, rows) +
               ") -> tensor<" + image + "> {\n" +
               line("nn.reduce_window_grad sum %g " + g.window_attributes(),
                    rows, "(tensor<" + result + ">)", image));
  }
  void maximumGradient(const Geometry& g) {
    const std::string image = "2x" + std::to_string(g.size) + "xf32",
                      result = "2x" + std::to_string(g.rows()) + "xf32",
                      rows = R"({}, {"x"})";
    divideOver("func.func @main(" + argument("g", result, rows) + ", " +
               argument("x", image, rows) + ") -> tensor<" + image + "> {\n" +
               line("nn.reduce_window_grad max %g, %x " + g.window_attributes(),
                    rows, "(tensor<" + result + ">, tensor<" + image + ">)",
                    image));
  }
};

TEST_F(WindowGradientsTest, OfAConvolutionsInput) {
  forEachGeometry([this](const Geometry& g) { inputGradient(g); });
}

TEST_F(WindowGradientsTest, OfAConvolutionsWeight) {
  forEachGeometry([this](const Geometry& g) { weightGradient(g); });
}

TEST_F(WindowGradientsTest, OfASum) {
  forEachGeometry([this](const Geometry& g) { sumGradient(g); });
}

TEST_F(WindowGradientsTest, OfAMaximum) {
  forEachGeometry([this](const Geometry& g) { maximumGradient(g); });
}

}  // namespace
}  // namespace partita::partition
