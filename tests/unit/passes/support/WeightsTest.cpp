#include "passes/support/Weights.h"

#include <gtest/gtest.h>

using namespace mica;

namespace {

TEST(ComposeNames, JoinsDifferentParts) {
  EXPECT_EQ(composeNames({"layers.3.self_attn.q_proj.weight", "layers.3.self_attn.k_proj.weight",
                          "layers.3.self_attn.v_proj.weight"}),
            "layers.3.self_attn.qkv_proj.weight");
  EXPECT_EQ(composeNames({"mlp.gate_proj.weight", "mlp.up_proj.weight"}),
            "mlp.gate_up_proj.weight");
  EXPECT_EQ(composeNames({"attention.wq.weight", "attention.wk.weight", "attention.wv.weight"}),
            "attention.wqkv.weight");
  EXPECT_EQ(composeNames({"ffn.w1", "ffn.w3"}), "ffn.w13");
}

TEST(ComposeNames, KeepsNamesOfDifferentShape) { EXPECT_EQ(composeNames({"a.b", "c"}), "a.b+c"); }

TEST(ComposeNames, SurvivesOneNameBeingPartOfTheOther) {
  EXPECT_EQ(composeNames({"w", "w_up"}), "w_w_up");
}

} // namespace
