print("is the second of two")
