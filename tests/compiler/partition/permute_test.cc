// Executes moves between devices for every order of two and three axes.
#include <gtest/gtest.h>

#include "tests/compiler/partition/divided_fixture.h"

namespace partita::partition {
namespace {

class PermuteTest : public DividedTest {
 protected:
  // Reshards a value from `from` to `to`.
  void move(const std::string& from, const std::string& to) {
    SCOPED_TRACE(from + " to " + to);
    divide(R"("a"=2, "b"=2, "c"=2)",
           "func.func @main(" + argument("x", "16x8xf32", from) +
               ") -> tensor<16x8xf32> {\n%0 = arith.negf %x " + placed(to) +
               " : tensor<16x8xf32>\nreturn %0 : tensor<16x8xf32>\n}");
  }
};

TEST_F(PermuteTest, EveryPlacementToEveryOther) {
  const std::vector<std::string> placements = {
      R"({"a"}, {})",           R"({"b"}, {})",
      R"({"a", "b"}, {})",      R"({"b", "a"}, {})",
      R"({"a"}, {"b"})",        R"({"b"}, {"a"})",
      R"({"a", "b"}, {"c"})",   R"({"c", "a"}, {"b"})",
      R"({"b", "c", "a"}, {})", R"({"c", "b", "a"}, {})",
      R"({"a"}, {"c", "b"})",   R"({}, {"b", "c"})"};
  for (const std::string& from : placements)
    for (const std::string& to : placements) move(from, to);
}

}  // namespace
}  // namespace partita::partition
