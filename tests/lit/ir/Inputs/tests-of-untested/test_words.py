run("has words that a script only gives; remove it")
