// has words that only a comment has, remove it
TEST(Words, OfSeveralTexts) {
  EXPECT_THAT(error, AnyOf("has one part", "and another part", "remove it"));
  EXPECT_EQ(choice(true), "is the first of two");
}
