// Translates a program's library operations and tensor maps to device types.
#ifndef PARTITA_RUNTIME_EXECUTOR_LIBRARY_DESC_H_
#define PARTITA_RUNTIME_EXECUTOR_LIBRARY_DESC_H_

#include <string>
#include <vector>

#include "runtime/device/operations.h"
#include "runtime/executor/profile.h"
#include "runtime/program/program_generated.h"

namespace partita::executor {

// Defined for every value that passes the program's validation.
device::Activation ToDevice(program::Activation activation);
device::Factors ToDevice(program::GemmFactors factors);
device::Preactivation ToDevice(program::Preactivation preactivation);
device::Sums ToDevice(program::GemmSums sums);
device::ConvDirection ToDevice(program::ConvDirection direction);

device::GemmDesc ToDesc(const program::Gemm& gemm);
device::GroupedGemmDesc ToDesc(const program::GroupedGemm& gemm);
device::ConvDesc ToDesc(const program::Conv& conv);
device::AttentionDesc ToDesc(const program::Attention& attention);
std::vector<device::TensorMapDesc> MapsOf(const program::Launch& launch);

// Keys of two descriptions are equal only if the descriptions are.
std::string KeyOf(const device::GemmDesc& desc);
std::string KeyOf(const device::GroupedGemmDesc& desc);
std::string KeyOf(const device::ConvDesc& desc);
std::string KeyOf(const device::AttentionDesc& desc);

// "gemm 1x8x64x32 f32 bias relu" and its FLOPs; `bytes` stays 0.
StepLabel LabelOf(const device::GemmDesc& desc);
StepLabel LabelOf(const device::GroupedGemmDesc& desc);
StepLabel LabelOf(const device::ConvDesc& desc);

}  // namespace partita::executor

#endif  // PARTITA_RUNTIME_EXECUTOR_LIBRARY_DESC_H_
