//===- TargetClones.h - function multiversioning ----------------*- C++ -*-===//
#ifndef MICA_IR_QUANTIZE_TARGETCLONES_H
#define MICA_IR_QUANTIZE_TARGETCLONES_H

/// Compiles a function for several generations of processors; the best one is selected at run time.
/// Multiplications and additions are not contracted to FMAs (see CMakeLists.txt), so that results
/// are identical.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
#define MICA_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MICA_CLONES
#endif

#endif // MICA_IR_QUANTIZE_TARGETCLONES_H
