// Computes the arguments of the runtime's own kernels, and launches them.
#include "runtime/cuda/own_ops.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/cuda/product_plan.h"
#include "runtime/program/library_limits.h"

namespace partita::cuda {

// PTX of own_kernels.cu, generated when this library is built.
extern const char kOwnKernelsPtx[];

namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kPart = program::kFactorSumRows;

absl::StatusOr<KernelType> TypeOf(base::DType dtype) {
  switch (dtype) {
    case base::DType::kF32:
      return KernelType::kF32;
    case base::DType::kF16:
      return KernelType::kF16;
    case base::DType::kBF16:
      return KernelType::kBF16;
    case base::DType::kF8E4M3:
      return KernelType::kF8E4M3;
    case base::DType::kF8E5M2:
      return KernelType::kF8E5M2;
    default:
      return absl::UnimplementedError(absl::StrCat(
          "expected floats of at most 32 bits, found ", base::NameOf(dtype)));
  }
}

KernelActivation ActivationOf(device::Activation activation) {
  switch (activation) {
    case device::Activation::kNone:
      break;
    case device::Activation::kRelu:
      return KernelActivation::kRelu;
    case device::Activation::kGeluErf:
      return KernelActivation::kGeluErf;
    case device::Activation::kGeluTanh:
      return KernelActivation::kGeluTanh;
    case device::Activation::kSilu:
      return KernelActivation::kSilu;
    case device::Activation::kTanh:
      return KernelActivation::kTanh;
    case device::Activation::kSigmoid:
      return KernelActivation::kSigmoid;
    case device::Activation::kRelu6:
      return KernelActivation::kRelu6;
    case device::Activation::kHardSwish:
      return KernelActivation::kHardSwish;
  }
  return KernelActivation::kNone;
}

class OwnProduct : public CudaOp {
 public:
  OwnProduct(std::shared_ptr<const OwnKernels> kernels, CuFunction function,
             const device::GemmDesc& desc, const ProductArgs& args,
             FactorSums sums)
      : CudaOp(device::OperandCount(desc)),
        kernels_(std::move(kernels)),
        function_(function),
        desc_(desc),
        args_(args),
        sums_(std::move(sums)) {
    scratch_bytes_ = sums_.scratch_bytes();
  }
  std::string Description() const override { return "own kernel"; }
  absl::Status Run(CuStream stream, void* const* buffers,
                   void* scratch) override {
    SetOperands(desc_, buffers, args_);
    PARTITA_RETURN_IF_ERROR(
        kernels_->Launch(stream, function_, &args_, args_.count));
    return sums_.Run(stream, buffers, scratch);
  }

 private:
  const std::shared_ptr<const OwnKernels> kernels_;
  const CuFunction function_;
  const device::GemmDesc desc_;
  ProductArgs args_;
  FactorSums sums_;
};

class OwnConv : public CudaOp {
 public:
  OwnConv(std::shared_ptr<const OwnKernels> kernels, CuFunction function,
          const device::ConvDesc& desc, const ConvArgs& args)
      : CudaOp(device::OperandCount(desc.has_bias, desc.has_residual)),
        kernels_(std::move(kernels)),
        function_(function),
        desc_(desc),
        args_(args) {}
  std::string Description() const override { return "own kernel"; }
  absl::Status Run(CuStream stream, void* const* buffers,
                   void* scratch) override {
    SetOperands(desc_, buffers, args_);
    return kernels_->Launch(stream, function_, &args_, args_.count);
  }

 private:
  const std::shared_ptr<const OwnKernels> kernels_;
  const CuFunction function_;
  const device::ConvDesc desc_;
  ConvArgs args_;
};

int64_t Product(const std::vector<int64_t>& sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const OwnKernels>> OwnKernels::Load(
    std::shared_ptr<Context> context) {
  auto kernels = std::make_shared<OwnKernels>();
  PARTITA_ASSIGN_OR_RETURN(kernels->module_,
                           CudaModule::Load(context, kOwnKernelsPtx));
  kernels->context_ = std::move(context);
  return std::shared_ptr<const OwnKernels>(std::move(kernels));
}

absl::Status OwnKernels::Launch(CuStream stream, CuFunction function,
                                const void* args, int64_t count) const {
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  if (blocks == 0) return absl::OkStatus();
  if (blocks > std::numeric_limits<int>::max())
    return absl::UnimplementedError(
        absl::StrCat(count, " elements are too many for one kernel"));
  void* parameters[] = {const_cast<void*>(args)};
  return context_->Check(
      context_->driver().Launch(function, static_cast<unsigned>(blocks), 1, 1,
                                kThreads, 1, 1, 0, stream, parameters, nullptr),
      "launching a kernel of the runtime");
}

absl::Status OwnKernels::Copy(CuStream stream, CuFunction copy_box,
                              const void* from, void* to, int64_t bytes) const {
  CopyBoxArgs args = {};
  args.from = static_cast<const char*>(from);
  args.to = static_cast<char*>(to);
  const uint64_t all = reinterpret_cast<uintptr_t>(from) |
                       reinterpret_cast<uintptr_t>(to) |
                       static_cast<uint64_t>(bytes) | 16;
  args.unit = static_cast<int>(all & (~all + 1));  // its lowest bit
  args.units = args.count = bytes / args.unit;
  for (int d = 0; d < 3; ++d) args.counts[d] = 1;
  return Launch(stream, copy_box, &args, args.count);
}

absl::StatusOr<ProductArgs> ToProductArgs(const device::GemmDesc& desc) {
  ProductArgs args = {};
  PARTITA_ASSIGN_OR_RETURN(args.type, TypeOf(desc.dtype));
  PARTITA_ASSIGN_OR_RETURN(args.lhs_type, TypeOf(LhsType(desc)));
  PARTITA_ASSIGN_OR_RETURN(args.rhs_type, TypeOf(RhsType(desc)));
  args.activation = ActivationOf(desc.activation);
  args.m = desc.m;
  args.n = desc.n;
  args.k = desc.k;
  args.count = desc.batch * desc.m * desc.n;
  std::copy(desc.lhs_strides.begin(), desc.lhs_strides.end(), args.lhs_strides);
  std::copy(desc.rhs_strides.begin(), desc.rhs_strides.end(), args.rhs_strides);
  std::copy(desc.out_strides.begin(), desc.out_strides.end(), args.out_strides);
  return args;
}

void SetOperands(const device::GemmDesc& desc, void* const* buffers,
                 ProductArgs& args) {
  size_t next = 0;
  args.lhs = buffers[next++];
  args.rhs = buffers[next++];
  args.scale =
      desc.has_scale() ? static_cast<const float*>(buffers[next++]) : nullptr;
  args.bias = desc.has_bias ? buffers[next++] : nullptr;
  args.residual = desc.has_residual ? buffers[next++] : nullptr;
  args.given = desc.preactivation == device::Preactivation::kGiven
                   ? buffers[next++]
                   : nullptr;
  args.out = buffers[next++];
  args.kept = desc.preactivation == device::Preactivation::kKept ? buffers[next]
                                                                 : nullptr;
}

absl::StatusOr<FactorSums> FactorSums::Make(
    std::shared_ptr<const OwnKernels> kernels, const device::GemmDesc& desc) {
  FactorSums sums;
  if (desc.sums == device::Sums::kNone) return sums;
  const bool is_lhs = desc.sums == device::Sums::kLhs;
  PARTITA_ASSIGN_OR_RETURN(sums.sum_parts_,
                           kernels->Find("partita_factor_parts"));
  PARTITA_ASSIGN_OR_RETURN(sums.add_parts_,
                           kernels->Find("partita_factor_sums"));
  PARTITA_ASSIGN_OR_RETURN(sums.args_.type, TypeOf(desc.dtype));
  sums.kernels_ = std::move(kernels);
  sums.factor_ = is_lhs ? 0 : 1;
  sums.out_ = device::OperandCount(desc) - 1;
  sums.args_.count = is_lhs ? desc.m : desc.n;
  sums.args_.k = desc.k;
  sums.args_.stride = is_lhs ? desc.lhs_strides[1] : desc.rhs_strides[2];
  sums.args_.k_stride = is_lhs ? desc.lhs_strides[2] : desc.rhs_strides[1];
  sums.args_.part = kPart;
  sums.args_.parts = (desc.k + kPart - 1) / kPart;
  return sums;
}

absl::Status FactorSums::Run(CuStream stream, void* const* buffers,
                             void* scratch) {
  if (!is_needed()) return absl::OkStatus();
  args_.factor = buffers[factor_];
  args_.part_sums = static_cast<float*>(scratch);
  args_.out = buffers[out_];
  PARTITA_RETURN_IF_ERROR(
      kernels_->Launch(stream, sum_parts_, &args_, args_.parts * args_.count));
  return kernels_->Launch(stream, add_parts_, &args_, args_.count);
}

absl::StatusOr<std::unique_ptr<CudaOp>> MakeOwnProduct(
    std::shared_ptr<const OwnKernels> kernels, const device::GemmDesc& desc) {
  PARTITA_ASSIGN_OR_RETURN(const CuFunction function,
                           kernels->Find("partita_product"));
  PARTITA_ASSIGN_OR_RETURN(const ProductArgs args, ToProductArgs(desc));
  PARTITA_ASSIGN_OR_RETURN(FactorSums sums, FactorSums::Make(kernels, desc));
  return std::unique_ptr<CudaOp>(std::make_unique<OwnProduct>(
      std::move(kernels), function, desc, args, std::move(sums)));
}

absl::StatusOr<ConvArgs> ToConvArgs(const device::ConvDesc& desc) {
  const size_t spatial = desc.weight_shape.size() - 2;
  if (spatial > 3)
    return absl::UnimplementedError(absl::StrCat(
        "convolutions on GPUs have up to 3 spatial dimensions, found ",
        spatial));
  ConvArgs args = {};
  PARTITA_ASSIGN_OR_RETURN(args.type, TypeOf(desc.dtype));
  args.activation = ActivationOf(desc.activation);
  args.channels_last = desc.channels_last;
  args.activates_sum = desc.activates_sum;
  args.groups = desc.groups;
  args.batch = desc.input_shape[0];
  args.channels = desc.weight_shape[1] * desc.groups;
  args.features = desc.weight_shape[0];
  const size_t first = desc.channels_last ? 1 : 2;
  for (size_t i = 0; i < 3; ++i) {
    args.input[i] = args.kernel[i] = args.output[i] = 1;
    args.strides[i] = args.dilations[i] = 1;
    if (i + spatial < 3) continue;
    const size_t dim = i + spatial - 3;
    args.input[i] = desc.input_shape[first + dim];
    args.kernel[i] = desc.weight_shape[2 + dim];
    args.output[i] = desc.out_shape[first + dim];
    args.strides[i] = desc.strides[dim];
    args.dilations[i] = desc.dilations[dim];
    args.low[i] = desc.low[dim];
  }
  switch (desc.direction) {
    case device::ConvDirection::kForward:
      args.count = Product(desc.out_shape);
      break;
    case device::ConvDirection::kInputGrad:
      args.count = Product(desc.input_shape);
      break;
    case device::ConvDirection::kWeightGrad:
      args.count = Product(desc.weight_shape);
      break;
  }
  return args;
}

void SetOperands(const device::ConvDesc& desc, void* const* buffers,
                 ConvArgs& args) {
  size_t next = 0;
  args.first = buffers[next++];
  args.second = buffers[next++];
  args.bias = desc.has_bias ? buffers[next++] : nullptr;
  args.residual = desc.has_residual ? buffers[next++] : nullptr;
  args.out = buffers[next];
}

absl::StatusOr<std::unique_ptr<CudaOp>> MakeOwnConv(
    std::shared_ptr<const OwnKernels> kernels, const device::ConvDesc& desc) {
  const char* symbol = "partita_conv_forward";
  if (desc.direction == device::ConvDirection::kInputGrad)
    symbol = "partita_conv_input_grad";
  if (desc.direction == device::ConvDirection::kWeightGrad)
    symbol = "partita_conv_weight_grad";
  PARTITA_ASSIGN_OR_RETURN(const ConvArgs args, ToConvArgs(desc));
  PARTITA_ASSIGN_OR_RETURN(const CuFunction function, kernels->Find(symbol));
  return std::unique_ptr<CudaOp>(
      std::make_unique<OwnConv>(std::move(kernels), function, desc, args));
}

}  // namespace partita::cuda
