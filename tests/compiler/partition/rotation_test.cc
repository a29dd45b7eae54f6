// Rotations of a divided dimension: gathers of all its rows in turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/compiler/partition/divided_fixture.h"

namespace partita::partition {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;

class RotationTest : public DividedTest {
 protected:
  // Row i of the result is row (i - distance) mod size of %x.
  void rotate(int size, int distance, const std::string& rows) {
    SCOPED_TRACE(std::to_string(size) + " rows by " + std::to_string(distance));
    std::string indices;
    for (int i = 0; i < size; ++i)
      indices += (i ? ", [" : "[") +
                 std::to_string((i - distance + size) % size) + "]";
    const std::string n = std::to_string(size);
    const std::string x = "3x" + n + "x2xf32", y = n + "x3x2xf32";
    divide(R"("a"=2, "b"=2)",
           "func.func @main(" + argument("x", x, "{}, " + rows + ", {}") +
               ") -> tensor<" + y + "> {\n%i = arith.constant {" +
               "dist.shardings = [#dist.sharding<[{}, {}]>]} dense<[" +
               indices + "]> : tensor<" + n + "x1xi64>\n" +
               "%0 = nn.gather %x[%i] axes = [1] " + placed(rows + ", {}, {}") +
               " : tensor<" + x + ">, tensor<" + n + "x1xi64> -> tensor<" + y +
               ">\nreturn %0 : tensor<" + y + ">\n}");
  }
};

TEST_F(RotationTest, OneRowPerDeviceTravelsOnce) {
  for (int distance = 0; distance < 4; ++distance) {
    rotate(4, distance, R"({"a", "b"})");
    EXPECT_THAT(sent_, ElementsAre(StartsWith("permute over a, b: 24")));
  }
  rotate(2, 1, R"({"b"})");
  EXPECT_THAT(sent_, ElementsAre(StartsWith("permute over b: 24")));
}

// Blocks of several rows, whole and with rows beyond the end.
TEST_F(RotationTest, BlocksComeFromTwoPlaces) {
  for (int size : {3, 5, 6, 7, 8, 12}) {
    for (int distance = 0; distance < size; ++distance) {
      rotate(size, distance, R"({"a", "b"})");
      EXPECT_THAT(sent_, Not(Contains(StartsWith("all_"))));
      rotate(size, distance, R"({"b"})");
    }
  }
}

}  // namespace
}  // namespace partita::partition
