// Semantic checks of a whole program: functions in call order, then the entries
// of devices.
#include "runtime/program/validate.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status_macros.h"
#include "runtime/program/loop.h"
#include "runtime/program/types.h"
#include "runtime/program/validate_entry.h"
#include "runtime/program/validate_mesh.h"
#include "runtime/program/validate_operation.h"
#include "runtime/program/validate_started.h"
#include "runtime/program/validate_training.h"
#include "runtime/program/validate_transfer.h"

namespace partita::program {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 50;

absl::Status Bad(const std::string& message) {
  return absl::InvalidArgumentError(message);
}

absl::Status At(const std::string& where, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(where, ": ", status.message()));
}

// Facts about a function that has been checked.
struct Checked {
  enum { kNot, kRunning, kDone } state = kNot;
  int height = 0;               // height of the calls below it
  int64_t steps = 0;            // instructions in one run of it
  std::vector<int64_t> needed;  // bytes it uses of each argument
  bool starts = false;          // it or a callee only starts a collective
};

class Validator {
 public:
  Validator(const Program& program, int64_t data_bytes, bool has_code)
      : program_(program), data_bytes_(data_bytes), has_code_(has_code) {}

  absl::Status Run() {
    PARTITA_RETURN_IF_ERROR(ValidateMesh(program_.mesh()));
    PARTITA_RETURN_IF_ERROR(CheckPorts("input", program_.inputs()));
    PARTITA_RETURN_IF_ERROR(CheckPorts("output", program_.outputs()));
    PARTITA_RETURN_IF_ERROR(ValidateRoles(program_));
    for (int64_t i = 0; i < SizeOrZero(program_.parameters()); ++i) {
      const Parameter& parameter =
          *program_.parameters()->Get(static_cast<unsigned>(i));
      PARTITA_RETURN_IF_ERROR(
          At(absl::StrCat("parameter '", parameter.name()->str(), "'"),
             CheckParameter(parameter)));
    }
    // (V17)
    if (const StateFiles* files = program_.state_files();
        files != nullptr &&
        (files->folder()->size() == 0 || files->buffers() < 0))
      return Bad(absl::StrCat(
          "states in files: expected a folder and a size "
          "of buffers, found '",
          files->folder()->str(), "' and ", files->buffers(), " bytes"));
    PARTITA_RETURN_IF_ERROR(ValidatePipeline(program_));
    PARTITA_RETURN_IF_ERROR(CheckKernels());
    functions_.resize(static_cast<size_t>(SizeOrZero(program_.functions())));
    for (size_t i = 0; i < functions_.size(); ++i)
      PARTITA_RETURN_IF_ERROR(CheckFunction(i, 0));
    std::vector<std::vector<int64_t>> needed;
    for (Checked& checked : functions_)
      needed.push_back(std::move(checked.needed));
    PARTITA_RETURN_IF_ERROR(ValidateEntries(program_, needed));
    PARTITA_RETURN_IF_ERROR(ValidateStartedUpdates(program_));
    return ValidateTransfers(program_);
  }

 private:
  absl::Status CheckKernels() const {
    if (SizeOrZero(program_.kernels()) > 0 && !has_code_)
      return Bad("kernels are named, but there is no code section");
    for (int64_t i = 0; i < SizeOrZero(program_.kernels()); ++i) {
      const Kernel& kernel = *program_.kernels()->Get(static_cast<unsigned>(i));
      // (V16)
      if (!std::isfinite(kernel.cycles()) || kernel.cycles() < 0)
        return Bad(absl::StrCat("kernel '", kernel.name()->str(),
                                "': ", kernel.cycles(), " cycles"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckPorts(
      const char* what,
      const flatbuffers::Vector<flatbuffers::Offset<Port>>* ports) {
    std::set<std::string> names;
    for (int64_t i = 0; i < SizeOrZero(ports); ++i) {
      const Port& port = *ports->Get(static_cast<unsigned>(i));
      const std::string name = port.name()->str();
      if (!names.insert(name).second)
        return Bad(absl::StrCat("two ", what, "s are named '", name, "'"));
      const std::string where = absl::StrCat(what, " '", name, "'");
      const absl::StatusOr<int64_t> bytes = ValidateType(*port.type());
      if (!bytes.ok()) return At(where, bytes.status());
      const absl::StatusOr<int64_t> elements =
          ValidateShard(program_.mesh(), port.shard(), *port.type());
      if (!elements.ok()) return At(where, elements.status());
      PARTITA_RETURN_IF_ERROR(
          At(where, CheckModelShape(port.model_shape(), *elements)));
    }
    return absl::OkStatus();
  }

  static absl::Status CheckModelShape(const flatbuffers::Vector<int64_t>* shape,
                                      int64_t elements) {
    if (shape == nullptr) return absl::OkStatus();
    if (!IsAligned(shape)) return Bad("a shape is not aligned");
    if (base::ElementCount(ToVector(shape)) == elements)
      return absl::OkStatus();
    return Bad("its shape in the model has another number of elements");
  }

  // (V2)
  absl::Status CheckParameter(const Parameter& parameter) {
    const absl::StatusOr<int64_t> bytes = ValidateType(*parameter.type());
    if (!bytes.ok()) return bytes.status();
    PARTITA_ASSIGN_OR_RETURN(
        const int64_t elements,
        ValidateShard(program_.mesh(), parameter.shard(), *parameter.type()));
    PARTITA_RETURN_IF_ERROR(CheckModelShape(parameter.model_shape(), elements));
    if (parameter.parts() && WholeShape(parameter).empty())
      return Bad("a tensor without dimensions has no parts");
    if (parameter.host() && parameter.kind() != ParameterKind::state)
      return Bad("it lies on the host, as only states may");
    if (const FileSource* source = parameter.source_as_FileSource()) {
      if (source->path()->size() == 0) return Bad("its file has no name");
      return CheckRange(source->offset(), source->bytes(), source->stored(),
                        elements, uint64_t{1} << 62);
    }
    if (const EmbeddedSource* source = parameter.source_as_EmbeddedSource()) {
      return CheckRange(source->offset(), source->bytes(), source->stored(),
                        elements, static_cast<uint64_t>(data_bytes_));
    }
    if (const auto* source = parameter.source_as_CoordinateSource()) {
      PARTITA_RETURN_IF_ERROR(
          ValidateAxes(program_.mesh(), source->axes()).status());
      if (parameter.type()->dtype() == DType::i64 && elements == 1 &&
          parameter.shard() == nullptr)
        return absl::OkStatus();
      return Bad("a coordinate is one i64");
    }
    if (const PartsSource* source = parameter.source_as_PartsSource())
      return CheckParts(*source, elements);
    const SeedSource* source = parameter.source_as_SeedSource();
    if (source == nullptr) return Bad("unknown source");
    const std::string kind = source->kind()->str();
    const bool drawn = kind == "normal" || kind == "uniform";
    if (!drawn && kind != "zeros" && kind != "ones")
      return Bad(absl::StrCat("unknown distribution '", kind, "'"));
    if (drawn && !base::IsFloat(ToBase(parameter.type()->dtype()))) {
      return Bad(absl::StrCat("distribution '", kind,
                              "' needs a floating-point type"));
    }
    return std::isfinite(source->scale()) ? absl::OkStatus()
                                          : Bad("its scale is not finite");
  }

  static absl::Status CheckParts(const PartsSource& source, int64_t elements) {
    const int64_t count = SizeOrZero(source.parts());
    if (count == 0 || elements % count != 0)
      return Bad(absl::StrCat("its ", elements, " elements cannot lie in ",
                              count, " equal parts"));
    for (const FileSource* part : *source.parts()) {
      if (part == nullptr || part->path()->size() == 0)
        return Bad("the file of a part has no name");
      PARTITA_RETURN_IF_ERROR(CheckRange(part->offset(), part->bytes(),
                                         part->stored(), elements / count,
                                         uint64_t{1} << 62));
    }
    return absl::OkStatus();
  }

  static absl::Status CheckRange(uint64_t offset, uint64_t bytes, DType stored,
                                 int64_t elements, uint64_t limit) {
    if (stored < DType::MIN || stored > DType::MAX)
      return Bad(absl::StrCat("unknown stored element type ",
                              static_cast<int>(stored)));
    int64_t expected;
    if (__builtin_mul_overflow(elements, base::SizeOf(ToBase(stored)),
                               &expected) ||
        bytes != static_cast<uint64_t>(expected)) {
      return Bad(absl::StrCat("expected ", elements, " elements of ",
                              base::NameOf(ToBase(stored)), ", found ", bytes,
                              " bytes"));
    }
    if (offset > limit || bytes > limit - offset) {
      return Bad(absl::StrCat("bytes ", offset, " to ", offset, "+", bytes,
                              " lie outside the ", limit, " bytes there are"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckFunction(size_t index, int depth) {
    Checked& checked = functions_[index];
    const Function& function =
        *program_.functions()->Get(static_cast<unsigned>(index));
    const std::string name = function.name()->str();
    if (checked.state == Checked::kDone) return absl::OkStatus();
    if (checked.state == Checked::kRunning)
      return Bad(absl::StrCat("function '", name, "' calls itself"));
    if (depth >= kMaxCallDepth)
      return Bad(absl::StrCat("calls are more than ", kMaxCallDepth, " deep"));
    checked.state = Checked::kRunning;
    if (function.arguments() < 0 || function.results() < 0 ||
        function.results() > function.arguments()) {
      return Bad(absl::StrCat("function '", name, "': ", function.results(),
                              " results of ", function.arguments(),
                              " arguments"));
    }
    if (function.frame_bytes() < 0 || function.frame_bytes() > kMaxBytes ||
        function.frame_bytes() % kFrameAlignment != 0) {
      return Bad(absl::StrCat("function '", name, "': a frame of ",
                              function.frame_bytes(), " bytes"));
    }
    PARTITA_RETURN_IF_ERROR(CountOperands(function.arguments()));
    std::vector<int64_t> needed(static_cast<size_t>(function.arguments()), 0);
    for (int64_t i = 0; i < SizeOrZero(function.body()); ++i) {
      const Instruction& instruction =
          *function.body()->Get(static_cast<unsigned>(i));
      const std::string where =
          absl::StrCat("function '", name, "', instruction ", i);
      PARTITA_RETURN_IF_ERROR(
          At(where, CheckBuffers(function, instruction, needed)));
      const absl::Status status =
          CheckOperation(function, instruction, checked, depth);
      // A callee's message already names the place.
      if (!status.ok())
        return instruction.operation_type() == Operation::Call
                   ? status
                   : At(where, status);
    }
    if (checked.steps > kMaxSteps)
      return Bad(absl::StrCat("function '", name, "' takes more than ",
                              kMaxSteps, " steps"));
    PARTITA_RETURN_IF_ERROR(ValidateStarted(program_, function));
    checked.needed = std::move(needed);
    checked.state = Checked::kDone;
    return absl::OkStatus();
  }

  absl::Status CountOperands(int64_t count) {
    operands_ += count;
    if (operands_ <= kMaxOperands) return absl::OkStatus();
    return Bad(absl::StrCat("functions and instructions have more than ",
                            kMaxOperands, " operands"));
  }

  // (V5), (V6)
  absl::Status CheckBuffers(const Function& function,
                            const Instruction& instruction,
                            std::vector<int64_t>& needed) {
    const int64_t count = SizeOrZero(instruction.operands());
    PARTITA_RETURN_IF_ERROR(CountOperands(count));
    if (!IsAligned(instruction.operands())) {
      return Bad("operands are not aligned");
    }
    if (instruction.outputs() < 0 || instruction.outputs() > count) {
      return Bad(absl::StrCat(instruction.outputs(), " outputs of ", count,
                              " operands"));
    }
    for (int64_t i = 0; i < count; ++i) {
      const Buffer& buffer =
          *instruction.operands()->Get(static_cast<unsigned>(i));
      const bool written = i >= count - instruction.outputs();
      const int64_t value = buffer.value();
      const int64_t bytes = buffer.bytes();
      if (value < 0 || bytes < 0)
        return Bad(
            absl::StrCat("operand ", i, " has a negative place or size"));
      bool inside = false;
      switch (buffer.space()) {
        case Space::argument:
          inside = value < function.arguments();
          if (inside)
            needed[static_cast<size_t>(value)] =
                std::max(needed[static_cast<size_t>(value)], bytes);
          if (inside && written &&
              value < function.arguments() - function.results()) {
            return Bad(absl::StrCat("operand ", i, " writes argument ", value,
                                    ", which is not a result"));
          }
          break;
        case Space::frame:
          inside = value <= function.frame_bytes() &&
                   bytes <= function.frame_bytes() - value;
          break;
        case Space::constant:
          inside = value <= data_bytes_ && bytes <= data_bytes_ - value;
          if (written)
            return Bad(
                absl::StrCat("operand ", i, " writes to the data section"));
          break;
        default:
          return Bad(absl::StrCat("operand ", i, " is in an unknown space"));
      }
      if (!inside)
        return Bad(absl::StrCat("operand ", i, " lies outside its ",
                                EnumNameSpace(buffer.space())));
    }
    return CheckOutputTypes(instruction);
  }

  static absl::Status CheckOutputTypes(const Instruction& instruction) {
    const int64_t count = SizeOrZero(instruction.output_types());
    if (count == 0) return absl::OkStatus();
    if (count != instruction.outputs())
      return Bad(
          absl::StrCat(count, " types of ", instruction.outputs(), " outputs"));
    for (int64_t i = 0; i < count; ++i) {
      const TensorType& type =
          *instruction.output_types()->Get(static_cast<unsigned>(i));
      const Buffer& buffer = *instruction.operands()->Get(static_cast<unsigned>(
          SizeOrZero(instruction.operands()) - count + i));
      const absl::StatusOr<int64_t> bytes = ValidateType(type);
      if (!bytes.ok()) return At(absl::StrCat("output ", i), bytes.status());
      if (*bytes > buffer.bytes())
        return Bad(absl::StrCat("output ", i, " of ", buffer.bytes(),
                                " bytes has a type of ", *bytes));
    }
    return absl::OkStatus();
  }

  absl::Status CheckOperation(const Function& function,
                              const Instruction& instruction, Checked& checked,
                              int depth) {
    checked.steps += 1 + SizeOrZero(instruction.operands());
    switch (instruction.operation_type()) {
      case Operation::Launch:
        return ValidateLaunch(program_, *instruction.operation_as_Launch(),
                              instruction);
      case Operation::Gemm:
        return ValidateGemm(*instruction.operation_as_Gemm(), instruction);
      case Operation::GroupedGemm:
        return ValidateGroupedGemm(*instruction.operation_as_GroupedGemm(),
                                   instruction);
      case Operation::Conv:
        return ValidateConv(*instruction.operation_as_Conv(), instruction);
      case Operation::Copy:
        return ValidateCopy(instruction);
      case Operation::Collective:
        checked.starts |= instruction.operation_as_Collective()->token() != 0;
        return CheckCollective(instruction);
      case Operation::Call:
        return CheckCall(function, instruction, checked, depth);
      case Operation::Send:
      case Operation::Receive:
        return ValidateTransfer(program_, instruction);
      case Operation::Await:  // ValidateStarted
        return absl::OkStatus();
      default:
        return Bad("unknown operation");
    }
  }

  absl::Status CheckCollective(const Instruction& instruction) {
    const Collective& collective = *instruction.operation_as_Collective();
    PARTITA_RETURN_IF_ERROR(
        ValidateCollective(program_.mesh(), collective, instruction));
    PARTITA_RETURN_IF_ERROR(ValidateApart(program_, collective.axes()));
    return ValidateApart(program_, collective.source_axes());
  }

  absl::Status CheckCall(const Function& caller, const Instruction& instruction,
                         Checked& checked, int depth) {
    const Call& call = *instruction.operation_as_Call();
    if (call.function() < 0 ||
        call.function() >= static_cast<int64_t>(functions_.size())) {
      return Bad(absl::StrCat("function ", call.function(), " of ",
                              functions_.size()));
    }
    const size_t index = static_cast<size_t>(call.function());
    PARTITA_RETURN_IF_ERROR(CheckFunction(index, depth + 1));
    const Checked& callee = functions_[index];
    const Function& function =
        *program_.functions()->Get(static_cast<unsigned>(index));
    const std::string where =
        absl::StrCat("function '", caller.name()->str(), "', call of '",
                     function.name()->str(), "': ");
    checked.height = std::max(checked.height, callee.height + 1);
    checked.steps += callee.steps;
    checked.starts |= callee.starts;
    if (checked.height >= kMaxCallDepth)
      return Bad(
          absl::StrCat(where, "calls are more than ", kMaxCallDepth, " deep"));
    if (checked.steps > kMaxSteps)
      return Bad(absl::StrCat(where, "more than ", kMaxSteps, " steps"));
    if (SizeOrZero(instruction.operands()) != function.arguments() ||
        instruction.outputs() != function.results()) {
      return Bad(absl::StrCat(where, "expected ", function.arguments(),
                              " operands, ", function.results(),
                              " of them written, found ",
                              SizeOrZero(instruction.operands()), ", ",
                              instruction.outputs(), " of them written"));
    }
    if (call.frame_offset() < 0 || call.frame_offset() > caller.frame_bytes() ||
        function.frame_bytes() > caller.frame_bytes() - call.frame_offset() ||
        call.frame_offset() % kFrameAlignment != 0) {
      return Bad(
          absl::StrCat(where, "the callee's frame lies outside the caller's"));
    }
    for (size_t i = 0; i < callee.needed.size(); ++i) {
      const int64_t bytes =
          instruction.operands()->Get(static_cast<unsigned>(i))->bytes();
      if (bytes < callee.needed[i]) {
        return Bad(absl::StrCat(where, "operand ", i, " needs ",
                                callee.needed[i], " bytes, found ", bytes));
      }
    }
    if (!call.repeats()) return absl::OkStatus();
    const absl::Status status =
        CheckLoop(instruction, function,
                  caller.frame_bytes() - call.frame_offset(), callee.starts);
    return status.ok() ? status : Bad(absl::StrCat(where, status.message()));
  }

  // (V18) `room`: bytes of the caller's frame from the callee's on.
  absl::Status CheckLoop(const Instruction& instruction,
                         const Function& function, int64_t room,
                         bool starts) const {
    const int64_t carried = function.results();
    const int64_t inputs = function.arguments() - carried;
    if (SizeOrZero(program_.entries()) != 1) return Bad("a loop in a pipeline");
    if (starts) return Bad("a loop in which a collective is only started");
    if (carried == 0 || inputs < carried)
      return Bad(absl::StrCat("a loop that carries ", carried, " of ", inputs,
                              " inputs"));
    room -= function.frame_bytes();
    for (int64_t i = 0; i < carried; ++i) {
      const int64_t first = BytesAt(instruction, i);
      const int64_t bytes = BytesAt(instruction, inputs + i);
      if (first != bytes)
        return Bad(absl::StrCat("a loop's carried value ", i, " begins with ",
                                first, " bytes and has ", bytes));
      if (i == 0 && bytes != 1)
        return Bad(absl::StrCat("a loop's condition has ", bytes, " bytes"));
      if (bytes > room || LoopBytes(bytes) > room)
        return Bad(
            "the results of an iteration lie outside the caller's frame");
      room -= LoopBytes(bytes);
    }
    return absl::OkStatus();
  }

  static int64_t BytesAt(const Instruction& instruction, int64_t operand) {
    return instruction.operands()->Get(static_cast<unsigned>(operand))->bytes();
  }

  static constexpr int64_t kFrameAlignment = 64;

  const Program& program_;
  const int64_t data_bytes_;
  const bool has_code_;
  std::vector<Checked> functions_;
  int64_t operands_ = 0;
};

}  // namespace

absl::Status ValidateProgram(const Program& program, int64_t data_bytes,
                             bool has_code) {
  return Validator(program, data_bytes, has_code).Run();
}

}  // namespace partita::program
