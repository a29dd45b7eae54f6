// Compiles, loads, runs and compares kernels.
#include "compiler/kernels/codegen_fixture.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "compiler/kernels/barrier_emulation.h"
#include "compiler/kernels/flat_kernels.h"
#include "compiler/kernels/report_writes.h"
#include "compiler/kernels/team_fibers.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "mlir/Parser/Parser.h"

namespace partita::kernels {

using namespace mlir;

namespace {

constexpr size_t kAlignment = 1024;
constexpr size_t kGuard = 256;
constexpr char kGuardByte = 0x5a;

// Leaves `file` open: dlopen knows libraries by name, so a file with the same
// number would be taken for this one as long as this one is loaded.
void* loadLibrary(const std::string& bytes, int& file) {
  file = memfd_create("kernels", 0);
  if (file < 0 || write(file, bytes.data(), bytes.size()) !=
                      static_cast<ssize_t>(bytes.size()))
    return nullptr;
  void* library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(),
                         RTLD_NOW | RTLD_LOCAL);
  if (!library) llvm::errs() << dlerror() << "\n";
  return library;
}

DialectRegistry codegenRegistry() {
  DialectRegistry registry;
  registry.insert<nn::NNDialect>();
  nn::registerExternalModels(registry);
  registerKernelModels(registry);
  registerCodegenDialects(registry);
  registerObjectTranslations(registry);
  return registry;
}

std::string compare(const nn::Tensor& found, const nn::Tensor& expected,
                    double absolute, double relative) {
  std::ostringstream text;
  int shown = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    double f = found.isFloat() ? found.getFloat(i)
                               : static_cast<double>(found.getInt(i));
    double e = found.isFloat() ? expected.getFloat(i)
                               : static_cast<double>(expected.getInt(i));
    bool same = f == e || (std::isnan(f) && std::isnan(e)) ||
                (found.isFloat() &&
                 std::abs(f - e) <= absolute + relative * std::abs(e) &&
                 std::isfinite(e));
    if (!same && shown++ < 5)
      text << "element " << i << ": expected " << e << ", found " << f << "\n";
  }
  if (shown > 5) text << shown - 5 << " more\n";
  return text.str();
}

EmulatedMap emulated(const TensorMap& map, const char* argument) {
  EmulatedMap result;
  result.first = argument + map.offset;
  std::copy(map.shape.begin(), map.shape.end(), result.shape);
  std::copy(map.strides.begin(), map.strides.end(), result.strides);
  std::copy(map.box.begin(), map.box.end(), result.box);
  return result;
}

}  // namespace

AlignedBytes::AlignedBytes(size_t size) : size_(size) {
  const size_t all = (size + kGuard + kAlignment - 1) / kAlignment * kAlignment;
  data_ = static_cast<char*>(std::aligned_alloc(kAlignment, all));
  std::memset(data_, kGuardByte, all);
}

AlignedBytes::AlignedBytes(AlignedBytes&& other) noexcept
    : size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}

AlignedBytes::~AlignedBytes() { std::free(data_); }

bool AlignedBytes::isGuardIntact() const {
  for (size_t i = 0; i < kGuard; ++i)
    if (data_[size_ + i] != kGuardByte) return false;
  return true;
}

FailureOr<KernelCode> CompiledKernel::generateShared(
    ModuleOp target, const CodegenOptions& options) {
  for (const FlatGroup& group :
       findFlatGroups(llvm::to_vector(module_->getOps<func::FuncOp>()))) {
    for (auto [kernel, elements] :
         llvm::zip_equal(group.kernels, group.elements)) {
      if (kernel != function_) continue;
      func::FuncOp form = flatForm(group.kernels.front(), group.chunk);
      form.setName("k");
      FailureOr<KernelCode> code = generateKernel(form, target, options);
      form.erase();
      if (succeeded(code)) code->range = elements / group.chunk;
      return code;
    }
  }
  return function_.emitError("expected to be in a group of flat kernels");
}

std::unique_ptr<CompiledKernel> CompiledKernel::fromText(
    const std::string& text, const CodegenOptions& options, bool flat,
    llvm::function_ref<void(ModuleOp)> change, const ObjectOptions& object) {
  std::unique_ptr<CompiledKernel> kernel(new CompiledKernel());
  DialectRegistry registry = codegenRegistry();
  kernel->context_.appendDialectRegistry(registry);
  kernel->context_.disableMultithreading();
  kernel->context_.loadAllAvailableDialects();
  kernel->module_ = parseSourceString<ModuleOp>(text, &kernel->context_);
  if (!kernel->module_) return nullptr;
  kernel->function_ = kernel->module_->lookupSymbol<func::FuncOp>("k");
  auto start = std::chrono::steady_clock::now();
  OwningOpRef<ModuleOp> target = ModuleOp::create(kernel->module_->getLoc());
  FailureOr<KernelCode> code =
      flat ? kernel->generateShared(*target, options)
           : generateKernel(kernel->function_, *target, options);
  if (failed(code)) return nullptr;
  kernel->code_ = *code;
  if (change) change(*target);
  if (code->team == kBlock && failed(reportWrites(*target))) return nullptr;
  if (std::getenv("PARTITA_DUMP_KERNELS")) target->dump();
  FailureOr<std::string> compiled = compileToObject(*target, object);
  if (failed(compiled)) return nullptr;
  FailureOr<std::string> linked = linkSharedObject(target->getLoc(), *compiled);
  if (failed(linked)) return nullptr;
  if (const char* path = std::getenv("PARTITA_SAVE_KERNELS")) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << *linked;
  }
  kernel->compile_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  kernel->library_ = loadLibrary(*linked, kernel->file_);
  if (!kernel->library_) return nullptr;
  kernel->entry_ = kernel->find(kernel->code_);
  return kernel->entry_ ? std::move(kernel) : nullptr;
}

CompiledKernel::~CompiledKernel() {
  if (library_) dlclose(library_);
  if (file_ >= 0) close(file_);
}

std::vector<nn::Tensor> CompiledKernel::randomArguments(std::mt19937& generator,
                                                        double scale) {
  std::vector<nn::Tensor> arguments;
  std::normal_distribution<double> real(0, scale);
  for (Type type : function_.getArgumentTypes()) {
    nn::Tensor tensor(cast<RankedTensorType>(type));
    bool truth = tensor.type().getElementType().isInteger(1);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (tensor.isFloat())
        tensor.setFloat(i, real(generator));
      else
        tensor.setInt(i, generator() % (truth ? 2 : 10));
    }
    arguments.push_back(tensor);
  }
  return arguments;
}

std::vector<AlignedBytes> CompiledKernel::makeBuffers(
    const std::vector<nn::Tensor>& arguments) {
  std::vector<AlignedBytes> buffers;
  for (const nn::Tensor& tensor : arguments) {
    std::vector<char> bytes = tensor.toBytes();
    buffers.emplace_back(bytes.size());
    std::memcpy(buffers.back().data(), bytes.data(), bytes.size());
  }
  for (Type type : function_.getResultTypes()) {
    auto tensor = cast<RankedTensorType>(type);
    buffers.emplace_back(tensor.getNumElements() *
                         ((tensor.getElementTypeBitWidth() + 7) / 8));
  }
  return buffers;
}

CompiledKernel::Entry CompiledKernel::find(const KernelCode& code) {
  return reinterpret_cast<Entry>(dlsym(library_, code.symbol.c_str()));
}

void CompiledKernel::run(std::vector<AlignedBytes>& buffers, int64_t begin,
                         const std::vector<int64_t>& ends) {
  std::vector<void*> pointers;
  for (AlignedBytes& buffer : buffers) pointers.push_back(buffer.data());
  AlignedBytes memory(code_.memory_bytes);
  if (code_.memory_bytes > 0) pointers.push_back(memory.data());
  for (const KernelCode& part : code_.before)
    runPart(part, find(part), pointers, 0, part.range);
  for (int64_t end : ends) {
    runPart(code_, entry_, pointers, begin, end);
    begin = end;
  }
  if (!memory.isGuardIntact())
    llvm::report_fatal_error("the kernel wrote behind its memory");
}

void CompiledKernel::runPart(const KernelCode& code, Entry entry,
                             const std::vector<void*>& pointers, int64_t begin,
                             int64_t end) {
  AlignedBytes scratch(code.scratch_bytes);
  std::vector<EmulatedMap> maps;
  for (const TensorMap& map : code.maps)
    maps.push_back(emulated(map, static_cast<char*>(pointers[map.argument])));
  std::vector<void*> all = pointers;
  // Maps stand behind the results, in front of the memory of all parts.
  const bool has_memory = code_.memory_bytes > 0;
  std::vector<void*> addresses;
  for (EmulatedMap& map : maps) addresses.push_back(&map);
  all.insert(all.end() - has_memory, addresses.begin(), addresses.end());
  if (code.team == 1) {
    entry(all.data(), begin, end, scratch.data());
  } else {
    std::string wrong = runTeam(code.team, [&] {
      for (int64_t item = begin; item < end; ++item)
        entry(all.data(), item, item + 1, scratch.data());
    });
    if (!wrong.empty()) llvm::report_fatal_error(llvm::Twine(wrong));
  }
  if (!scratch.isGuardIntact())
    llvm::report_fatal_error("the kernel wrote behind its scratch memory");
}

std::vector<nn::Tensor> CompiledKernel::results(
    const std::vector<nn::Tensor>& arguments,
    const std::vector<double>& parts) {
  std::vector<AlignedBytes> buffers = makeBuffers(arguments);
  std::vector<int64_t> ends;
  for (double part : parts) ends.push_back(std::llround(part * code_.range));
  run(buffers, 0, ends);
  std::vector<nn::Tensor> results;
  for (auto [i, type] : llvm::enumerate(function_.getResultTypes())) {
    AlignedBytes& buffer = buffers[arguments.size() + i];
    if (!buffer.isGuardIntact())
      llvm::report_fatal_error("the kernel wrote behind a result");
    results.push_back(*nn::Tensor::fromBytes(cast<RankedTensorType>(type),
                                             {buffer.data(), buffer.size()}));
  }
  return results;
}

std::string CompiledKernel::difference(
    double absolute, double relative, double scale,
    llvm::function_ref<void(std::vector<nn::Tensor>&)> prepare) {
  std::mt19937 generator(11);
  std::vector<nn::Tensor> arguments = randomArguments(generator, scale);
  if (prepare) prepare(arguments);
  FailureOr<SmallVector<nn::Tensor>> expected =
      nn::interpret(function_, arguments);
  if (failed(expected)) return "the interpreter fails";
  std::string text;
  for (const std::vector<double>& parts :
       {std::vector<double>{1}, std::vector<double>{0.3, 0.5, 1}}) {
    std::vector<nn::Tensor> found = results(arguments, parts);
    for (size_t i = 0; i < found.size(); ++i) {
      std::string wrong = compare(found[i], (*expected)[i], absolute, relative);
      if (!wrong.empty())
        text += "result " + std::to_string(i) + " run in " +
                std::to_string(parts.size()) + " parts:\n" + wrong;
    }
  }
  return text;
}

std::string ptxOf(const std::string& text, const std::string& chip,
                  PtxKernel& launch) {
  SmallVector<PtxKernel> launches;
  const std::string ptx = ptxOf(text, chip, launches);
  if (!launches.empty()) launch = launches.back();
  return ptx;
}

std::string ptxOf(const std::string& text, const std::string& chip,
                  SmallVectorImpl<PtxKernel>& launches) {
  MLIRContext context(codegenRegistry(), MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module) return "";
  OwningOpRef<ModuleOp> target = ModuleOp::create(module->getLoc());
  FailureOr<KernelCode> code =
      generateKernel(module->lookupSymbol<func::FuncOp>("k"), *target,
                     ptxCodegenOptions({.chip = chip}));
  if (failed(code)) return "";
  if (std::getenv("PARTITA_DUMP_KERNELS")) target->dump();
  const PtxOptions options = {.chip = chip};
  for (const KernelCode& part : code->before)
    launches.push_back(ptxKernelOf(part, options));
  launches.push_back(ptxKernelOf(*code, options));
  FailureOr<std::string> ptx = compileToPtx(*target, {*code}, options);
  return succeeded(ptx) ? *ptx : "";
}

}  // namespace partita::kernels
