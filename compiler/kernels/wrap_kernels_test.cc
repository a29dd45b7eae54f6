// Runs kernels that take a table of pieces with emulated teams, and compares
// them with the interpreter.
#include "compiler/kernels/wrap_kernels.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "compiler/kernels/codegen_fixture.h"
#include "compiler/kernels/flat_kernels.h"
#include "compiler/kernels/object.h"
#include "compiler/kernels/ptx.h"
#include "compiler/kernels/ptxas.h"
#include "compiler/kernels/team_fibers.h"
#include "dialects/exec/piece_table.h"
#include "dialects/nn/dialect.h"
#include "dialects/nn/interpreter.h"
#include "llvm/IR/Module.h"
#include "mlir/Parser/Parser.h"

// The hardware's numbers, which the kernel under test reads.
extern "C" {
int64_t partita_team_thread();
unsigned test_warp = 0, test_block = 0, test_blocks = 0;
unsigned test_tid_x() {
  return test_warp * 32 + static_cast<unsigned>(partita_team_thread());
}
unsigned test_ctaid_x() { return test_block; }
unsigned test_nctaid_x() { return test_blocks; }
}

namespace partita::kernels {
namespace {

using mlir::func::FuncOp;

// One update with momentum, for tensors of this shape.
std::string update(const std::string& name, const std::string& shape) {
  const std::string f32 = "tensor<" + shape + "xf32>",
                    bf16 = "tensor<" + shape + "xbf16>";
  return "func.func @" + name + "(%p: " + f32 + ", %g: " + bf16 +
         ", %m: " + f32 + ", %lr: tensor<f32>) -> (" + f32 + ", " + f32 + ", " +
         bf16 + ") {\n%c = arith.constant dense<0.9> : " + f32 +
         "\n%w = arith.extf %g : " + bf16 + " to " + f32 +
         "\n%k = arith.mulf %m, %c : " + f32 +
         "\n%n = arith.addf %k, %w : " + f32 +
         "\n%r = nn.broadcast %lr dims = [] : tensor<f32> -> " + f32 +
         "\n%s = arith.mulf %n, %r : " + f32 +
         "\n%q = arith.subf %p, %s : " + f32 +
         "\n%o = arith.truncf %q : " + f32 + " to " + bf16 +
         "\nreturn %q, %n, %o : " + f32 + ", " + f32 + ", " + bf16 + "\n}\n";
}

constexpr int kBuffers = 7;

class WrapKernelsTest : public testing::Test {
 protected:
  WrapKernelsTest() {
    mlir::DialectRegistry registry;
    registry.insert<nn::NNDialect>();
    nn::registerExternalModels(registry);
    registerKernelModels(registry);
    registerCodegenDialects(registry);
    registerObjectTranslations(registry);
    context_.appendDialectRegistry(registry);
    context_.disableMultithreading();
    context_.loadAllAvailableDialects();
  }

  // Generates the code of the kernels of these shapes, as for a GPU.
  void generate(const std::vector<std::string>& shapes) {
    std::string text;
    for (const std::string& shape : shapes)
      text += update("k" + std::to_string(text.size()), shape);
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
    ASSERT_TRUE(module_);
    auto groups =
        findFlatGroupsForGpus(llvm::to_vector(module_->getOps<FuncOp>()));
    ASSERT_EQ(groups.size(), 1u);
    group_ = groups.front();
    target_ = mlir::ModuleOp::create(module_->getLoc());
    FuncOp form = flatForm(group_.kernels.front(), group_.chunk);
    form.setName("k");
    auto code = generateKernel(form, *target_, ptxCodegenOptions());
    form.erase();
    ASSERT_TRUE(mlir::succeeded(code));
    code_ = *code;
    code_.takes_pieces = true;
    EXPECT_EQ(code_.scratch_bytes, 0);
  }

  // Lowers the kernel for this machine. It calls the functions above in place
  // of reading the hardware's numbers, and the table has an address.
  void load() {
    auto object = compileToObject(*target_, {}, [&](llvm::Module& module) {
      module.getFunction("k")->eraseFromParent();  // the C interface
      module.getFunction("k.body")->setName("k");
      wrapKernel(module, code_, layOut(code_, kSharedBytes));
      llvm::Function* kernel = module.getFunction("k");
      kernel->setCallingConv(llvm::CallingConv::C);
      kernel->removeParamAttr(0, llvm::Attribute::ByVal);
      for (const char* name : {"tid_x", "ctaid_x", "nctaid_x"}) {
        std::string intrinsic = "llvm.nvvm.read.ptx.sreg.";
        intrinsic += llvm::StringRef(name).drop_back(2);
        llvm::Function* read = module.getFunction(intrinsic + ".x");
        ASSERT_NE(read, nullptr) << intrinsic;
        read->replaceAllUsesWith(
            module
                .getOrInsertFunction(std::string("test_") + name,
                                     read->getFunctionType())
                .getCallee());
        read->eraseFromParent();
      }
    });
    ASSERT_TRUE(mlir::succeeded(object));
    auto linked = linkSharedObject(module_->getLoc(), *object);
    ASSERT_TRUE(mlir::succeeded(linked));
    const std::string path = testing::TempDir() + "/wrapped.so";
    std::ofstream(path, std::ios::binary) << *linked;
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    kernel_ = reinterpret_cast<void (*)(const void*)>(dlsym(library_, "k"));
  }

  ~WrapKernelsTest() override {
    if (library_) dlclose(library_);
  }

  // Runs the kernel once for all kernels of the group.
  void expectEqualsInterpreter(unsigned blocks) {
    std::mt19937 generator(3);
    std::normal_distribution<float> real;
    std::vector<std::vector<nn::Tensor>> arguments;
    std::vector<std::vector<AlignedBytes>> buffers;
    const int64_t most = exec::piecesOfTable(kBuffers);
    std::vector<int64_t> table(most * (kBuffers + 1));
    ASSERT_LE(group_.kernels.size(), static_cast<size_t>(most));
    for (FuncOp kernel : group_.kernels) {
      arguments.emplace_back();
      buffers.emplace_back();
      const auto add = [&](const nn::Tensor& tensor) {
        const std::vector<char> bytes = tensor.toBytes();
        buffers.back().emplace_back(bytes.size());
        std::memcpy(buffers.back().back().data(), bytes.data(), bytes.size());
      };
      for (mlir::Type type : kernel.getArgumentTypes()) {
        nn::Tensor tensor(llvm::cast<mlir::RankedTensorType>(type));
        for (int64_t i = 0; i < tensor.size(); ++i)
          tensor.setFloat(i, real(generator));
        arguments.back().push_back(tensor);
        add(tensor);
      }
      for (mlir::Type type : kernel.getResultTypes())
        add(nn::Tensor(llvm::cast<mlir::RankedTensorType>(type)));
    }
    int64_t end = 0;
    for (int64_t i = 0; i < most; ++i) {
      const bool exists = i < static_cast<int64_t>(buffers.size());
      if (exists) end += group_.elements[i] / group_.chunk;
      table[i] = end;
      for (int j = 0; exists && j < kBuffers; ++j)
        table[most + i * kBuffers + j] =
            reinterpret_cast<int64_t>(buffers[i][j].data());
    }
    test_blocks = blocks;
    for (test_block = 0; test_block < blocks; ++test_block)
      for (test_warp = 0; test_warp < kBlock / kWarp; ++test_warp)
        ASSERT_EQ(runTeam(kWarp, [&] { kernel_(table.data()); }), "");
    for (size_t i = 0; i < buffers.size(); ++i) {
      auto expected = nn::interpret(group_.kernels[i], arguments[i]);
      ASSERT_TRUE(mlir::succeeded(expected));
      for (size_t j = 0; j < expected->size(); ++j) {
        AlignedBytes& buffer = buffers[i][arguments[i].size() + j];
        EXPECT_TRUE(buffer.isGuardIntact());
        auto found = nn::Tensor::fromBytes((*expected)[j].type(),
                                           {buffer.data(), buffer.size()});
        ASSERT_TRUE(mlir::succeeded(found));
        for (int64_t e = 0; e < found->size(); ++e)
          ASSERT_NEAR(
              found->getFloat(e), (*expected)[j].getFloat(e),
              1e-2 * std::abs((*expected)[j].getFloat(e)) * (j == 2) + 1e-5)
              << "kernel " << i << ", result " << j << ", element " << e;
      }
    }
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_, target_;
  FlatGroup group_;
  KernelCode code_;
  void* library_ = nullptr;
  void (*kernel_)(const void*) = nullptr;
};

// Blocks that do several items, of several pieces, and blocks that have none.
TEST_F(WrapKernelsTest, OneLaunchComputesAllPieces) {
  generate({"2048", "3x1024", "1024", "7x2x1024"});
  EXPECT_EQ(group_.chunk, 1024);
  load();
  for (const unsigned blocks : {1u, 2u, 9u}) expectEqualsInterpreter(blocks);
}

// Fewer elements than the vectors of a warp.
TEST_F(WrapKernelsTest, SmallChunks) {
  generate({"64", "5x64", "192"});
  EXPECT_EQ(group_.chunk, 64);
  load();
  expectEqualsInterpreter(2);
}

// The table is a parameter, and buffers are accessed 16 bytes at a time.
TEST_F(WrapKernelsTest, Assembles) {
  for (const char* chip : {"sm_80", "sm_90a"}) {
    generate({"2048", "1024"});
    auto ptx = compileToPtx(*target_, {code_}, {.chip = chip});
    ASSERT_TRUE(mlir::succeeded(ptx));
    EXPECT_NE(ptx->find(".param .align 8 .b8 k_param_0[4096]"),
              std::string::npos)
        << *ptx;
    EXPECT_NE(ptx->find("ld.global.v4"), std::string::npos) << *ptx;
    EXPECT_NE(ptx->find("st.global.v4"), std::string::npos) << *ptx;
    EXPECT_EQ(ptx->find("ld.local"), std::string::npos) << *ptx;
    if (!hasPtxas()) GTEST_SKIP() << kWithoutPtxas;
    const Assembled assembled = assemble(*ptx, chip);
    ASSERT_TRUE(assembled.ok) << assembled.report;
    EXPECT_EQ(assembled.kernels.at("k").spilled_bytes, 0) << assembled.report;
    EXPECT_LE(assembled.kernels.at("k").registers, 64) << assembled.report;
  }
}

}  // namespace
}  // namespace partita::kernels
