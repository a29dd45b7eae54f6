// Tests the list of devices, its checks, and the choice of a model's device.
#include "runtime/session/devices.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/device/null_device.h"
#include "runtime/program/test_program.h"
#include "runtime/session/make_device.h"
#include "runtime/session/open_ranks.h"
#include "runtime/session/options.h"

namespace partita::session {
namespace {

using ::testing::HasSubstr;

device::DeviceKind Named(const std::string& name,
                         const std::vector<std::string>& targets = {}) {
  device::DeviceKind kind = device::NullKind();
  kind.name = name;
  kind.targets = targets;
  return kind;
}

std::string Refusal(const DeviceList& devices) {
  return std::string(CheckDevices(devices).message());
}

TEST(DevicesTest, TheListIsSound) {
  EXPECT_EQ(Refusal(Devices()), "");
  EXPECT_EQ(DeviceNames(Devices()), "cpu, cuda or null");
  EXPECT_EQ(DeviceNames(Devices(), DeviceSet::kExecuting), "cpu or cuda");
  EXPECT_EQ(DeviceNames(Devices(), DeviceSet::kAll, "|"), "cpu|cuda|null");
  // The first device refuses programs whose target no device runs.
  EXPECT_TRUE(Devices().front().executes);
}

TEST(DevicesTest, TwoDevicesOfOneNameAreRefused) {
  EXPECT_EQ(Refusal({Named("a"), Named("b"), Named("a")}),
            "list of devices: expected one device per name, found two named "
            "'a'; rename one in runtime/session/devices.cc");
  EXPECT_EQ(Refusal({Named("a"), Named("b"), Named("aa")}), "");
}

TEST(DevicesTest, TwoDevicesForOneTargetAreRefused) {
  EXPECT_EQ(Refusal({Named("a", {"x", "y"}), Named("b", {"y"})}),
            "list of devices: expected one device per kind of target, found a "
            "second one for 'y': 'b'; take the target from one of the two");
  EXPECT_EQ(Refusal({Named("a", {"x", "y"}), Named("b", {"z"})}), "");
}

TEST(DevicesTest, IncompleteDevicesAreRefused) {
  EXPECT_THAT(Refusal({Named("")}), HasSubstr("found '' with a factory"));
  device::DeviceKind kind = Named("a");
  kind.make = nullptr;
  EXPECT_THAT(Refusal({kind}), HasSubstr("found 'a' without a factory"));
}

TEST(DevicesTest, NamesOfShortLists) {
  EXPECT_EQ(DeviceNames({}), "");
  EXPECT_EQ(DeviceNames({Named("a")}), "a");
  EXPECT_EQ(DeviceNames({Named("a"), Named("b")}), "a or b");
  EXPECT_EQ(DeviceNames({Named("a")}, DeviceSet::kExecuting), "");
}

TEST(DevicesTest, TargetsHaveOneDevice) {
  const auto device_of = [](const char* target) -> std::string {
    const device::DeviceKind* const found =
        FindDeviceOfTarget(Devices(), target);
    return found == nullptr ? "none" : found->name;
  };
  EXPECT_EQ(device_of("cpu"), "cpu");
  EXPECT_EQ(device_of("cuda:sm_90a"), "cuda");
  for (const char* target : {"", "null", "tpu", "cuda:", "cudax:sm_90"})
    EXPECT_EQ(device_of(target), "none") << target;
}

// Every name of the list makes a device of that name, on machines that have it.
TEST(DevicesTest, DevicesHaveTheirNames) {
  for (const device::DeviceKind& kind : Devices()) {
    const auto made = kind.make({}, 0, 1);
    if (made.ok()) EXPECT_EQ((*made)->Name(), kind.name);
    EXPECT_TRUE(made.ok() || kind.is_gpu) << made.status();
  }
}

class ModelDeviceTest : public ::testing::Test {
 protected:
  absl::StatusOr<const device::DeviceKind*> Device(const char* target) {
    program::ProgramT sample;
    if (target != nullptr) sample.target = target;
    const std::string bytes = program::SerializeProgram(sample);
    return DeviceOf(options_, *program::GetProgram(bytes.data()));
  }

  SessionOptions options_;
};

TEST_F(ModelDeviceTest, TheTargetDecides) {
  EXPECT_EQ((*Device("cuda:sm_80"))->name, "cuda");
  EXPECT_EQ((*Device("cpu"))->name, "cpu");
  EXPECT_EQ((*Device(nullptr))->name, "cpu");
  // The CPU device refuses the code.
  EXPECT_EQ((*Device("tpu:v4"))->name, "cpu");
}

TEST_F(ModelDeviceTest, OptionsOutrankTheTarget) {
  options_.device = "null";
  EXPECT_EQ((*Device("cuda:sm_80"))->name, "null");
  EXPECT_EQ((*Device("tpu:v4"))->name, "null");
}

TEST_F(ModelDeviceTest, UnknownDevicesAreRefusedWithAllNames) {
  for (const char* name : {"tpu", "CPU", "cuda:sm_80", "cpu,cuda", " cpu"}) {
    options_.device = name;
    const absl::Status status = Device("cpu").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(std::string(status.message()),
              std::string("expected the device cpu, cuda or null, found '") +
                  name + "'");
  }
}

}  // namespace
}  // namespace partita::session
