#!/bin/bash -eu
# Builds the fuzz targets into $OUT, each with its seeds, as OSS-Fuzz calls it: in packages/native/fuzz, with SRC, OUT and
# WORK in the environment.

# The longest input of each, in bytes.
declare -A MAX_LEN=(
  [connection]=2048
  [frame_decoder]=4096
  [handshake_response]=4096
  [proxy_header]=2048
  [request_head]=4096
  [tls_session]=4096
)

export CARGO_TARGET_DIR="$WORK/target"
cargo fuzz build --fuzz-dir . -O

for target in "${!MAX_LEN[@]}"; do
  cp "$CARGO_TARGET_DIR/x86_64-unknown-linux-gnu/release/$target" "$OUT/"
  zip --quiet --junk-paths "$OUT/${target}_seed_corpus.zip" "seeds/$target"/*
  printf '[libfuzzer]\nmax_len = %s\n' "${MAX_LEN[$target]}" > "$OUT/$target.options"
done
for target in connection request_head; do
  cp request_head.dict "$OUT/$target.dict"
done
