// Attributes of the nn dialect.
#ifndef PARTITA_DIALECTS_NN_ATTRS_TD
#define PARTITA_DIALECTS_NN_ATTRS_TD

include "dialects/nn/dialect.td"

class NN_Attr<string name, string attrMnemonic> : AttrDef<NN_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def NN_FileAttr : NN_Attr<"File", "file"> {
  let summary = "Weights in a file: path, byte offset, byte length, stored element type";
  let description = [{
    The data of an argument lies row-major and little-endian in `path` at
    `offset`. `stored` is the element type in the file; if it differs from the
    argument's, the loader converts (bf16 to f32, say). Weights are never copied
    into the IR. Relative paths are relative to the file that holds the module.

    Example: `#nn.file<"gpt2/model.safetensors", 4096, 3072, bf16>`
  }];
  let parameters = (ins StringRefParameter<>:$path, "uint64_t":$offset, "uint64_t":$bytes, "::mlir::Type":$stored);
  let assemblyFormat = "`<` $path `,` $offset `,` $bytes `,` $stored `>`";
}

def NN_InitAttr : NN_Attr<"Init", "init"> {
  let summary = "Weights made from a seed: a distribution, its scale, the seed";
  let description = [{
    `kind` is `zeros`, `ones`, `normal` (mean 0, standard deviation `scale`) or
    `uniform` (in [-scale, scale)). Element i of an argument depends on `seed`
    and i alone.

    Example: `#nn.init<"normal", 2.0e-02 : f64, 7>`
  }];
  let parameters = (ins StringRefParameter<>:$kind, "::mlir::FloatAttr":$scale, "uint64_t":$seed);
  let assemblyFormat = "`<` $kind `,` $scale `,` $seed `>`";
  let genVerifyDecl = 1;
}

def NN_RuleAttr : NN_Attr<"Rule", "rule"> {
  let summary = "A sharding rule given by the user for one operation";
  let description = [{
    Attached to an operation as `nn.rule`, it replaces the operation's own rule.
    Each dimension of each operand and result is a string of factors, most
    significant first, or 1 if it has no factor. The factors' sizes follow in
    braces. A factor is carried through unless it is listed as `reduced` (with
    `:prod`, `:max`, `:min`, `:any` or `:all` if partial results are not summed),
    `halo`, `reduced_halo` (nn.conv_weight_grad only), `whole` or `decompose`. A
    factor in `keeps` keeps an axis that other factors want too, whatever the
    order of the plan's entries. If another result carries a factor, a result without it is a partial sum over
    it. `linear` lists the operands in which the operation is jointly linear:
    partial sums may pass through all of them together. `multilinear` lists the
    operands in each of which it is linear: partial sums may pass through one at
    a time.

    Example: `#nn.rule<([i, k], [k, j]) -> ([i, j]) {i=4, j=8, k=2} reduced={k} multilinear={0, 1}>`
  }];
  let parameters = (ins "::partita::nn::ShardingRule":$rule);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

class NN_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::partita::nn";
  let genSpecializedAttr = 0;
}

def NN_ReduceKind : NN_Enum<"ReduceKind", "how a reduction combines two elements", [
    I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"prod", 1>, I32EnumAttrCase<"max", 2>, I32EnumAttrCase<"min", 3>]>;
def NN_ReduceKindAttr : EnumAttr<NN_Dialect, NN_ReduceKind, "reduce_kind"> { let assemblyFormat = "`` $value"; }

def NN_ScatterKind : NN_Enum<"ScatterKind", "how an update combines with the existing element", [
    I32EnumAttrCase<"set", 0>, I32EnumAttrCase<"add", 1>, I32EnumAttrCase<"mul", 2>,
    I32EnumAttrCase<"max", 3>, I32EnumAttrCase<"min", 4>]>;
def NN_ScatterKindAttr : EnumAttr<NN_Dialect, NN_ScatterKind, "scatter_kind"> { let assemblyFormat = "`` $value"; }

def NN_PadMode : NN_Enum<"PadMode", "how padding is filled", [
    I32EnumAttrCase<"constant", 0>, I32EnumAttrCase<"edge", 1>, I32EnumAttrCase<"reflect", 2>, I32EnumAttrCase<"wrap", 3>]>;
def NN_PadModeAttr : EnumAttr<NN_Dialect, NN_PadMode, "pad_mode"> { let assemblyFormat = "`` $value"; }

def NN_Distribution : NN_Enum<"Distribution", "distribution of random numbers", [
    I32EnumAttrCase<"uniform", 0>, I32EnumAttrCase<"normal", 1>]>;
def NN_DistributionAttr : EnumAttr<NN_Dialect, NN_Distribution, "distribution"> { let assemblyFormat = "`` $value"; }

def NN_ExpertActivation : NN_Enum<"ExpertActivation", "activation of an expert's hidden width", [
    I32EnumAttrCase<"relu", 0>, I32EnumAttrCase<"gelu", 1>, I32EnumAttrCase<"gelu_tanh", 2>, I32EnumAttrCase<"silu", 3>]>;
def NN_ExpertActivationAttr : EnumAttr<NN_Dialect, NN_ExpertActivation, "expert_activation"> { let assemblyFormat = "`` $value"; }

#endif  // PARTITA_DIALECTS_NN_ATTRS_TD
