// Library operations of the CPU: their base class, and the class that runs a
// oneDNN primitive.
#ifndef PARTITA_RUNTIME_CPU_LIBRARY_OP_H_
#define PARTITA_RUNTIME_CPU_LIBRARY_OP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cpu/dnnl_handles.h"
#include "runtime/cpu/memory.h"
#include "runtime/device/device.h"

namespace partita::cpu {

// A library operation that runs on the calling thread or on the device's
// threads.
class CpuOp : public device::LibraryOp {
 public:
  virtual int64_t scratch_bytes() const = 0;
  virtual absl::Status Run(void* const* buffers, char* scratch) = 0;

  // The number of threads it was prepared for, which Run must use.
  int threads() const { return threads_; }
  void set_threads(int threads) { threads_ = threads; }

 private:
  int threads_ = 1;
};

// A constant copied into a oneDNN layout.
struct PackedWeight {
  dnnl_memory_desc_t source;
  dnnl_memory_desc_t desc;
  std::string layout;  // empty: oneDNN's
  void* data = nullptr;
  int64_t bytes = 0;
  int64_t* total = nullptr;  // the device's count of packed bytes

  PackedWeight() = default;
  PackedWeight(const PackedWeight&) = delete;
  PackedWeight& operator=(const PackedWeight&) = delete;
  ~PackedWeight();
};

// State that the operations of one device share.
struct DnnlContext {
  DnnlEngine engine;
  DnnlStream stream;
  // Packed constants by pointer, one per constant and layout. A constant lives
  // as long as an operation uses it.
  std::multimap<const void*, std::weak_ptr<PackedWeight>> packed;
  int64_t packed_bytes = 0;

  static absl::StatusOr<std::unique_ptr<DnnlContext>> Create();
};

// A constant operand. `identity` is the pointer that the device was given.
// `data` points to the content during preparation; it differs if the content
// was converted first.
struct Constant {
  const void* identity = nullptr;
  const void* data = nullptr;
};

// The constant, of layout `source`, copied into layout `wanted`: an earlier
// copy if there is one.
absl::StatusOr<std::shared_ptr<PackedWeight>> PackConstant(
    DnnlContext& context, const Constant& constant,
    const dnnl_memory_desc_t& source, const dnnl_memory_desc_t& wanted);

// The same for a layout that is not oneDNN's: `fill` writes the copy. `wanted`
// has the size of the copy. Together with `layout` it differs from all other
// layouts of the constant. oneDNN compares no strides of dimensions of size 1.
absl::StatusOr<std::shared_ptr<PackedWeight>> PackConstant(
    DnnlContext& context, const void* identity,
    const dnnl_memory_desc_t& source, const dnnl_memory_desc_t& wanted,
    const std::function<absl::Status(void* target)>& fill,
    absl::string_view layout = "");

// One argument of a oneDNN primitive.
struct DnnlOperand {
  int argument;             // DNNL_ARG_...
  int index;                // among the operation's buffers
  dnnl_memory_desc_t desc;  // layout in the buffer
  Constant constant;        // null identity: not a constant
  bool output = false;
  // For a residual that may share memory with the output: the index of the
  // output. Else -1.
  int output_index = -1;
};

// A DnnlOperand::argument: the operand is copied to the output, to which the
// primitive adds its result (`sums` in MakeAttr).
inline constexpr int kSummed = -1;

// A primitive and its arguments. An operand in another layout than the
// primitive wants is packed if constant; else it is reordered through scratch
// at every run.
class DnnlOp : public CpuOp {
 public:
  static absl::StatusOr<std::unique_ptr<DnnlOp>> Create(
      DnnlContext& context, DnnlPrimitiveDesc desc,
      const std::vector<DnnlOperand>& operands);

  int64_t scratch_bytes() const override { return scratch_bytes_; }
  absl::Status Run(void* const* buffers, char* scratch) override;
  bool Packed(int index) const override;
  std::string Description() const override { return description_; }

 private:
  struct Argument {
    int index;
    bool output;
    DnnlMemory memory;  // in the primitive's layout
    void* current = nullptr;
    std::shared_ptr<PackedWeight> packed;
    // Set if the buffer has another layout and is not packed.
    DnnlMemory buffer;
    DnnlPrimitive reorder;
    int64_t staging_offset = 0;
    DnnlMemory reorder_scratch;  // null: the reorder needs none
    int64_t reorder_scratch_offset = 0;
    int output_index = -1;  // >= 0: staged only if in this buffer
    bool summed = false;    // copied to the output unless it is there
  };

  explicit DnnlOp(DnnlContext& context) : context_(context) {}
  absl::Status AddArgument(const_dnnl_primitive_desc_t desc,
                           const DnnlOperand& operand);
  // Stages a residual that shares the output's memory: a primitive may write
  // results before it reads the residual.
  absl::Status StageResidual(const DnnlOperand& operand, Argument& argument);
  absl::Status Sum(const_dnnl_primitive_desc_t desc,
                   const DnnlOperand& operand);
  static absl::Status CheckReorder(const Argument& argument);
  absl::Status Stage(const dnnl_memory_desc_t& wanted,
                     const DnnlOperand& operand, Argument& argument);
  absl::Status Point(Argument& argument, void* data);
  absl::Status Reorder(const Argument& argument, void* buffer, char* scratch);
  absl::Status AddReorderScratch(Argument& argument);

  DnnlContext& context_;
  DnnlPrimitive primitive_;
  std::string description_;
  std::vector<Argument> arguments_;
  std::vector<dnnl_exec_arg_t> exec_arguments_;
  DnnlMemory scratchpad_;
  void* scratchpad_current_ = nullptr;
  int64_t scratch_bytes_ = 0;
};

}  // namespace partita::cpu

#endif  // PARTITA_RUNTIME_CPU_LIBRARY_OP_H_
