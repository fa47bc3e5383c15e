#!/bin/sh
# The linker of `make wasm`. The module has libopus without its models; where MODELS names a folder with the library
# that has them, the same code is linked with it as well, into talkspurt_models.wasm beside the module: of two
# libraries that define a function, the first counts.
set -e
rust=$(rustc --print sysroot)
lld=$rust/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/rust-lld
[ "$1" = -flavor ] || set -- -flavor wasm "$@"
"$lld" "$@"
[ -n "$MODELS" ] || exit 0
for word; do
  shift
  case $word in
    */libopusic_sys-*) set -- "$@" "$MODELS/libopus.a" ;;
    */talkspurt_wasm.wasm) word=${word%wasm.wasm}models.wasm ;;
  esac
  set -- "$@" "$word"
done
exec "$lld" "$@"
