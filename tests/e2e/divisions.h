// The plans under which every golden model is tested.
#ifndef PARTITA_TESTS_E2E_DIVISIONS_H_
#define PARTITA_TESTS_E2E_DIVISIONS_H_

#include <string_view>
#include <vector>

namespace partita::e2e {

struct Division {
  const char* name;
  const char* mesh;            // the value of --mesh
  const char* shard;           // the value of --shard
  const char* attention = "";  // the value of --attention
  const char* experts = "";    // the value of --experts
};

// For all models. No size is a multiple of 3. With 4 devices, batches and heads
// of 2 leave some shards empty.
inline constexpr Division kDivisions[] = {
    {"B2", "d=2", "B=d"},
    {"B4", "d=4", "B=d"},
    {"B3", "d=3", "B=d"},
    {"MNV2", "t=2", "M=t,N=t,V=t"},
    {"MNV4", "t=4", "M=t,N=t,V=t"},
    {"MNV3", "t=3", "M=t,N=t,V=t"},
    {"MNVL2", "t=2", "M=t,N=t,V=t;L=t"},
    {"MNVL4", "t=4", "M=t,N=t,V=t;L=t"},
    {"MNVL3", "t=3", "M=t,N=t,V=t;L=t"},
    {"E2", "e=2", "E=e"},
    {"E3", "e=3", "E=e"},
    {"B2MNV2", "d=2,t=2", "B=d;M=t,N=t,V=t"},
    {"L2", "s=2", "L=s"},
    {"L4", "s=4", "L=s"},
    {"B2E2MNV2", "d=2,e=2,t=2", "B=d;M=t,N=t,V=t;E=e"},
    {"B2MNV2B2", "d=2,t=2", "B=d;M=t,N=t,V=t;B=t"},
    // Both orders of the axes: shards change devices.
    {"N2E4", "a=2,b=2", "N=b;E=b+a"},
    {"B2L4M2", "a=2,b=2", "B=b;L=b+a;M=a"},
};

// Both ways to compute attention over a divided sequence. The golden models
// have 2 or 4 heads, so that over 3 devices some have fewer heads or none.
inline constexpr Division kLongDivisions[] = {
    {"L3Gather", "s=3", "L=s", "gather"},
    {"L2Ulysses", "s=2", "L=s", "ulysses"},
    {"L3Ulysses", "s=3", "L=s", "ulysses"},
    {"N2L2Ulysses", "t=2,s=2", "M=t,N=t,V=t;L=s", "ulysses"},
    {"L2Ring", "s=2", "L=s", "ring"},
    {"L3Ring", "s=3", "L=s", "ring"},
    {"B2L4Ring", "d=2,s=4", "B=d;L=s", "ring"},
};
inline constexpr const char* kLongModels[] = {"gpt2", "bert_mlm", "t5", "vit"};

// Tensor parallelism over two and three axes.
inline constexpr Division kTensorDivisions[] = {
    {"Tensor2D", "a=2,b=2", "B=a;M=b,N=b,V=b;E=b+a"},
    {"Tensor3D", "a=2,b=2,c=2", "B=a;E=b,M=c,N=c,V=c;B=b+c;E=a"},
};
inline constexpr const char* kTensorModels[] = {"gpt2", "vit"};

// Divisions with entries for only a part of one model.
struct ScopedDivision {
  const char* model;
  Division division;
};
inline constexpr ScopedDivision kScopedDivisions[] = {
    {"gpt2", {"M2InOneLayer", "t=2", "M=t@*h.0.*"}},
    {"gpt2", {"N2InAttention", "d=2,t=2", "B=d;N=t@*.attn;M=t@*h.1.mlp.*"}},
    {"vit_3l", {"M3InTwoLayers", "t=3", "M=t@*layer.{0,2}.*"}},
    {"coatnet_64",
     {"H2InConvStagesN2InAttentionStages", "t=2",
      "H=t@stages.{0,1}.*;N=t@stages.{2,3}.*"}},
    {"coatnet_bias",
     {"H2InConvStagesN2InAttentionStages", "t=2",
      "H=t@stages.{0,1}.*;N=t@stages.{2,3}.*"}},
    {"coatnet_64",
     {"B2H2InTheFirstStage", "d=2,t=2", "B=d;H=t@stages.0;M=t@stages.3.*"}},
};

// For models with images.
inline constexpr Division kImageDivisions[] = {
    {"H2", "h=2", "H=h"},          {"H3", "h=3", "H=h"},
    {"HW2", "h=2,w=2", "H=h,W=w"}, {"H2B2", "d=2,h=2", "B=d;H=h"},
    {"N2H2", "t=2", "N=t;H=t"},
};

// Pipelines. p is not always the outermost axis, so the devices of a stage are
// not always adjacent.
inline constexpr Division kDepthDivisions[] = {
    {"D2", "p=2", "D=p"},
    {"D4", "p=4", "D=p"},
    {"D2B2MNV2", "p=2,d=2,t=2", "D=p,B=d;M=t,N=t,V=t"},
    {"D2B2MNVL2", "p=2,d=2,t=2", "D=p,B=d;M=t,N=t,V=t;L=t"},
    {"B2D2", "d=2,p=2", "B=d,D=p"},
};

// Pipelines whose stages have different divisions.
inline constexpr Division kStageDivisions[] = {
    {"D2B2ThenMNV2", "p=2,x=2", "D=p;B=x@stage(0);M=x,N=x,V=x@stage(1)"},
    {"D2MNV2ThenB2", "x=2,p=2", "D=p;M=x,N=x,V=x@stage(0);B=x@stage(1)"},
    {"D2B4ThenB2MNV2", "p=2,x=2,y=2",
     "D=p;B=x+y@stage(0);B=x@stage(1);M=y,N=y,V=y@stage(1)"},
    {"D2H2ThenN2", "p=2,x=2", "D=p;H=x@stage(0);N=x@stage(1)"},
    {"D2B2ThenN2", "p=2,x=2", "D=p;B=x@stage(0);N=x@stage(1)"},
};

inline constexpr const char* kModels[] = {"bert_mlm",     "coatnet_64", "gpt2",
                                          "coatnet_bias", "gpt2_4l",    "t5",
                                          "vit",          "vit_3l"};
inline constexpr const char* kConvModels[] = {"coatnet_64", "coatnet_bias"};

struct DividedCase {
  const char* model;
  Division division;
};

// All cases: each model with each division that applies to it. Divisions that
// differ between stages run on one text model, one image model and the models
// with convolutions.
inline std::vector<DividedCase> DividedCases() {
  std::vector<DividedCase> cases;
  for (const char* model : kModels) {
    for (const Division& division : kDivisions)
      cases.push_back({model, division});
    for (const Division& division : kDepthDivisions)
      cases.push_back({model, division});
  }
  for (const char* model : kConvModels)
    for (const Division& division : kImageDivisions)
      cases.push_back({model, division});
  for (const char* model : kLongModels)
    for (const Division& division : kLongDivisions)
      cases.push_back({model, division});
  for (const char* model : kTensorModels)
    for (const Division& division : kTensorDivisions)
      cases.push_back({model, division});
  for (const ScopedDivision& scoped : kScopedDivisions)
    cases.push_back({scoped.model, scoped.division});
  for (const char* model : {"gpt2_4l", "vit_3l"})
    for (int i : {0, 1, 2}) cases.push_back({model, kStageDivisions[i]});
  for (const char* model : kConvModels)
    for (int i : {3, 4}) cases.push_back({model, kStageDivisions[i]});
  return cases;
}

inline bool TakesText(std::string_view model) {
  return model.substr(0, 3) == "gpt" || model == "t5" || model == "bert_mlm";
}

}  // namespace partita::e2e

#endif  // PARTITA_TESTS_E2E_DIVISIONS_H_
