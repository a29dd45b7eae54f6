// Programs built by hand, for tests of code that reads artifacts.
#ifndef PARTITA_RUNTIME_PROGRAM_TEST_PROGRAM_H_
#define PARTITA_RUNTIME_PROGRAM_TEST_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/program/artifact.h"

namespace partita::program {

std::unique_ptr<TensorTypeT> MakeType(DType dtype, std::vector<int64_t> shape);
std::unique_ptr<PortT> MakePort(const std::string& name, DType dtype,
                                std::vector<int64_t> shape);
std::unique_ptr<ParameterT> MakeSeeded(const std::string& name, DType dtype,
                                       std::vector<int64_t> shape,
                                       const std::string& kind, uint64_t seed);
std::unique_ptr<ParameterT> MakeFromFile(const std::string& name, DType dtype,
                                         std::vector<int64_t> shape,
                                         const std::string& path,
                                         uint64_t offset, DType stored);
std::unique_ptr<ParameterT> MakeEmbedded(const std::string& name, DType dtype,
                                         std::vector<int64_t> shape,
                                         uint64_t offset, DType stored);

std::unique_ptr<KernelT> MakeKernel(const std::string& name, double cycles = 0);

inline Buffer Argument(int64_t index, int64_t bytes) {
  return Buffer(Space::argument, index, bytes);
}
inline Buffer Frame(int64_t offset, int64_t bytes) {
  return Buffer(Space::frame, offset, bytes);
}
inline Buffer Constant(int64_t offset, int64_t bytes) {
  return Buffer(Space::constant, offset, bytes);
}

// The last `outputs` operands are written.
std::unique_ptr<InstructionT> MakeInstruction(OperationUnion operation,
                                              std::vector<Buffer> operands,
                                              int outputs,
                                              const std::string& name);
std::unique_ptr<InstructionT> MakeCopy(Buffer from, Buffer to);
// Adds the types of the outputs of steps with one output, which a trace of
// non-finite numbers needs: 8 bytes are i64, others f32.
void DescribeOutputs(ProgramT& program);
std::unique_ptr<InstructionT> MakeCall(int function, int64_t frame_offset,
                                       std::vector<Buffer> operands,
                                       int outputs);
std::unique_ptr<InstructionT> MakeLaunch(const LaunchT& launch,
                                         std::vector<Buffer> operands,
                                         int outputs);
// A row-major f32 product [m, k] x [k, n], with a bias and relu.
std::unique_ptr<InstructionT> MakeLinear(int64_t m, int64_t n, int64_t k,
                                         std::vector<Buffer> operands);
// A 3x3 f32 convolution of [1, channels, size, size] to as many channels.
std::unique_ptr<InstructionT> MakeConv3x3(int64_t channels, int64_t size,
                                          std::vector<Buffer> operands);
// A row-major f32 product [m, k] x [k, n]; a transposed operand is stored as
// [k, m] or [n, k].
struct Product {
  int64_t m, n, k;
  bool lhs_transposed = false;
  bool has_residual = false;
  bool rhs_transposed = false;
};
std::unique_ptr<InstructionT> MakeProduct(const Product& product,
                                          std::vector<Buffer> operands,
                                          const std::string& name);
std::unique_ptr<FunctionT> MakeFunction(const std::string& name, int arguments,
                                        int results, int64_t frame_bytes);

template <typename T>
std::string BytesOfValues(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

// Allocates memory of a frame, from offset 0 on.
class FrameSpace {
 public:
  Buffer Add(int64_t bytes) {
    const int64_t offset = bytes_;
    bytes_ += (bytes + 63) / 64 * 64;
    return Frame(offset, bytes);
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

std::unique_ptr<MeshT> MakeMesh(
    const std::vector<std::pair<std::string, int64_t>>& axes);
AxisPart WholeAxis(int64_t axis, int64_t size);
// `axes` has one list per dimension; blocks are even shares.
std::unique_ptr<ShardT> MakeShard(
    std::vector<int64_t> shape, const std::vector<std::vector<AxisPart>>& axes);
std::unique_ptr<InstructionT> MakeCollective(const CollectiveT& collective,
                                             Buffer in, Buffer out,
                                             const std::string& name);

// Waits for the collective with this token.
std::unique_ptr<InstructionT> MakeAwait(int token);

// An f32 sum over the devices along `axes`.
std::unique_ptr<InstructionT> MakeSum(const std::vector<AxisPart>& axes,
                                      std::vector<int64_t> shape, Buffer in,
                                      Buffer out, const std::string& name);

// Appends an entry with all of the program's inputs and outputs.
EntryT& AddEntry(ProgramT& program, int main, std::vector<int> globals);

// Two products over a mesh data x tensor, for x f32[batch,8]:
//   main: y = relu(x w0 + b0) w1, with the 7 columns of w0 divided over tensor
//         and the rows of x and y over data; all = y, whole on all devices;
//         where = each device's index
// w0 and b0 are drawn from seeds 1 and 2 (uniform), w1 is embedded: element i
// is i % 5 - 2.
struct DividedProgram {
  ProgramT program;
  DataSection data;

  DividedProgram(int64_t batch, int64_t data_axis, int64_t tensor_axis);
  // Changes both collectives into started and awaited ones; the sum runs beside
  // the copy that makes `where`.
  void StartCollectives();
  ArtifactParts Parts() const { return {SerializeProgram(program), "", data}; }
};

// One small program with everything but kernels. For x f32[4,8]:
//   init: d = relu(w0 w1 + b)               (derived, f32[8,8])
//   main: y = layer(layer(x, w0, b), d, b)
//         where layer(x, w, b) = relu(x w + b)
//   main: z = conv3x3(image, c)             (image is f32[1,4,8,8])
//   main: k = the constant 0, 1, ... 7 of the data section
// w0, w1 and c are drawn from seeds 1, 2 and 3 (uniform), b is embedded in the
// data section: 0.5, 1.5 ... 7.5.
struct SampleProgram {
  ProgramT program;
  DataSection data;

  SampleProgram();
  ArtifactParts Parts(std::string code = "") const;
};

}  // namespace partita::program

#endif  // PARTITA_RUNTIME_PROGRAM_TEST_PROGRAM_H_
