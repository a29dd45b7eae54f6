// Library operations of the CPU: what they share, and the one that runs a
// oneDNN primitive.
#ifndef PARTITA_RUNTIME_CPU_LIBRARY_OP_H_
#define PARTITA_RUNTIME_CPU_LIBRARY_OP_H_

#include <cstdint>
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

// Runs on the calling thread, or on the device's pool.
class CpuOp : public device::LibraryOp {
 public:
  virtual int64_t scratch_bytes() const = 0;
  virtual absl::Status Run(void* const* buffers, char* scratch) = 0;

  // How many threads it was prepared for, and so must be run with.
  int threads() const { return threads_; }
  void set_threads(int threads) { threads_ = threads; }

 private:
  int threads_ = 1;
};

// A constant in oneDNN's own layout.
struct PackedWeight {
  dnnl_memory_desc_t source;
  dnnl_memory_desc_t desc;
  void* data = nullptr;
  int64_t bytes = 0;
  int64_t* total = nullptr;  // the device's count of packed bytes

  PackedWeight() = default;
  PackedWeight(const PackedWeight&) = delete;
  PackedWeight& operator=(const PackedWeight&) = delete;
  ~PackedWeight();
};

// What the operations of one device share.
struct DnnlContext {
  DnnlEngine engine;
  DnnlStream stream;
  // Packed once per constant and layout, for as long as an operation uses it.
  std::multimap<const void*, std::weak_ptr<PackedWeight>> packed;
  int64_t packed_bytes = 0;

  static absl::StatusOr<std::unique_ptr<DnnlContext>> Create();
};

// A constant operand. `identity` is the pointer the device was given; `data` is
// where the content lies during preparation, elsewhere if it had to be
// converted first.
struct Constant {
  const void* identity = nullptr;
  const void* data = nullptr;
};

// One argument of a oneDNN primitive.
struct DnnlOperand {
  int argument;             // DNNL_ARG_...
  int index;                // among the operation's buffers
  dnnl_memory_desc_t desc;  // as it lies in the buffer
  Constant constant;        // identity null: not a constant
  bool output = false;
  // Of a residual, which may lie where the output does: the output's index.
  int output_index = -1;
};

// An operand of this argument is copied to the output, to which the primitive
// adds (MakeAttr).
inline constexpr int kSummed = -1;

// A primitive and its arguments. Operands whose layout is not what the
// primitive wants are packed if they are constant, else reordered through
// scratch at every run.
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
    DnnlMemory memory;  // what the primitive sees
    void* current = nullptr;
    std::shared_ptr<PackedWeight> packed;
    // Set where the buffer's layout differs and is not packed.
    DnnlMemory buffer;
    DnnlPrimitive reorder;
    int64_t staging_offset = 0;
    int output_index = -1;  // staged only where it lies in this one
    bool summed = false;    // goes into the output, unless it lies there
  };

  explicit DnnlOp(DnnlContext& context) : context_(context) {}
  absl::Status AddArgument(const_dnnl_primitive_desc_t desc,
                           const DnnlOperand& operand);
  // A primitive may write results before it reads what is added to them.
  absl::Status StageResidual(const DnnlOperand& operand, Argument& argument);
  absl::Status Sum(const_dnnl_primitive_desc_t desc,
                   const DnnlOperand& operand);
  static absl::Status CheckReorder(const Argument& argument);
  absl::Status Stage(const dnnl_memory_desc_t& wanted,
                     const DnnlOperand& operand, Argument& argument);
  absl::Status Point(Argument& argument, void* data);
  absl::Status Reorder(const Argument& argument, void* buffer);

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
