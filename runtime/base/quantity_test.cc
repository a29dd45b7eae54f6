#include "runtime/base/quantity.h"

#include "gtest/gtest.h"

namespace partita::base {
namespace {

TEST(QuantityTest, BytesInTheUnitThatFits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(832), "832 B");
  EXPECT_EQ(FormatBytes(45056), "45.1 KB");
  EXPECT_EQ(FormatBytes(999'949), "999.9 KB");
  EXPECT_EQ(FormatBytes(999'951), "1.0 MB");
  EXPECT_EQ(FormatBytes(1'234'000'000), "1.2 GB");
  EXPECT_EQ(FormatBytes(5'000'000'000'000'000), "5000.0 TB");
}

TEST(QuantityTest, CountsInWords) {
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1.0 thousand");
  EXPECT_EQ(FormatCount(30592), "30.6 thousand");
  EXPECT_EQ(FormatCount(124'439'808), "124.4 million");
  EXPECT_EQ(FormatCount(-30592), "-30.6 thousand");
}

TEST(QuantityTest, SecondsHaveThreeDigitsBelowOne) {
  EXPECT_EQ(FormatSeconds(0), "0.000 s");
  EXPECT_EQ(FormatSeconds(14.34149), "14.341 s");
  EXPECT_EQ(FormatSeconds(0.99949), "999 ms");
  EXPECT_EQ(FormatSeconds(0.9996), "1.000 s");
  EXPECT_EQ(FormatSeconds(0.12869), "129 ms");
  EXPECT_EQ(FormatSeconds(0.01037), "10.4 ms");
  EXPECT_EQ(FormatSeconds(0.0010349), "1.03 ms");
  EXPECT_EQ(FormatSeconds(0.00099961), "1.00 ms");
  EXPECT_EQ(FormatSeconds(0.0000702), "70.2 us");
  EXPECT_EQ(FormatSeconds(0.0000000012), "0.00 us");
  EXPECT_EQ(FormatSeconds(-0.0021), "-2.10 ms");
}

}  // namespace
}  // namespace partita::base
