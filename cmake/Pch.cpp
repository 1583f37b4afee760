// Nothing: this file exists so that the precompiled header has a target to belong to.
