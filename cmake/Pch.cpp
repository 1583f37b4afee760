// Empty: the precompiled header needs a target with a source file.
