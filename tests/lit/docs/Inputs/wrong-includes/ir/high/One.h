class High {};
