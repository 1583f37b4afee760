//===- RopeFrequenciesTest.cpp - scaling of rope's frequencies ------------===//

#include "ir/Mica/RopeFrequencies.h"
#include "ir/Mica/Mica.h"

#include "gtest/gtest.h"

#include <cmath>
#include <map>

using namespace mlir;
using namespace mica;

namespace {

class RopeFrequencies : public ::testing::Test {
protected:
  RopeFrequencies() : builder(&context) { context.loadDialect<MicaDialect>(); }

  FloatAttr f64(double value) { return builder.getF64FloatAttr(value); }

  void expectNear(const SmallVector<float> &actual, const std::map<int, double> &expected) {
    for (auto [index, value] : expected)
      EXPECT_NEAR(actual[index], value, 2e-7 * value) << "frequency " << index;
  }

  MLIRContext context;
  Builder builder;
  float amplitude = 0;
};

TEST_F(RopeFrequencies, PlainArePowersOfTheta) {
  expectNear(ropeFrequencies(4, 10000, nullptr, 0, amplitude), {{0, 1.0}, {1, 0.01}});
  EXPECT_EQ(amplitude, 1.0f);
}

TEST_F(RopeFrequencies, LinearDividesEveryOne) {
  auto scaling = LinearScalingAttr::get(&context, f64(4));
  expectNear(ropeFrequencies(4, 10000, scaling, 0, amplitude), {{0, 0.25}, {1, 0.0025}});
}

// The first frequencies are those of the whole head, not those of a smaller one.
TEST_F(RopeFrequencies, ProportionalKeepsTheFirstPairs) {
  auto scaling = ProportionalScalingAttr::get(&context, 2, f64(4));
  SmallVector<float> frequencies = ropeFrequencies(8, 10000, scaling, 0, amplitude);
  expectNear(frequencies, {{0, 0.25}, {1, 0.025}});
  EXPECT_EQ(frequencies[2], 0);
  EXPECT_EQ(frequencies[3], 0);
  EXPECT_EQ(amplitude, 1.0f);
}

// The worked example of YaRN: D = 64, theta = 1e6, original context 2048, factor 16, beta 32 and 1:
// low 5, high 14.
TEST_F(RopeFrequencies, YarnRampsBetweenLowAndHigh) {
  auto scaling =
      YarnScalingAttr::get(&context, f64(16), f64(32), f64(1), f64(1.25), 2048, 31, true);
  expectNear(ropeFrequencies(64, 1e6, scaling, 0, amplitude), {{0, 1.0},
                                                               {4, 0.177827941},
                                                               {5, 0.115478198},
                                                               {8, 0.0217406589},
                                                               {12, 0.00152300776},
                                                               {13, 0.000608623545},
                                                               {14, 0.000148210857},
                                                               {31, 9.62454079e-08}});
  EXPECT_EQ(amplitude, 1.25f);
}

// The same without floor and ceil: low 5.376, high 13.4035.
TEST_F(RopeFrequencies, YarnWithoutTruncation) {
  auto scaling =
      YarnScalingAttr::get(&context, f64(16), f64(32), f64(1), f64(1.25), 2048, 31, false);
  expectNear(ropeFrequencies(64, 1e6, scaling, 0, amplitude), {{0, 1.0},
                                                               {5, 0.115478198},
                                                               {6, 0.069524587},
                                                               {8, 0.0219320463},
                                                               {12, 0.00127317484},
                                                               {13, 0.000400302148},
                                                               {14, 0.000148210857},
                                                               {31, 9.62454079e-08}});
}

// Llama 3.1: factor 8, low 1, high 4, context 8192, theta 5e5. Wavelengths above 8192 are divided
// by 8, below 2048 kept.
TEST_F(RopeFrequencies, Llama3InterpolatesBetweenWavelengths) {
  auto scaling = Llama3ScalingAttr::get(&context, f64(8), f64(1), f64(4), 8192);
  SmallVector<float> plain = ropeFrequencies(128, 5e5, nullptr, 0, amplitude);
  SmallVector<float> scaled = ropeFrequencies(128, 5e5, scaling, 0, amplitude);
  for (int i = 0; i < 64; ++i) {
    double wavelength = 2 * M_PI / plain[i];
    if (wavelength < 2048)
      EXPECT_FLOAT_EQ(scaled[i], plain[i]) << i;
    else if (wavelength > 8192)
      EXPECT_FLOAT_EQ(scaled[i], plain[i] / 8) << i;
    else {
      double smooth = (8192 / wavelength - 1) / 3;
      EXPECT_NEAR(scaled[i], (1 - smooth) * plain[i] / 8 + smooth * plain[i], 1e-6 * plain[i]) << i;
    }
  }
}

// One of two sets, by the length alone; one amplitude for both.
TEST_F(RopeFrequencies, LongRopeChoosesByTheLength) {
  auto factors = [&](std::initializer_list<double> values) {
    return builder.getDenseF64ArrayAttr(values);
  };
  auto scaling =
      LongRopeScalingAttr::get(&context, factors({1, 2}), factors({4, 5}), f64(1.5), 4096);
  EXPECT_EQ(ropeLengthThreshold(scaling), 4096);
  expectNear(ropeFrequencies(4, 10000, scaling, 4096, amplitude), {{0, 1.0}, {1, 0.005}});
  expectNear(ropeFrequencies(4, 10000, scaling, 4097, amplitude), {{0, 0.25}, {1, 0.002}});
  EXPECT_EQ(amplitude, 1.5f);
}

// D = 8, theta = 1e4, 128 positions, factor 4: at 192 positions s = 3, theta = 1e4 * 3^(4/3); at
// 129 s = 1.03125.
TEST_F(RopeFrequencies, DynamicGrowsThetaAboveTheThreshold) {
  auto scaling = DynamicScalingAttr::get(&context, f64(4), 128);
  EXPECT_EQ(ropeLengthThreshold(scaling), 128);
  EXPECT_EQ(ropeFrequencies(8, 1e4, scaling, 128, amplitude),
            ropeFrequencies(8, 1e4, nullptr, 0, amplitude));
  expectNear(ropeFrequencies(8, 1e4, scaling, 192, amplitude),
             {{0, 1.0}, {1, 0.0693361274}, {2, 0.00480749857}, {3, 0.000333333333}});
  expectNear(ropeFrequencies(8, 1e4, scaling, 129, amplitude),
             {{0, 1.0}, {1, 0.0989795206}, {3, 0.000969696970}});
  EXPECT_EQ(ropeLengthThreshold(LinearScalingAttr::get(&context, f64(4))), std::nullopt);
}

} // namespace
