// has words that only a comment has, remove it
TEST(Words, OfSeveralTexts) {
  EXPECT_THAT(error, AnyOf("has one part", "and another part", "remove it"));
  EXPECT_EQ(choice(true), "is the first of two");
  const std::string said = "is a symbolic link; remove it";
  EXPECT_EQ(named("f"), said);
  auto read = parse("has words that are only given to what is tested; remove it");
}
