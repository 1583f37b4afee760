class High;
